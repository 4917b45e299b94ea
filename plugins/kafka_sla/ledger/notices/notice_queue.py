"""A table of notices that wait: each is sent once however many tasks try, alone or, where several share a cause, as one
message. Which belong together is written down before anything is sent, so a message that is sent again is the same one.
Knows no mail, not what a notice is about, and not what makes a cause a shared one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, and_, exists, func, or_, select, update

from kafka_sla.errors import ReceiverUnavailable
from kafka_sla.ledger.storage.database import Database

N = TypeVar("N")
BEGINNINGS = ("opened", "began")
"""Kinds of notices that something began: a miss, or a burn."""
_GOES_ON = timedelta(days=1)
"""What opens later than this after the last opening of an incident is another incident."""


@dataclass(frozen=True, slots=True)
class Waiting(Generic[N]):
    """Where notices wait, and what of them is an incident. The table has the columns `seq`, `kind`, `channel`, `sla`,
    `thread`, `start_at`, `queued_at`, `sent_at`, `incident`, `batch` and `shared_cause`."""

    table: Table
    rows: Select[Any]
    """Rows that `read` reads."""
    read: Callable[[Row[Any]], N]
    opens: str
    """Kind of a notice that something began; what it is about is an incident with others of the same cause."""
    ends: str
    """Kind of a notice that it is over."""
    is_open: ColumnElement[bool]
    """Does what a row of the table reported still go on, or what late facts have made of it?"""


@dataclass(frozen=True)
class Batch(Generic[N]):
    """One message: the notices of one run and channel that belong to one incident, oldest first."""

    kind: str
    channel: str
    incident: str
    """Thread of the first notice of the incident: a message replies to that one unless it is the first itself."""
    notices: tuple[N, ...]
    still_open: tuple[N, ...]
    """The openings of others of the incident that have been reported and are not over yet."""
    size: int
    """How many of the incident have been reported so far, with those of this message."""

    @property
    def is_single(self) -> bool:
        """Is it about one miss or burn, with nothing to say of others that were reported with it?"""
        return len(self.notices) == 1 and (self.kind in BEGINNINGS or self.size == 1)


def lock_of(sla: str) -> str:
    """Whoever queues a notice of the SLA holds it."""
    return f"notices {sla}"


class NoticeQueue(Generic[N]):
    """The notices of one table."""

    def __init__(self, database: Database, waiting: Waiting[N]) -> None:
        self._database, self._waiting, self._table = database, waiting, waiting.table

    def waiting(self, slas: Sequence[str] | None = None) -> list[N]:
        """Notices not sent yet."""
        rows = self._database.rows(self._unsent(slas, None, ()).order_by(self._table.c.seq))
        return [self._waiting.read(row) for row in rows]

    def deliver(
        self,
        send: Callable[[N], None],
        slas: Sequence[str] | None = None,
        channels: Sequence[str] | None = None,
        *,
        but: Sequence[str] = (),
    ) -> int:
        """Send what waits, oldest first, each inside its own transaction; answers how many were sent. A notice that
        could not be sent waits for the next delivery; the others are sent before its error is raised, but for those of
        its channel where that is ReceiverUnavailable. None: all, `but` those channels."""

        def send_row(_: Connection, row: Row[Any]) -> list[int]:
            send(self._waiting.read(row))
            return [row.seq]

        return self._drain(self._unsent(slas, channels, but), send_row)

    def deliver_together(
        self,
        send: Callable[[Batch[N]], None],
        name_causes: Callable[[Sequence[N]], Sequence[str]],
        slas: Sequence[str] | None = None,
        channels: Sequence[str] | None = None,
        *,
        but: Sequence[str] = (),
        unhurried: Sequence[str] = (),
        pause: timedelta = timedelta(),
    ) -> int:
        """As `deliver`, but with one message for all notices that share a cause; answers how many notices were sent.
        What is over belongs to the incident under which it was reported to begin. `name_causes`: from notices that
        something began to a name for the cause of each. Channels that are `unhurried` hear that something is over at
        the first delivery after a `pause` since they were told that it began."""
        t = self._table.c
        waiting = self._unsent(slas, channels, but).where(~self._is_too_soon(unhurried, datetime.now(UTC) - pause))
        with self._database.writing(f"messages of {self._table.name}") as connection:
            new = waiting.where(t.batch.is_(None)).order_by(t.seq).with_for_update(of=self._table)
            self._put_together(connection, connection.execute(new).all(), name_causes)

        def send_batch(connection: Connection, lead: Row[Any]) -> list[int]:
            mine = self._waiting.rows.where(t.batch == lead.batch, t.sent_at.is_(None)).order_by(t.seq)
            rows = connection.execute(mine).all()
            send(self._batch(connection, rows))
            return [row.seq for row in rows]

        return self._drain(waiting.where(t.batch == t.seq), send_batch)

    def repeat_together(self, send: Callable[[Batch[N]], None], slas: Sequence[str], channels: Sequence[str]) -> int:
        """Tell these channels again what they were told that began and still goes on, one message for each incident;
        answers how many notices. Those that fail are left to the next time, and their errors raised after the
        others."""
        going_on, t = self._going_on(slas, channels), self._table.c
        rows = self._database.rows(going_on)
        failed: dict[str, Exception] = {}
        repeated = 0
        for (channel, incident), found in _by([(row.channel, row.incident) for row in rows], rows):
            if isinstance(failed.get(channel), ReceiverUnavailable):
                continue
            try:
                repeated += self._repeat(send, going_on.where(t.channel == channel, t.incident == incident), found)
            except Exception as error:
                failed[channel] = error
        if failed:
            raise _as_one(list(failed.values()))
        return repeated

    def _repeat(self, send: Callable[[Batch[N]], None], incident: Select[Any], found: Sequence[Row[Any]]) -> int:
        """Nobody can queue an end while its beginning is sent again, which would reach the receiver after it."""
        with self._database.writing(*sorted({lock_of(row.sla) for row in found})) as connection:
            notices = tuple(map(self._waiting.read, connection.execute(incident.order_by(self._table.c.seq))))
            if notices:
                send(Batch(self._waiting.opens, found[0].channel, found[0].incident, notices, (), len(notices)))
        return len(notices)

    def _going_on(self, slas: Sequence[str], channels: Sequence[str]) -> Select[Any]:
        t = self._table.c
        told = self._waiting.rows.where(t.kind == self._waiting.opens, t.sent_at.is_not(None), t.incident.is_not(None))
        of = told.where(t.sla.in_(slas), t.channel.in_(channels))
        return of.where(self._waiting.is_open, ~self._is_over())

    def _is_over(self, until: int | None = None) -> ColumnElement[bool]:
        """Was the end of what a row of the table reported queued, with that batch or an earlier one? None: at all."""
        end, t = self._table.alias("end_of_it"), self._table.c
        of_it = exists().where(end.c.thread == t.thread, end.c.channel == t.channel, end.c.kind == self._waiting.ends)
        return of_it if until is None else of_it.where(end.c.batch <= until)

    def _is_too_soon(self, channels: Sequence[str], since: datetime) -> ColumnElement[bool]:
        """Does a row of the table report the end of what its channel, one of these, was not told before `since`? Such a
        row is in no incident yet, so it keeps nothing of its incident waiting."""
        begun, t = self._table.alias("beginning_of_it"), self._table.c
        of_it = exists().where(
            begun.c.thread == t.thread, begun.c.channel == t.channel, begun.c.kind == self._waiting.opens
        )
        news = of_it.where(or_(begun.c.sent_at.is_(None), begun.c.sent_at > since))
        return and_(t.kind == self._waiting.ends, t.channel.in_(channels), news)

    def _unsent(self, slas: Sequence[str] | None, channels: Sequence[str] | None, but: Sequence[str]) -> Select[Any]:
        t = self._table.c
        rows = self._waiting.rows.where(t.sent_at.is_(None), t.channel.not_in(but))
        if slas is not None:
            rows = rows.where(t.sla.in_(slas))
        if channels is not None:
            rows = rows.where(t.channel.in_(channels))
        return rows

    def _drain(self, rows: Select[Any], send: Callable[[Connection, Row[Any]], list[int]]) -> int:
        """Send what each of these rows stands for, and mark the notices that `send` returns; answers how many."""
        failed: dict[int, Exception] = {}
        unavailable: set[str] = set()
        sent = 0
        while True:
            with self._database.writing() as connection:
                row = connection.execute(self._next(rows, list(failed), unavailable)).first()
                if row is None:
                    break
                try:
                    seqs = send(connection, row)
                except Exception as error:
                    failed[row.seq] = error
                    if isinstance(error, ReceiverUnavailable):
                        unavailable.add(row.channel)
                    continue
                marked = update(self._table).where(self._table.c.seq.in_(seqs))
                connection.execute(marked.values(sent_at=datetime.now(UTC)))
            sent += len(seqs)
        if failed:
            raise _as_one(list(failed.values()))
        return sent

    def _next(self, rows: Select[Any], failed: Sequence[int], unavailable: Collection[str]) -> Select[Any]:
        """The oldest of these rows that nobody else is sending; never an end before its beginning is sent, nor what
        follows in an incident before what was first, nor what waits for a channel that is unavailable."""
        t, first = self._table.c, self._table.alias("first")
        waits = exists().where(
            or_(first.c.thread == t.thread, first.c.incident == t.incident),
            first.c.channel == t.channel,
            first.c.seq < t.seq,
            first.c.sent_at.is_(None),
        )
        rows = rows.where(t.seq.not_in(failed), t.channel.not_in(unavailable), ~waits)
        return rows.order_by(t.seq).limit(1).with_for_update(of=self._table, skip_locked=True)

    def _put_together(
        self, connection: Connection, rows: Sequence[Row[Any]], name_causes: Callable[[Sequence[N]], Sequence[str]]
    ) -> None:
        """Give every row its incident and its message."""
        opened = [row for row in rows if row.kind == self._waiting.opens]
        causes = name_causes([self._waiting.read(row) for row in opened])
        keys = [(row.channel, cause) for row, cause in zip(opened, causes, strict=True)]
        for (channel, cause), found in _by(keys, opened):
            incident = self._open_incident(connection, channel, cause, found[0])
            self._keep(connection, found, incident or found[0].thread, cause)
        ended = [row for row in rows if row.kind == self._waiting.ends]
        for (_, incident), found in _by([(row.channel, self._reported_under(connection, row)) for row in ended], ended):
            self._keep(connection, found, incident)

    def _keep(self, connection: Connection, rows: Sequence[Row[Any]], incident: str, cause: str | None = None) -> None:
        values = {"incident": incident, "batch": rows[0].seq, "shared_cause": cause}
        mine = self._table.c.seq.in_([row.seq for row in rows])
        connection.execute(update(self._table).where(mine).values(values))

    def _open_incident(self, connection: Connection, channel: str, cause: str, row: Row[Any]) -> str | None:
        """The incident of this cause that goes on: some of it is open, and was reported to begin within the last
        day."""
        t = self._table.c
        recent = and_(t.start_at > row.start_at - _GOES_ON, t.seq < row.seq)
        known = select(t.incident).where(t.shared_cause == cause, t.channel == channel, t.kind == row.kind, recent)
        going_on = known.where(self._waiting.is_open).order_by(t.seq).limit(1)
        found: str | None = connection.execute(going_on).scalar_one_or_none()
        return found

    def _reported_under(self, connection: Connection, row: Row[Any]) -> str:
        """The incident of the opening; the thread of its own for one that an earlier version reported."""
        t = self._table.c
        opening = select(t.incident).where(t.thread == row.thread, t.channel == row.channel)
        found: str | None = connection.execute(opening.where(t.kind == self._waiting.opens)).scalars().first()
        return found or row.thread

    def _batch(self, connection: Connection, rows: Sequence[Row[Any]]) -> Batch[N]:
        lead, t, read = rows[0], self._table.c, self._waiting.read
        reported = and_(
            t.incident == lead.incident, t.channel == lead.channel, t.kind == self._waiting.opens, t.batch <= lead.batch
        )
        size = connection.execute(select(func.count()).where(reported)).scalar_one()
        goes_on = and_(~self._is_over(until=lead.batch), self._waiting.is_open)
        others = self._waiting.rows.where(reported, t.batch != lead.batch, goes_on)
        still_open = tuple(read(row) for row in connection.execute(others.order_by(t.seq)))
        return Batch(lead.kind, lead.channel, lead.incident, tuple(map(read, rows)), still_open, max(size, 1))


def _by(keys: Sequence[tuple[str, str]], rows: Sequence[Row[Any]]) -> Iterator[tuple[tuple[str, str], list[Row[Any]]]]:
    """Rows with the same key, in their order."""
    keyed = sorted(zip(keys, rows, strict=True), key=lambda pair: (pair[0], pair[1].seq))
    for key, found in groupby(keyed, key=lambda pair: pair[0]):
        yield key, [row for _, row in found]


def _as_one(errors: list[Exception]) -> Exception:
    return errors[0] if len(errors) == 1 else ExceptionGroup(f"{len(errors)} notices could not be sent", errors)
