"""The lives of topic-partitions: which points belong to which, where a topic was deleted and created again. NumPy only;
knows no offsets' times.

That a new life began is seen when a poll of the log end or start falls behind the poll before it, when the topic has
another id, and by lookups: they are answered by the life that is there when they are made, so that all times before it
are answered with offset 0, behind larger ones of the life before, or behind commits of groups that had read some of it.
When exactly it began nobody saw: between the last sign of one life and the first of the next, nothing can be attributed
to either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from kafka_sla.spark.job_spec import NEXT_POLL_US
from kafka_sla.spark_jobs.numeric.arrays import FAR, NONE, Bools, Ints
from kafka_sla.spark_jobs.numeric.scans import begins, last_until, latest, running, value_at


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
class Standing:
    """Commits of groups on topic-partitions, sorted by (partition, at)."""

    partition: Ints
    at: Ints
    group: Ints
    offset: Ints
    groups: Ints
    """How many groups stand beyond offset 0 from there on."""
    between: Ints
    """Partitions of which rows published before say that a new life began around their end."""

    def furthest(self, partition: int, at: Ints) -> Iterator[int]:
        """The largest offset at which a group stands just before each instant, in order; NONE without any."""
        row, last = (int(np.searchsorted(self.partition, partition, side=side)) for side in ("left", "right"))
        standing = dict[int, int]()
        for moment in at.tolist():
            while row < last and self.at[row] < moment:
                standing[int(self.group[row])] = int(self.offset[row])
                row += 1
            yield max(standing.values(), default=int(NONE))

    def somebody(self, partition: Ints, at: Ints) -> Bools:
        """Whether a group stood there before each instant: then its log has had records."""
        before = last_until(self.partition, self.at, partition, at, before=True)
        return value_at(self.groups, before, np.int64(0)) > 0


@dataclass(frozen=True, slots=True)
class Lives:
    """Points that belong to a life, by (partition, life, at, offset), and every life but the first of its partition."""

    points: Seen
    partition: Ints
    begins: Ints
    """Index of the first point of each later life."""
    alive_from: Ints
    """Its first sign."""
    ended: Ints
    """Last sign of the life before it; -FAR without one."""
    known_from: Ints
    """End of the first window whose facts tell of it: polls are read somewhat ahead, lookups are not."""
    foreign: Seen
    """Lookups that a later life answered for times before it."""


@dataclass(frozen=True, slots=True)
class _Claims:
    """Pairs of points between which a new life began: after the first, at the second or before."""

    since: Ints
    until: Ints
    ended: Ints
    known_from: Ints


def lives(seen: Seen, renewed: Renewals, standing: Callable[[], Standing]) -> Lives:
    """Tell the lives of each partition apart. Where groups stand is asked only if a lookup found a log to be empty."""
    first = latest(begins(seen.partition))
    empty = seen.looked_up & (seen.offset == 0)
    after_positive = _after_positive(seen, first, empty)
    behind = after_positive.copy()
    unseen = list[_Claims]()
    if empty.any():
        stood = standing()
        behind[empty] |= stood.somebody(seen.partition[empty], seen.at[empty])
        unseen = _unseen(seen, first, behind, np.flatnonzero(behind & ~after_positive), stood)
    claims = _joined(_claims(seen, first, behind, renewed), *unseen, _first_records(seen))
    starts, ended, known_from = _fewest(claims)
    if not len(starts) and not behind.any():
        return Lives(seen, starts, starts, starts, starts, starts, seen.take(starts))
    born = np.zeros(len(seen.at), dtype=np.int64)
    born[starts] = 1
    life = np.cumsum(born)
    following = np.searchsorted(starts, np.flatnonzero(behind))
    owner = np.append(seen.partition[starts], NONE)[following]
    life[behind] = np.where(owner == seen.partition[behind], following + 1, NONE)
    order = np.lexsort((seen.at, life, seen.partition))
    order = order[life[order] != NONE]
    life, points = life[order], seen.take(order)
    kept = np.flatnonzero(~_of_life_before(points, life))
    life, points = life[kept], points.take(kept)
    begun = np.searchsorted(life, np.arange(len(starts)) + 1)
    own = seen.partition[starts]
    return Lives(points, own, begun, seen.at[starts], ended, known_from, seen.take(np.flatnonzero(behind)))


def _after_positive(seen: Seen, first: Ints, empty: Bools) -> Bools:
    """Lookups that found nothing before their time, behind one that did, or beside it, or behind a poll that saw
    records: a later life answered them."""
    if not empty.any():
        return empty
    instant = np.append(np.flatnonzero(begins(seen.partition, seen.at)), len(seen.at))
    last = np.repeat(instant[1:] - 1, np.diff(instant))
    positive = latest(seen.looked_up & (seen.offset > 0))
    poll = latest(seen.polled & (seen.offset > 0))
    polled = (poll >= first) & (seen.at[poll] < seen.at)
    return np.asarray(empty & (polled | (positive[last] >= first)), dtype=np.bool_)


def _unseen(seen: Seen, first: Ints, behind: Bools, stale: Ints, standing: Standing) -> list[_Claims]:
    """A life that only commits tell of: `stale` lookups find no record before their time, yet a group had read some.

    The life that answered them shows at the next point that is no such lookup, or at the next poll of a log end that
    some group was beyond; or at the next poll of all, if it is known to have begun.
    """
    if not len(stale):
        return []
    before = latest(~behind)
    ended = np.where(before >= first, seen.at[before], -FAR)
    earliest = stale[begins(seen.partition[stale])]
    begun = np.isin(seen.partition, standing.between)
    until, there = _next_of(seen, ~behind & (begun | ~seen.polled), earliest)
    answered = earliest[there], until[there], 0
    polled = *_signs(seen, stale, standing), NEXT_POLL_US
    return [
        _Claims(first[since], until, ended[since], np.maximum(seen.at[until] - ahead, seen.at[since]))
        for since, until, ahead in (answered, polled)
    ]


def _signs(seen: Seen, stale: Ints, standing: Standing) -> tuple[Ints, Ints]:
    """The first stale lookup of each partition, few of which have any, that a poll follows whose log end lies before
    where a group stood then; and that poll."""
    found = list[tuple[int, int]]()
    for partition in np.unique(seen.partition[stale]).tolist():
        lookups = stale[seen.partition[stale] == partition]
        end = int(np.searchsorted(seen.partition, partition, side="right"))
        for index, stood in zip(lookups.tolist(), standing.furthest(partition, seen.at[lookups]), strict=True):
            polls = np.flatnonzero(seen.polled[index:end] & (seen.offset[index:end] < stood))
            if len(polls):
                found.append((index, index + int(polls[0])))
                break
    since, until = np.array(found, dtype=np.int64).reshape(-1, 2).T
    return since, until


def _next_of(seen: Seen, chosen: Bools, index: Ints) -> tuple[Ints, Bools]:
    """The first chosen point from each index on, and whether it is there and of the same partition."""
    places = np.append(np.flatnonzero(chosen), NONE)
    found = places[np.searchsorted(places[:-1], index)]
    return found, (found != NONE) & (seen.partition[found] == seen.partition[index])


def _claims(seen: Seen, first: Ints, behind: Bools, renewed: Renewals) -> _Claims:
    """What polls, lookups and topic ids tell of new lives."""
    pairs = [_falls(seen, seen.polled, seen.offset, first), _falls(seen, seen.log_start != NONE, seen.log_start, first)]
    before, fell = _falls(seen, ~behind, seen.offset, first)
    zeros = np.cumsum(behind)
    between = zeros[fell] > zeros[before]
    pairs += [(before[between], fell[between]), _renewed(seen, renewed)]
    since, until = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    ahead = np.where(seen.polled[until], NEXT_POLL_US, 0)
    return _Claims(since, until, seen.at[since], seen.at[until] - ahead)


def _of_life_before(points: Seen, life: Ints) -> Bools:
    """Points at the beginning of later lives, by (partition, life, at, offset), that go on with the life before where
    clocks are ahead or behind.

    They lie beyond where that had come to, but the next poll's log end does not, or a later record's offset.
    """
    opens = begins(points.partition, life)
    first = np.flatnonzero(opens)
    again = ~begins(points.partition[first])
    if not again.any():
        return np.zeros(len(life), dtype=np.bool_)
    nth = np.cumsum(opens) - 1
    top = np.where(again, np.roll(np.maximum.reduceat(points.offset, first), 1), 0)[nth]
    poll, there = _next_of(points, points.polled, np.arange(len(life)))
    polls = np.cumsum(points.polled)
    beyond = (top > 0) & (points.offset >= top) & ~points.polled
    there &= beyond & (nth[poll] == nth) & (points.at[poll] <= points.at + NEXT_POLL_US) & (polls == polls[first][nth])
    refuted = there & (points.offset > points.offset[poll]) & (points.offset[poll] < top)
    same = np.append(there[:-1] & ~points.looked_up[:-1] & (points.at[1:] == points.at[:-1]) & refuted[1:], False)
    own = ~points.polled & ~points.looked_up
    later = running(np.where(own, points.offset, NONE)[::-1], begins(nth[::-1]))[::-1]
    return np.asarray(refuted | same | beyond & own & (later < top), dtype=np.bool_)


def _first_records(seen: Seen) -> _Claims:
    """Two records with offset 0 and different times: each began a life."""
    own = np.flatnonzero(~seen.polled & ~seen.looked_up)
    zeros = own[seen.offset[own] == 0]
    before, after = zeros[:-1], zeros[1:]
    other = (seen.partition[before] == seen.partition[after]) & (seen.at[before] < seen.at[after])
    before, after = before[other], after[other]
    latest_before = own[np.searchsorted(own, after) - 1]
    return _Claims(latest_before, after, seen.at[latest_before], seen.at[after])


def _joined(*several: _Claims) -> _Claims:
    """All claims, by where the new life shows."""
    order = np.argsort(np.concatenate([one.until for one in several]), kind="stable")
    return _Claims(*(np.concatenate([getattr(one, name) for one in several])[order] for name in _Claims.__slots__))


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


def _fewest(claims: _Claims) -> tuple[Ints, Ints, Ints]:
    """Beginnings, as few as explain all claims, the last sign of life before each, and from when on it is known: claims
    are rare. What is known first counts: what comes later changes no window of before."""
    starts, signs = list[int](), list[tuple[int, int]]()
    columns = (getattr(claims, name).tolist() for name in _Claims.__slots__)
    for before, after, sign, known_from in zip(*columns, strict=True):
        if starts and before < starts[-1]:
            signs[-1] = min(signs[-1], (known_from, -sign))
        else:
            starts.append(after)
            signs.append((known_from, -sign))
    known, ended = np.array(signs, dtype=np.int64).reshape(-1, 2).T
    return np.array(starts, dtype=np.int64), -ended, known
