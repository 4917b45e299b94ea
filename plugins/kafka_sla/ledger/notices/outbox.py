"""Messages that are sent once however many tasks try: notices of misses wait in a queue, digests and alarms about late
runs go out at once. What fails is not recorded, and is sent by the next try. Knows no mail."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Connection, Row, Select, Table, and_, delete, exists, insert, or_, select

from kafka_sla.ledger.notices.notice_queue import NoticeQueue, Waiting, lock_of
from kafka_sla.ledger.storage.database import Database
from kafka_sla.ledger.storage.schema import LATE_RUNS, NOTICES, SENT_DIGESTS, SLA_MISSES
from kafka_sla.model.entities import Digest, Interval, Miss

NoticeKind = Literal["opened", "recovered"]
MAIL = "mail"
ASSET = "asset"
"""Other people's DAGs that wait for an Airflow asset."""
_RENOTIFY = timedelta(hours=1)
"""A pipeline that is slow day after day is reported no more often."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to tell: a miss as it was when the notice was queued."""

    kind: NoticeKind
    miss: Miss
    run_url: str | None = None
    thread: str = ""
    """Id of the miss under which the incident was first told; another than the miss's own when late facts moved its
    start, and numbered when it was told again. The outbox sets it."""
    channel: str = MAIL
    """Who is told; each channel is told on its own, so that one that fails makes no other tell twice."""
    incident: str = ""
    """Thread of the first notice of its incident; `ledger.incidents` sets it."""
    team: str | None = None
    """The SLA's when the miss was told to open: a receiver may know the miss by it. None: a version that kept none."""
    known_until: datetime | None = field(default=None, compare=False)
    """How far the miss was known to reach, by now; the outbox sets it."""


@dataclass(frozen=True, slots=True)
class _Content:
    """What of a notice is stored as JSON."""

    miss: Miss
    run_url: str | None
    team: str | None = None


_CODEC = TypeAdapter(_Content)


class Outbox:
    """The messages of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.queue = NoticeQueue(database, _WAITING)
        """Delivers, alone or together, what waits."""

    def enqueue(self, notice: Notice) -> bool:
        """Queue a notice unless the incident was told already; a recovery only when its opening was, each time that it
        was. A miss that goes on although it was told to be over is told again. Was something queued?"""
        with self._database.writing(lock_of(notice.miss.sla)) as connection:
            told = _told(connection, notice)
            rows = _recovered(notice, told) if notice.kind == "recovered" else _opened(connection, notice, told)
            if rows:
                connection.execute(insert(NOTICES), rows)
            return bool(rows)

    def end(self, opened: Notice, miss: Miss, run_url: str | None) -> bool:
        """Queue, under what was told to open, that the miss it has become is over, unless that was queued, or it goes
        on by now. Was it queued?"""
        t = NOTICES.c
        with self._database.writing(lock_of(miss.sla)) as connection:
            of_it = t.sla == miss.sla, t.thread == opened.thread, t.channel == opened.channel
            told = connection.execute(select(NOTICES, _OPEN.label("goes_on")).where(*of_it)).all()
            over = _recovered(Notice("recovered", miss, run_url, channel=opened.channel), told)
            if not over or any(row.goes_on for row in told):
                return False
            connection.execute(insert(NOTICES), over)
            return True

    def send_digest_once(self, digest: Digest, period: Interval, recipient: str, send: Callable[[], None]) -> bool:
        """Call `send` unless this digest of this period was sent to the recipient; was it called?"""
        row = _digest_row(digest, period, recipient)
        return self._send_once(SENT_DIGESTS, [(row, _same(SENT_DIGESTS, row))], send)

    def digest_sent(self, digest: Digest, period: Interval, recipient: str) -> bool:
        with self._database.reading() as connection:
            return _exists(connection, SENT_DIGESTS, _same(SENT_DIGESTS, _digest_row(digest, period, recipient)))

    def send_late_once(self, late: Mapping[str, datetime | None], end: datetime, send: Callable[[], None]) -> bool:
        """Call `send` when one of the late clusters is news for the run whose interval ends at `end`; was it called?

        `late`: clusters, and until when each is published. A cluster is no news while nothing of it was published
        since it was reported, nor within an hour.
        """
        t, rows = LATE_RUNS.c, []
        for name, until in sorted(late.items()):
            since = t.interval_end > min(until, end - _RENOTIFY) if until else t.interval_end.is_not(None)
            rows.append(({"cluster": name, "interval_end": end}, and_(t.cluster == name, since)))
        return self._send_once(LATE_RUNS, rows, send)

    def _send_once(
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


def _told(connection: Connection, notice: Notice) -> list[Row[Any]]:
    """All that the notice's channel heard in the threads of this miss, or of one that overlapped it in time and is no
    miss of its own any more: late facts moved the start of the same incident, and with it the id."""
    miss, t = notice.miss, NOTICES.c
    current = exists().where(SLA_MISSES.c.miss_id == t.miss_id)
    moved = and_(t.known_until > miss.start, ~current)
    if miss.end is not None:
        moved = and_(moved, t.start_at < miss.end)
    heard = t.sla == miss.sla, t.channel == notice.channel
    same = select(t.thread).where(*heard, or_(t.miss_id == miss.id, moved))
    return list(connection.execute(select(NOTICES).where(*heard, t.thread.in_(same)).order_by(t.seq)))


def _recovered(notice: Notice, told: Sequence[Row[Any]]) -> list[dict[str, Any]]:
    """What is to be queued: an end of each thread that has none."""
    ended = {row.thread for row in told if row.kind == "recovered"}
    going_on = [row for row in told if row.kind == "opened" and row.thread not in ended]
    return [
        _row(replace(notice, team=json.loads(row.notice).get("team")), row.thread) | {"miss_id": row.miss_id}
        for row in going_on
    ]


def _opened(connection: Connection, notice: Notice, told: Sequence[Row[Any]]) -> list[dict[str, Any]]:
    """What is to be queued, if anything. A miss that goes on takes back its end where nobody has been told of it, and
    is told anew, in a thread of its own, where somebody has."""
    ends = [row for row in told if row.kind == "recovered"]
    opened = [row for row in told if row.kind == "opened"]
    if not opened:
        return [_row(notice, notice.miss.id)]
    going_on = {row.thread for row in opened} - {row.thread for row in ends}
    if going_on or notice.miss.end or not _goes_on(connection, notice.miss):
        return []
    t = NOTICES.c
    if unsent := [row.seq for row in ends if row.sent_at is None]:
        connection.execute(delete(NOTICES).where(t.seq.in_(unsent), t.claimed_at.is_(None)))
        return []  # an end that is claimed may have been sent: the run after it is marked reports the miss again
    connection.execute(delete(NOTICES).where(t.seq.in_([row.seq for row in told])))
    before, _, number = opened[-1].thread.partition("-")
    return [_row(notice, f"{before}-{int(number or 1) + 1}")]


def _goes_on(connection: Connection, miss: Miss) -> bool:
    """Whether the miss is open by now: it may have been read before another run judged it."""
    return _exists(connection, SLA_MISSES, and_(SLA_MISSES.c.miss_id == miss.id, SLA_MISSES.c.state == "open"))


def stored_notices() -> Select[Any]:
    """Rows that `notice_of` reads."""
    return select(NOTICES)


def _row(notice: Notice, thread: str) -> dict[str, Any]:
    miss = notice.miss
    return {
        "miss_id": miss.id,
        "kind": notice.kind,
        "channel": notice.channel,
        "sla": miss.sla,
        "thread": thread,
        "start_at": miss.start,
        "known_until": miss.end or miss.opened_at,
        "notice": _CODEC.dump_json(_Content(miss, notice.run_url, notice.team)).decode(),
        "queued_at": datetime.now(UTC),
    }


def notice_of(row: Row[Any]) -> Notice:
    """The notice that a row holds."""
    stored = json.loads(row.notice)
    content = _CODEC.validate_python(stored)
    under = row.thread, row.channel, row.incident or ""
    return Notice(row.kind, content.miss, content.run_url, *under, content.team, row.known_until)


_OPEN = exists().where(
    SLA_MISSES.c.sla == NOTICES.c.sla, SLA_MISSES.c.state == "open", SLA_MISSES.c.start_at < NOTICES.c.known_until
)
"""The reported miss is open at present, or what late facts have made of it; reruns may have removed it."""
_WAITING = Waiting(NOTICES, stored_notices(), notice_of, "opened", "recovered", _OPEN)
