"""An SLA over a slot, an hour or a day: times, records and histograms that add up, so that a year is few rows. Pure."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from operator import attrgetter, sub

import numpy as np
from numpy.typing import NDArray

from kafka_sla.model.entities import MOST, Interval, SlaWindow, Verdict, ceil_time, floor_time
from kafka_sla.sla.windows.cells import NO_CELLS, Cells, worst_cells

SLOT_MS, HOUR_MS, DAY_MS = 300_000, 3_600_000, 86_400_000


@dataclass(frozen=True, slots=True)
class Sums:
    """Judged time and records of one SLA."""

    good_ms: int = 0
    bad_ms: int = 0
    excluded_ms: int = 0
    unknown_ms: int = 0
    records_due: int = 0
    """In good and bad time, as the three counts below."""
    records_late: int = 0
    records_late_low: int = 0
    records_late_high: int = 0
    records_in_unknown_time: int = 0
    """Due in windows with the verdict unknown, or of partitions of unknown state: each may have been late."""


@dataclass(frozen=True, slots=True)
class RecordStats:
    """What the records of all partitions of an SLA say of one span; None where the rows do not tell."""

    records_consumed: int | None = None
    records_produced: int | None = None
    histogram: Mapping[int, int] = field(default_factory=dict)
    """Records per logarithmic bucket of `consumer_latency.latency_histogram`."""
    cells: Cells = field(default_factory=lambda: NO_CELLS)
    """Largest latency or backlog age per partition."""


@dataclass(frozen=True, slots=True)
class Rollup:
    """One SLA in one span. Time that was never judged is in none of the four sums."""

    span: Interval
    good_ms: int = 0
    bad_ms: int = 0
    excluded_ms: int = 0
    unknown_ms: int = 0
    records_due: int = 0
    """In good and bad time, as the three counts below."""
    records_late: int = 0
    records_late_low: int = 0
    records_late_high: int = 0
    records_in_unknown_time: int = 0
    worst_latency_ms: float | None = None
    worst_latency_low_ms: float | None = None
    worst_latency_high_ms: float | None = None
    """None beside a known worst latency: unbounded."""
    max_latency_ms: int | None = None
    """The threshold that the last window of it was judged by; None where none was."""
    measured: RecordStats = field(default_factory=RecordStats)

    @property
    def sums(self) -> Sums:
        return Sums(*_SUMMED_OF(self))


SUMMED = tuple(one.name for one in fields(Sums))
_SUMMED_OF = attrgetter(*SUMMED)
"""What of a rollup is a sum of its windows."""


def whole_spans(interval: Interval, width_ms: int) -> Interval | None:
    """The part of the interval that is whole spans of this width."""
    start, end = ceil_time(interval.start, width_ms), floor_time(interval.end, width_ms)
    return Interval(start, end) if start < end else None


def in_widths(interval: Interval, widths: Sequence[int]) -> Iterator[tuple[Interval, int]]:
    """The interval in pieces, in time order: as much as can be in whole spans of the first width, of what is left as
    much as can be in those of the next; 0 is what is no whole one."""
    if not widths:
        yield interval, 0
        return
    whole = whole_spans(interval, widths[0])
    if whole is None:
        yield from in_widths(interval, widths[1:])
        return
    if interval.start < whole.start:
        yield from in_widths(Interval(interval.start, whole.start), widths[1:])
    yield whole, widths[0]
    if whole.end < interval.end:
        yield from in_widths(Interval(whole.end, interval.end), widths[1:])


def sums_of(windows: Sequence[SlaWindow]) -> Sums:
    """These windows added up."""
    times: dict[Verdict, int] = defaultdict(int)
    for window in windows:
        times[window.verdict] += (window.window.end - window.window.start) // timedelta(milliseconds=1)
    counted = [w for w in windows if w.verdict in ("good", "bad")]
    return Sums(
        times["good"],
        times["bad"],
        times["excluded"],
        times["unknown"],
        _sum([w.records_due for w in counted]) or 0,
        _sum([w.records_late for w in counted]) or 0,
        _sum([w.records_late_low for w in counted]) or 0,
        _sum([w.records_late_high for w in counted]) or 0,
        _sum([_in_doubt(w) for w in windows]) or 0,
    )


def _in_doubt(window: SlaWindow) -> int:
    """Records that are counted nowhere and may have been late."""
    if window.verdict == "excluded":
        return 0
    due = window.records_due if window.verdict == "unknown" else 0
    return window.records_of_unknown_state + due


def added(parts: Iterable[Sums]) -> Sums:
    """Sums of spans that do not overlap as one."""
    return Sums(*map(sum, zip(*map(_SUMMED_OF, (Sums(), *parts)), strict=True)))


def less(whole: Sums, part: Sums) -> Sums:
    """What is left of the whole without that part."""
    return Sums(*map(sub, _SUMMED_OF(whole), _SUMMED_OF(part)))


def judged(span: Interval, windows: Sequence[SlaWindow], measured: RecordStats) -> Rollup:
    """The windows of a span added up."""
    known, sums = [w for w in windows if w.worst_latency_ms is not None], sums_of(windows)
    return Rollup(
        span,
        **{name: getattr(sums, name) for name in SUMMED},
        worst_latency_ms=_largest([w.worst_latency_ms for w in known]),
        worst_latency_low_ms=_largest([w.worst_latency_low_ms for w in known]),
        worst_latency_high_ms=_highest([w.worst_latency_high_ms for w in known]),
        max_latency_ms=_last([w.max_latency_ms for w in windows]),
        measured=measured,
    )


def merged(span: Interval, parts: Sequence[Rollup]) -> Rollup:
    """Spans that do not overlap as one."""
    known = [p for p in parts if p.worst_latency_ms is not None]
    return Rollup(
        span,
        **{name: _sum([getattr(p, name) for p in parts]) or 0 for name in SUMMED},
        worst_latency_ms=_largest([p.worst_latency_ms for p in known]),
        worst_latency_low_ms=_largest([p.worst_latency_low_ms for p in known]),
        worst_latency_high_ms=_highest([p.worst_latency_high_ms for p in known]),
        max_latency_ms=_last([p.max_latency_ms for p in parts]),
        measured=_merged_measures([p.measured for p in parts]),
    )


def _merged_measures(parts: Sequence[RecordStats]) -> RecordStats:
    histogram: dict[int, int] = defaultdict(int)
    for part in parts:
        for bucket, records in part.histogram.items():
            histogram[bucket] = min(histogram[bucket] + records, MOST)
    return RecordStats(
        _sum([p.records_consumed for p in parts]),
        _sum([p.records_produced for p in parts]),
        dict(histogram),
        worst_cells([p.cells for p in parts]),
    )


def packed_histogram(histogram: Mapping[int, int]) -> bytes:
    """Buckets and counts, compressed; the inverse of `unpacked_histogram`."""
    buckets = np.array(sorted(histogram), dtype="<u2")
    counts = np.array([histogram[int(bucket)] for bucket in buckets], dtype="<u8")
    return zlib.compress(buckets.tobytes() + counts.tobytes(), zlib.Z_BEST_SPEED)


def unpacked_histogram(packed: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bucket numbers and how many records each holds."""
    raw = zlib.decompress(packed)
    length = len(raw) // 10
    return (
        np.frombuffer(raw, "<u2", length).astype(np.int64),
        np.frombuffer(raw, "<u8", length, offset=2 * length).astype(np.int64),
    )


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return min(sum(known), MOST) if known else None


def _last(values: Sequence[int | None]) -> int | None:
    return next((value for value in reversed(values) if value is not None), None)


def _largest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _highest(values: Sequence[float | None]) -> float | None:
    """The largest high bound; one that is unbounded makes all unbounded."""
    return None if None in values else _largest(values)
