"""What polls tell of positions: which of them are evidence, and until when a position was seen to hold. NumPy only.

A source of all commits leaves no doubt between two of them. A poll is exact at its own instant; when the group
committed since the poll before, nobody saw. Knows no produced timeline and no metric.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafka_sla.spark_jobs.numeric.arrays import FAR, NONE, Bools, Ints
from kafka_sla.spark_jobs.numeric.scans import last_until, value_at


@dataclass(frozen=True, slots=True)
class Told:
    """What was told of positions, sorted by (group-partition, time, offset)."""

    gp: Ints
    at: Ints
    offset: Ints
    polled: Bools
    """Seen, not heard of: no commit of its own when it finds the position where it was."""
    certain: Bools
    """No commit after it goes unheard."""
    carried: Bools


@dataclass(frozen=True, slots=True)
class Looks:
    """The instants at which polls saw positions that only they tell, sorted by (group-partition, time)."""

    gp: Ints
    at: Ints

    def last(self, gp: Ints, until: Ints) -> Ints:
        """The last look at each group-partition, not later than `until`; -FAR without one."""
        return value_at(self.at, last_until(self.gp, self.at, gp, until), -FAR)


def evidence(told: Told) -> tuple[Ints, Looks]:
    """Indexes of what counts as commits, and the looks between them.

    What polls tell counts until the log of commits speaks of a group-partition: a poll taken by another clock between
    two commits would look like a rewind. A poll that finds the position where it was is no commit, or a stopped group
    would seem alive. The same commit told twice is one.
    """
    index = np.flatnonzero(~_idle(told))
    gp, at, offset = told.gp[index], told.at[index], told.offset[index]
    repeat = np.zeros(len(index), dtype=np.bool_)
    repeat[1:] = (gp[1:] == gp[:-1]) & (offset[1:] == offset[:-1]) & (offset[1:] != NONE)
    repeat[1:] &= ~told.certain[index][1:] | (at[1:] == at[:-1])
    repeat &= ~told.carried[index]
    looked = index[~told.certain[index] & ~told.carried[index]]
    return index[~repeat], Looks(told.gp[looked], told.at[looked])


def lost_before(told: Told, lost: Bools) -> Bools:
    """Whether earlier commits may be lost; not before one that was also told while they were there."""
    same = (told.gp[1:] == told.gp[:-1]) & (told.at[1:] == told.at[:-1]) & (told.offset[1:] == told.offset[:-1])
    result = lost.copy()
    result[1:] &= ~same | lost[:-1]
    result[:-1] &= ~same | lost[1:]
    return result


def _idle(told: Told) -> Bools:
    """Polls of what is known already: from the log of commits, or from the position that was carried over."""
    groups = int(told.gp.max(initial=0)) + 1
    certain_from, carried_at = np.full(groups, FAR), np.full(groups, -FAR)
    np.minimum.at(certain_from, told.gp[told.certain], told.at[told.certain])
    carried_at[told.gp[told.carried]] = told.at[told.carried]
    first = told.certain & (told.at == certain_from[told.gp])
    known = (told.at >= certain_from[told.gp]) & ~first | (told.at <= carried_at[told.gp])
    return np.asarray(told.polled & known, dtype=np.bool_)
