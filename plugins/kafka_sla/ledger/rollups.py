"""Rollups of SLAs in the SQL database: windows for a day, slots for days, hours and days for ever. Judges nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Double,
    FromClause,
    LargeBinary,
    Row,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from kafka_sla.ledger.observed_time import merged as merged_spans
from kafka_sla.ledger.storage.database import Database, UtcTime
from kafka_sla.ledger.storage.schema import METADATA
from kafka_sla.model.entities import EVERYTHING, Interval, SlaWindow, ceil_time, floor_time
from kafka_sla.sla.rollups import (
    DAY_MS,
    HOUR_MS,
    SLOT_MS,
    SUMMED,
    RecordStats,
    Rollup,
    Sums,
    judged,
    merged,
    packed_histogram,
    unpacked_histogram,
)
from kafka_sla.sla.windows.cells import packed_cells, unpacked_cells

SLOTS_KEPT = timedelta(days=8)
"""How far before the newest slot the slots of five minutes are kept: a week, and a day to look back from."""

WINDOWS_KEPT = timedelta(hours=26)
"""How far before the newest slot single windows are kept: of older days the rows are in one file and not in 288."""

SLA_ROLLUPS = Table(
    "sla_rollups",
    METADATA,
    Column("sla", Text, primary_key=True),
    Column("width_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("start_at", UtcTime, primary_key=True),
    Column("good_ms", BigInteger, nullable=False),
    Column("bad_ms", BigInteger, nullable=False),
    Column("excluded_ms", BigInteger, nullable=False),
    Column("unknown_ms", BigInteger, nullable=False),
    Column("records_due", BigInteger, nullable=False),
    Column("records_late", BigInteger, nullable=False),
    Column("records_late_low", BigInteger, nullable=False),
    Column("records_late_high", BigInteger, nullable=False),
    Column("records_in_unknown_time", BigInteger, nullable=False),
    Column("worst_latency_ms", Double),
    Column("worst_latency_low_ms", Double),
    Column("worst_latency_high_ms", Double),
    Column("max_latency_ms", BigInteger),
    Column("all_consumed", BigInteger),
    Column("all_produced", BigInteger),
)
ROLLUP_DETAILS = Table(
    "sla_rollup_details",
    METADATA,
    Column("sla", Text, primary_key=True),
    Column("width_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("start_at", UtcTime, primary_key=True),
    Column("histogram", LargeBinary, nullable=False),
    Column("cells", LargeBinary, nullable=False),
)
_BOTH = (SLA_ROLLUPS, ROLLUP_DETAILS)
_COLUMNS = SLA_ROLLUPS.c.keys()
_NUMBERS = (*SUMMED, "worst_latency_ms", "worst_latency_low_ms", "worst_latency_high_ms", "max_latency_ms")


@dataclass(frozen=True, slots=True)
class Packed:
    """One stored rollup whose histogram and cells are still packed: a page unpacks only what it draws."""

    start: datetime
    rollup: Rollup
    """Without histogram and cells."""
    histogram: bytes
    cells: bytes


class Rollups:
    """The rollups of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def replace(self, sla: str, interval: Interval, parts: Sequence[Rollup], width_ms: int) -> None:
        """Put these windows or slots, all of one width, in the place of all of the interval, which is whole slots, and
        add slots, hours and days up anew."""
        slots = _grouped(parts, SLOT_MS) if width_ms < SLOT_MS else parts
        with self._database.writing(f"sla {sla}") as connection:
            _delete(connection, sla, range(SLOT_MS), interval)
            if width_ms < SLOT_MS:
                _put(connection, sla, width_ms, interval, parts)
            _put(connection, sla, SLOT_MS, interval, slots)
            hours = _put_wider(connection, sla, HOUR_MS, SLOT_MS, interval, slots)
            _put_wider(connection, sla, DAY_MS, HOUR_MS, _whole_spans(interval, HOUR_MS), hours)
            _forget_old(connection, sla)

    def keep_windows(self, slas: Sequence[str], until: datetime) -> frozenset[str]:
        """Of which of these SLAs would single windows just before this time be kept? Not where newer slots are there
        that outlive them."""
        t = SLA_ROLLUPS.c
        newest = select(t.sla, func.max(t.start_at)).where(t.sla.in_(slas), t.width_ms == SLOT_MS).group_by(t.sla)
        last: dict[str, datetime] = dict(self._database.rows(newest))
        return frozenset(sla for sla in slas if sla not in last or until > last[sla] - WINDOWS_KEPT)

    def slots_since(self, slas: Sequence[str]) -> datetime | None:
        """From when on the slots of all these SLAs are kept, for the next hour at least; None where there are none."""
        t = SLA_ROLLUPS.c
        newest = select(func.max(t.start_at)).where(t.sla.in_(slas), t.width_ms == SLOT_MS)
        with self._database.reading() as connection:
            last: datetime | None = connection.execute(newest).scalar_one()
        return last and last - SLOTS_KEPT + timedelta(hours=1)

    def unknown_spans(self, slas: Sequence[str], interval: Interval) -> list[Interval]:
        """The time in which some of these SLAs were judged, and every verdict of all of them was unknown: whole slots
        of five minutes while these are kept, afterwards whole hours."""
        widths = (SLOT_MS, HOUR_MS)
        starts = [
            (row.start_at, width) for width in widths for row in self._database.rows(_unknown(slas, width, interval))
        ]
        return merged_spans(Interval(start, start + timedelta(milliseconds=width)) for start, width in starts)

    def read(self, sla: str, width_ms: int, interval: Interval) -> list[Packed]:
        """The rollups of this width that start in the interval, in time order."""
        return [_packed(row) for row in self._database.rows(_rows(sla, width_ms, interval))]

    def whole(self, sla: str, width_ms: int, interval: Interval) -> list[Rollup]:
        """The same, unpacked."""
        return [_whole(row) for row in self._database.rows(_rows(sla, width_ms, interval))]

    def newest_slots(self, slas: Sequence[str], since: datetime | None = None) -> dict[str, Packed]:
        """The newest slot of five minutes of each SLA that has one; those that start `since` then come in one query."""
        found: dict[str, Packed] = {}
        newest = _joined().order_by(SLA_ROLLUPS.c.start_at.desc()).limit(1)
        with self._database.reading() as connection:
            if since:
                recent = _rows_since(slas, SLOT_MS, since)
                found = {row.sla: _packed(row) for row in connection.execute(recent).all()}
            for sla in [sla for sla in slas if sla not in found]:
                mine = newest.where(SLA_ROLLUPS.c.sla == sla, SLA_ROLLUPS.c.width_ms == SLOT_MS)
                if row := connection.execute(mine).first():
                    found[sla] = _packed(row)
        return found

    def starts(self, slas: Sequence[str], width_ms: int, interval: Interval) -> dict[str, set[datetime]]:
        """Which rollups of this width there are of each SLA."""
        rows = select(SLA_ROLLUPS.c.sla, SLA_ROLLUPS.c.start_at).where(_of(SLA_ROLLUPS, slas, width_ms, interval))
        found: dict[str, set[datetime]] = {sla: set() for sla in slas}
        for sla, start in self._database.rows(rows):
            found[sla].add(start)
        return found

    def worst_by_sla(self, slas: Sequence[str], width_ms: int, interval: Interval) -> dict[str, list[tuple[Any, ...]]]:
        """Start, worst latency and threshold of each rollup of these SLAs, in time order."""
        t = SLA_ROLLUPS.c
        rows = select(t.sla, t.start_at, t.worst_latency_ms, t.max_latency_ms).where(
            _of(SLA_ROLLUPS, slas, width_ms, interval)
        )
        found: dict[str, list[tuple[Any, ...]]] = {sla: [] for sla in slas}
        for sla, start, worst_ms, threshold_ms in self._database.rows(rows.order_by(t.sla, t.start_at)):
            found[sla].append((start, worst_ms, threshold_ms))
        return found

    def numbers(self, sla: str, width_ms: int, interval: Interval) -> list[Rollup]:
        """As `read`, without histograms and cells."""
        rows = select(SLA_ROLLUPS).where(_of(SLA_ROLLUPS, [sla], width_ms, interval))
        return [_numbers(row) for row in self._database.rows(rows.order_by(SLA_ROLLUPS.c.start_at))]

    def judged_by_day(self, slas: Sequence[str], interval: Interval) -> dict[str, dict[datetime, timedelta]]:
        """How much of each day of the interval these SLAs were judged in."""
        t = SLA_ROLLUPS.c
        judged = (t.good_ms + t.bad_ms + t.excluded_ms + t.unknown_ms).label("judged_ms")
        rows = select(t.sla, t.start_at, judged).where(_of(SLA_ROLLUPS, slas, DAY_MS, interval))
        found: dict[str, dict[datetime, timedelta]] = {sla: {} for sla in slas}
        for row in self._database.rows(rows):
            found[row.sla][row.start_at] = timedelta(milliseconds=row.judged_ms)
        return found

    def sums(self, slas: Sequence[str], width_ms: int, interval: Interval) -> dict[str, Sums]:
        """The rollups of each SLA added up by the database; nothing for an SLA without any."""
        t = SLA_ROLLUPS.c
        totals = [func.sum(cast(t[name], Double)).label(name) for name in SUMMED]
        rows = select(t.sla, *totals).where(_of(SLA_ROLLUPS, slas, width_ms, interval)).group_by(t.sla)
        return {row[0]: Sums(*map(int, row[1:])) for row in self._database.rows(rows)}


def recount(
    connection: Connection, sla: str, interval: Interval, windows_of: Callable[[Interval], Sequence[SlaWindow]]
) -> None:
    """Add judged time and records of the rollups that the interval touches up anew, from the windows of its days; what
    was measured stays as it is."""
    for day in Interval(floor_time(interval.start, DAY_MS), interval.end).windows(DAY_MS):
        windows = windows_of(day)
        t = SLA_ROLLUPS.c
        inside = and_(t.sla == sla, t.start_at >= day.start, t.start_at < day.end)
        for width_ms in connection.execute(select(t.width_ms).where(inside).distinct()).scalars().all():
            starts = connection.execute(select(t.start_at).where(inside, t.width_ms == width_ms)).scalars().all()
            _put_sums(connection, sla, width_ms, [at for at in starts if _touches(at, width_ms, interval)], windows)


def _touches(at: datetime, width_ms: int, interval: Interval) -> bool:
    return at < interval.end and at + timedelta(milliseconds=width_ms) > interval.start


def _put_sums(
    connection: Connection, sla: str, width_ms: int, starts: Sequence[datetime], windows: Sequence[SlaWindow]
) -> None:
    mine: dict[datetime, list[SlaWindow]] = {at: [] for at in starts}
    for window in windows:
        if (at := floor_time(window.window.start, width_ms)) in mine:
            mine[at].append(window)
    t = SLA_ROLLUPS.c
    one = and_(t.sla == sla, t.width_ms == width_ms, t.start_at == bindparam("at"))
    sums = [(at, judged(_span(at, width_ms), of, RecordStats())) for at, of in mine.items()]
    if sums:
        changed = update(SLA_ROLLUPS).where(one).values({name: bindparam(f"new_{name}") for name in SUMMED})
        new = [{"at": at} | {f"new_{name}": getattr(rollup, name) for name in SUMMED} for at, rollup in sums]
        connection.execute(changed, new)


def _span(at: datetime, width_ms: int) -> Interval:
    return Interval(at, at + timedelta(milliseconds=width_ms))


def _unknown(slas: Sequence[str], width_ms: int, interval: Interval) -> Select[Any]:
    """Starts of the rollups that know nothing, where no rollup of another of these SLAs knows something."""
    t, other = SLA_ROLLUPS.c, SLA_ROLLUPS.alias("other")
    same_time = and_(other.c.sla.in_(slas), other.c.width_ms == width_ms, other.c.start_at == t.start_at)
    is_known = exists().where(same_time, _known_ms(other) > 0)
    mine = _of(SLA_ROLLUPS, slas, width_ms, interval)
    return select(t.start_at).distinct().where(mine, _known_ms(SLA_ROLLUPS) == 0, ~is_known)


def _known_ms(rollups: FromClause) -> ColumnElement[int]:
    """Time of a rollup that was not judged unknown, ms."""
    known: ColumnElement[int] = rollups.c.good_ms + rollups.c.bad_ms + rollups.c.excluded_ms
    return known


def _of(table: Table, slas: Sequence[str], width_ms: int, interval: Interval) -> Any:
    t = table.c
    return and_(t.sla.in_(slas), t.width_ms == width_ms, t.start_at >= interval.start, t.start_at < interval.end)


def _rows(sla: str, width_ms: int, interval: Interval) -> Select[Any]:
    return _joined().where(_of(SLA_ROLLUPS, [sla], width_ms, interval)).order_by(SLA_ROLLUPS.c.start_at)


def _rows_since(slas: Sequence[str], width_ms: int, since: datetime) -> Select[Any]:
    """The newest rollup of each SLA that has one `since` then."""
    t = SLA_ROLLUPS.c
    last = select(t.sla, func.max(t.start_at).label("start_at")).group_by(t.sla)
    newest = last.where(_of(SLA_ROLLUPS, slas, width_ms, Interval(since, EVERYTHING.end))).subquery()
    same = and_(t.sla == newest.c.sla, t.start_at == newest.c.start_at, t.width_ms == width_ms)
    return _joined().join(newest, same)


def _joined() -> Select[Any]:
    t, d = SLA_ROLLUPS.c, ROLLUP_DETAILS.c
    both = and_(t.sla == d.sla, t.width_ms == d.width_ms, t.start_at == d.start_at)
    return select(*t, d.histogram, d.cells).select_from(SLA_ROLLUPS.join(ROLLUP_DETAILS, both))


def _put(connection: Connection, sla: str, width_ms: int, interval: Interval, rollups: Iterable[Rollup]) -> None:
    _delete(connection, sla, range(width_ms, width_ms + 1), interval)
    rows = [_row(sla, width_ms, rollup) for rollup in rollups]
    for table in _BOTH if rows else ():
        names = table.c.keys()
        connection.execute(insert(table), [{name: row[name] for name in names} for row in rows])


def _put_wider(
    connection: Connection, sla: str, width_ms: int, of_ms: int, interval: Interval, parts: Sequence[Rollup]
) -> list[Rollup]:
    """Add up what touches the interval, whose narrower rollups these are, together with the stored ones beside it."""
    spans = _whole_spans(interval, width_ms)
    beside = _rows(sla, of_ms, spans).where(
        or_(SLA_ROLLUPS.c.start_at < interval.start, SLA_ROLLUPS.c.start_at >= interval.end)
    )
    known = [*parts, *map(_whole, connection.execute(beside).all())]
    wider = _grouped(sorted(known, key=lambda one: one.span), width_ms)
    _put(connection, sla, width_ms, spans, wider)
    return wider


def _whole_spans(interval: Interval, width_ms: int) -> Interval:
    return Interval(floor_time(interval.start, width_ms), ceil_time(interval.end, width_ms))


def _delete(connection: Connection, sla: str, widths: range, interval: Interval) -> None:
    for table in _BOTH:
        t = table.c
        wide = and_(t.width_ms >= widths.start, t.width_ms < widths.stop)
        inside = and_(t.start_at >= interval.start, t.start_at < interval.end)
        connection.execute(delete(table).where(t.sla == sla, wide, inside))


def _row(sla: str, width_ms: int, rollup: Rollup) -> dict[str, Any]:
    numbers = {name: getattr(rollup, name) for name in _NUMBERS}
    measured = rollup.measured
    return numbers | {
        "sla": sla,
        "width_ms": width_ms,
        "start_at": rollup.span.start,
        "all_consumed": measured.records_consumed,
        "all_produced": measured.records_produced,
        "histogram": packed_histogram(measured.histogram),
        "cells": packed_cells(measured.cells),
    }


def _packed(row: Row[Any]) -> Packed:
    rollup = _numbers(row)
    return Packed(rollup.span.start, rollup, row._mapping["histogram"], row._mapping["cells"])


def _numbers(row: Row[Any]) -> Rollup:
    """By place, in the order of the table's columns: a page makes a thousand of them."""
    _, width_ms, start, good, bad, excluded, unknown, due, late, low, high, doubtful, *rest = row[: len(_COLUMNS)]
    worst, worst_low, worst_high, threshold, all_consumed, all_produced = rest
    return Rollup(
        Interval(start, start + timedelta(milliseconds=width_ms)),
        good,
        bad,
        excluded,
        unknown,
        due,
        late,
        low,
        high,
        doubtful,
        worst,
        worst_low,
        worst_high,
        threshold,
        RecordStats(all_consumed, all_produced),
    )


def _whole(row: Row[Any]) -> Rollup:
    packed = _packed(row)
    buckets, counts = unpacked_histogram(packed.histogram)
    known = packed.rollup.measured
    measured = RecordStats(
        known.records_consumed,
        known.records_produced,
        dict(zip(buckets.tolist(), counts.tolist(), strict=True)),
        unpacked_cells(packed.cells),
    )
    return Rollup(packed.rollup.span, **{name: getattr(packed.rollup, name) for name in _NUMBERS}, measured=measured)


def _grouped(rollups: Sequence[Rollup], width_ms: int) -> list[Rollup]:
    """Rollups added up to wider ones."""
    parts: dict[datetime, list[Rollup]] = {}
    for rollup in rollups:
        parts.setdefault(floor_time(rollup.span.start, width_ms), []).append(rollup)
    width = timedelta(milliseconds=width_ms)
    return [merged(Interval(start, start + width), mine) for start, mine in sorted(parts.items())]


def _forget_old(connection: Connection, sla: str) -> None:
    t = SLA_ROLLUPS.c
    newest = connection.execute(select(func.max(t.start_at)).where(t.sla == sla, t.width_ms == SLOT_MS)).scalar_one()
    if newest:
        _delete(connection, sla, range(SLOT_MS + 1), Interval(EVERYTHING.start, newest - SLOTS_KEPT))
        _delete(connection, sla, range(SLOT_MS), Interval(EVERYTHING.start, newest - WINDOWS_KEPT))
