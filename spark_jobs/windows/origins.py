"""From which records of a topic a stage of a chain made records of the next topic, as bounds in time. NumPy only.

Two things are supposed of the stage's group: when it commits, all that came of the records before that position is
written (at least once, or exactly once), and the first commit after it wrote a record is beyond the record's input. So
what it wrote between two instants came of offsets between the position before the first and the one that was committed
after the second, of some partition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafka_sla.spark_jobs.events.chunks import Chunk
from kafka_sla.spark_jobs.numeric.arrays import FAR, NONE, Bools, Ints
from kafka_sla.spark_jobs.numeric.positions import VALID
from kafka_sla.spark_jobs.numeric.scans import extremes, last_until, value_at
from kafka_sla.spark_jobs.windows.segments import Steps

KNOWN, NO_POSITION, OTHER_INCARNATION, NO_INPUT, FURTHER_BACK = range(5)
"""Why nothing bounds an instant from below; of several reasons the largest is reported."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Instants between `low` and `high`, one entry each; µs. `low` is -FAR where nothing bounds it, for a reason."""

    low: Ints
    high: Ints
    horizon: Ints
    """End of the window that asks: what became known later does not answer."""
    why: Ints

    def __len__(self) -> int:
        return len(self.low)

    def within(self, reach: int) -> Spans:
        """Cut at so many µs before the horizon: what was before is not followed."""
        border = self.horizon - reach
        lost = (self.low < border) & (self.why == KNOWN)
        low = np.where(self.low < border, -FAR, self.low)
        return Spans(low, np.maximum(self.high, border), self.horizon, np.where(lost, FURTHER_BACK, self.why))


@dataclass(frozen=True, slots=True)
class StagePlaces:
    """Where a stage reads: its group-partitions, and the topic's partitions on which its group has no position."""

    gp: Ints
    without_position: Ints


@dataclass(frozen=True, slots=True)
class _Inputs:
    """Of what one partition gave: candidates in [low, high]; `why` other than KNOWN: nothing is known of them."""

    candidate: Bools
    low: Ints
    high: Ints
    why: Ints


def origins(chunk: Chunk, step: Steps, stage: StagePlaces, written: Spans, reach: int) -> Spans:
    """When the records were produced that the stage made what was `written` of."""
    if not len(written):
        return written
    columns = np.stack([written.low, written.high, written.horizon, written.why], axis=1)
    asked, inverse = np.unique(columns, axis=0, return_inverse=True)
    spans = Spans(*np.ascontiguousarray(asked.T))
    low, high, why = np.full(len(spans), FAR), np.full(len(spans), -FAR), spans.why.copy()
    asking = Spans(np.maximum(spans.low, spans.horizon - reach), spans.high, spans.horizon, spans.why)
    found = [_inputs(chunk, step, gp, asking, reach) for gp in stage.gp.tolist()]
    found += [_of_unread(chunk, place, asking) for place in stage.without_position.tolist()]
    for inputs in found:
        unknown = inputs.candidate & (inputs.why != KNOWN)
        low = np.where(inputs.candidate, np.minimum(low, np.where(unknown, -FAR, inputs.low)), low)
        high = np.where(inputs.candidate, np.maximum(high, inputs.high), high)
        why = np.where(unknown, np.maximum(why, inputs.why), why)
    nothing = low == FAR
    low = np.where(nothing | (spans.low == -FAR), -FAR, low)
    high = np.where(nothing, spans.high, np.minimum(high, spans.high))
    why = np.where(nothing, np.maximum(why, NO_INPUT), why)
    back = inverse.reshape(-1)
    return Spans(low[back], high[back], written.horizon, why[back]).within(reach)


def _inputs(chunk: Chunk, step: Steps, gp: int, asked: Spans, reach: int) -> _Inputs:
    """What the stage may have read of one partition to write between the instants."""
    t, key = chunk.timeline, np.full(len(asked), gp)
    before = last_until(chunk.gp, chunk.at, key, asked.low, before=True)
    after, there = _following(chunk, gp, last_until(chunk.gp, chunk.at, key, asked.high), asked.horizon)
    committed = there & ~_take(chunk.polled, after)
    first = np.where(before == NONE, np.searchsorted(chunk.gp, gp), before)
    stop = np.where(committed, after + 1, np.maximum(after, first))
    lowest, highest = extremes(chunk.offset, first, stop)
    moved = _following(chunk, gp, before, asked.horizon)[1]
    why = _unknown(chunk, step, gp, asked, before, moved, reach, (first, stop), lowest)
    epoch = t.epoch_of(np.full(len(asked), chunk.gp_partition[gp]), asked.horizon)
    begin = t.ranges.skip(epoch, np.maximum(lowest, 0), asked.horizon)
    end = np.where(committed & (why == KNOWN), highest, FAR)
    oldest = t.produced(epoch, begin, asked.horizon).low
    newest = t.produced(epoch, np.where(end == FAR, begin, np.maximum(end - 1, begin)), asked.horizon).high
    oldest, newest = t.ranges.widened(epoch, begin, end, oldest, newest)
    newest = np.where(end == FAR, asked.high, np.minimum(newest, asked.high))
    candidate = (why != KNOWN) | ((end > begin) & (oldest <= asked.high))
    return _Inputs(candidate, oldest, np.where(why != KNOWN, asked.high, newest), why)


def _following(chunk: Chunk, gp: int, last: Ints, horizon: Ints) -> tuple[Ints, Bools]:
    """The commit after each one of a group-partition (NONE: its first), and whether it is one of before the horizon."""
    after = np.where(last == NONE, np.searchsorted(chunk.gp, gp), last + 1)
    there = after < np.searchsorted(chunk.gp, gp, side="right")
    return after, there & (_take(chunk.within, after) < horizon)


def _unknown(
    chunk: Chunk,
    step: Steps,
    gp: int,
    asked: Spans,
    before: Ints,
    moved: Bools,
    reach: int,
    slices: tuple[Ints, Ints],
    lowest: Ints,
) -> Ints:
    """Why the position before is not known, or those since.

    One that was last seen longer ago than records are followed counts only if nothing was heard since.
    """
    t, place = chunk.timeline, np.full(len(asked), chunk.gp_partition[gp])
    seen = np.maximum(value_at(chunk.at, before, -FAR), chunk.polls.last(np.full(len(asked), gp), asked.low))
    known = (before != NONE) & ((seen >= asked.horizon - reach) | ~moved) & (lowest != NONE)
    void = chunk.invalid_from[np.clip(before, 0, None)] <= asked.horizon if len(chunk.at) else ~known
    invalid = extremes((chunk.invalid != VALID).astype(np.int64), *slices)[1] == 1
    epoch = t.epoch_of(place, asked.horizon)
    renewed = (t.epoch_of(place, asked.low) != epoch) | (value_at(step.epoch, before, epoch[0]) != epoch)
    renewed |= t.between_incarnations(place, asked.horizon) <= asked.horizon
    return np.where(renewed, OTHER_INCARNATION, np.where(known & ~(void | invalid), KNOWN, NO_POSITION))


def _of_unread(chunk: Chunk, place: int, asked: Spans) -> _Inputs:
    """A partition that the group has no position on: nothing is known of it, unless nothing was ever written there."""
    there = written_on(chunk, place, asked.horizon)
    return _Inputs(there, asked.low, asked.high, np.full(len(asked), NO_POSITION))


def written_on(chunk: Chunk, place: int, horizon: Ints) -> Bools:
    """Whether a topic-partition may have had records by then."""
    t = chunk.timeline
    epoch = t.epoch_of(np.full(len(horizon), place), horizon)
    last = t.last_until(epoch, horizon)
    empty = (last >= t.lo[epoch]) & (value_at(t.offset, np.where(last < t.lo[epoch], NONE, last)) == 0)
    return np.asarray(~empty, dtype=np.bool_)


def _take(values: Ints | Bools, index: Ints) -> Ints:
    return np.asarray(values[np.clip(index, 0, len(values) - 1)])
