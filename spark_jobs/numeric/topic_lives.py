"""The lives of topic-partitions: which points belong to which, where a topic was deleted and created again. NumPy only;
knows no offsets' times.

That a new life began is seen when a poll of the log end or start falls behind the poll before it, when the topic has
another id, and by poll-ups: they are answered by the life that is there when they are made, so that all times before it
are answered with offset 0, behind larger ones of the life before. When exactly it began nobody saw: between the last
sign of one life and the first of the next, nothing can be attributed to either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafka_sla.spark_jobs.numeric.arrays import NONE, Bools, Ints
from kafka_sla.spark_jobs.numeric.scans import begins, last_until, latest


@dataclass(frozen=True, slots=True)
class Seen:
    """Points of topic-partitions, sorted by (partition, at, offset); times in µs."""

    partition: Ints
    at: Ints
    offset: Ints
    log_start: Ints
    """-1: not polled."""
    polled: Bools
    looked_up: Bools
    """An answer for an asked time; a point that is neither this nor polled is a record's own time."""

    def take(self, index: Ints) -> Seen:
        return Seen(*(getattr(self, name)[index] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Renewals:
    """Topic-partitions whose topic was seen with another id, and between which instants; sorted by partition."""

    partition: Ints
    before: Ints
    at: Ints


@dataclass(frozen=True, slots=True)
class Lives:
    """Points that belong to a life, by (partition, life, at, offset), and every life but the first of its partition."""

    points: Seen
    begins: Ints
    """Index of the first point of each later life."""
    alive_from: Ints
    """Its first sign."""
    ended: Ints
    """Last sign of the life before it."""


def lives(seen: Seen, renewed: Renewals) -> Lives:
    """Tell the lives of each partition apart."""
    first = latest(begins(seen.partition))
    behind = _prehistory(seen, first)
    since, until = _claims(seen, first, behind, renewed)
    starts, ended = _fewest(seen.at, since, until)
    if not len(starts) and not behind.any():
        return Lives(seen, starts, starts, ended)
    born = np.zeros(len(seen.at), dtype=np.int64)
    born[starts] = 1
    life = np.cumsum(born)
    following = np.searchsorted(starts, np.flatnonzero(behind))
    owner = np.append(seen.partition[starts], NONE)[following]
    life[behind] = np.where(owner == seen.partition[behind], following + 1, NONE)
    order = np.lexsort((seen.at, life, seen.partition))
    order = order[life[order] != NONE]
    life, points = life[order], seen.take(order)
    begun = np.searchsorted(life, np.arange(len(starts)) + 1)
    return Lives(points, begun, seen.at[starts], ended)


def _prehistory(seen: Seen, first: Ints) -> Bools:
    """Look-ups that found nothing before their time, behind one that did, or beside it: a later life answered them."""
    instant = np.append(np.flatnonzero(begins(seen.partition, seen.at)), len(seen.at))
    last = np.repeat(instant[1:] - 1, np.diff(instant))
    positive = latest(seen.looked_up & (seen.offset > 0))
    return np.asarray(seen.looked_up & (seen.offset == 0) & (positive[last] >= first), dtype=np.bool_)


def _claims(seen: Seen, first: Ints, behind: Bools, renewed: Renewals) -> tuple[Ints, Ints]:
    """Pairs of points between which a new life began: after the first, at the second or before."""
    pairs = [_falls(seen, seen.polled, seen.offset, first), _falls(seen, seen.log_start != NONE, seen.log_start, first)]
    before, fell = _falls(seen, seen.looked_up & ~behind, seen.offset, first)
    zeros = np.cumsum(behind)
    between = zeros[fell] > zeros[before]
    pairs += [(before[between], fell[between]), _renewed(seen, renewed)]
    since, until = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    order = np.argsort(until, kind="stable")
    return since[order], until[order]


def _falls(seen: Seen, chosen: Bools, values: Ints, first: Ints) -> tuple[Ints, Ints]:
    """Neighbours among the chosen points of a partition of which the second has a smaller value."""
    index = np.flatnonzero(chosen)
    before, after = index[:-1], index[1:]
    fell = (before >= first[after]) & (values[after] < values[before])
    return before[fell], after[fell]


def _renewed(seen: Seen, renewed: Renewals) -> tuple[Ints, Ints]:
    """The polls around each renewal."""
    polls = np.flatnonzero(seen.polled)
    partition, at = seen.partition[polls], seen.at[polls]
    before = last_until(partition, at, renewed.partition, renewed.before)
    after = last_until(partition, at, renewed.partition, renewed.at, before=True) + 1
    known = (before != NONE) & (after < len(polls))
    before, after = before[known], after[known]
    same = partition[after] == renewed.partition[known] if len(polls) else known[:0]
    return polls[before[same]], polls[after[same]]


def _fewest(at: Ints, since: Ints, until: Ints) -> tuple[Ints, Ints]:
    """Beginnings, as few as explain all claims, and the last sign of life before each: claims are rare."""
    starts: list[int] = []
    ended: list[int] = []
    for before, after in zip(since.tolist(), until.tolist(), strict=True):
        if starts and before < starts[-1]:
            ended[-1] = max(ended[-1], int(at[before]))
        else:
            starts.append(after)
            ended.append(int(at[before]))
    return np.array(starts, dtype=np.int64), np.array(ended, dtype=np.int64)
