"""The grid of rows: group-partitions × windows of an interval, and each row's state at its end. NumPy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafka_sla.spark.job_spec import NEXT_POLL_US
from kafka_sla.spark_jobs.events.chunks import Chunk
from kafka_sla.spark_jobs.numeric.arrays import CLOCK_TOLERANCE_US, FAR, NONE, Bools, Floats, Ints
from kafka_sla.spark_jobs.numeric.offset_ranges import Ranges
from kafka_sla.spark_jobs.numeric.positions import BETWEEN_INCARNATIONS, BEYOND_END, OTHER_INCARNATION, VALID
from kafka_sla.spark_jobs.numeric.produced_timeline import middle
from kafka_sla.spark_jobs.numeric.scans import last_until, value_at
from kafka_sla.spark_jobs.windows.segments import UNCOMPACTED_US, Steps, carried_over, log_start_at, perishable

_MS = 1_000.0


@dataclass(frozen=True, slots=True)
class JobSpan:
    """What one run measures; µs."""

    start: int
    end: int
    window: int
    expire: int
    """A lagging group-partition without a commit for so long is gone for good (Burrow's expire-group)."""


@dataclass(frozen=True, slots=True)
class GridRows:
    """One entry per row, ordered by (group-partition, window); µs and offsets, -1 for unknown."""

    gp: Ints
    start: Ints
    end: Ints
    of_commit: Ints
    """Row of each commit of the chunk, -1 for commits outside the grid."""
    last: Ints
    """Last commit before the row's end, an index into the chunk's commits."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Where a group-partition stands at each row's end."""

    fresh: Bools
    """The log end is known: a point lies in the window, or polls around its end show that nothing was written."""
    known: Bools
    """Fresh, and the group has a position in the present incarnation of the topic."""
    has_age: Bools
    """The backlog age is known: also where the log end is not, but lies beyond the position for sure."""
    invalid: Ints
    """VALID, or why the last commit is no position (`positions`)."""
    log_start: Ints
    log_end: Ints
    effective: Ints
    lag: Ints
    age_ms: Floats
    age_low_ms: Floats
    age_high_ms: Floats
    held_low_ms: Floats
    """The backlog was this old, at least, at an instant of the window: at its end, or when a poll last saw it."""
    unseen: Bools
    """The group may have committed since a poll last saw its position."""


def rows(chunk: Chunk, scope: JobSpan) -> GridRows:
    """Windows of every group-partition from its first known position on."""
    count = chunk.keys.num_rows
    first = np.searchsorted(chunk.gp, np.arange(count))
    begin = np.maximum(chunk.within[first] // scope.window * scope.window, scope.start) if count else first
    width = np.maximum((scope.end - begin) // scope.window, 0)
    gp = np.repeat(np.arange(count), width)
    base = np.cumsum(width) - width
    start = begin[gp] + (np.arange(width.sum()) - base[gp]) * scope.window
    inside = (chunk.within >= scope.start) & (chunk.within < scope.end)
    of_commit = np.where(inside, base[chunk.gp] + (chunk.within - begin[chunk.gp]) // scope.window, NONE)
    return GridRows(gp, start, start + scope.window, of_commit, _last_before(chunk, gp, start + scope.window))


def _last_before(chunk: Chunk, gp: Ints, end: Ints) -> Ints:
    """Last commit of each group-partition within the windows before `end`; one exists in every row of the grid."""
    return last_until(chunk.gp, chunk.within, gp, end, before=True)


def ends(chunk: Chunk, step: Steps, grid: GridRows) -> Ends:
    """Lag and backlog age at the rows' ends, from what is known at that instant."""
    t = chunk.timeline
    epoch = t.epoch_of(chunk.gp_partition[grid.gp], grid.end)
    latest = t.last_until(epoch, grid.end)
    seen = np.clip(latest, 0, max(len(t.at) - 1, 0))
    fresh = (latest >= t.lo[epoch]) & ((t.at[seen] >= grid.start) if len(t.at) else False)
    told = t.offset[seen] if len(t.at) else np.full(len(seen), NONE)
    invalid = _invalid(chunk, step, grid, epoch)
    position = np.where(invalid == VALID, chunk.offset[grid.last], NONE)
    log_start = log_start_at(chunk, grid.gp, epoch, grid.end)
    before = carried_over(chunk, grid.gp, epoch, chunk.carried_log_end)
    log_end = np.where(latest >= t.lo[epoch], told, before)
    is_quiet = t.unchanged_around(epoch, grid.end)
    fresh |= is_quiet
    is_hidden = _hides_log_end(chunk, step, grid, epoch, log_end, seen)
    fresh &= ~is_hidden
    known = fresh & (position != NONE)
    effective = np.maximum(position, log_start)
    waiting = t.ranges.skip(epoch, effective, grid.end)
    age, low, high = backlog_age(chunk, epoch, waiting, grid.end, grid.end)
    low = np.minimum(low, _still_there(chunk, grid, epoch, waiting, log_end, high))
    # Caught up with the last known end: a record may have been produced since that point was taken.
    since = (grid.end - (t.at[seen] if len(t.at) else 0)) / _MS
    high = np.where((waiting >= log_end) & ~is_quiet, np.maximum(high, since), high)
    high = np.maximum(high, _hidden_for(chunk, grid, epoch, position))
    log_end = np.where((age > 0) & (position != NONE), np.maximum(log_end, waiting + 1), log_end)
    seen_at = _seen_at(chunk, grid)
    unseen = seen_at < grid.end
    held = np.where(seen_at >= grid.start, np.maximum(low - (grid.end - seen_at) / _MS, 0), 0)
    low = np.where(unseen, 0, low)
    lag = np.maximum(log_end - waiting, 0)
    is_behind = (position != NONE) & (latest >= t.lo[epoch]) & (waiting < told) & ~is_hidden
    is_behind &= since <= NEXT_POLL_US / _MS  # older points are not read by every run
    has_age = known | is_behind
    return Ends(fresh, known, has_age, invalid, log_start, log_end, effective, lag, age, low, high, held, unseen)


def _hidden_for(chunk: Chunk, grid: GridRows, epoch: Ints, position: Ints) -> Floats:
    """How long something may have been waiting where lookups said that the log ends before what the group had read by
    then: a record that is stamped ahead hides all that came after it. Since the last record that was read; else 0."""
    t, found = chunk.timeline, np.zeros(len(position))
    if not len(t.ranges):
        return found
    before = t.produced(epoch, position, grid.end).index
    told, at = value_at(t.offset, before), value_at(t.at, before, -FAR)
    rows = np.flatnonzero((told < position) & (chunk.at[grid.last] <= at))
    last = t.ranges.find(epoch[rows], position[rows] - 1, grid.end[rows])
    hidden = rows[t.ranges.reaches(last, told[rows])]
    found[hidden] = backlog_age(chunk, epoch[hidden], position[hidden] - 1, *[grid.end[hidden]] * 2)[2]
    return found


def _hides_log_end(chunk: Chunk, step: Steps, grid: GridRows, epoch: Ints, log_end: Ints, seen: Ints) -> Bools:
    """Rows whose newest point lies before a position that the group had committed earlier: a record stamped ahead hides
    the log end from lookups, or another incarnation of the topic answered them. No poll has shown it since."""
    t, hidden = chunk.timeline, np.zeros(len(epoch), dtype=np.bool_)
    position = chunk.offset[grid.last]
    rows = np.flatnonzero((log_end != NONE) & (log_end < position))
    if not len(rows) or not len(t.at):
        return hidden
    gp, of_row, end = grid.gp[rows], epoch[rows], grid.end[rows]
    earlier = last_until(chunk.gp, chunk.at, gp, t.at[seen[rows]] - CLOCK_TOLERANCE_US)
    committed = np.where(value_at(step.epoch, earlier) == of_row, value_at(chunk.offset, earlier), NONE)
    hides = (committed > log_end[rows]) & (value_at(chunk.invalid, earlier) == VALID)
    hides &= ~t.polled_within(of_row, value_at(chunk.at, earlier), end)
    hides &= ~t.ranges.read(t.ranges.find(of_row, committed - 1, end))  # those records tell what is hidden, if any
    hides &= t.ranges.skip(of_row, log_end[rows], end) < committed
    hidden[rows[hides]] = True
    return hidden


def _still_there(chunk: Chunk, grid: GridRows, epoch: Ints, waiting: Ints, log_end: Ints, high: Floats) -> Floats:
    """How long something has been waiting at least, wherever the log begins by now and whatever compaction left; inf
    where that is what waits at the position."""
    t = chunk.timeline
    at_most = t.start_at_most(epoch, grid.end, grid.start, grid.end)
    young = t.last_until(epoch, grid.end - UNCOMPACTED_US)
    newer = np.where(young >= t.lo[epoch], t.offset[np.clip(young, 0, None)] if len(t.at) else NONE, NONE)
    removable = perishable(chunk, grid.gp, grid.end, high)
    first = np.maximum(at_most, np.where(removable, np.minimum(newer, log_end - 1), NONE))
    found = np.where(first == FAR, 0.0, np.inf)
    moved = np.flatnonzero((first > waiting) & (first < FAR))
    found[moved] = backlog_age(chunk, epoch[moved], first[moved], *[grid.end[moved]] * 2)[1]
    return found


def _invalid(chunk: Chunk, step: Steps, grid: GridRows, epoch: Ints) -> Ints:
    """Why the last commit of each row is no position at its end."""
    of_commit = np.where(chunk.invalid_from[grid.last] <= grid.end, chunk.invalid[grid.last], VALID)
    found = np.where((step.epoch[grid.last] == epoch) | (of_commit == BEYOND_END), of_commit, OTHER_INCARNATION)
    between = chunk.timeline.between_incarnations(chunk.gp_partition[grid.gp], grid.end) <= grid.end
    return np.where(between, BETWEEN_INCARNATIONS, found)


def _seen_at(chunk: Chunk, grid: GridRows) -> Ints:
    """Until when the last position is known to have held: the row's end, or the last poll before it."""
    polled_at = np.maximum(chunk.at[grid.last], chunk.polls.last(grid.gp, grid.end))
    return np.where(chunk.polled[grid.last], polled_at, grid.end)


def alive(chunk: Chunk, grid: GridRows, end: Ends, scope: JobSpan) -> Bools:
    """Rows of group-partitions that still exist: neither deleted nor, until the next commit, expired while lagging."""
    if chunk.assumed:  # the group reads the topic as long as it has offsets on other partitions
        return np.ones(len(grid.gp), dtype=np.bool_)
    deleted = chunk.offset[grid.last] == NONE
    silent = grid.end - chunk.at[grid.last] > scope.expire
    expired = silent & (end.known & (end.lag > 0) | (end.invalid != VALID))
    since = np.where(chunk.expired, -FAR, FAR)
    np.minimum.at(since, grid.last[expired], grid.end[expired])
    return np.asarray(~deleted & (grid.end < since[grid.last]), dtype=np.bool_)


def backlog_age(chunk: Chunk, epoch: Ints, position: Ints, at: Ints, horizon: Ints) -> tuple[Floats, Floats, Floats]:
    """Age at `at` of the record at `position`: (estimate, low, high) in ms; 0 where it is not known to exist.

    Where the records at the position were not read, as those of an open transaction, the first records behind them that
    were read bound the age from below: they are waiting too.
    """
    t = chunk.timeline
    position = t.ranges.skip(epoch, position, horizon)
    found = t.produced(epoch, position, horizon)
    exists = (found.high < FAR) | (found.range >= 0)
    when = t.estimate(epoch, middle(position), found)
    when = np.where(np.isnan(when), np.minimum(found.high, at), when)
    when = np.fmax(when, np.where(found.low > -FAR, found.low, -np.inf))
    age = np.where(exists, np.maximum(at - when, 0), 0) / _MS
    latest = np.minimum(found.high, _latest_of_next_read(t.ranges, epoch, found.range, horizon))
    low = np.where(exists, np.maximum(at - latest, 0), 0) / _MS
    high = np.where(exists & (found.low == -FAR), np.inf, np.maximum(at - found.low, 0) / _MS)
    high = np.where(exists, high, 0.0)
    return np.maximum(age, low), low, np.maximum(high, age)


def _latest_of_next_read(ranges: Ranges, epoch: Ints, index: Ints, horizon: Ints) -> Ints:
    """Of each range that was not read, when the records of the next range that was read were produced at the latest,
    in µs; FAR for others."""
    latest = np.full(len(index), FAR)
    if not len(ranges):
        return latest
    unread = np.flatnonzero((index >= 0) & ~ranges.read(index))
    following = ranges.next_read(epoch[unread], index[unread], horizon[unread])
    latest[unread] = np.where(following == NONE, FAR, ranges.latest(following))
    return latest
