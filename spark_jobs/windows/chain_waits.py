"""How long records took through a chain of topics and groups, per window and stage, as bounds. NumPy only.

Records that the last group commits, and those that wait before a stage at a window's end, are followed backwards
through all stages before (`origins`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kafka_sla.spark_jobs.events.chunks import Chunk
from kafka_sla.spark_jobs.numeric.arrays import FAR, NONE, Bools, Floats, Ints
from kafka_sla.spark_jobs.numeric.positions import VALID
from kafka_sla.spark_jobs.windows.origins import KNOWN, NO_POSITION, Spans, StagePlaces, origins, written_on
from kafka_sla.spark_jobs.windows.segments import Segments, Steps, segments, steps
from kafka_sla.spark_jobs.windows.window_grid import Ends, GridRows, JobSpan, ends, rows

_MS = 1_000.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What the group-partitions of a chunk did in an interval."""

    chunk: Chunk
    scope: JobSpan
    step: Steps
    grid: GridRows
    end: Ends
    parts: Segments

    @property
    def windows(self) -> int:
        return (self.scope.end - self.scope.start) // self.scope.window

    @property
    def window(self) -> Ints:
        """Number of the window of each row of the grid."""
        return (self.grid.start - self.scope.start) // self.scope.window


@dataclass(frozen=True, slots=True)
class Worst:
    """Largest value in each window with its bounds, ms; -inf where there is none, inf where nothing bounds it."""

    low: Floats
    high: Floats

    def raise_to(self, window: Ints, low: Floats, high: Floats) -> None:
        np.fmax.at(self.low, window, low)
        np.fmax.at(self.high, window, high)


@dataclass(frozen=True, slots=True)
class StageWaits:
    """Of the whole chain, or of a stage."""

    records: Worst
    """Of records that the last group committed in the window."""
    backlog: Worst
    """Of records that wait at its end; 0: none does."""


@dataclass(frozen=True, slots=True)
class ChainWaits:
    """A chain in all windows of an interval."""

    whole: StageWaits
    stages: tuple[StageWaits, ...]
    partition: tuple[Ints, ...]
    """Of each stage: where records waited longest; NONE: nowhere."""
    consumed: Ints
    over: tuple[Ints, Ints, Ints]
    """Records above the threshold: by the middle of their bounds, at least, at most."""
    mean: Worst
    why: Ints
    """Why a high bound is missing (`origins`)."""


@dataclass(frozen=True, slots=True)
class _Items:
    """Records that were produced into a stage's topic `at` some time, and until when they are followed; µs."""

    window: Ints
    until_low: Ints
    until_high: Ints
    at: Spans


def measure_positions(chunk: Chunk, scope: JobSpan) -> Measured:
    """What all chains of a chunk are made from."""
    step, grid = steps(chunk, scope.window), rows(chunk, scope)
    parts = segments(chunk, step, np.flatnonzero(grid.of_commit != NONE))
    return Measured(chunk, scope, step, grid, ends(chunk, step, grid), parts)


def chain_waits(known: Measured, stages: Sequence[StagePlaces], reach: int, threshold_ms: float) -> ChainWaits:
    """Follow the records of one chain, so many µs before the end of each window."""
    whole, found, why = _nothing(known), [_nothing(known) for _ in stages], np.full(known.windows, KNOWN)
    part = _trusted(known, stages[-1], reach)
    consumed = _consumed(known, part)
    levels = _followed(known, stages, len(stages) - 1, consumed.at, reach)
    low, high = _between(consumed.until_low, consumed.until_high, levels[0])
    whole.records.raise_to(consumed.window, low, high)
    for stage, (added_low, added_high) in zip(found, _added(consumed, levels), strict=True):
        stage.records.raise_to(consumed.window, added_low, added_high)
    _explain(why, consumed.window, levels[0])
    for number in range(len(stages)):
        _add_backlog(known, stages[: number + 1], whole.backlog, found[number].backlog, why, reach)
    _allow_for_unseen(known, stages[-1], whole, found[-1], why, reach)
    return ChainWaits(
        whole,
        tuple(found),
        tuple(_longest(known, stage) for stage in stages),
        _counted(consumed.window, known.parts.records[part], known.windows),
        _over(known, part, consumed.window, low, high, threshold_ms),
        _mean(known, part, consumed.window, low, high),
        why,
    )


def _nothing(known: Measured) -> StageWaits:
    def worst(value: float) -> Worst:
        return Worst(np.full(known.windows, value), np.full(known.windows, value))

    return StageWaits(worst(-np.inf), worst(0.0))


def _trusted(known: Measured, stage: StagePlaces, reach: int) -> Ints:
    """Segments of a stage whose commits are known to follow a position that was seen while records are followed."""
    parts, chunk = known.parts, known.chunk
    own = np.isin(chunk.gp[parts.commit], stage.gp) & ~parts.negative
    return np.flatnonzero(own & ~_seen_too_long_ago(known, reach)[parts.commit])


def _seen_too_long_ago(known: Measured, reach: int) -> Bools:
    step, chunk = known.step, known.chunk
    seen = np.maximum(step.unchanged_until, chunk.polls.last(chunk.gp, chunk.at - 1))
    return np.asarray(~step.first & (seen < step.horizon - reach), dtype=np.bool_)


def _consumed(known: Measured, part: Ints) -> _Items:
    """What the last stage committed. Of offsets that may be no records nothing is sure."""
    step, commit = known.step, known.parts.commit[part]
    at, horizon = known.chunk.at[commit], step.horizon[commit]
    produced = known.chunk.timeline.produced(step.epoch[commit], known.parts.offset[part], horizon)
    sure = ~known.parts.perishable[part] & ~step.start_unknown[commit] & ~step.overtaken[commit]
    until = np.where(step.exact[commit], at, step.unchanged_until[commit])
    spans = Spans(produced.low, np.minimum(produced.high, at), horizon, np.full(len(part), KNOWN))
    window = known.window[known.grid.of_commit[commit]]
    return _Items(window, np.where(sure, until, -FAR), at, spans)


def _followed(known: Measured, stages: Sequence[StagePlaces], last: int, at: Spans, reach: int) -> list[Spans]:
    """When the records, or those that they were made of, were produced into each topic up to that of stage `last`."""
    found = [at.within(reach)]
    for number in range(last - 1, -1, -1):
        found.append(origins(known.chunk, known.step, stages[number], found[-1], reach))
    return found[::-1]


def _between(until_low: Ints, until_high: Ints, since: Spans) -> tuple[Floats, Floats]:
    low = np.maximum(until_low - since.high, 0) / _MS
    return low, np.where(since.low == -FAR, np.inf, np.maximum(until_high - since.low, 0) / _MS)


def _added(items: _Items, levels: Sequence[Spans]) -> list[tuple[Floats, Floats]]:
    """What each stage added: until the records came into the next topic, of the last one until they are followed."""
    found = []
    for of, following in pairwise(levels):
        found.append(_between(np.where(items.until_low == -FAR, -FAR, following.low), following.high, of))
    return [*found, _between(items.until_low, items.until_high, levels[-1])]


def _add_backlog(
    known: Measured, stages: Sequence[StagePlaces], whole: Worst, own: Worst, why: Ints, reach: int
) -> None:
    """What waits before the last of these stages at each window's end: since it came there, and into the chain."""
    stage, grid, end = stages[-1], known.grid, known.end
    row = np.flatnonzero(np.isin(grid.gp, stage.gp) & end.known & (end.age_high_ms > 0))
    window, until = known.window[row], grid.end[row]
    own.raise_to(window, end.age_low_ms[row], end.age_high_ms[row])
    oldest = np.where(np.isinf(end.age_high_ms[row]), -FAR, until - _micros(end.age_high_ms[row]))
    reason = np.full(len(row), KNOWN)
    any_of_them = _followed(known, stages, len(stages) - 1, Spans(oldest, until, until, reason), reach)[0]
    whole.raise_to(window, np.zeros(len(row)), _between(until, until, any_of_them)[1])
    _explain(why, window, any_of_them)
    newest = until - _micros(end.age_low_ms[row])
    sure = end.age_low_ms[row] > 0
    first = Spans(oldest[sure], newest[sure], until[sure], reason[sure])
    first = _followed(known, stages, len(stages) - 1, first, reach)[0]
    whole.raise_to(window[sure], _between(until[sure], until[sure], first)[0], np.zeros(int(sure.sum())))
    _allow_for_unknown(known, stage, (whole, own), why)


def _allow_for_unknown(known: Measured, stage: StagePlaces, worst: Sequence[Worst], why: Ints) -> None:
    """Windows at whose end a position of the stage is not known: anything may wait there."""
    missing = np.zeros(known.windows, dtype=np.bool_)
    rows_of = np.isin(known.grid.gp, stage.gp)
    missing[known.window[rows_of & ~known.end.known]] = True
    seen = np.bincount(known.window[rows_of], minlength=known.windows)
    missing |= seen < len(stage.gp)
    missing |= seen == 0
    window_end = known.scope.start + (np.arange(known.windows) + 1) * known.scope.window
    for place in stage.without_position.tolist():
        missing |= written_on(known.chunk, place, window_end)
    for one in worst:
        one.high[missing] = np.inf
    why[missing] = np.maximum(why[missing], NO_POSITION)


def _allow_for_unseen(
    known: Measured, stage: StagePlaces, whole: StageWaits, own: StageWaits, why: Ints, reach: int
) -> None:
    """Windows in which the last stage may have committed what nobody saw, or began with what is not known."""
    grid, end, step, chunk = known.grid, known.end, known.step, known.chunk
    rows_of = np.isin(grid.gp, stage.gp)
    unseen = np.unique(known.window[rows_of & end.unseen])
    for one in (whole, own):
        one.records.high[unseen] = np.fmax(one.records.high[unseen], one.backlog.high[unseen])
        one.records.low[unseen] = np.fmax(one.records.low[unseen], 0.0)
    begun = step.void | step.after_void | step.recreated | (chunk.gap_before & ~chunk.polled)
    begun |= (step.first & (chunk.gap_before | (chunk.offset > 0))) | _seen_too_long_ago(known, reach)
    of = grid.of_commit[begun & np.isin(chunk.gp, stage.gp)]
    doubted = np.concatenate([of[of != NONE], np.flatnonzero(rows_of & (end.invalid != VALID))])
    window = np.unique(known.window[doubted.astype(np.int64)])
    for one in (whole, own):
        one.records.high[window] = np.inf
        one.records.low[window] = np.fmax(one.records.low[window], 0.0)
    why[window] = np.maximum(why[window], NO_POSITION)


def _explain(why: Ints, window: Ints, at: Spans) -> None:
    lost = at.low == -FAR
    np.maximum.at(why, window[lost], at.why[lost])


def _longest(known: Measured, stage: StagePlaces) -> Ints:
    """The partition on which a record of each window waited longest at a stage; NONE where none did."""
    value = np.where(known.end.known, known.end.age_high_ms, 0.0)
    np.fmax.at(value, known.grid.of_commit[known.parts.commit], known.parts.high_ms)
    row = np.flatnonzero(np.isin(known.grid.gp, stage.gp) & (value > 0))
    row = row[np.lexsort((-known.grid.gp[row], value[row], known.window[row]))]
    partition = known.chunk.keys["partition"].to_numpy().astype(np.int64)
    found = np.full(known.windows, NONE)
    found[known.window[row]] = partition[known.grid.gp[row]]  # the last of a window stays
    return found


def _counted(window: Ints, records: Ints, windows: int) -> Ints:
    found = np.zeros(windows, dtype=np.int64)
    np.add.at(found, window, records)
    return found


def _over(
    known: Measured, part: Ints, window: Ints, low: Floats, high: Floats, threshold_ms: float
) -> tuple[Ints, Ints, Ints]:
    records = known.parts.records[part]

    def above(values: Floats) -> Ints:
        late = values > threshold_ms
        return _counted(window[late], records[late], known.windows)

    return above(middle(low, high)), above(low), above(high)


def _mean(known: Measured, part: Ints, window: Ints, low: Floats, high: Floats) -> Worst:
    records = known.parts.records[part].astype(np.float64)
    sums = [np.zeros(known.windows) for _ in range(3)]
    for total, values in zip(sums, (low * records, high * records, records), strict=True):
        np.add.at(total, window, values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Worst(sums[0] / sums[2], sums[1] / sums[2])


def middle(low: Floats, high: Floats) -> Floats:
    """The middle of bounds; the low one where nothing bounds it from above."""
    return np.where(np.isinf(high), low, (low + np.where(np.isinf(high), 0, high)) / 2)


def _micros(ms: Floats) -> Ints:
    return np.round(np.where(np.isfinite(ms), ms, 0) * _MS).astype(np.int64)
