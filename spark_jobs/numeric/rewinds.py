"""Which steps back of a group's position begin bootstrapping, and which ones contradict each other. NumPy only.

A step back begins bootstrapping if the group was on time before it and is late after it (`falls`), and if the group got
further than before the last step back: a group that returns to the same record again and again is stuck. Steps back
that follow each other within a progress deadline, each from a further offset than the one before, are not rewinds: they
are positions of two programs that commit for the same group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafka_sla.spark_jobs.numeric.arrays import NONE, Bools, Ints
from kafka_sla.spark_jobs.numeric.scans import begins, running

CONTRADICTORY = 3
"""Rewinds in a row, each within a progress deadline of the one before, that are a contradiction."""


@dataclass(frozen=True, slots=True)
class Commits:
    """Commits sorted by (group-partition, time); times in µs. The last four fields hold carried values at `begins`."""

    gp: Ints
    at: Ints
    position: Ints
    """-1: none."""
    begins: Bools
    """The group-partition begins here by another event than a step back, or its carried state stands here."""
    steps_back: Bools
    falls: Bools
    """The group was on time before this step back and is late after it."""
    falls_shortly: Bools
    """A poll just before told a position with which the group would have been late; this one tells that it is not."""
    mark: Ints
    """Largest offset reached before the last step back; -1: none, or the group got past it."""
    rewinds: Ints
    """Rewinds in a row, each within a progress deadline of the one before."""
    rewound_at: Ints
    """When the last of them was; -1: none."""
    contradictory: Bools


@dataclass(frozen=True, slots=True)
class Rewinds:
    """One entry per commit; `mark`, `rewinds` and `rewound_at` as in `Commits`, after the commit."""

    begins: Bools
    """A step back that begins bootstrapping, or a contradiction."""
    contradictory: Bools
    """It begins a contradiction."""
    contradicts: Bools
    """A further step back during a contradiction."""
    restarts: Bools
    """A step back during which bootstrapping continues, and after which headway is measured from the new position. Not
    the third in a row: a group that is reset again and again makes no headway."""
    mark: Ints
    rewinds: Ints
    rewound_at: Ints


def classify_step_backs(commits: Commits, deadline_us: int) -> Rewinds:
    """Say what each step back is; `deadline_us` is the progress deadline."""
    count = len(commits.gp)
    flags = [np.zeros(count, dtype=np.bool_) for _ in range(4)]
    result = Rewinds(flags[0], flags[1], flags[2], flags[3], *(np.full(count, NONE) for _ in range(3)))
    returns = commits.falls_shortly & ~commits.begins & ~commits.steps_back
    known = commits.steps_back | returns | (commits.mark != NONE) | (commits.rewound_at != NONE) | commits.contradictory
    index = np.flatnonzero(np.isin(commits.gp, commits.gp[known])) if known.any() else np.zeros(0, dtype=np.int64)
    if not len(index):
        return result
    first = begins(commits.gp[index]) | commits.begins[index]
    reached = running(np.maximum(commits.position, commits.mark)[index], first, largest=True)
    is_break = first | (commits.steps_back | returns)[index]
    breaks = np.flatnonzero(is_break)
    states = _walk(commits, index[breaks], reached[np.maximum(breaks - 1, 0)], deadline_us, result)
    mark, rewinds, rewound_at = states[(np.cumsum(is_break) - 1)].T
    result.mark[index] = np.where(reached <= mark, mark, NONE)
    result.rewinds[index], result.rewound_at[index] = rewinds, rewound_at
    return result


def _walk(commits: Commits, breaks: Ints, reached: Ints, deadline_us: int, result: Rewinds) -> Ints:
    """Go through beginnings and steps back, which are rare, and set the flags of `result`; returns mark, rewinds and
    rewound_at after each. `reached`: the largest offset before each."""
    states = np.zeros((len(breaks), 3), dtype=np.int64)
    mark, rewinds, rewound_at, is_contradictory = int(NONE), 0, int(NONE), False
    for number, (i, highest) in enumerate(zip(breaks.tolist(), reached.tolist(), strict=True)):
        if commits.begins[i] or not (commits.steps_back[i] or commits.falls_shortly[i]):
            mark, rewinds, rewound_at = int(commits.mark[i]), int(commits.rewinds[i]), int(commits.rewound_at[i])
            is_contradictory = bool(commits.contradictory[i])
        else:
            is_step, is_further, at = bool(commits.steps_back[i]), mark == NONE or highest > mark, int(commits.at[i])
            is_soon = rewound_at != NONE and at <= rewound_at + deadline_us
            is_contradictory = is_contradictory and is_soon
            mark = highest if is_further else mark
            is_rewind = bool(commits.falls[i] or not is_step)
            if is_rewind and is_contradictory:
                result.contradicts[i], rewound_at = True, at
            elif is_rewind and is_further:
                rewinds, rewound_at = rewinds + 1 if is_soon else 1, at
                is_contradictory = rewinds >= CONTRADICTORY
                result.begins[i], result.contradictory[i] = is_step or is_contradictory, is_contradictory
            elif is_further and not is_contradictory:
                rewinds, rewound_at = rewinds + 1 if is_soon else 1, at
                result.restarts[i] = rewinds < CONTRADICTORY
        states[number] = mark, rewinds, rewound_at
    return states
