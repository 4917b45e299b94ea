"""What polls tell of positions: which of them are evidence, and until when a position was seen to hold. NumPy only.

A source of all commits leaves no doubt between two of them. A poll is exact at its own instant; when the group
committed since the poll before, nobody saw.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafka_sla.spark_jobs.numeric.arrays import FAR, NONE, Bools, Ints
from kafka_sla.spark_jobs.numeric.scans import begins, last_until, value_at


@dataclass(frozen=True, slots=True)
class Observations:
    """What was told of positions, sorted by (group-partition, time, offset)."""

    gp: Ints
    at: Ints
    offset: Ints
    polled: Bools
    """Seen, not heard of: no commit of its own when it finds the position where it was."""
    certain: Bools
    """No commit after it is missing."""
    carried: Bools


@dataclass(frozen=True, slots=True)
class PollTimes:
    """The instants at which polls saw positions that only they tell, sorted by (group-partition, time)."""

    gp: Ints
    at: Ints

    def last(self, gp: Ints, until: Ints) -> Ints:
        """The last poll of each group-partition, not later than `until`; -FAR without one."""
        return value_at(self.at, last_until(self.gp, self.at, gp, until), -FAR)


def evidence(observed: Observations) -> tuple[Ints, PollTimes]:
    """Indexes of what counts as commits, and the polls between them.

    What polls tell counts until the log of commits speaks of a group-partition: a poll taken by another clock between
    two commits would look like a rewind. A poll that finds the position where it was is no commit, or a stopped group
    would seem alive. The same commit told twice is one.
    """
    index = np.flatnonzero(~_idle(observed))
    gp, at, offset = observed.gp[index], observed.at[index], observed.offset[index]
    repeat = np.zeros(len(index), dtype=np.bool_)
    repeat[1:] = (gp[1:] == gp[:-1]) & (offset[1:] == offset[:-1]) & (offset[1:] != NONE)
    repeat[1:] &= ~observed.certain[index][1:] | (at[1:] == at[:-1])
    repeat &= ~observed.carried[index]
    polled_at = index[~observed.certain[index] & ~observed.carried[index]]
    return index[~repeat], PollTimes(observed.gp[polled_at], observed.at[polled_at])


def lost_before(observed: Observations, lost: Bools) -> Bools:
    """Whether earlier commits may be lost; not before one that was also told while they were there."""
    same = (
        (observed.gp[1:] == observed.gp[:-1])
        & (observed.at[1:] == observed.at[:-1])
        & (observed.offset[1:] == observed.offset[:-1])
    )
    result = lost.copy()
    result[1:] &= ~same | lost[:-1]
    result[:-1] &= ~same | lost[1:]
    return result


def alike(observed: Observations, code: Ints) -> Ints:
    """The largest code of each commit among those that were told of it."""
    if not code.any():
        return code
    first = np.flatnonzero(begins(observed.gp, observed.at, observed.offset))
    return np.repeat(np.maximum.reduceat(code, first), np.diff(first, append=len(code)))


def _idle(observed: Observations) -> Bools:
    """Polls of what is known already: from the log of commits, or from the position that was carried over."""
    if not observed.polled.any():
        return observed.polled
    groups = int(observed.gp.max(initial=0)) + 1
    certain_from, carried_at = np.full(groups, FAR), np.full(groups, -FAR)
    np.minimum.at(certain_from, observed.gp[observed.certain], observed.at[observed.certain])
    carried_at[observed.gp[observed.carried]] = observed.at[observed.carried]
    first = observed.certain & (observed.at == certain_from[observed.gp])
    known = (observed.at >= certain_from[observed.gp]) & ~first | (observed.at <= carried_at[observed.gp])
    return np.asarray(observed.polled & known, dtype=np.bool_)
