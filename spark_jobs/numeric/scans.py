"""Scans along sorted rows: what each row sees of those before it. NumPy only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from kafka_sla.spark_jobs.numeric.arrays import NONE, Bools, Ints

_NUMBERS = 2**63
"""64 bits hold no larger ones."""


def extent(*times: Ints) -> tuple[int, int]:
    """(first instant, room for one more than all instants after it): what one key of many takes on a joint axis.

    Counted from the first instant, not from 1970: a thousand years of them still fit side by side into 64 bits.
    """
    found = [t for t in times if len(t)]
    first = min((int(t.min()) for t in found), default=0)
    return first, max((int(t.max()) for t in found), default=0) - first + 2


def time_order(key: Ints, at: Ints, offset: Ints | None = None) -> Ints:
    """The order of rows by key, time and offset. Rows come in sorted runs, which sorting one joint number takes as they
    are; sorting by one column after the other does not."""
    columns = (at, key) if offset is None else (offset, at, key)
    origin, span = extent(at)
    if not len(at) or span * (int(key.max()) + 1) >= _NUMBERS:
        return np.lexsort(columns)
    joint = key * span + (at - origin)
    order: Ints = np.argsort(joint, kind="stable")
    if offset is None:
        return order
    joint, offset = joint[order], offset[order]
    falls = (joint[1:] == joint[:-1]) & (offset[1:] < offset[:-1])
    return np.lexsort(columns) if falls.any() else order


def last_until(key: Ints, at: Ints, asked: Ints, until: Ints, *, before: bool = False) -> Ints:
    """Index of the last row of each asked key up to an instant (`before`: earlier than it); NONE without one.

    Rows are sorted by (key, at).
    """
    if not len(at):
        return np.full(len(until), NONE)
    origin, span = extent(at, until)
    side: Literal["left", "right"] = "left" if before else "right"
    index = np.searchsorted(key * span + (at - origin), asked * span + (until - origin), side=side) - 1
    there = (index >= 0) & (key[np.maximum(index, 0)] == asked)
    return np.where(there, index, NONE)


def value_at(values: Ints, index: Ints, otherwise: np.int64 = NONE) -> Ints:
    """The value at each index; `otherwise` where that is NONE."""
    if not len(values):
        return np.full(len(index), otherwise)
    return np.where(index == NONE, otherwise, values[np.maximum(index, 0)])


def begins(*keys: Any) -> Bools:
    """Where a run of rows with equal keys begins."""
    found = np.ones(len(keys[0]), dtype=np.bool_)
    found[1:] = False
    for key in keys:
        found[1:] |= key[1:] != key[:-1]
    return found


def once_a_run(function: Callable[..., Ints], *keys: Ints) -> Ints:
    """What a function says of each row's keys, asked once for each run of equal ones."""
    first = np.flatnonzero(begins(*keys))
    return np.repeat(function(*(key[first] for key in keys)), np.diff(first, append=len(keys[0])))


def latest(flags: Bools) -> Ints:
    """Index of the last flagged row up to each row; NONE without one."""
    found = np.where(flags, np.arange(len(flags)), NONE)
    return np.maximum.accumulate(found) if len(found) else found


def earlier(values: Any, start: Ints, rows: int = 1) -> Ints:
    """Of each row the value so many rows before it; NONE before its run's `start`."""
    index = np.arange(len(values)) - rows
    return np.where(index >= start, values[np.maximum(index, 0)], NONE)


def running(values: Ints, start: Bools, *, largest: bool = False) -> Ints:
    """Smallest or largest value, leaving out NONE, from the run's start up to each row; NONE without any."""
    if not len(values):
        return values
    known, run = values != NONE, np.cumsum(start)
    lowest, room = extent(values[known])
    if room * (int(run[-1]) + 1) >= _NUMBERS:
        different, ranks = np.unique(values[known], return_inverse=True)
        place = np.full(len(values), NONE)
        place[known] = ranks
        found = running(place, start, largest=largest)
        return np.where(found == NONE, NONE, different[np.maximum(found, 0)])
    # Each run's numbers lie above those of the run before it (below, of the smallest), so that none reaches over.
    apart = run * (room if largest else -room)
    at_least = np.where(known, values - lowest + 1, 0 if largest else room)
    found = (np.maximum if largest else np.minimum).accumulate(at_least + apart) - apart
    return np.where(found == (0 if largest else room), NONE, found - 1 + lowest)


def extremes(values: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Smallest and largest of values[begin:end] of each pair; NONE where that is empty."""
    filled = end > begin
    low, high = np.full(len(begin), NONE), np.full(len(begin), NONE)
    if filled.any():
        edges = np.stack([begin[filled], end[filled]], axis=1).ravel()
        padded = np.append(values, NONE)
        low[filled] = np.minimum.reduceat(padded, edges)[::2]
        high[filled] = np.maximum.reduceat(padded, edges)[::2]
    return low, high
