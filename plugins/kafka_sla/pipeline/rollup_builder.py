"""Adding an SLA up after it was judged: whole slots anew, so that the same interval twice changes nothing. Judges
nothing itself; who draws a year reads what was added up here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kafka_sla.lake.lake import Lake
from kafka_sla.lake.queries.sla_stats import measured_spans, spans_of_slas
from kafka_sla.lake.staging import load_of
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.rollups import WINDOWS_KEPT
from kafka_sla.model.entities import Interval, Sla, SlaWindow, ceil_time, floor_time
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS, SLOT_MS, RecordStats, Rollup, judged

_MOST_DAYS = 7
_SPANS_AT_ONCE = 3_000
"""Histograms of so many spans of SLAs are held in memory, some kilobytes each."""
_Measured = tuple[dict[datetime, RecordStats], tuple[str, ...]]
"""By the start of each span, and the damaged files that were left out."""


def sum_up(sla: Sla, lake: Lake, ledger: Ledger, interval: Interval, window_ms: int) -> tuple[str, ...]:
    """Replace the sums of all slots that the interval and the window after it touch, and those of their hours and days,
    some days at a time; of the newest time by window.

    The newest days come first: once they are there, windows of days before them would be forgotten again. Answers which
    damaged files were left out: what was added up of their time before stays as it is.
    """
    ((_, left_out),) = sum_up_all([sla], lake, ledger, interval, window_ms)
    if isinstance(left_out, Exception):
        raise left_out
    return left_out


def sum_up_all(
    slas: Sequence[Sla], lake: Lake, ledger: Ledger, interval: Interval, window_ms: int
) -> list[tuple[Sla, tuple[str, ...] | Exception]]:
    """The same for several SLAs, whose rows are read together; one that cannot be added up has its error and keeps no
    other from its sums."""
    left_out: dict[str, set[str]] = {sla.name: set() for sla in slas}
    failed: dict[str, Exception] = {}
    # What was produced in the window after the interval is counted from its end on.
    changed = Interval(interval.start, interval.end + timedelta(milliseconds=window_ms))
    for hours in _stretches(_whole_hours(changed), len(slas)):
        for part in _parts_of(slas, ledger, hours, changed, window_ms):
            together = _together(part, lake, ledger)
            for sla in (sla for sla in part.slas if sla.name not in failed):
                try:
                    found, damaged = together.get(sla.name) or _alone(sla, part, lake, ledger)
                    rollups = _rollups(sla, ledger, part, found)
                    ledger.rollups.replace(sla.name, part.slots, rollups, part.width_ms)
                    ledger.exclusions.recount(sla.name, hours)
                    left_out[sla.name].update(damaged)
                except Exception as error:
                    failed[sla.name] = error
    return [(sla, failed.get(sla.name) or tuple(sorted(left_out[sla.name]))) for sla in slas]


@dataclass(frozen=True, slots=True)
class _Part:
    """What is added up together: SLAs of one cluster, over these slots, in spans of this width."""

    slas: Sequence[Sla]
    slots: Interval
    width_ms: int
    window_ms: int


def _parts_of(
    slas: Sequence[Sla], ledger: Ledger, hours: Interval, changed: Interval, window_ms: int
) -> Iterator[_Part]:
    """The slots of these hours that have changed; all of the hours where others were published and are not added up, or
    no longer, as those of long ago."""
    names = [sla.name for sla in slas]
    fine = ledger.rollups.keep_windows(names, hours.end) if window_ms < SLOT_MS else frozenset()
    known = ledger.rollups.starts(names, SLOT_MS, hours)
    published = {cluster: _published(ledger, cluster, hours) for cluster in {sla.cluster for sla in slas}}
    touched = Interval(
        floor_time(max(changed.start, hours.start), SLOT_MS), min(ceil_time(changed.end, SLOT_MS), hours.end)
    )
    alike: dict[tuple[str, bool, bool], list[Sla]] = defaultdict(list)
    for sla in slas:
        rest_is_there = published[sla.cluster] <= known[sla.name] | {slot.start for slot in touched.windows(SLOT_MS)}
        alike[sla.cluster, rest_is_there, sla.name in fine].append(sla)
    for (_, rest_is_there, is_fine), mine in alike.items():
        slots, width_ms = touched if rest_is_there else hours, window_ms if is_fine else SLOT_MS
        most = max(1, _SPANS_AT_ONCE * width_ms // ((slots.end - slots.start) // timedelta(milliseconds=1)))
        for first in range(0, len(mine), most):
            yield _Part(mine[first : first + most], slots, width_ms, window_ms)


def _published(ledger: Ledger, cluster: str, hours: Interval) -> set[datetime]:
    """The slots of which something is published."""
    return {
        slot.start
        for one in ledger.publications.slices([cluster], hours)
        for slot in Interval(floor_time(one.interval.start, SLOT_MS), one.interval.end).windows(SLOT_MS)
    }


def _together(part: _Part, lake: Lake, ledger: Ledger) -> dict[str, _Measured]:
    """What was published of each SLA; nothing where that fails: each alone tells whose fault it is."""
    if len(part.slas) == 1:
        return {}
    try:
        found = spans_of_slas(lake, ledger, part.slas, part.slots, part.width_ms, part.window_ms)
    except Exception:
        return {}
    return {sla.name: (spans, ()) for sla, spans in zip(part.slas, found, strict=True)}


def _alone(sla: Sla, part: _Part, lake: Lake, ledger: Ledger) -> _Measured:
    """The same of one SLA, and the damaged files that it lacks. Of a load that lost a file what the others hold would
    be too little: its spans are as they were added up before, if they were."""
    slots, width_ms = part.slots, part.width_ms
    found, left_out = lake.spared(lambda tables: measured_spans(tables, ledger, sla, slots, width_ms, part.window_ms))
    loads = set(map(load_of, left_out))
    for slice_ in ledger.publications.slices([sla.cluster], slots) if loads else ():
        if slice_.load_id in loads:
            touched = Interval(floor_time(slice_.interval.start, width_ms), slice_.interval.end)
            found = {at: stats for at, stats in found.items() if not touched.start <= at < touched.end}
            found |= {one.span.start: one.measured for one in ledger.rollups.whole(sla.name, width_ms, touched)}
    return found, left_out


def _rollups(sla: Sla, ledger: Ledger, part: _Part, measured: Mapping[datetime, RecordStats]) -> list[Rollup]:
    windows: dict[datetime, list[SlaWindow]] = defaultdict(list)
    for window in ledger.verdicts.windows(sla, part.slots):
        windows[floor_time(window.window.start, part.width_ms)].append(window)
    width = timedelta(milliseconds=part.width_ms)
    return [
        judged(Interval(start, start + width), windows.get(start, []), measured.get(start, RecordStats()))
        for start in sorted(windows.keys() | measured.keys())
    ]


def _whole_hours(interval: Interval) -> Interval:
    start, last = floor_time(interval.start, HOUR_MS), floor_time(interval.end - timedelta(milliseconds=1), HOUR_MS)
    return Interval(start, last + timedelta(milliseconds=HOUR_MS))


def _stretches(hours: Interval, slas: int) -> Iterator[Interval]:
    """The hours of each of the newest days, of which windows are kept, and of some days before them, the newest first:
    few SLAs read a load of many days once for all of them, many of them each day together."""
    end, days = hours.end, max(1, min(_MOST_DAYS, _SPANS_AT_ONCE * SLOT_MS // DAY_MS // max(1, slas)))
    while end > hours.start:
        single = end > hours.end - WINDOWS_KEPT
        start = floor_time(end - timedelta(milliseconds=1), DAY_MS) if single else end - timedelta(days=days)
        yield Interval(max(start, hours.start), end)
        end = start
