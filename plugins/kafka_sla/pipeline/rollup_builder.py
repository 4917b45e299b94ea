"""Adding an SLA up after it was judged: whole hours anew, so that the same interval twice changes nothing. Judges
nothing itself; who draws a year reads what was added up here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta

from kafka_sla.lake.lake import Lake
from kafka_sla.lake.sla_stats import measured_spans
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Sla, SlaWindow, floor_time
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS, SLOT_MS, RecordStats, Rollup, judged


def sum_up(sla: Sla, lake: Lake, ledger: Ledger, interval: Interval, window_ms: int) -> None:
    """Replace the sums of all hours that the interval touches, a day at a time; of the newest time by window.

    The newest day comes first: once it is there, windows of days before it would be forgotten again.
    """
    for hours in reversed(list(_days(_whole_hours(interval)))):
        fine = window_ms < SLOT_MS and ledger.rollups.keeps_windows(sla.name, hours.end)
        width_ms = window_ms if fine else SLOT_MS
        ledger.rollups.replace(sla.name, hours, _parts(sla, lake, ledger, hours, window_ms, width_ms), width_ms)
        ledger.exclusions.recount(sla.name, hours)


def _parts(sla: Sla, lake: Lake, ledger: Ledger, hours: Interval, window_ms: int, width_ms: int) -> list[Rollup]:
    windows: dict[datetime, list[SlaWindow]] = defaultdict(list)
    for window in ledger.verdicts.windows(sla, hours):
        windows[floor_time(window.window.start, width_ms)].append(window)
    measured = measured_spans(lake, ledger, sla, hours, width_ms, window_ms)
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
