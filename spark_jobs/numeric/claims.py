"""Which claims about produced times are trusted: those that observed log ends do not contradict. NumPy only.

A *claim* is a point made from record timestamps, which producers set. An *observation* is a polled log end: records
below it were appended before the poll, all others after it. A claim is dropped

* if its record was stamped ahead: an earlier poll has already seen that record, or
* if its records were stamped behind: a later poll has not seen them yet, and clocks do not differ that much. Then no
  claim about any record appended between that poll and the next one is trusted.

Of the remaining claims, those that lie below an earlier one are dropped: timestamps run backwards there, or another
incarnation of the topic answered the lookup.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafka_sla.spark_jobs.numeric.arrays import CLOCK_TOLERANCE_US, NONE, Bools, Ints
from kafka_sla.spark_jobs.numeric.scans import begins, extremes, last_until, running
from kafka_sla.spark_jobs.numeric.topic_incarnations import LogPoints


@dataclass(frozen=True, slots=True)
class Skews:
    """How far record timestamps of partitions are known to be off, sorted by (partition, at); µs."""

    partition: Ints
    at: Ints
    by: Ints
    """At least so much; 0: not known to be off."""

    def find_largest(self, partition: Ints, start: Ints, end: Ints) -> Ints:
        """The largest of each window, from the last entry not later than its start on; -1 where none is known."""
        if not self.by.any():
            return np.full(len(partition), NONE)
        first = last_until(self.partition, self.at, partition, start)
        last = last_until(self.partition, self.at, partition, end)
        first = np.where(first == NONE, np.searchsorted(self.partition, partition), first)
        largest = extremes(self.by, first, last + 1)[1]
        return np.where(largest > 0, largest, NONE)


@dataclass(frozen=True, slots=True)
class TrustedPoints:
    """Indexes of all polls and of the claims that no poll contradicts; and what the others show."""

    index: Ints
    append_delays: Skews
    """One entry per poll: records appended between it and the next poll were so old when they were appended."""
    stamped_ahead: Skews
    """One entry per dropped claim: its record was stamped so much later than the poll that saw it first."""


@dataclass(frozen=True, slots=True)
class _LogEnds:
    """Polled log ends of runs of points (a run is one incarnation of a partition), in the order of the points."""

    run: Ints
    at: Ints
    end: Ints
    """Largest log end of the run so far."""

    def find_last_below(self, run: Ints, offset: Ints) -> Ints:
        """Index of the last poll of each run whose log end is smaller than the offset; one before its first without."""
        low, high = (np.searchsorted(self.run, run, side=side) for side in ("left", "right"))
        while (searching := low < high).any():
            middle = np.minimum((low + high) // 2, len(self.end) - 1)
            is_below = searching & (self.end[middle] < offset)
            low = np.where(is_below, middle + 1, low)
            high = np.where(searching & ~is_below, middle, high)
        return low - 1


def trust_claims(points: LogPoints, run: Ints) -> TrustedPoints:
    """Find the claims that polls contradict. `run` numbers the incarnations of all partitions in order."""
    polls, claims = np.flatnonzero(points.polled), np.flatnonzero(~points.polled)
    delays = Skews(points.partition[polls], points.at[polls], np.zeros(len(polls), dtype=np.int64))
    if not len(polls) or not len(claims):
        index = _drop_steps_back(points, run, np.arange(len(run)))
        return TrustedPoints(index, delays, Skews(claims[:0], claims[:0], claims[:0]))
    ends = running(points.offset[polls], begins(run[polls]), largest=True)
    seen = _LogEnds(run[polls], points.at[polls], ends)
    at, offset, of_run = points.at[claims], points.offset[claims], run[claims]
    following: Ints = np.cumsum(points.polled, dtype=np.int64)[claims]
    previous = np.maximum(following - 1, 0)
    end_before = np.where((following > 0) & (seen.run[previous] == of_run), seen.end[previous], NONE)
    is_ahead = offset < end_before
    dropped = is_ahead | _find_stamped_behind(seen, at, offset, of_run, following, delays.by)
    if delays.by.any():
        dropped |= (end_before != NONE) & (offset > end_before) & (delays.by[previous] > 0)
    ahead = claims[is_ahead]
    first_seen = seen.find_last_below(run[ahead], points.offset[ahead] + 1) + 1
    advance = points.at[ahead] - seen.at[first_seen]
    advance[advance <= CLOCK_TOLERANCE_US] = 0
    keep = np.ones(len(run), dtype=np.bool_)
    keep[claims[dropped]] = False
    advances = Skews(points.partition[ahead], points.at[ahead], advance)
    return TrustedPoints(_drop_steps_back(points, run, np.flatnonzero(keep)), delays, advances)


def _drop_steps_back(points: LogPoints, run: Ints, index: Ints) -> Ints:
    """These points without claims below an earlier point of their run, and without the lower of two lookup answers for
    one instant."""
    lookups = index[points.looked_up[index]]
    if len(lookups):
        same = (run[lookups[1:]] == run[lookups[:-1]]) & (points.at[lookups[1:]] == points.at[lookups[:-1]])
        lower = lookups[:-1][same & (points.offset[lookups[1:]] > points.offset[lookups[:-1]])]
        index = index[~np.isin(index, lower)] if len(lower) else index
    offset = points.offset[index]
    falls = (offset[1:] < offset[:-1]) & (run[index[1:]] == run[index[:-1]])
    if points.polled[index[1:][falls]].all():
        return index
    highest = running(offset, begins(run[index]), largest=True)
    return index[points.polled[index] | (offset >= highest)]


def _find_stamped_behind(seen: _LogEnds, at: Ints, offset: Ints, run: Ints, following: Ints, delays: Ints) -> Bools:
    """Claims that a later poll contradicts, or that are about the same records as one of these.

    Notes in `delays` at each poll how old the records appended after it were.
    """
    next_poll = np.minimum(following, len(seen.run) - 1)
    dropped = (following < len(seen.run)) & (seen.run[next_poll] == run) & (seen.end[next_poll] < offset)
    rows = np.flatnonzero(dropped)
    poll = seen.find_last_below(run[rows], offset[rows])
    delay = seen.at[poll] - at[rows]
    np.maximum.at(delays, poll, np.where(delay > CLOCK_TOLERANCE_US, delay, 0))
    dropped[rows] = delays[poll] > 0
    return np.asarray(dropped, dtype=np.bool_)
