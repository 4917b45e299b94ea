"""The produced timelines of many topic-partitions at once, and when an offset was produced. NumPy only.

A point (at, offset) means: records with a smaller offset were produced before `at`, the others not before it. Points
made from record timestamps count only where polled log ends do not contradict them (`claims`). Each incarnation of a
topic is an *epoch* of its own: its offsets begin at 0 again, so no bracket may span two.
Times are int64 microseconds since 1970 (UTC), offsets are int64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kafka_sla.spark.job_spec import NEXT_POLL_US
from kafka_sla.spark_jobs.numeric.arrays import CLOCK_TOLERANCE_US, FAR, MARKERS, NONE, Bools, Floats, Ints
from kafka_sla.spark_jobs.numeric.claims import trust_claims
from kafka_sla.spark_jobs.numeric.offset_ranges import RangeRows, Ranges
from kafka_sla.spark_jobs.numeric.scans import begins, extent, once_a_run
from kafka_sla.spark_jobs.numeric.topic_incarnations import (
    Incarnations,
    LogPoints,
    SameTopicId,
    TopicIdChanges,
    find_incarnations,
)

RECORD, BRACKETED, OBSERVED, INTERPOLATED, EXTRAPOLATED = range(5)
METHODS = ("record", "bracketed", "observed", "interpolated", "extrapolated")


@dataclass(frozen=True, slots=True)
class Produced:
    """When records were produced, one entry per asked offset; µs.

    `low` ≤ true time ≤ `high`; `low` is -FAR where no point lies before, `high` is FAR where none lies after.
    `index` is the last point not beyond the offset (NONE without one), `latest` the last point not later than the
    horizon, `method` indexes METHODS, `range` the ranges that were read (NONE outside them).
    """

    low: Ints
    high: Ints
    index: Ints
    latest: Ints
    method: Ints
    range: Ints


@dataclass(frozen=True, slots=True)
class Points:
    """Points of topic-partitions in the incarnation of their time, sorted by (topic-partition, time)."""

    place: Ints
    at: Ints
    log_end: Ints
    log_start: Ints
    """-1: not polled."""


class Timeline:
    """Points of topic-partitions 0..n-1, cut into epochs: the incarnations of their topics."""

    def __init__(
        self,
        partitions: int,
        points: LogPoints,
        changes: TopicIdChanges,
        read: RangeRows,
        has_same_id: SameTopicId,
    ) -> None:
        incarnations = find_incarnations(points, changes, has_same_id)
        run = points.partition + np.searchsorted(incarnations.first_point, np.arange(len(points.at)), side="right")
        trusted = trust_claims(points, run)
        self.truncations = incarnations.truncations
        self.append_delays, self.stamped_ahead = trusted.append_delays, trusted.stamped_ahead
        points, run = points.take(trusted.index), run[trusted.index]
        at, offset, log_start = points.at, points.offset, points.log_start
        self.at: Ints = at
        self._lay_out_epochs(partitions, run, incarnations)
        self.hi = np.append(self.lo[1:], len(at)).astype(np.int64)
        epoch = np.repeat(np.arange(len(self.lo)), self.hi - self.lo)
        known_start = np.where(log_start >= 0, log_start, offset)
        self._min = _per_epoch(np.minimum, np.minimum(offset, known_start), self.lo, self.hi, 0)
        top = _per_epoch(np.maximum, offset, self.lo, self.hi, 0)
        self._range = top - self._min + 3
        self._base = np.concatenate([[0], np.cumsum(self._range)[:-1]]).astype(np.int64)
        ranked = self._base[epoch] + offset - self._min[epoch] + 1
        self._rank: Ints = np.maximum.accumulate(ranked) if len(ranked) else ranked
        self.polled: Bools = _of_equal_points(points)
        self.offset: Ints = self._rank - self._base[epoch] + self._min[epoch] - 1
        start_rank = self._base[epoch] + np.where(log_start >= 0, log_start - self._min[epoch] + 1, 0)
        start_rank = np.maximum.accumulate(start_rank) if len(start_rank) else start_rank
        self.log_start: Ints = np.where(
            start_rank > self._base[epoch], start_rank - self._base[epoch] + self._min[epoch] - 1, NONE
        )
        self._origin, self._span = extent(at)
        self._clock: Ints = epoch * self._span + (at - self._origin) + 1
        self._polls = np.flatnonzero(points.polled)
        self._lookups = np.flatnonzero(points.looked_up)
        self._lookup_clock = self._clock[self._lookups]
        self._poll_clock, self._poll_rank = self._clock[self._polls], self._rank[self._polls]
        self._has_one_epoch_each = not len(incarnations.first_point)
        there = slice(None) if self._has_one_epoch_each else at >= self.epoch_at[epoch]
        self.living = Points(*(values[there] for values in (points.partition, at, self.offset, log_start)))
        read = _with_truncations(read, incarnations)
        self.ranges = Ranges(read, self.epoch_of(read.partition, read.at), len(self.lo))

    def _lay_out_epochs(self, partitions: int, run: Ints, incarnations: Incarnations) -> None:
        """One epoch for each incarnation; every partition has one, and one that nothing was seen of has no points."""
        owner = np.concatenate([np.arange(partitions), incarnations.partition])
        at = np.concatenate([np.full(partitions, extent(self.at)[0]), incarnations.alive_from])
        order = np.lexsort((at, owner))
        nothing = np.full(partitions, FAR)
        ended = np.concatenate([nothing, incarnations.ended])
        known_from = np.concatenate([nothing, incarnations.known_from])
        self.epoch_partition, self.epoch_at = owner[order], at[order]
        self.lo = np.searchsorted(run, np.arange(len(order)))
        self.first_epoch = np.searchsorted(self.epoch_partition, np.arange(partitions))
        """Of each partition."""
        self._ended_before, self._known_from = ended[order], known_from[order]

    def epoch_of(self, partition: Ints, at: Ints) -> Ints:
        """The epoch of `partition` at time `at`."""
        if self._has_one_epoch_each:
            return partition
        origin, span = extent(self.epoch_at, at)
        keys = self.epoch_partition * span + (self.epoch_at - origin)
        found = np.searchsorted(keys, partition * span + (at - origin), side="right") - 1
        return np.maximum(found, self.first_epoch[partition])

    def last_until(self, epoch: Ints, at: Ints) -> Ints:
        """Index of the last point of `epoch` with time ≤ `at`; lo - 1 where there is none."""
        return np.asarray(np.searchsorted(self._clock, self._key(epoch, at), side="right") - 1, dtype=np.int64)

    def between_incarnations(self, partition: Ints, at: Ints) -> Ints:
        """From when on it is known that each instant may belong to either of two incarnations; FAR: it does not."""
        if self._has_one_epoch_each:
            return np.full(len(at), FAR)
        epoch = self.epoch_of(partition, at)
        following = np.minimum(epoch + 1, len(self.lo) - 1)
        inside = (self.epoch_partition[following] == partition) & (following > epoch)
        inside &= at > self._ended_before[following]
        return np.where(inside, self._known_from[following], FAR)

    def start_at_most(self, epoch: Ints, at: Ints, begin: Ints, end: Ints) -> Ints:
        """Where the log began at each instant at most; FAR where nothing tells. `begin`, `end`: the window around it.

        The next poll tells, if it comes soon. So does a lookup that was made after the window's end, because it is
        answered with records that are there: one of the window's times, or of any since the last poll, because runs
        that look up also poll.
        """
        nth, poll = self._soon(epoch, at, at + NEXT_POLL_US, end)
        polled = (nth != NONE) & (_take(self.at, poll) <= at + NEXT_POLL_US)
        found: Ints = np.where(polled, _take(self.log_start, poll), FAR)
        others = np.flatnonzero(~polled)
        found[others] = once_a_run(self._answered_in, epoch[others], begin[others], end[others])
        return found

    def _answered_in(self, epoch: Ints, begin: Ints, end: Ints) -> Ints:
        """What the first lookup of each window says of where the log begins, at most."""
        last = np.searchsorted(self._poll_clock, self._key(epoch, end), side="right") - 1
        before = np.where(last >= 0, _take(self._polls, last), NONE)
        begin = np.minimum(begin, np.where(before >= self.lo[epoch], _take(self.at, before), self._origin - 1))
        answer = _take(self._lookups, np.searchsorted(self._lookup_clock, self._key(epoch, begin), side="right"))
        there = (answer >= self.lo[epoch]) & (answer < self.hi[epoch]) & (len(self._lookups) > 0)
        there &= (_take(self.at, answer) > begin) & (_take(self.at, answer) <= end)
        return np.where(there, np.maximum(_take(self.offset, answer) - 1, 0), FAR)

    def exceeded(self, epoch: Ints, at: Ints, offset: Ints) -> Ints:
        """The instant of the first poll after `at` whose log end lies before the offset; FAR where it does not."""
        nth, poll = self._soon(epoch, at + CLOCK_TOLERANCE_US, at + NEXT_POLL_US, at)
        behind = (nth != NONE) & (_take(self.offset, poll) < offset - MARKERS)
        return np.where(behind, _take(self.at, poll), FAR)

    def _soon(self, epoch: Ints, at: Ints, until: Ints, known: Ints) -> tuple[Ints, Ints]:
        """The first poll of each epoch from an instant on, among the polls (NONE without) and among all points.

        Up to `until`, a poll of the next incarnation counts too, if that was not known yet at the time `known`.
        """
        nth = np.searchsorted(self._poll_clock, self._key(epoch, at), side="left")
        poll = _take(self._polls, nth)
        there = poll < self.hi[epoch]
        if not self._has_one_epoch_each:
            following = np.minimum(epoch + 1, len(self.lo) - 1)
            other = self.epoch_partition[following] == self.epoch_partition[epoch]
            other &= (self._known_from[following] > known) & (_take(self.at, poll) <= until)
            there |= other & (poll >= self.lo[following]) & (poll < self.hi[following])
        there &= (nth < len(self._polls)) & (_take(self.at, poll) >= at)
        return np.where(there, nth, NONE), poll

    def _key(self, epoch: Ints, at: Ints) -> Ints:
        return epoch * self._span + np.clip(at - self._origin + 1, 0, self._span - 1)

    def beyond(self, epoch: Ints, offset: Ints, side: Literal["left", "right"] = "right") -> Ints:
        """Index of the first point with a larger offset (side "right"), or one at least as large (side "left")."""
        return np.asarray(np.searchsorted(self._rank, self._rank_of(epoch, offset), side=side), dtype=np.int64)

    def _rank_of(self, epoch: Ints, offset: Ints) -> Ints:
        rank = np.clip(offset - self._min[epoch] + 1, 0, self._range[epoch] - 1)
        return np.asarray(self._base[epoch] + rank, dtype=np.int64)

    def inside(self, epoch: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints]:
        """Indexes of the first point beyond each `begin` and of the first one that reaches its `end`: most begin where
        the one before ended, and no point is there."""
        reached = self.beyond(epoch, end, "left")
        found = np.roll(reached, 1)
        asked = (begin != np.roll(end, 1)) | (epoch != np.roll(epoch, 1)) | (_take(self.offset, found) == begin)
        other = np.flatnonzero(asked)
        found[other] = self.beyond(epoch[other], begin[other])
        return found, reached

    def produced(self, epoch: Ints, offset: Ints, horizon: Ints) -> Produced:
        """Bounds on when the record at each offset was produced, from points not later than `horizon` only.

        The horizon is the end of the window that is asked about: what became known later must not change its answer,
        or one long interval would not give the rows of many short ones.
        """
        return self.bracketed(epoch, offset, horizon, self.beyond(epoch, offset), self.last_until(epoch, horizon))

    def bracketed(self, epoch: Ints, offset: Ints, horizon: Ints, after: Ints, latest: Ints) -> Produced:
        """The same where it is known already which point is the last up to the horizon, and which one the first beyond
        each offset, or any behind the horizon."""
        has_after = after <= latest
        before = np.minimum(after - 1, latest)
        has_before = before >= self.lo[epoch]
        low = np.where(has_before, _take(self.at, before), -FAR)
        high = np.where(has_after, _take(self.at, after), FAR)
        is_observed = _take(self.polled, before) & _take(self.polled, after)
        method = np.where(low == high, RECORD, np.where(is_observed, OBSERVED, BRACKETED))
        method = np.where(has_before & has_after, method, EXTRAPOLATED)
        found = Produced(low, high, np.where(has_before, before, NONE), latest, method, np.full(len(offset), NONE))
        if not len(self.ranges):
            return found
        return self._overruled(found, self.ranges.find(epoch, offset, horizon), epoch, offset, horizon)

    def observed(self, epoch: Ints, offset: Ints, horizon: Ints) -> tuple[Ints, Ints]:
        """Bounds on when the record at each offset was appended, from polls up to `horizon` only: (low, high)."""
        last = np.searchsorted(self._poll_clock, self._key(epoch, horizon), side="right") - 1
        after = np.searchsorted(self._poll_rank, self._rank_of(epoch, offset), side="right")
        before = np.minimum(after - 1, last)
        first, following = _take(self._polls, before), _take(self._polls, after)
        low = np.where((before >= 0) & (first >= self.lo[epoch]), _take(self.at, first), -FAR)
        return low, np.where(after <= last, _take(self.at, following), FAR)

    def unchanged_around(self, epoch: Ints, at: Ints) -> Bools:
        """Whether the polls before and after each instant found the same log end: nothing was written in between.

        Polls within `NEXT_POLL_US` of the instant count.
        """
        last = np.searchsorted(self._poll_clock, self._key(epoch, at), side="right") - 1
        before, after = _take(self._polls, last), _take(self._polls, last + 1)
        there = (last >= 0) & (last + 1 < len(self._polls)) & (before >= self.lo[epoch]) & (after < self.hi[epoch])
        there &= (_take(self.at, before) >= at - NEXT_POLL_US) & (_take(self.at, after) <= at + NEXT_POLL_US)
        return np.asarray(there & (_take(self.offset, before) == _take(self.offset, after)), dtype=np.bool_)

    def polled_within(self, epoch: Ints, since: Ints, until: Ints) -> Bools:
        """Whether a log end of each epoch was polled after `since` and not after `until`."""
        last = np.searchsorted(self._poll_clock, self._key(epoch, until), side="right") - 1
        poll = _take(self._polls, last)
        return np.asarray((last >= 0) & (poll >= self.lo[epoch]) & (_take(self.at, poll) > since), dtype=np.bool_)

    def _overruled(self, found: Produced, index: Ints, epoch: Ints, offset: Ints, horizon: Ints) -> Produced:
        """Bounds from points, overruled where records were read, or should have been read and were not."""
        read, inside = self.ranges.read(index), index >= 0
        earliest, latest = self.ranges.earliest(index), self.ranges.latest(index)
        thinned = self.ranges.thinned(index)  # what was there before may bear any time that points allow
        earliest = np.where(thinned, np.minimum(earliest, found.low), earliest)
        latest = np.where(thinned, np.maximum(latest, found.high), latest)
        low = np.where(read, earliest, np.where(inside & (earliest == NONE), -FAR, found.low))
        high = np.where(read, latest, np.where(inside & (latest == NONE), FAR, found.high))
        exact = np.where(earliest == latest, RECORD, BRACKETED)
        method = np.where(read, exact, np.where(inside, INTERPOLATED, found.method))
        rows = np.flatnonzero(inside & (high >= low))
        first, last = self.observed(epoch[rows], offset[rows], horizon[rows])
        is_open = inside & ~read & (latest == NONE) & (earliest != NONE)  # an open transaction: perhaps no record
        last = np.where(is_open[rows], FAR, last)
        wrong = (high[rows] < first - CLOCK_TOLERANCE_US) | (low[rows] > last + CLOCK_TOLERANCE_US)
        low[rows] = np.where(wrong, first, np.clip(first, low[rows], high[rows]))
        high[rows] = np.where(wrong, last, np.clip(last, low[rows], high[rows]))
        method[rows[wrong]] = OBSERVED
        return Produced(low, high, found.index, found.latest, method, index)

    def estimate(self, epoch: Ints, position: Floats, found: Produced) -> Floats:
        """Time at which each position (offset + 0.5: the middle of a record) was reached; NaN where nothing tells.

        Between two points linear. Outside them the slope of the nearest two points of different offsets and
        times is prolonged, as Kafka Lag Exporter does with its table (KIP-489, "Kafka Lag Exporter", step 2a).
        """
        return self.estimates(epoch, (position,), found)[0]

    def estimates(self, epoch: Ints, positions: Sequence[Floats], found: Produced) -> list[Floats]:
        """The same of several positions that lie between the same points."""
        inside = (found.index >= 0) & (found.index < found.latest)
        reached = self._line(found.index, found.index + inside)
        outside, read = np.flatnonzero(~inside), self.ranges.read(found.range) if len(self.ranges) else None
        results = []
        for position in positions:
            result = reached(position)
            if len(outside):
                result[outside] = self._beyond_points(epoch[outside], position[outside], found, outside)
            if read is not None:
                result[read] = self.ranges.line(found.range[read], position[read] - 0.5)
            results.append(result)
        return results

    def _beyond_points(self, epoch: Ints, position: Floats, found: Produced, rows: Ints) -> Floats:
        """Estimates of these rows, which lie between no two points."""
        anchor, forward = found.index[rows], found.index[rows] >= 0
        first = np.flatnonzero(~forward)
        following = self.beyond(epoch[first], position[first].astype(np.int64))
        anchor[first] = np.minimum(following, self.hi[epoch[first]] - 1)
        return self._prolong(epoch, anchor, position, forward, found.latest[rows])

    def _line(self, left: Ints, right: Ints) -> Callable[[Floats], Floats]:
        """When positions between these points were reached; NaN where both have one offset."""
        offset, at = _take(self.offset, left), _take(self.at, left)
        records, took = _take(self.offset, right) - offset, _take(self.at, right) - at
        rising = np.where(records > 0, records, np.nan)

        def reached(position: Floats) -> Floats:
            return np.asarray(at + (position - offset) / rising * took, dtype=np.float64)

        return reached

    def _prolong(self, epoch: Ints, anchor: Ints, position: Floats, forward: Bools, latest: Ints) -> Floats:
        """Prolong the slope behind (forward) or ahead of (backward) the anchor point."""
        # of another time, too: the two points of one record are no slope
        at = _take(self.at, anchor)
        behind = np.minimum(self.beyond(epoch, _take(self.offset, anchor), "left") - 1, self.last_until(epoch, at - 1))
        ahead = np.maximum(self.beyond(epoch, _take(self.offset, anchor)), self.last_until(epoch, at) + 1)
        other = np.where(forward, behind, ahead)
        usable = (other >= self.lo[epoch]) & (other <= latest)
        neighbour = np.where(usable, other, anchor)
        slope = np.where(forward, self._line(neighbour, anchor)(position), self._line(anchor, neighbour)(position))
        return np.where(usable, slope, np.nan)


def _with_truncations(read: RangeRows, incarnations: Incarnations) -> RangeRows:
    """Offsets that a truncation lost are used again: the records there may be younger than points allow."""
    lost = incarnations.truncations
    if not len(lost.at):
        return read
    nothing = np.full(len(lost.at), NONE)
    rows = RangeRows(lost.partition, lost.at, lost.offset, lost.until, nothing, lost.at, nothing)
    return RangeRows(*(np.concatenate([getattr(of, n) for of in (read, rows)]) for n in RangeRows.__slots__))


def middle(offset: Ints) -> Floats:
    """The position of a record between its offset and the next one."""
    return np.asarray(offset + 0.5, dtype=np.float64)


def _take(values: Any, index: Ints) -> Any:
    """values[index] with out-of-range indexes clamped: callers mask what they must not use."""
    if len(values) == 0:
        return np.zeros(len(index), dtype=values.dtype)
    return values.take(index, mode="clip")


def _of_equal_points(points: LogPoints) -> Bools:
    """Whether each point was polled; of equal points, whether any was: their order means nothing."""
    first = np.flatnonzero(begins(points.partition, points.at, points.offset))
    if len(first) == len(points.at):
        return points.polled
    return np.repeat(np.logical_or.reduceat(points.polled, first), np.diff(first, append=len(points.at)))


def _per_epoch(ufunc: np.ufunc, values: Ints, lo: Ints, hi: Ints, default: int) -> Ints:
    """ufunc over the points of each epoch; `default` where an epoch has none."""
    result = np.full(len(lo), default, dtype=np.int64)
    filled = hi > lo
    if filled.any():
        result[filled] = ufunc.reduceat(values, lo[filled])
    return result
