"""Rollups of SLAs in the SQL database: windows for a day, slots for days, hours and days for ever. Judges nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    LargeBinary,
    Row,
    Select,
    Table,
    Text,
    and_,
    cast,
    delete,
    func,
    insert,
    select,
)

from kafka_sla.ledger.database import Database, UtcTime
from kafka_sla.ledger.schema import METADATA
from kafka_sla.model.entities import EVERYTHING, Interval, floor_time
from kafka_sla.sla.rollups import (
    DAY_MS,
    HOUR_MS,
    SLOT_MS,
    RecordStats,
    Rollup,
    Sums,
    merged,
    packed_cells,
    packed_histogram,
    places,
    unpacked_cells,
    unpacked_histogram,
)

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
    Column("records_consumed", BigInteger, nullable=False),
    Column("records_over_threshold", BigInteger, nullable=False),
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
_SUMS = ("good_ms", "bad_ms", "excluded_ms", "unknown_ms", "records_consumed", "records_over_threshold")
_NUMBERS = (*_SUMS, "worst_latency_ms", "worst_latency_low_ms", "worst_latency_high_ms", "max_latency_ms")


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
        """Put these windows or slots, all of one width, in the place of all of the interval, which is whole hours, and
        add slots, hours and days up anew."""
        slots = _grouped(parts, SLOT_MS) if width_ms < SLOT_MS else parts
        hours = _grouped(slots, HOUR_MS)
        with self._database.writing(f"sla {sla}") as connection:
            _delete(connection, sla, range(SLOT_MS), interval)
            if width_ms < SLOT_MS:
                _put(connection, sla, width_ms, interval, parts)
            _put(connection, sla, SLOT_MS, interval, slots)
            _put(connection, sla, HOUR_MS, interval, hours)
            for day in {floor_time(hour, DAY_MS) for hour in _starts(interval, HOUR_MS)}:
                span = Interval(day, day + timedelta(milliseconds=DAY_MS))
                known = [_whole(row) for row in connection.execute(_rows(sla, HOUR_MS, span))]
                _put(connection, sla, DAY_MS, span, _grouped(known, DAY_MS))
            _forget_old(connection, sla)

    def keeps_windows(self, sla: str, until: datetime) -> bool:
        """Would single windows just before this time be kept? Not where newer slots are there that outlive them."""
        newest = self.newest_slots([sla]).get(sla)
        return newest is None or until > newest.start - WINDOWS_KEPT

    def read(self, sla: str, width_ms: int, interval: Interval) -> list[Packed]:
        """The rollups of this width that start in the interval, in time order."""
        with self._database.reading() as connection:
            return [_packed(row) for row in connection.execute(_rows(sla, width_ms, interval))]

    def newest_slots(self, slas: Sequence[str]) -> dict[str, Packed]:
        """The newest slot of five minutes of each SLA that has one."""
        found = {}
        newest = _joined().order_by(SLA_ROLLUPS.c.start_at.desc()).limit(1)
        with self._database.reading() as connection:
            for sla in slas:
                mine = newest.where(SLA_ROLLUPS.c.sla == sla, SLA_ROLLUPS.c.width_ms == SLOT_MS)
                if row := connection.execute(mine).first():
                    found[sla] = _packed(row)
        return found

    def worst_by_sla(self, slas: Sequence[str], width_ms: int, interval: Interval) -> dict[str, list[tuple[Any, ...]]]:
        """Start, worst latency and threshold of each rollup of these SLAs, in time order."""
        t = SLA_ROLLUPS.c
        rows = select(t.sla, t.start_at, t.worst_latency_ms, t.max_latency_ms).where(
            _of(SLA_ROLLUPS, slas, width_ms, interval)
        )
        found: dict[str, list[tuple[Any, ...]]] = {sla: [] for sla in slas}
        with self._database.reading() as connection:
            for row in connection.execute(rows.order_by(t.sla, t.start_at)):
                found[row.sla].append((row.start_at, row.worst_latency_ms, row.max_latency_ms))
        return found

    def numbers(self, sla: str, width_ms: int, interval: Interval) -> list[Rollup]:
        """As `read`, without histograms and cells."""
        rows = select(SLA_ROLLUPS).where(_of(SLA_ROLLUPS, [sla], width_ms, interval))
        with self._database.reading() as connection:
            return [_numbers(row) for row in connection.execute(rows.order_by(SLA_ROLLUPS.c.start_at))]

    def judged_by_day(self, slas: Sequence[str], interval: Interval) -> dict[str, dict[datetime, timedelta]]:
        """How much of each day of the interval these SLAs were judged in."""
        t = SLA_ROLLUPS.c
        judged = (t.good_ms + t.bad_ms + t.excluded_ms + t.unknown_ms).label("judged_ms")
        rows = select(t.sla, t.start_at, judged).where(_of(SLA_ROLLUPS, slas, DAY_MS, interval))
        found: dict[str, dict[datetime, timedelta]] = {sla: {} for sla in slas}
        with self._database.reading() as connection:
            for row in connection.execute(rows):
                found[row.sla][row.start_at] = timedelta(milliseconds=row.judged_ms)
        return found

    def sums(self, slas: Sequence[str], width_ms: int, interval: Interval) -> dict[str, Sums]:
        """The rollups of each SLA added up by the database; nothing for an SLA without any."""
        t = SLA_ROLLUPS.c
        totals = [func.sum(cast(t[name], Double)).label(name) for name in _SUMS]
        rows = select(t.sla, *totals).where(_of(SLA_ROLLUPS, slas, width_ms, interval)).group_by(t.sla)
        with self._database.reading() as connection:
            return {row.sla: Sums(*(int(row._mapping[name]) for name in _SUMS)) for row in connection.execute(rows)}


def _of(table: Table, slas: Sequence[str], width_ms: int, interval: Interval) -> Any:
    t = table.c
    return and_(
        t.sla.in_(slas), t.width_ms == width_ms, t.start_at >= interval.start, t.start_at < interval.end
    )  # fmt: skip


def _rows(sla: str, width_ms: int, interval: Interval) -> Select[Any]:
    return _joined().where(_of(SLA_ROLLUPS, [sla], width_ms, interval)).order_by(SLA_ROLLUPS.c.start_at)


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
        "sla": sla, "width_ms": width_ms, "start_at": rollup.span.start,
        "all_consumed": measured.records_consumed, "all_produced": measured.records_produced,
        "histogram": packed_histogram(measured.histogram), "cells": packed_cells(measured.cells),
    }  # fmt: skip


def _packed(row: Row[Any]) -> Packed:
    rollup = _numbers(row)
    return Packed(rollup.span.start, rollup, row._mapping["histogram"], row._mapping["cells"])


def _numbers(row: Row[Any]) -> Rollup:
    value = row._mapping
    span = Interval(value["start_at"], value["start_at"] + timedelta(milliseconds=value["width_ms"]))
    measured = RecordStats(value["all_consumed"], value["all_produced"])
    return Rollup(span, **{name: value[name] for name in _NUMBERS}, measured=measured)


def _whole(row: Row[Any]) -> Rollup:
    packed = _packed(row)
    buckets, counts = unpacked_histogram(packed.histogram)
    head, worst = unpacked_cells(packed.cells)
    known = packed.rollup.measured
    measured = RecordStats(
        known.records_consumed, known.records_produced,
        dict(zip(buckets.tolist(), counts.tolist(), strict=True)), dict(zip(places(head), worst.tolist(), strict=True)),
    )  # fmt: skip
    return Rollup(packed.rollup.span, **{name: getattr(packed.rollup, name) for name in _NUMBERS}, measured=measured)


def _grouped(rollups: Sequence[Rollup], width_ms: int) -> list[Rollup]:
    """Rollups added up to wider ones."""
    parts: dict[datetime, list[Rollup]] = {}
    for rollup in rollups:
        parts.setdefault(floor_time(rollup.span.start, width_ms), []).append(rollup)
    width = timedelta(milliseconds=width_ms)
    return [merged(Interval(start, start + width), mine) for start, mine in sorted(parts.items())]


def _starts(interval: Interval, width_ms: int) -> list[datetime]:
    return [span.start for span in interval.windows(width_ms)]


def _forget_old(connection: Connection, sla: str) -> None:
    t = SLA_ROLLUPS.c
    newest = connection.execute(select(func.max(t.start_at)).where(t.sla == sla, t.width_ms == SLOT_MS)).scalar_one()
    if newest:
        _delete(connection, sla, range(SLOT_MS + 1), Interval(EVERYTHING.start, newest - SLOTS_KEPT))
        _delete(connection, sla, range(SLOT_MS), Interval(EVERYTHING.start, newest - WINDOWS_KEPT))
