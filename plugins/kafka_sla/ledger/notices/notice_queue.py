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
M = TypeVar("M")
BEGINNINGS = ("opened", "began")
"""Kinds of notices that something began: a miss, or a burn."""
Address = Callable[[str, str], object]
"""Who hears of an SLA through a channel by now, to be compared: the configuration may have changed since a notice was
queued."""
_GOES_ON = timedelta(days=1)
"""What opens later than this after the last opening of an incident is another incident."""


def _one_for_all(sla: str, channel: str) -> object:
    """The same people hear of all SLAs through a channel."""
    return channel


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
    """One message: the notices of one run and channel that belong to one incident, oldest first. Nobody else hears of
    their SLAs through the channel, nor of those that are named beside them."""

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
        """Send the waiting notices, oldest first within each channel. Returns how many were sent.

        Each notice is claimed in one transaction and marked as sent in another; none is open while it is sent. A notice
        that could not be sent waits for the next delivery. The others are sent before its error is raised, except those
        of its channel where the error is ReceiverUnavailable. None: all, `but` those channels.
        """

        def read_notice(_: Connection, rows: Sequence[Row[Any]]) -> N:
            return self._waiting.read(rows[0])

        return self._drain(
            self._unsent(slas, channels, but), slas, lambda _, row: [row], read_notice, send, _one_for_all
        )

    def deliver_together(
        self,
        send: Callable[[Batch[N]], None],
        name_causes: Callable[[Sequence[N]], Sequence[str]],
        slas: Sequence[str] | None = None,
        channels: Sequence[str] | None = None,
        *,
        address: Address = _one_for_all,
        but: Sequence[str] = (),
        unhurried: Sequence[str] = (),
        pause: timedelta = timedelta(),
    ) -> int:
        """As `deliver`, but with one message for all notices that share a cause and go to the same `address`; answers
        how many notices were sent. What is over belongs to the incident under which it was reported to begin.
        `name_causes`: from notices that something began to a name for the cause of each. Notices of other SLAs than
        these wait and keep nobody waiting. Channels that are `unhurried` hear that something is over at the first
        delivery after a `pause` since they were told that it began."""
        t = self._table.c
        waiting = self._unsent(slas, channels, but).where(~self._is_too_soon(unhurried, datetime.now(UTC), pause))
        with self._database.writing(f"messages of {self._table.name}") as connection:
            new = waiting.where(t.batch.is_(None)).order_by(t.seq).with_for_update(of=self._table)
            self._put_together(connection, connection.execute(new).all(), name_causes, address)

        def take(connection: Connection, lead: Row[Any]) -> list[Row[Any]]:
            own = address(lead.sla, lead.channel)
            unsent = self._unsent(slas, None, ()).where(t.batch == lead.batch).order_by(t.seq)
            rows = connection.execute(unsent.with_for_update(of=self._table))
            return [row for row in rows if address(row.sla, row.channel) == own]

        def read_batch(connection: Connection, rows: Sequence[Row[Any]]) -> Batch[N]:
            return self._batch(connection, rows, address)

        return self._drain(waiting.where(t.batch.is_not(None)), slas, take, read_batch, send, address)

    def without_end(self, slas: Sequence[str], since: datetime) -> list[N]:
        """Of what began after `since`: the notices that it did, to every channel whose end was not queued, although it
        goes on no more: a run that nobody was to be notified of found its end, or it is gone, since late facts or
        another configuration made it none."""
        t = self._table.c
        mine = t.sla.in_(slas), t.start_at >= since
        rows = self._database.rows(select(t.seq, t.thread, t.channel, t.kind).where(*mine))
        ended = {(row.thread, row.channel) for row in rows if row.kind == self._waiting.ends}
        begun = [row.seq for row in rows if row.kind == self._waiting.opens and (row.thread, row.channel) not in ended]
        over = self._waiting.rows.where(t.seq.in_(begun), ~self._waiting.is_open).order_by(t.seq)
        return [self._waiting.read(row) for row in self._database.rows(over)] if begun else []

    def repeat_together(
        self,
        send: Callable[[Batch[N]], None],
        slas: Sequence[str],
        channels: Sequence[str],
        *,
        address: Address = _one_for_all,
    ) -> int:
        """Tell these channels again what they were told that began and still goes on, one message for each incident
        and address; answers how many notices. Those that fail are left to the next time, and their errors raised after
        the others."""
        going_on, t = self._going_on(slas, channels), self._table.c
        rows = self._database.rows(going_on)
        failed: dict[str, Exception] = {}
        repeated = 0
        keys = [(row.channel, row.incident, str(address(row.sla, row.channel))) for row in rows]
        for (channel, *_), found in _by(keys, rows):
            if isinstance(failed.get(channel), ReceiverUnavailable):
                continue
            try:
                repeated += self._repeat(send, going_on.where(t.seq.in_([row.seq for row in found])), found)
            except Exception as error:
                failed[channel] = error
        if failed:
            raise _as_one(list(failed.values()))
        return repeated

    def _repeat(self, send: Callable[[Batch[N]], None], incident: Select[Any], found: Sequence[Row[Any]]) -> int:
        """An end that is queued meanwhile is sent afterwards, because both need the lock of the channel."""
        with self._database.sending(self._lock_name(found[0].channel)):
            notices = tuple(map(self._waiting.read, self._database.rows(incident.order_by(self._table.c.seq))))
            if notices:
                send(Batch(self._waiting.opens, found[0].channel, found[0].incident, notices, (), len(notices)))
        return len(notices)

    def _lock_name(self, channel: str) -> str:
        return f"{channel} ({self._table.name})"

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

    def _is_too_soon(self, channels: Sequence[str], now: datetime, pause: timedelta) -> ColumnElement[bool]:
        """Does a row of the table report the end of what its channel, one of these, was told within the `pause` before
        `now`, or not yet? Such a row is in no incident yet, so it keeps nothing of its incident waiting. What a clock
        that was ahead says was told later than now was told before."""
        begun, t = self._table.alias("beginning_of_it"), self._table.c
        of_it = exists().where(
            begun.c.thread == t.thread, begun.c.channel == t.channel, begun.c.kind == self._waiting.opens
        )
        news = of_it.where(or_(begun.c.sent_at.is_(None), begun.c.sent_at.between(now - pause, now)))
        return and_(t.kind == self._waiting.ends, t.channel.in_(channels), news)

    def _unsent(self, slas: Sequence[str] | None, channels: Sequence[str] | None, but: Sequence[str]) -> Select[Any]:
        t = self._table.c
        rows = self._waiting.rows.where(t.sent_at.is_(None), t.channel.not_in(but))
        if slas is not None:
            rows = rows.where(t.sla.in_(slas))
        if channels is not None:
            rows = rows.where(t.channel.in_(channels))
        return rows

    def _drain(
        self,
        rows: Select[Any],
        slas: Sequence[str] | None,
        take: Callable[[Connection, Row[Any]], list[Row[Any]]],
        read: Callable[[Connection, Sequence[Row[Any]]], M],
        send: Callable[[M], None],
        address: Address,
    ) -> int:
        """Send these rows, oldest first within each channel, each with the rows that `take` returns for it. Returns how
        many notices were sent."""
        t = self._table.c
        channels = self._database.rows(rows.with_only_columns(t.channel).group_by(t.channel).order_by(func.min(t.seq)))
        left: dict[int, Row[Any]] = {}
        errors: list[Exception] = []
        sent = 0
        for (channel,) in channels:
            of_channel = rows.where(t.channel == channel)
            with self._database.sending(self._lock_name(channel)):
                while claim := self._claim(of_channel, slas, left, take, read):
                    row, claimed, message = claim
                    seqs = [other.seq for other in claimed]
                    if _is_behind(row, left.values(), address):
                        left.update(zip(seqs, claimed, strict=True))
                        continue
                    try:
                        send(message)
                    except Exception as error:
                        self._mark(seqs, claimed_at=None)
                        left.update(zip(seqs, claimed, strict=True))
                        errors.append(error)
                        if isinstance(error, ReceiverUnavailable):
                            break
                        continue
                    self._mark(seqs, sent_at=datetime.now(UTC))
                    sent += len(seqs)
        if errors:
            raise _as_one(errors)
        return sent

    def _claim(
        self,
        rows: Select[Any],
        slas: Sequence[str] | None,
        left: Collection[int],
        take: Callable[[Connection, Row[Any]], list[Row[Any]]],
        read: Callable[[Connection, Sequence[Row[Any]]], M],
    ) -> tuple[Row[Any], list[Row[Any]], M] | None:
        """The next of these rows, the rows that are sent with it, and their message. Records that the rows may have
        been sent from now on. None: nothing is left to send."""
        with self._database.writing() as connection:
            row = connection.execute(self._next(rows, slas, left)).first()
            if row is None:
                return None
            claimed = take(connection, row)
            seqs = [other.seq for other in claimed]
            connection.execute(
                update(self._table).where(self._table.c.seq.in_(seqs)).values(claimed_at=datetime.now(UTC))
            )
            return row, claimed, read(connection, claimed)

    def _mark(self, seqs: Sequence[int], **values: datetime | None) -> None:
        with self._database.writing() as connection:
            connection.execute(update(self._table).where(self._table.c.seq.in_(seqs)).values(**values))

    def _next(self, rows: Select[Any], slas: Sequence[str] | None, left: Collection[int]) -> Select[Any]:
        """The oldest of these rows; never an end before its beginning is sent, nor what follows in an incident before
        what was first. Rows of other SLAs do not delay it, nor does what was `left`, which may go to others."""
        t, first = self._table.c, self._table.alias("first")
        waits = exists().where(
            or_(first.c.thread == t.thread, first.c.incident == t.incident),
            first.c.channel == t.channel,
            first.c.seq < t.seq,
            first.c.sent_at.is_(None),
            first.c.seq.not_in(left),
        )
        if slas is not None:
            waits = waits.where(first.c.sla.in_(slas))
        rows = rows.where(t.seq.not_in(left), ~waits)
        return rows.order_by(t.seq).limit(1).with_for_update(of=self._table)

    def _put_together(
        self,
        connection: Connection,
        rows: Sequence[Row[Any]],
        name_causes: Callable[[Sequence[N]], Sequence[str]],
        address: Address,
    ) -> None:
        """Give every row its incident and its message. What began and is over by now is told to be over after all
        that is over of what was told before: nobody has heard of it yet."""
        opened = [row for row in rows if row.kind == self._waiting.opens]
        causes = name_causes([self._waiting.read(row) for row in opened])
        keys = [(row.channel, cause) for row, cause in zip(opened, causes, strict=True)]
        for (channel, cause), found in _by(keys, opened):
            incident = self._open_incident(connection, channel, cause, found[0], address)
            self._keep(connection, found, incident or found[0].thread, cause)
        new = {(row.channel, row.thread) for row in opened}
        ended = [row for row in rows if row.kind == self._waiting.ends]
        under = [
            (row.channel, self._reported_under(connection, row), str((row.channel, row.thread) in new)) for row in ended
        ]
        for (_, incident, _), found in _by(under, ended):
            self._keep(connection, found, incident)

    def _keep(self, connection: Connection, rows: Sequence[Row[Any]], incident: str, cause: str | None = None) -> None:
        values = {"incident": incident, "batch": rows[0].seq, "shared_cause": cause}
        mine = self._table.c.seq.in_([row.seq for row in rows])
        connection.execute(update(self._table).where(mine).values(values))

    def _open_incident(
        self, connection: Connection, channel: str, cause: str, row: Row[Any], address: Address
    ) -> str | None:
        """The incident of this cause that goes on: some of it that the same people hear of is open, and was reported
        to begin within the last day."""
        t, own = self._table.c, address(row.sla, channel)
        recent = and_(t.start_at > row.start_at - _GOES_ON, t.seq < row.seq)
        mine = t.shared_cause == cause, t.channel == channel, t.kind == row.kind, recent
        going_on = select(t.incident, t.sla).where(*mine, self._waiting.is_open).order_by(t.seq)
        found = (other.incident for other in connection.execute(going_on) if address(other.sla, channel) == own)
        return next(found, None)

    def _reported_under(self, connection: Connection, row: Row[Any]) -> str:
        """The incident of the opening; the thread of its own for one that an earlier version reported."""
        t = self._table.c
        opening = select(t.incident).where(t.thread == row.thread, t.channel == row.channel)
        found: str | None = connection.execute(opening.where(t.kind == self._waiting.opens)).scalars().first()
        return found or row.thread

    def _batch(self, connection: Connection, rows: Sequence[Row[Any]], address: Address) -> Batch[N]:
        lead, t, read = rows[0], self._table.c, self._waiting.read
        of_it = t.incident == lead.incident, t.channel == lead.channel, t.kind == self._waiting.opens
        goes_on = and_(t.batch != lead.batch, ~self._is_over(until=lead.batch), self._waiting.is_open).label("goes_on")
        reported = self._waiting.rows.add_columns(goes_on).where(*of_it, t.batch <= lead.batch).order_by(t.seq)
        own = address(lead.sla, lead.channel)
        known = [row for row in connection.execute(reported) if address(row.sla, row.channel) == own]
        still_open = tuple(read(row) for row in known if row.goes_on)
        return Batch(lead.kind, lead.channel, lead.incident, tuple(map(read, rows)), still_open, max(len(known), 1))


def _by(keys: Sequence[tuple[str, ...]], rows: Sequence[Row[Any]]) -> Iterator[tuple[tuple[str, ...], list[Row[Any]]]]:
    """Rows with the same key, in their order."""
    keyed = sorted(zip(keys, rows, strict=True), key=lambda pair: (pair[0], pair[1].seq))
    for key, found in groupby(keyed, key=lambda pair: pair[0]):
        yield key, [row for _, row in found]


def _is_behind(row: Row[Any], left: Collection[Row[Any]], address: Address) -> bool:
    """Whether something is left that the same people are to hear first."""
    own = row.channel, address(row.sla, row.channel)
    return any(
        before.seq < row.seq
        and (before.thread == row.thread or (before.incident and before.incident == row.incident))
        and (before.channel, address(before.sla, before.channel)) == own
        for before in left
    )


def _as_one(errors: list[Exception]) -> Exception:
    return errors[0] if len(errors) == 1 else ExceptionGroup(f"{len(errors)} notices could not be sent", errors)
