"""One SLA in a span, as pieces of the width that suits it: windows, slots, hours or days. Chooses and reads, draws
nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, count
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kafka_sla.lake.queries.sla_stats import measured_spans
from kafka_sla.ledger.rollups import SLOTS_KEPT, WINDOWS_KEPT, Packed
from kafka_sla.model.entities import Interval, Sla, SlaWindow, epoch_ms, floor_time
from kafka_sla.sla.rollups import (
    DAY_MS,
    HOUR_MS,
    SLOT_MS,
    RecordStats,
    Rollup,
    judged,
    unpacked_histogram,
)
from kafka_sla.sla.windows.cells import Cells, PartitionKey, places, unpacked_cells
from kafka_sla.web.queries.context import Context

Resolution = Literal["window", "slot", "hour", "day"]
WINDOWS_UNTIL, SLOTS_UNTIL, HOURS_UNTIL = timedelta(hours=2), timedelta(days=4), timedelta(days=62)
"""Longest spans drawn from windows, from slots and from hours; beyond, from days."""
SETTLED_WINDOWS_UNTIL = timedelta(hours=12)
"""Longest span drawn from windows where no slots are kept any more."""
_LATEST = timedelta(hours=1)
"""The newest judged time may be so old; windows are kept from there back."""
Counts = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Piece:
    """A rollup; `histogram` and `cells` are made when somebody draws them."""

    rollup: Rollup
    histogram: Callable[[], Counts]
    cells: Callable[[], tuple[tuple[PartitionKey, ...], NDArray[np.float32]]]

    @property
    def at_ms(self) -> int:
        return epoch_ms(self.rollup.span.start)


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of one SLA in an interval, and the step that they are drawn in."""

    sla: Sla
    interval: Interval
    resolution: Resolution
    step_ms: int
    found: list[Piece]

    @property
    def steps(self) -> list[int]:
        """Start of each step."""
        return list(range(self._origin, epoch_ms(self.interval.end), self.step_ms))

    @property
    def indexes(self) -> NDArray[np.int64]:
        """Which step each piece belongs to."""
        at = np.array([piece.at_ms for piece in self.found], dtype=np.int64)
        return np.asarray((at - self._origin) // self.step_ms, dtype=np.int64)

    @property
    def thresholds(self) -> list[int]:
        """The threshold of each step; where nothing was judged, that of the time before, or else of the time after."""
        applied = [piece.rollup.max_latency_ms for piece in self.found]
        known = {int(step): ms for step, ms in zip(self.indexes, applied, strict=True) if ms is not None}
        first = next(iter(known.values()), self.sla.max_latency_ms)
        return list(accumulate(range(len(self.steps)), lambda ms, step: known.get(step, ms), initial=first))[1:]

    @property
    def _origin(self) -> int:
        return epoch_ms(self.interval.start) // self.step_ms * self.step_ms


def pieces(context: Context, sla: Sla, interval: Interval, at_most: int) -> Pieces:
    """At most so many steps; a span whose bounds cut a piece shows it whole."""
    window_ms = context.settings.window_ms
    resolution, width_ms = _width(context, interval, window_ms)
    step = step_ms(interval, width_ms, at_most)
    whole = Interval(floor_time(interval.start, step), interval.end)
    kept = resolution != "window" or whole.start >= context.now - WINDOWS_KEPT + _LATEST
    found = [unpacked(packed) for packed in context.ledger.rollups.read(sla.name, width_ms, whole)] if kept else []
    if resolution == "window" and not found:  # longer ago, or judged by a version that kept no windows
        found = _from_windows(context, sla, whole, step, window_ms)
    return Pieces(sla, interval, resolution, step, found)


def _width(context: Context, interval: Interval, window_ms: int) -> tuple[Resolution, int]:
    length = interval.end - interval.start
    kept = interval.start >= context.now - SLOTS_KEPT + timedelta(days=1)
    if length <= (WINDOWS_UNTIL if kept else SETTLED_WINDOWS_UNTIL):
        return "window", window_ms
    if length <= SLOTS_UNTIL and kept and window_ms <= SLOT_MS:
        return "slot", SLOT_MS
    return ("hour", HOUR_MS) if length <= HOURS_UNTIL else ("day", DAY_MS)


def step_ms(interval: Interval, width_ms: int, at_most: int) -> int:
    """The smallest handy multiple of a piece's width that makes few enough steps."""
    wide = (interval.end - interval.start) / timedelta(milliseconds=width_ms)
    handy: Iterator[int] = (digit * 10**power for power in count() for digit in (1, 2, 3, 6))
    return width_ms * next(n for n in handy if wide / n <= at_most)


def unpacked(packed: Packed) -> Piece:
    """A stored rollup as a piece."""
    return Piece(
        packed.rollup, lambda: unpacked_histogram(packed.histogram), lambda: _named(unpacked_cells(packed.cells))
    )


def _named(cells: Cells) -> tuple[tuple[PartitionKey, ...], NDArray[np.float32]]:
    return places(cells.head), cells.worst


def _from_windows(context: Context, sla: Sla, interval: Interval, step_ms: int, window_ms: int) -> list[Piece]:
    windows: dict[datetime, list[SlaWindow]] = defaultdict(list)
    for window in context.ledger.verdicts.windows(sla, interval):
        windows[floor_time(window.window.start, step_ms)].append(window)
    measured = context.spared(lambda lake: measured_spans(lake, context.ledger, sla, interval, step_ms, window_ms))
    step = timedelta(milliseconds=step_ms)
    return [
        _made(judged(Interval(start, start + step), windows.get(start, []), measured.get(start, RecordStats())))
        for start in sorted(windows.keys() | measured.keys())
    ]


def _made(rollup: Rollup) -> Piece:
    histogram, cells = rollup.measured.histogram, rollup.measured.cells
    return Piece(
        rollup,
        lambda: (np.array(list(histogram), dtype=np.int64), np.array(list(histogram.values()), dtype=np.int64)),
        lambda: _named(cells),
    )
