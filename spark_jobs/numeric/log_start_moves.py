"""What polls of log start offsets find removed while a group stood where it did. NumPy only.

Between two polls of a partition its log start moved from a to b while the group stood at positions p. What lies below
the smallest p was read for sure, what lies above the largest was not: the loss is between max(0, b - max(a, largest))
and max(0, b - max(a, smallest)), however often and in which order either moved. Times are µs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from kafka_sla.spark_jobs.numeric.arrays import NONE, Bools, Ints
from kafka_sla.spark_jobs.numeric.scans import begins, earlier, extent, extremes, latest, running

_AROUND_US = 1_000_000
"""A poll takes a while and clocks differ: positions of one second around a poll may have been held at it."""
COMMIT, POLL, WINDOW = range(3)
"""In one instant a poll may have seen a commit. Ends of windows, and polls of them, are 1 µs early: a commit of that
instant belongs to the next window."""


@dataclass(frozen=True, slots=True)
class LogStartEvents:
    """Commits, polls and ends of windows of many group-partitions, in any order; -1 for what there is not.

    A deletion comes first in its instant.
    """

    gp: Ints
    at: Ints
    kind: Ints
    position: Ints
    """-1 of a commit: the offset was deleted."""
    log_start: Ints
    carried: Bools
    """The poll is the last one that the published rows know, with the columns below."""
    low: Ints
    high: Ints
    lost_low: Ints
    lost_high: Ints

    def take(self, index: Ints) -> LogStartEvents:
        return LogStartEvents(*(getattr(self, field.name)[index] for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Counted:
    """One entry per end of a window, by group-partition and time."""

    known_start: Ints
    """Log start at the last poll; -1 without one."""
    low: Ints
    """Smallest position since then, or held at it; -1 unknown."""
    high: Ints
    position: Ints
    """Committed offset at the window's end; -1 deleted."""
    compared: Bools
    """All polls of the window that found a position were compared with one before, since the offset was last deleted;
    else the two that follow say nothing."""
    window_low: Ints
    window_high: Ints
    total_low: Ints
    total_high: Ints


def counted(events: LogStartEvents, window: int) -> Counted:
    """Count what was removed unread; `window`: the windows' length."""
    e = events.take(np.lexsort((events.position, events.kind, events.at, events.gp)))
    begin = begins(e.gp) | (e.kind == COMMIT) & (e.position == NONE)
    life = latest(begin)  # ends with the deletion of the offset
    last = latest(e.position != NONE)
    was_polled = (e.kind == POLL) & (last >= life)  # before its first position a group can lose nothing
    slot = np.maximum(life, latest(begins(e.gp, e.at // window)))
    before = earlier(latest(was_polled), life)
    previous, there = np.maximum(before, 0), before >= life
    near_low, near_high = _held_at(e, life, window)
    low_then = np.where(e.carried, e.low, near_low)[previous]
    high_then = np.where(e.carried, e.high, near_high)[previous]
    bucket = begin | (earlier(was_polled.astype(np.int64), life) == 1)
    low = _smaller(np.where(there, low_then, NONE), running(e.position, bucket))
    high = np.where(there & (high_then != NONE), np.maximum(high_then, running(e.position, bucket, largest=True)), NONE)
    known_start = np.where(there, e.log_start[previous], NONE)
    compared = was_polled & ~e.carried & (known_start != NONE)
    lost = [
        np.where(compared, np.maximum(e.log_start - np.maximum(known_start, np.where(p == NONE, e.log_start, p)), 0), 0)
        for p in (high, low)
    ]
    alone = was_polled & ~e.carried & ~compared
    sums = [np.cumsum(np.append(0, values)) for values in (*lost, compared, alone)]
    totals = [
        np.cumsum(np.append(0, values + np.where(was_polled, np.maximum(known, 0), 0)))
        for values, known in zip(lost, (e.lost_low, e.lost_high), strict=True)
    ]
    at = np.flatnonzero(e.kind == WINDOW)
    window_low, window_high, comparisons, missing = (s[at + 1] - s[slot[at]] for s in sums)
    position = np.where(last >= life, e.position[np.maximum(last, 0)], NONE)
    return Counted(
        known_start[at],
        low[at],
        high[at],
        position[at],
        (comparisons > 0) & (missing == 0),
        window_low,
        window_high,
        *(total[at + 1] - total[life[at]] for total in totals),
    )


def _held_at(e: LogStartEvents, life: Ints, window: int) -> tuple[Ints, Ints]:
    """Smallest and largest position that may have been held at each poll: of the second before it, and the one that was
    newest then; of no other window, because no poll begins before its window does. The largest is unknown where none
    was held a second before."""
    of, polls = np.flatnonzero(e.position != NONE), np.flatnonzero(e.kind == POLL)
    low, high = np.full(len(e.gp), NONE), np.full(len(e.gp), NONE)
    if not len(of):
        return low, high
    origin, span = extent(e.at - _AROUND_US, e.at)
    clock = e.gp[of] * span + (e.at[of] - origin)
    at, key = e.at[polls], e.gp[polls] * span - origin
    first = np.searchsorted(of, life[polls])
    start = np.maximum(at - _AROUND_US, at // window * window)
    began = np.maximum(np.searchsorted(clock, key + start, side="left"), first)
    ended = np.maximum(np.searchsorted(clock, key + at, side="right"), began)
    near_low, near_high = extremes(e.position[of], began, ended)
    newest = np.searchsorted(clock, key + start, side="left") - 1
    held = np.where(newest >= first, e.position[of][np.maximum(newest, 0)], NONE)
    low[polls] = _smaller(held, near_low)
    high[polls] = np.where(held == NONE, NONE, np.maximum(held, near_high))
    return low, high


def _smaller(a: Ints, b: Ints) -> Ints:
    """The smaller of the two that is known."""
    return np.where(a == NONE, b, np.where(b == NONE, a, np.minimum(a, b)))
