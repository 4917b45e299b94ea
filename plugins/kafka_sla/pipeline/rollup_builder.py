"""Adding an SLA up after it was judged: whole hours anew, so that the same interval twice changes nothing. Judges
nothing itself; who draws a year reads what was added up here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from kafka_sla.lake.lake import Lake
from kafka_sla.lake.queries.sla_stats import measured_spans
from kafka_sla.lake.staging import load_of
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Sla, SlaWindow, floor_time
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS, SLOT_MS, RecordStats, Rollup, judged


def sum_up(sla: Sla, lake: Lake, ledger: Ledger, interval: Interval, window_ms: int) -> tuple[str, ...]:
    """Replace the sums of all hours that the interval touches, a day at a time; of the newest time by window.

    The newest day comes first: once it is there, windows of days before it would be forgotten again. Answers which
    damaged files were left out: what was added up of their time before stays as it is.
    """
    left_out: set[str] = set()
    for hours in reversed(list(_days(_whole_hours(interval)))):
        fine = window_ms < SLOT_MS and ledger.rollups.keeps_windows(sla.name, hours.end)
        width_ms = window_ms if fine else SLOT_MS
        measured, damaged = _measured(sla, lake, ledger, hours, width_ms, window_ms)
        ledger.rollups.replace(sla.name, hours, _parts(sla, ledger, hours, measured, width_ms), width_ms)
        ledger.exclusions.recount(sla.name, hours)
        left_out.update(damaged)
    return tuple(sorted(left_out))


def _measured(
    sla: Sla, lake: Lake, ledger: Ledger, hours: Interval, width_ms: int, window_ms: int
) -> tuple[dict[datetime, RecordStats], tuple[str, ...]]:
    """What was published, by the start of each span, and the damaged files that it lacks. Of a load that lost a file
    what the others hold would be too little: its spans are as they were added up before, if they were."""
    found, left_out = lake.spared(lambda tables: measured_spans(tables, ledger, sla, hours, width_ms, window_ms))
    loads = set(map(load_of, left_out))
    for slice_ in ledger.publications.slices([sla.cluster], hours) if loads else ():
        if slice_.load_id in loads:
            touched = Interval(floor_time(slice_.interval.start, width_ms), slice_.interval.end)
            found = {at: stats for at, stats in found.items() if not touched.start <= at < touched.end}
            found |= {one.span.start: one.measured for one in ledger.rollups.whole(sla.name, width_ms, touched)}
    return found, left_out


def _parts(
    sla: Sla, ledger: Ledger, hours: Interval, measured: Mapping[datetime, RecordStats], width_ms: int
) -> list[Rollup]:
    windows: dict[datetime, list[SlaWindow]] = defaultdict(list)
    for window in ledger.verdicts.windows(sla, hours):
        windows[floor_time(window.window.start, width_ms)].append(window)
    width = timedelta(milliseconds=width_ms)
    return [
        judged(Interval(start, start + width), windows.get(start, []), measured.get(start, RecordStats()))
        for start in sorted(windows.keys() | measured.keys())
    ]


def _whole_hours(interval: Interval) -> Interval:
    start, last = floor_time(interval.start, HOUR_MS), floor_time(interval.end - timedelta(milliseconds=1), HOUR_MS)
    return Interval(start, last + timedelta(milliseconds=HOUR_MS))


def _days(hours: Interval) -> Iterator[Interval]:
    """The hours of each day."""
    for day in Interval(floor_time(hours.start, DAY_MS), hours.end).windows(DAY_MS):
        yield Interval(max(day.start, hours.start), min(day.end, hours.end))
