"""Mails that are sent once however many tasks try: digests, and alarms about late runs. A mail that fails is not
recorded, so the next try sends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, insert, select

from kafka_sla.ledger.storage.database import Database
from kafka_sla.ledger.storage.schema import LATE_RUNS, SENT_DIGESTS
from kafka_sla.model.entities import Digest, Interval

_RENOTIFY = timedelta(hours=1)
"""A pipeline that is slow day after day is reported no more often."""


class SentOnce:
    """The mails that the ledger remembers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def send_digest(self, digest: Digest, period: Interval, recipient: str, send: Callable[[], None]) -> bool:
        """Call `send` unless this digest of this period was sent to the recipient. Returns whether it was called."""
        row = _digest_row(digest, period, recipient)
        return self._send(SENT_DIGESTS, [(row, _same(SENT_DIGESTS, row))], send)

    def digest_sent(self, digest: Digest, period: Interval, recipient: str) -> bool:
        """Whether this digest of this period was sent to the recipient."""
        with self._database.reading() as connection:
            return _exists(connection, SENT_DIGESTS, _same(SENT_DIGESTS, _digest_row(digest, period, recipient)))

    def send_late_run(self, late: Mapping[str, datetime | None], end: datetime, send: Callable[[], None]) -> bool:
        """Call `send` if one of the late clusters is news for the run whose interval ends at `end`. Returns whether it
        was called.

        `late`: clusters, and until when each is published. A cluster is no news while nothing of it was published since
        it was reported, nor within an hour.
        """
        t, rows = LATE_RUNS.c, []
        for name, until in sorted(late.items()):
            since = t.interval_end > min(until, end - _RENOTIFY) if until else t.interval_end.is_not(None)
            rows.append(({"cluster": name, "interval_end": end}, and_(t.cluster == name, since)))
        return self._send(LATE_RUNS, rows, send)

    def _send(
        self, table: Table, rows: Sequence[tuple[dict[str, Any], ColumnElement[bool]]], send: Callable[[], None]
    ) -> bool:
        """Call `send` and record the new rows: those for which the table holds no row that fits their condition."""
        with self._database.sending(table.name):
            with self._database.reading() as connection:
                new_rows = [row for row, known in rows if not _exists(connection, table, known)]
            if new_rows:
                send()
                with self._database.writing() as connection:
                    connection.execute(insert(table), new_rows)
        return bool(new_rows)


def _digest_row(digest: Digest, period: Interval, recipient: str) -> dict[str, Any]:
    return {"digest": digest.name, "period_start": period.start, "recipient": recipient}


def _same(table: Table, row: Mapping[str, Any]) -> ColumnElement[bool]:
    return and_(*(table.c[name] == value for name, value in row.items()))


def _exists(connection: Connection, table: Table, known: ColumnElement[bool]) -> bool:
    return connection.execute(select(table).where(known).limit(1)).first() is not None
