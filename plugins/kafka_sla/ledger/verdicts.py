"""Verdicts per SLA and window, and the misses they make, replaced in one transaction. Judges nothing itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Row,
    and_,
    case,
    cast,
    delete,
    extract,
    func,
    insert,
    or_,
    select,
    update,
)

from kafka_sla.ledger.exclusions import apply_exclusions, exclude_windows, exclusions_in_force
from kafka_sla.ledger.failures import forget_unjudged
from kafka_sla.ledger.judged_windows import (
    WINDOW_FIELDS,
    damaged_days,
    days_with_rows,
    first_start,
    has_windows_since,
    pack_day,
    rows_of,
    unpack_days,
    windows_between,
)
from kafka_sla.ledger.storage.database import Database
from kafka_sla.ledger.storage.miss_rows import miss_of_row, row_of_miss
from kafka_sla.ledger.storage.schema import SLA_MISSES, SLA_WINDOWS
from kafka_sla.model.entities import EVERYTHING, Interval, Miss, Sla, SlaWindow, Verdict
from kafka_sla.sla.judged_interval import JudgedInterval
from kafka_sla.sla.miss_rule import REMOVED, is_in_progress, judge_misses, separates_misses
from kafka_sla.sla.rollups import Sums, added


class JudgedTime(NamedTuple):
    """Windows of one SLA that have the same verdict for the same reason."""

    verdict: Verdict
    reason: str
    excluded_afterwards: bool
    ms: int
    worst_latency_ms: float | None


class AppliedThreshold(NamedTuple):
    """What windows of one SLA were judged by, ms."""

    max_latency_ms: int
    min_time_to_expiry_ms: int | None


class FoundMisses(NamedTuple):
    """The misses that were asked for, as many as were wanted at most, and how many there are."""

    misses: list[Miss]
    all: int


ExplainMisses = Callable[[Sequence[Miss], Sequence[SlaWindow], Miss | None], Sequence[Miss]]
"""From misses, the windows that were read, and the miss before that they continue (None: none), to the same misses with
evidence."""


class _JudgedMisses(NamedTuple):
    """The misses that begin in a time, judged from its windows."""

    misses: Sequence[Miss]
    starts_in: Interval
    windows: Sequence[SlaWindow]
    continued: Miss | None = None
    """The first of the misses, as it was before these windows."""


def _without_evidence(misses: Sequence[Miss], windows: Sequence[SlaWindow], continued: Miss | None) -> Sequence[Miss]:
    return misses


@dataclass(frozen=True, slots=True)
class MissChange:
    """The misses that touch a replaced interval, before and after."""

    before: tuple[Miss, ...]
    after: tuple[Miss, ...]


class Verdicts:
    """The verdicts and misses of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def replace(
        self,
        sla: Sla,
        interval: Interval,
        windows: Sequence[SlaWindow],
        explain_misses: ExplainMisses = _without_evidence,
        looks_back: timedelta = timedelta(0),
    ) -> MissChange:
        """Put these verdicts in the place of all of the interval, and judge the misses that it may have changed:
        also those that begin within `looks_back` after it, whose evidence may have changed."""
        mine = SLA_WINDOWS.c.sla == sla.name
        inside = and_(SLA_WINDOWS.c.window_start >= interval.start, SLA_WINDOWS.c.window_start < interval.end)
        with self._database.writing(f"sla {sla.name}") as connection:
            unpack_days(connection, sla.name, interval, replaced=interval)
            is_newest = not has_windows_since(connection, sla.name, interval.start)
            connection.execute(delete(SLA_WINDOWS).where(mine, inside))
            if windows:
                connection.execute(insert(SLA_WINDOWS), [_window_row(sla, window) for window in windows])
            judged = _judge_newest(connection, sla, interval) if is_newest else None
            judged = judged or _judge_around(connection, sla, interval, looks_back)
            excluded = exclusions_in_force(connection, sla.name)
            misses = [
                apply_exclusions(miss, excluded)
                for miss in explain_misses(judged.misses, judged.windows, judged.continued)
            ]
            change = _replace_misses(connection, sla, judged.starts_in, misses)
            exclude_windows(connection, sla.name, interval, excluded)
            forget_unjudged(connection, sla.name, interval)
            return change

    def windows(self, sla: str | Sla, interval: Interval) -> tuple[SlaWindow, ...]:
        """The windows that start in the interval, in time order."""
        name = sla if isinstance(sla, str) else sla.name
        with self._database.reading() as connection:
            return tuple(windows_between(connection, name, interval))

    def sums(self, sla: str | Sla, interval: Interval) -> Sums:
        """The windows that are inside the interval, added up by the database: a year of them is half a million."""
        name = sla if isinstance(sla, str) else sla.name
        return self.sums_of_slas([name], interval)[name]

    def sums_of_slas(self, slas: Sequence[str], interval: Interval) -> dict[str, Sums]:
        """The same for several SLAs at once."""
        t = SLA_WINDOWS.c
        seconds = func.sum(extract("epoch", t.window_end) - extract("epoch", t.window_start)).label("seconds")
        rows = select(t.sla, t.verdict, seconds, *_RECORDS).where(t.sla.in_(slas), _inside(interval))
        rows = rows.group_by(t.sla, t.verdict)
        found: dict[str, list[Sums]] = {sla: [] for sla in slas}
        with self._database.reading() as connection:
            for row in rows_of(connection, rows, slas, interval):
                found[row.sla].append(_sums(row))
        return {sla: added(parts) for sla, parts in found.items()}

    def judged_time(self, sla: str, interval: Interval) -> list[JudgedTime]:
        """The same by verdict and reason, with the worst latency of each, the most time first."""
        t, excluded = SLA_WINDOWS.c, SLA_WINDOWS.c.judged_verdict.is_not(None).label("excluded_afterwards")
        seconds = func.sum(extract("epoch", t.window_end) - extract("epoch", t.window_start)).label("seconds")
        worst = func.max(t.worst_latency_ms).label("worst_latency_ms")
        rows = select(t.verdict, t.reason, excluded, seconds, worst).where(t.sla == sla, _inside(interval))
        with self._database.reading() as connection:
            found = rows_of(connection, rows.group_by(t.verdict, t.reason, excluded), [sla], interval)
        parts: dict[tuple[Verdict, str, bool], list[Row[Any]]] = defaultdict(list)
        for row in found:
            parts[row.verdict, row.reason or "", bool(row.excluded_afterwards)].append(row)
        times = (JudgedTime(*key, *_time_and_worst(rows)) for key, rows in parts.items())
        return sorted(times, key=lambda time: (-time.ms, time.verdict, time.reason))

    def thresholds(self, sla: str, interval: Interval) -> list[AppliedThreshold]:
        """What its windows were judged by, in time order, each as often as it came into force."""
        t = SLA_WINDOWS.c
        of_sla = and_(t.sla == sla, _inside(interval))
        distinct = select(t.max_latency_ms, t.min_time_to_expiry_ms).where(of_sla).distinct()
        each = select(t.window_start, t.max_latency_ms, t.min_time_to_expiry_ms).where(of_sla)
        with self._database.reading() as connection:
            applied = list({tuple(row) for row in rows_of(connection, distinct, [sla], interval)})
            if len(applied) > 1:  # which is rare: then every window is looked at
                ordered = sorted(rows_of(connection, each, [sla], interval), key=lambda row: row.window_start)
                applied = [tuple(row)[1:] for row in ordered]
        return [AppliedThreshold(*found) for found, _ in groupby(applied)]

    def counted_windows(
        self, slas: Sequence[str], interval: Interval, width_ms: int
    ) -> list[tuple[str, float, int, float, int, int]]:
        """Good and bad windows that start in the interval: SLA, how many spans of that width after the interval's
        start it starts, 1 if it is bad, its length in seconds, records due and late. The database counts the time,
        for there are many."""
        t, is_bad = SLA_WINDOWS.c, case((SLA_WINDOWS.c.verdict == "bad", 1), else_=0)
        began = (extract("epoch", t.window_start) - interval.start.timestamp()) * 1000 / width_ms
        seconds = extract("epoch", t.window_end) - extract("epoch", t.window_start)
        rows = select(t.sla, began, is_bad, seconds, t.records_due, t.records_late)
        inside = and_(t.window_start >= interval.start, t.window_start < interval.end, t.verdict.in_(("good", "bad")))
        with self._database.reading() as connection:
            return [tuple(row) for row in rows_of(connection, rows.where(t.sla.in_(slas), inside), slas, interval)]

    def pack(self, until: datetime, at_most: int = 5_000) -> int:
        """Pack the windows of the days before that one, each SLA and day in a transaction of its own; answers how many
        days. May be killed and repeated. `at_most`: packs at most this many SLA days, which takes minutes."""
        with self._database.reading() as connection:
            days = list(islice(days_with_rows(connection, until), at_most))
        packed = 0
        for sla, day in days:
            with self._database.writing(f"sla {sla}") as connection:
                packed += pack_day(connection, sla, day)
        return packed

    def damaged_days(self, sla: str) -> list[Interval]:
        """Days whose packed windows cannot be read."""
        with self._database.reading() as connection:
            return damaged_days(connection, sla)

    def newest_misses(
        self,
        slas: Sequence[str] | None,
        interval: Interval,
        states: Sequence[str],
        at_most: int,
        open_first: Sequence[str] = (),
    ) -> FoundMisses:
        """Misses that overlap the interval, the newest first; None: of all SLAs, also of those no longer configured.
        Those of the SLAs in `open_first` that are open come before all others."""
        t = SLA_MISSES.c
        fitting = [t.start_at < interval.end, t.state.in_(states), or_(t.end_at.is_(None), t.end_at > interval.start)]
        if slas is not None:
            fitting.append(t.sla.in_(slas))
        first = case((and_(t.state == "open", t.sla.in_(open_first)), 0), else_=1)
        rows = select(SLA_MISSES).where(*fitting).order_by(first, t.start_at.desc(), t.sla).limit(at_most)
        with self._database.reading() as connection:
            found = [miss_of_row(row) for row in connection.execute(rows)]
            counted = select(func.count()).select_from(SLA_MISSES).where(*fitting)
            return FoundMisses(found, len(found) if len(found) < at_most else connection.execute(counted).scalar_one())

    def newest_miss_of_each(self, slas: Sequence[str]) -> dict[str, Miss]:
        """The newest miss of each of these SLAs that has one, by the name of the SLA."""
        t = SLA_MISSES.c
        newest = select(t.sla, func.max(t.start_at).label("start_at")).where(t.sla.in_(slas)).group_by(t.sla).subquery()
        rows = select(SLA_MISSES).join(newest, and_(t.sla == newest.c.sla, t.start_at == newest.c.start_at))
        return {row.sla: miss_of_row(row) for row in self._database.rows(rows)}

    def misses_around(self, sla: str, interval: Interval) -> list[Miss]:
        """Misses that judging the interval may have changed, in order of their start: also those that begin after it
        because a longer one came apart."""
        t = SLA_MISSES.c
        with self._database.reading() as connection:
            last = first_start(connection, sla, "good", interval.end)
            in_progress = or_(t.settled_at.is_(None), t.settled_at > interval.start)
            rows = select(SLA_MISSES).where(t.sla == sla, t.start_at <= (last or EVERYTHING.end), in_progress)
            return [miss_of_row(row) for row in connection.execute(rows.order_by(t.start_at))]

    def end_misses_of_removed_slas(self, configured: Sequence[str]) -> None:
        """End the open misses of SLAs that have left the configuration. One continues if its SLA comes back."""
        t = SLA_MISSES.c
        ended = {"state": "removed", "end_at": t.bad_until, "end_reason": REMOVED}
        gone = and_(t.state == "open", t.sla.not_in(configured))
        with self._database.reading() as connection:
            slas = connection.execute(select(t.sla).where(gone).distinct()).scalars().all()
        for sla in slas:
            with self._database.writing(f"sla {sla}") as connection:
                connection.execute(update(SLA_MISSES).where(gone, t.sla == sla).values(ended))

    def judged(self, sla: Sla, interval: Interval) -> JudgedInterval:
        """What was judged of an SLA in the interval, and the misses that touch it."""
        return JudgedInterval(sla, self.windows(sla, interval), self.misses(sla, interval))

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
        return [miss_of_row(row) for row in self._database.rows(rows)]


_RECORDS = tuple(
    func.sum(cast(column, Double)).label(name)  # as integers their sum may be out of range
    for name, column in {
        "records_due": SLA_WINDOWS.c.records_due,
        "records_late": SLA_WINDOWS.c.records_late,
        "records_late_low": SLA_WINDOWS.c.records_late_low,
        "records_late_high": SLA_WINDOWS.c.records_late_high,
        "records_of_unknown_state": SLA_WINDOWS.c.records_of_unknown_state,
    }.items()
)


def _sums(row: Row[Any]) -> Sums:
    """Of the windows with one verdict."""
    time = {f"{row.verdict}_ms": round(1000 * row.seconds)}
    records = {c.name: int(row._mapping[c.name]) for c in _RECORDS}
    of_unknown_state = records.pop("records_of_unknown_state")
    if row.verdict == "unknown":
        return Sums(**time, records_in_unknown_time=records["records_due"] + of_unknown_state)
    if row.verdict == "excluded":
        return Sums(**time)
    return Sums(**time, **records, records_in_unknown_time=of_unknown_state)


def _inside(interval: Interval) -> ColumnElement[bool]:
    t = SLA_WINDOWS.c
    return and_(t.window_start >= interval.start, t.window_start < interval.end, t.window_end <= interval.end)


def _time_and_worst(rows: Sequence[Row[Any]]) -> tuple[int, float | None]:
    """The time of all rows, ms, and the largest latency that any of them knows."""
    worst = max((row.worst_latency_ms for row in rows if row.worst_latency_ms is not None), default=None)
    return round(1000 * sum(row.seconds for row in rows)), worst


def _judge_newest(connection: Connection, sla: Sla, interval: Interval) -> _JudgedMisses | None:
    """Continue the miss in progress where nothing was judged after the interval's start. This spares reading all the
    windows of a long miss. None where no miss is in progress, or `for` has changed since."""
    current = _read_misses(connection, sla.name, interval.start, interval.start)[-1:]
    if not current or current[0].for_ms != sla.for_ms:
        return None
    (miss,) = current
    windows = _read_judged_windows(connection, sla.name, Interval(miss.bad_until, EVERYTHING.end))
    return _JudgedMisses(
        judge_misses(sla, windows, miss), Interval(miss.start, EVERYTHING.end), windows, continued=miss
    )


def _judge_around(connection: Connection, sla: Sla, interval: Interval, looks_back: timedelta) -> _JudgedMisses:
    """Judge the misses again that windows of the interval may have changed: until a time from which on the windows make
    the misses that they made before."""
    start, distance = _find_start(connection, sla, interval.start), _distance(sla)
    end, step = interval.end + max(distance, looks_back), distance
    while True:
        if not has_windows_since(connection, sla.name, end):
            end = EVERYTHING.end
        windows = _read_judged_windows(connection, sla.name, Interval(start, end))
        misses = judge_misses(sla, windows)
        last = Interval(end - distance, end)
        stored = _read_misses(connection, sla.name, end, last.start)
        if end == EVERYTHING.end or (
            not any(is_in_progress(miss, last.start) for miss in (*misses, *stored))
            and separates_misses([w for w in windows if w.window.start >= last.start], last, sla.for_ms)
        ):
            return _JudgedMisses(misses, Interval(start, end), windows)
        end, step = min(end + step, EVERYTHING.end), 2 * step


def _find_start(connection: Connection, sla: Sla, begin: datetime) -> datetime:
    """From when windows must be read so that what they make from `begin` on is exact: since the start of the miss in
    progress, or since time that separates misses."""
    step = _distance(sla)
    while True:
        start = max(begin - step, EVERYTHING.start)
        in_progress = _read_misses(connection, sla.name, begin, start)
        before = Interval(start, begin)
        if in_progress or start == EVERYTHING.start:
            return min([start, *(miss.start for miss in in_progress)])
        if separates_misses(_read_judged_windows(connection, sla.name, before), before, sla.for_ms):
            return start
        step *= 2


def _distance(sla: Sla) -> timedelta:
    """How much time is looked at first: more than `for`, so that it may separate misses."""
    return max(timedelta(milliseconds=2 * sla.for_ms), timedelta(minutes=1))


def _read_judged_windows(connection: Connection, sla: str, interval: Interval) -> list[SlaWindow]:
    """The windows that start in the interval, as they were judged."""
    return [window.as_judged for window in windows_between(connection, sla, interval)]


def _read_misses(connection: Connection, sla: str, before: datetime, in_progress_at: datetime) -> list[Miss]:
    """Misses that begin before a time and are in progress at another time or later, in order of their start."""
    t = SLA_MISSES.c
    in_progress = or_(t.settled_at.is_(None), t.settled_at > in_progress_at)
    rows = select(SLA_MISSES).where(t.sla == sla, t.start_at < before, in_progress).order_by(t.start_at)
    return [miss_of_row(row) for row in connection.execute(rows)]


def _replace_misses(connection: Connection, sla: Sla, time: Interval, misses: Sequence[Miss]) -> MissChange:
    """Put these misses in the place of those that start in a time."""
    span = and_(SLA_MISSES.c.sla == sla.name, SLA_MISSES.c.start_at >= time.start, SLA_MISSES.c.start_at < time.end)
    old = connection.execute(select(SLA_MISSES).where(span).order_by(SLA_MISSES.c.start_at)).all()
    connection.execute(delete(SLA_MISSES).where(span))
    if misses:
        connection.execute(insert(SLA_MISSES), [row_of_miss(miss) for miss in misses])
    return MissChange(tuple(miss_of_row(row) for row in old), tuple(sorted(misses, key=lambda m: m.start)))


def _window_row(sla: Sla, window: SlaWindow) -> dict[str, Any]:
    row = {name: getattr(window, name) for name in WINDOW_FIELDS}
    span = {"window_start": window.window.start, "window_end": window.window.end}
    return row | span | {"cluster": sla.cluster, "reason": window.reason or None}
