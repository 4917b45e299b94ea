"""Verdicts per SLA and window, and the misses they make, replaced in one transaction. Judges nothing itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Double, Row, Select, and_, cast, delete, extract, func, insert, or_, select, update

from kafka_sla.ledger.database import Database
from kafka_sla.ledger.schema import NOTICES, SLA_MISSES, SLA_WINDOWS
from kafka_sla.model.entities import EVERYTHING, Interval, Miss, Sla, SlaWindow
from kafka_sla.sla.rollups import Sums

JudgeMisses = Callable[[Sequence[SlaWindow]], Sequence[Miss]]
"""From windows in time order to misses; windows that are not there count as unknown ones."""


@dataclass(frozen=True, slots=True)
class MissChange:
    """The misses that touch a replaced interval, before and after."""

    before: tuple[Miss, ...]
    after: tuple[Miss, ...]

    @property
    def opened(self) -> tuple[Miss, ...]:
        """Misses that were not there before."""
        known = {miss.id for miss in self.before}
        return tuple(miss for miss in self.after if miss.id not in known)

    @property
    def recovered(self) -> tuple[Miss, ...]:
        """Misses that have ended now and had not before."""
        ended = {miss.id for miss in self.before if miss.end}
        return tuple(miss for miss in self.after if miss.end and miss.id not in ended)

    @property
    def open(self) -> tuple[Miss, ...]:
        return tuple(miss for miss in self.after if miss.end is None)


class Verdicts:
    """The verdicts and misses of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def replace(
        self,
        sla: Sla,
        interval: Interval,
        windows: Sequence[SlaWindow],
        judge_misses: JudgeMisses,
        looks_back: timedelta = timedelta(0),
    ) -> MissChange:
        """Put these verdicts in the place of all of the interval, and judge the misses that it may have changed:
        also those that begin so soon after it that they look back on it."""
        mine = SLA_WINDOWS.c.sla == sla.name
        inside = and_(SLA_WINDOWS.c.window_start >= interval.start, SLA_WINDOWS.c.window_start < interval.end)
        with self._database.writing(f"sla {sla.name}") as connection:
            last_bad = select(func.max(SLA_WINDOWS.c.window_end)).where(mine, SLA_WINDOWS.c.verdict == "bad")
            open_until = connection.execute(last_bad).scalar_one()
            connection.execute(delete(SLA_WINDOWS).where(mine, inside))
            if windows:
                connection.execute(insert(SLA_WINDOWS), [_window_row(sla, window) for window in windows])
            around = _neighbourhood(connection, sla.name, interval.start, interval.end + looks_back)
            change = _replace_misses(connection, sla, interval, around, judge_misses(around))
            _remember_extent(connection, change, open_until)
            return change

    def windows(self, sla: str | Sla, interval: Interval) -> tuple[SlaWindow, ...]:
        """The windows that start in the interval, in time order."""
        name = sla if isinstance(sla, str) else sla.name
        rows = _windows(name).where(
            SLA_WINDOWS.c.window_start >= interval.start, SLA_WINDOWS.c.window_start < interval.end
        )
        with self._database.reading() as connection:
            return tuple(_window(row) for row in connection.execute(rows))

    def sums(self, sla: str | Sla, interval: Interval) -> Sums:
        """The windows that are inside the interval, added up by the database: a year of them is half a million."""
        t, name = SLA_WINDOWS.c, sla if isinstance(sla, str) else sla.name
        seconds = func.sum(extract("epoch", t.window_end) - extract("epoch", t.window_start)).label("seconds")
        consumed, over = (func.sum(cast(column, Double)) for column in (t.records_consumed, t.records_over_threshold))
        records = (consumed.label("consumed"), over.label("over"))  # as integers their sum may be out of range
        inside = and_(t.window_start >= interval.start, t.window_start < interval.end, t.window_end <= interval.end)
        rows = select(t.verdict, seconds, *records).where(t.sla == name, inside).group_by(t.verdict)
        with self._database.reading() as connection:
            found = {row.verdict: row for row in connection.execute(rows)}
        counted = [found[verdict] for verdict in ("good", "bad") if verdict in found]
        return Sums(
            **{f"{verdict}_ms": round(1000 * row.seconds) for verdict, row in found.items()},
            records_consumed=sum(int(row.consumed) for row in counted),
            records_over_threshold=sum(int(row.over) for row in counted),
        )

    def newest_misses(
        self, slas: Sequence[str] | None, interval: Interval, states: Sequence[str], at_most: int
    ) -> list[Miss]:
        """Misses that overlap the interval, the newest first; None: of all SLAs, also of those no longer configured."""
        t = SLA_MISSES.c
        rows = select(SLA_MISSES).where(t.start_at < interval.end, t.state.in_(states))
        rows = rows.where(or_(t.end_at.is_(None), t.end_at > interval.start))
        if slas is not None:
            rows = rows.where(t.sla.in_(slas))
        with self._database.reading() as connection:
            return [_miss(row) for row in connection.execute(rows.order_by(t.start_at.desc(), t.sla).limit(at_most))]

    def misses_around(self, sla: str, interval: Interval) -> list[Miss]:
        """Misses that judging the interval may have changed, in order of their start: also those that begin after it
        now because a longer one came apart."""
        with self._database.reading() as connection:
            first, last = _reach(connection, sla, interval.start, interval.end)
        return self.misses(sla, Interval(first or EVERYTHING.start, last or EVERYTHING.end))

    def misses(
        self, sla: str | Sla | None = None, interval: Interval | None = None, *, open_only: bool = False
    ) -> list[Miss]:
        """Misses in order of their start; of an interval: those that overlap it."""
        rows = select(SLA_MISSES).order_by(SLA_MISSES.c.start_at, SLA_MISSES.c.sla)
        if sla is not None:
            rows = rows.where(SLA_MISSES.c.sla == (sla if isinstance(sla, str) else sla.name))
        if interval is not None:
            rows = rows.where(SLA_MISSES.c.start_at < interval.end)
            rows = rows.where(or_(SLA_MISSES.c.end_at.is_(None), SLA_MISSES.c.end_at > interval.start))
        if open_only:
            rows = rows.where(SLA_MISSES.c.state == "open")
        with self._database.reading() as connection:
            return [_miss(row) for row in connection.execute(rows)]


def _windows(sla: str) -> Select[Any]:
    return select(SLA_WINDOWS).where(SLA_WINDOWS.c.sla == sla).order_by(SLA_WINDOWS.c.window_start)


def _reach(
    connection: Connection, sla: str, begin: datetime, stop: datetime
) -> tuple[datetime | None, datetime | None]:
    """Starts of the last good or excluded window before this time and of the first after it: no miss reaches further,
    nor over a time before it in which nothing was bad."""
    start, verdict = SLA_WINDOWS.c.window_start, SLA_WINDOWS.c.verdict
    known = and_(SLA_WINDOWS.c.sla == sla, verdict.in_(("good", "excluded")))
    first = connection.execute(select(func.max(start)).where(known, start < begin)).scalar_one()
    last = connection.execute(select(func.min(start)).where(known, start >= stop)).scalar_one()
    bad = select(func.max(start)).where(SLA_WINDOWS.c.sla == sla, verdict == "bad", start < begin)
    latest = connection.execute(bad).scalar_one()
    return (first if latest and (first is None or latest > first) else begin), last


def _neighbourhood(connection: Connection, sla: str, begin: datetime, stop: datetime) -> list[SlaWindow]:
    """The windows within `_reach`."""
    first, last = _reach(connection, sla, begin, stop)
    rows = _windows(sla)
    if first is not None:
        rows = rows.where(SLA_WINDOWS.c.window_start >= first)
    if last is not None:
        rows = rows.where(SLA_WINDOWS.c.window_start <= last)
    return [_window(row) for row in connection.execute(rows)]


def _replace_misses(
    connection: Connection, sla: Sla, interval: Interval, around: Sequence[SlaWindow], misses: Sequence[Miss]
) -> MissChange:
    start = min([interval.start, *(w.window.start for w in around[:1])])
    end = max([interval.end, *(w.window.end for w in around[-1:])])
    span = and_(SLA_MISSES.c.sla == sla.name, SLA_MISSES.c.start_at >= start, SLA_MISSES.c.start_at < end)
    old = connection.execute(select(SLA_MISSES).where(span).order_by(SLA_MISSES.c.start_at)).all()
    connection.execute(delete(SLA_MISSES).where(span))
    if misses:
        connection.execute(insert(SLA_MISSES), [_miss_row(miss) for miss in misses])
    return MissChange(tuple(_miss(row) for row in old), tuple(sorted(misses, key=lambda m: m.start)))


def _remember_extent(connection: Connection, change: MissChange, open_until: datetime | None) -> None:
    """Keep how far misses reached that were told and are gone: what is judged in their place is the same incident."""
    left = {miss.id for miss in change.after}
    for gone in change.before:
        if gone.id not in left:
            reached = max(gone.opened_at, gone.end or open_until or gone.opened_at)
            connection.execute(update(NOTICES).where(NOTICES.c.miss_id == gone.id).values(known_until=reached))


def _window_row(sla: Sla, window: SlaWindow) -> dict[str, Any]:
    row = {name: getattr(window, name) for name in _WINDOW_FIELDS}
    span = {"window_start": window.window.start, "window_end": window.window.end}
    return row | span | {"cluster": sla.cluster, "reason": window.reason or None}


def _window(row: Row[Any]) -> SlaWindow:
    values = {name: row._mapping[name] for name in _WINDOW_FIELDS}
    return SlaWindow(
        window=Interval(row.window_start, row.window_end), **values | {"reason": row.reason or ""}
    )  # fmt: skip


def _miss_row(miss: Miss) -> dict[str, Any]:
    row = {column: getattr(miss, name) for column, name in _MISS_COLUMNS.items()}
    return row | {"state": "recovered" if miss.end else "open", "evidence": json.dumps(miss.evidence, sort_keys=True)}


def _miss(row: Row[Any]) -> Miss:
    values = {name: row._mapping[column] for column, name in _MISS_COLUMNS.items()}
    return Miss(**values | {"evidence": json.loads(row.evidence)})


_WINDOW_FIELDS = tuple(field.name for field in fields(SlaWindow) if field.name != "window")
_RENAMED = {"miss_id": "id", "start_at": "start", "end_at": "end"}
_MISS_COLUMNS = {c.name: _RENAMED.get(c.name, c.name) for c in SLA_MISSES.c if c.name != "state"}
"""Column of the table and field of the miss."""
