"""Counts the records that were due in each window, and those of them that were late. NumPy only.

A record is due at its produced time plus the threshold, and late if its group had not committed beyond it by then. So
the records due in a span [a, b) are those that the log end passed in [a - threshold, b - threshold), and a position
that holds during that span leaves those at or above it late. Where no observation up to a window's end shows that a
record is due, the record counts in the next window. Records that retention removed count like all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafka_sla.spark_jobs.events.chunks import Chunk
from kafka_sla.spark_jobs.numeric.arrays import FAR, NONE, Bools, Ints
from kafka_sla.spark_jobs.numeric.produced_timeline import Timeline
from kafka_sla.spark_jobs.numeric.scans import begins, extremes, last_until
from kafka_sla.spark_jobs.windows.segments import Steps
from kafka_sla.spark_jobs.windows.window_grid import GridRows


@dataclass(frozen=True, slots=True)
class DueRecords:
    """Records per row; 0 ≤ late_low ≤ late ≤ late_high, and late ≤ due."""

    due: Ints
    late: Ints
    late_low: Ints
    late_high: Ints


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows to count: group-partition, window in µs, and the life of the topic at the window's end."""

    gp: Ints
    start: Ints
    end: Ints
    epoch: Ints
    is_between: Bools
    """At the window's end it is not known which life of the topic a position belongs to."""


def count_due_records(
    chunk: Chunk, step: Steps, grid: GridRows, rows: Ints, threshold_ms: int, allowed_lag: int = 0
) -> DueRecords:
    """Due and late records of these `rows` of the grid, one entry each. The first `allowed_lag` records at a position
    may wait: they are not late."""
    gp, end = grid.gp[rows], grid.end[rows]
    place = chunk.gp_partition[gp]
    is_between = chunk.timeline.between_incarnations(place, end) <= end
    own = _Rows(gp, grid.start[rows], end, chunk.timeline.epoch_of(place, end), is_between)
    threshold = threshold_ms * 1_000
    due, late = _estimate(chunk, step, own, threshold, allowed_lag)
    low, high = _bounds(chunk, step, own, threshold, allowed_lag)
    late = np.clip(late, low, high)
    return DueRecords(np.maximum(due, late), late, low, high)


def _estimate(chunk: Chunk, step: Steps, rows: _Rows, threshold: int, allowed_lag: int) -> tuple[Ints, Ints]:
    """Due and late records of each row, with the log end interpolated between observations. Rows are cut at commits:
    a commit holds until the next one."""
    t, count = chunk.timeline, len(rows.gp)
    first = last_until(chunk.gp, chunk.within, rows.gp, rows.start, before=True)
    last = last_until(chunk.gp, chunk.within, rows.gp, rows.end, before=True)
    first = np.where(first == NONE, np.searchsorted(chunk.gp, rows.gp) - 1, first)
    pieces = np.maximum(last - first, 0) + 1
    row = np.repeat(np.arange(count), pieces)
    opens = begins(row)
    commit = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + first[row]
    at = np.minimum(chunk.at.take(commit, mode="clip"), rows.end[row])
    position = _positions(chunk, step, rows, row, commit) + allowed_lag
    inner = np.flatnonzero(~opens)
    reached = np.empty(len(row), dtype=np.int64)
    reached[opens] = _log_end(t, rows.epoch, rows.start - threshold, rows.start, rows.end)
    reached[inner] = _log_end(t, rows.epoch[row[inner]], at[inner] - threshold, *[rows.end[row[inner]]] * 2)
    at_end = _log_end(t, rows.epoch, rows.end - threshold, rows.end, rows.end)
    until = np.append(reached[1:], 0)
    until[np.append(opens[1:], True)[: len(row)]] = at_end
    due = _count_records(t, rows.epoch, reached[opens], at_end, rows.end)
    late = _count_records(t, rows.epoch[row], np.maximum(reached, position), until, rows.end[row])
    return due, _sum_by_row(row, late, count)


def _log_end(t: Timeline, epoch: Ints, at: Ints, horizon: Ints, later: Ints) -> Ints:
    """The log end offset at each instant, by points up to the horizon: between two points in proportion to time, after
    the last point its offset. Before the first point it is that one's offset if that is known by `later`, or 0."""
    after = t.last_until(epoch, at - 1) + 1
    before = after - 1
    has_before = before >= t.lo[epoch]
    has_after = (after < t.hi[epoch]) & (_take(t.at, after) <= np.where(has_before, horizon, later))
    low, high = _take(t.offset, before), _take(t.offset, after)
    began, took = _take(t.at, before), _take(t.at, after) - _take(t.at, before)
    share = np.where(has_before & has_after, at - began, 0) / np.maximum(took, 1)
    between = low + np.rint((high - low) * share).astype(np.int64)
    return np.asarray(np.where(has_before, np.where(has_after, between, low), has_after * high), dtype=np.int64)


def _positions(chunk: Chunk, step: Steps, rows: _Rows, row: Ints, commit: Ints) -> Ints:
    """The position that each commit leaves in the life of its row; FAR where it is not known."""
    if not len(chunk.at):
        return np.full(len(row), FAR)
    index = np.clip(commit, 0, None)
    known = (commit >= 0) & (chunk.gp[index] == rows.gp[row]) & ~_is_unknown(chunk, step)[index]
    known &= (step.epoch[index] == rows.epoch[row]) & (chunk.invalid_from[index] > rows.end[row])
    known &= ~rows.is_between[row]
    position: Ints = np.where(known, chunk.offset[index], FAR)
    return position


def _is_unknown(chunk: Chunk, step: Steps) -> Bools:
    return np.asarray(step.void | (chunk.offset == NONE), dtype=np.bool_)


def _bounds(chunk: Chunk, step: Steps, rows: _Rows, threshold: int, allowed_lag: int) -> tuple[Ints, Ints]:
    """Late records of each row at least and at most. Rows are cut at points: between two of them it is not known when
    records were produced, so any position that the group may have had meanwhile counts."""
    t, count = chunk.timeline, len(rows.gp)
    first = t.last_until(rows.epoch, rows.start - threshold - 1) + 1
    stop = np.maximum(t.last_until(rows.epoch, rows.end - threshold - 1) + 1, first)
    pieces = stop - first + 1
    row = np.repeat(np.arange(count), pieces)
    after = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + first[row]
    epoch, start, end = rows.epoch[row], rows.start[row], rows.end[row]
    has_before, has_after = after > t.lo[epoch], (after < t.hi[epoch]) & (_take(t.at, after) <= end)
    since, until = _take(t.at, after - 1) + threshold, _take(t.at, after) + threshold
    begin = np.where(has_before, _take(t.offset, after - 1), 0)
    earlier = has_before & (since < start) & (until <= start)
    stop_at = np.where(has_after & ~earlier, _take(t.offset, after), begin)
    inside = has_before & has_after & (since >= start) & (until <= end)
    lowest, highest = _position_bounds(
        chunk, step, rows, row, np.where(has_before, np.maximum(since, start), start), np.minimum(until, end - 1)
    )
    lowest, highest = lowest + allowed_lag, highest + allowed_lag
    at_most = _count_records(t, epoch, np.maximum(begin, lowest), stop_at, end)
    at_least = np.zeros(len(row), dtype=np.int64)
    sure = np.flatnonzero(inside & (highest < stop_at))
    at_least[sure] = _count_records(t, epoch[sure], np.maximum(begin[sure], highest[sure]), stop_at[sure], end[sure])
    return _sum_by_row(row, at_least, count), _sum_by_row(row, at_most, count)


def _position_bounds(chunk: Chunk, step: Steps, rows: _Rows, row: Ints, since: Ints, until: Ints) -> tuple[Ints, Ints]:
    """The lowest and the highest position that a group may have had between two instants of its row, by what is known
    at the row's end; 0 and FAR where nothing is known."""
    gp, end = rows.gp[row], rows.end[row]
    if not len(chunk.at):
        return np.zeros(len(row), dtype=np.int64), np.full(len(row), FAR)
    first = last_until(chunk.gp, chunk.at, gp, np.minimum(since, until))
    last = last_until(chunk.gp, chunk.at, gp, until)
    known = first != NONE
    last = np.clip(last, 0, None)
    first = np.where(known, first, last)
    following = np.minimum(last + 1, len(chunk.gp) - 1)
    seen = (following > last) & (chunk.gp[following] == gp) & (chunk.within[following] < end)
    moved = seen & (chunk.gap_before[following] | chunk.polled[last]) & (until > step.unchanged_until[following])
    polled_at = np.maximum(chunk.at[last], chunk.polls.last(gp, end)) if chunk.polled.any() else chunk.at[last]
    hidden = ~seen & chunk.polled[last] & (until > polled_at)
    stop = np.where(moved, following, last) + 1
    unknown = _is_unknown(chunk, step)
    lowest, _ = extremes(np.where(unknown, 0, chunk.offset), first, stop)
    _, highest = extremes(np.where(unknown, FAR, chunk.offset), first, stop)
    known &= (step.epoch[first] == rows.epoch[row]) & (step.epoch[last] == rows.epoch[row])
    known &= (chunk.invalid_from[last] > end) & ~rows.is_between[row]
    return np.where(known, lowest, 0), np.where(known & ~hidden, highest, FAR)


def _count_records(t: Timeline, epoch: Ints, begin: Ints, stop: Ints, horizon: Ints) -> Ints:
    """Offsets in [begin, stop), without ranges that hold no records as far as that is known by the horizon."""
    records: Ints = np.maximum(stop - begin, 0)
    filled = np.flatnonzero(records) if len(t.ranges) else np.zeros(0, dtype=np.int64)
    if not len(filled):
        return records
    epoch, begin, stop, horizon = (values[filled] for values in (epoch, begin, stop, horizon))
    lo, hi = t.ranges.edges_inside(epoch, begin, stop)
    pieces = hi - lo + 1
    owner = np.repeat(np.arange(len(filled)), pieces)
    edge = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + lo[owner]
    opens = begins(owner)
    closes = np.append(opens[1:], True)
    ends = np.where(closes, stop[owner], _take(t.ranges.edges, edge))
    starts = np.where(opens, begin[owner], np.roll(ends, 1))
    void = t.ranges.void(t.ranges.find(epoch[owner], starts, horizon[owner]))
    records[filled] = _sum_by_row(owner[~void], (ends - starts)[~void], len(filled))
    return records


def _sum_by_row(row: Ints, values: Ints, count: int) -> Ints:
    """Sums of whole numbers by their sorted row numbers."""
    total = np.concatenate([[0], np.cumsum(values)])
    edges = np.searchsorted(row, np.arange(count + 1))
    return np.asarray(total[edges[1:]] - total[edges[:-1]], dtype=np.int64)


def _take(values: Ints, index: Ints) -> Ints:
    """values[index] with indexes clipped to those that exist; zeros where there are no values."""
    return values.take(index, mode="clip") if len(values) else np.zeros(len(index), dtype=np.int64)
