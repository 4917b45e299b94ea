"""Which rewinds are new beginnings. NumPy only; knows commits and when they were caught up, no table.

A consumer that goes back to read again is excluded until it has caught up. But one that goes back over and over without
getting past where it already was, as at a record that it cannot read, is stuck: that is no new beginning. Nor is the
rewind of a consumer that has not caught up since its last beginning: its grace_period goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafka_sla.spark_jobs.numeric.arrays import NONE, Bools, Ints
from kafka_sla.spark_jobs.numeric.scans import begins, latest, running


@dataclass(frozen=True, slots=True)
class Commits:
    """Commits sorted by (group-partition, time)."""

    gp: Ints
    at: Ints
    position: Ints
    """-1: none."""
    begins: Bools
    """Something else than a rewind begins here, or what was carried over goes on."""
    rewound: Bools
    caught: Bools
    """The consumer was caught up with it."""
    since: Ints
    """When that began, of what was carried over; else the time of the commit."""
    steady: Bools
    """Of what was carried over."""
    back: Bools
    """Carried over: it bootstraps because of a rewind."""
    mark: Ints
    """Carried over: the offset that the group had reached before the last rewind that counted; else -1."""


@dataclass(frozen=True, slots=True)
class Rewinds:
    """One entry per commit."""

    begins: Bools
    """A rewind that is a new beginning."""
    again: Bools
    """A rewind that shows that the one before it was none: the consumer is steady from here on."""
    mark: Ints
    """The offset that the group has to get past before another rewind may be a beginning; -1 without."""


def told_apart(commits: Commits, grace_us: int | None) -> Rewinds:
    """Tell new beginnings from consumers that are stuck."""
    count = len(commits.gp)
    found = Rewinds(np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_), np.full(count, NONE))
    concerned = np.isin(commits.gp, commits.gp[commits.rewound | (commits.mark != NONE)])
    index = np.flatnonzero(concerned)
    if not len(index):
        return found
    first = begins(commits.gp[index]) | commits.begins[index]
    reached = running(np.maximum(commits.position, commits.mark)[index], first, largest=True)
    breaks = np.flatnonzero(first | commits.rewound[index])
    before = reached[np.maximum(breaks - 1, 0)]
    marks = np.full(len(index), NONE)
    marks[breaks] = _walk(commits, index[breaks], before, grace_us, found)
    mark = marks[latest(np.isin(np.arange(len(index)), breaks))]
    found.mark[index] = np.where(reached <= mark, mark, NONE)
    return found


def _walk(commits: Commits, breaks: Ints, reached: Ints, grace_us: int | None, found: Rewinds) -> list[int]:
    """Go through beginnings and rewinds in their order (they are rare), marking in `found` those that count; returns
    the mark that holds from each of them on. `reached`: the highest offset before each."""
    after = np.append(np.flatnonzero(commits.caught), len(commits.gp))
    marks, life, mark, back, steady_from = list[int](), 0, int(NONE), False, False
    for at, highest in zip(breaks.tolist(), reached.tolist(), strict=True):
        if not commits.rewound[at] or commits.begins[at]:
            life, mark = at, int(commits.mark[at])
            back, steady_from = bool(commits.back[at]), bool(commits.steady[at])
        else:
            caught = after[np.searchsorted(after, life)] < at
            over = grace_us is not None and commits.since[life] + grace_us <= commits.at[at]
            steady = steady_from or caught or over
            if mark != NONE and highest <= mark:  # it has not got past
                if back and not steady:
                    found.again[at], life, back, steady_from = True, at, False, True
            else:
                mark = highest
                if steady:
                    found.begins[at], life, back, steady_from = True, at, True, False
        marks.append(mark)
    return marks
