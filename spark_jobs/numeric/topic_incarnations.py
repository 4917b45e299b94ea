"""Topic incarnations: which points belong to which creation of a topic. NumPy only.

A topic that is deleted and created again starts a new incarnation, whose offsets begin at 0. Two observations prove
that: another topic id, or a polled log end (or log start) that falls further than differing clocks explain. Record
timestamps prove nothing here, because producers may set them to anything.

A log end that falls a little is a truncation: an unclean leader election lost the newest records. The topic goes on,
and the offsets above the truncation are used again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kafka_sla.spark.job_spec import NEXT_POLL_US
from kafka_sla.spark_jobs.numeric.arrays import CLOCK_TOLERANCE_US, NONE, Bools, Ints
from kafka_sla.spark_jobs.numeric.scans import last_until

_KEPT_BY_TRUNCATION = 0.9
"""A truncation keeps at least this share of the offsets; a topic that was created again starts near 0."""


@dataclass(frozen=True, slots=True)
class LogPoints:
    """Points of topic-partitions, sorted by (partition, at, offset); times in µs."""

    partition: Ints
    at: Ints
    offset: Ints
    log_start: Ints
    """-1: not polled."""
    polled: Bools
    """An observed log end. All other points are claims of record timestamps."""
    looked_up: Bools
    """The answer of an offset lookup by time; a claim that is not looked up is the timestamp of one record."""

    def take(self, index: Ints) -> LogPoints:
        return LogPoints(*(getattr(self, name)[index] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class TopicIdChanges:
    """Topic-partitions whose topic id changed between two instants (µs), sorted by partition."""

    partition: Ints
    before: Ints
    at: Ints


SameTopicId = Callable[[Ints, Ints, Ints], Bools]
"""Of partitions and two instants of each: whether the topic had the same id at both."""


@dataclass(frozen=True, slots=True)
class Truncations:
    """Offsets [offset, until) of partitions that were lost and are used again since `at` (µs) at the latest."""

    partition: Ints
    at: Ints
    offset: Ints
    until: Ints


@dataclass(frozen=True, slots=True)
class Incarnations:
    """One entry for each incarnation but the first of a partition, sorted by first point; times in µs."""

    first_point: Ints
    """Index of its first point."""
    partition: Ints
    alive_from: Ints
    """Time of its first point."""
    ended: Ints
    """Time of the last point of the incarnation before it."""
    known_from: Ints
    """End of the first window whose facts show it: polls are read up to `NEXT_POLL_US` ahead."""
    truncations: Truncations


@dataclass(frozen=True, slots=True)
class _Falls:
    """Polls between which a polled value fell: indexes of the points, and of the poll that confirms the fall."""

    before: Ints
    after: Ints
    confirmed_by: Ints


def find_incarnations(points: LogPoints, changes: TopicIdChanges, has_same_id: SameTopicId) -> Incarnations:
    """Find where topics were created again, and where their logs were truncated."""
    end, start = _confirmed_falls(points, points.offset), _confirmed_falls(points, points.log_start)
    kept = _KEPT_BY_TRUNCATION * points.offset[end.before]
    truncated = np.minimum(points.offset[end.after], points.offset[end.confirmed_by]) >= kept
    truncated &= ~np.isin(end.after, start.after)
    truncated |= _has_same_id(points, end, has_same_id)
    recreated = ~_has_same_id(points, start, has_same_id)
    pairs = [
        _poll_pairs(end, ~truncated),
        _poll_pairs(start, recreated),
        _polls_around_id_changes(points, changes),
    ]
    before, after, confirmed_by = (np.concatenate([pair[side] for pair in pairs]) for side in range(3))
    first_point, ended, known_from = _merge_overlapping(points, before, after, confirmed_by)
    lost = np.flatnonzero(truncated)
    return Incarnations(
        first_point,
        points.partition[first_point],
        points.at[first_point],
        ended,
        known_from,
        Truncations(
            points.partition[end.after[lost]],
            np.maximum(points.at[end.after[lost]], points.at[end.confirmed_by[lost]] - NEXT_POLL_US),
            points.offset[end.after[lost]],
            points.offset[end.before[lost]],
        ),
    )


def _confirmed_falls(points: LogPoints, values: Ints) -> _Falls:
    """Neighbouring polls of which the second has a smaller value, and a poll taken after the clock tolerance agrees.

    Two observers whose clocks differ may report their polls in the wrong order. Then the next poll is not smaller.
    """
    polls = np.flatnonzero(points.polled & (values != NONE))
    partition, at, value = points.partition[polls], points.at[polls], values[polls]
    before = np.flatnonzero((value[1:] < value[:-1]) & (partition[1:] == partition[:-1]))
    later = last_until(partition, at, partition[before], at[before] + CLOCK_TOLERANCE_US) + 1
    there = later < len(polls)
    later = np.minimum(later, max(len(polls) - 1, 0))
    there &= (partition[later] == partition[before]) & (value[later] < value[before])
    there &= at[later] <= at[before + 1] + NEXT_POLL_US
    before, later = before[there], later[there]
    return _Falls(polls[before], polls[before + 1], polls[later])


def _has_same_id(points: LogPoints, falls: _Falls, has_same_id: SameTopicId) -> Bools:
    """Whether the topic of each fall had the same id at both polls."""
    if not len(falls.before):
        return np.zeros(0, dtype=np.bool_)
    return has_same_id(points.partition[falls.after], points.at[falls.before], points.at[falls.after])


def _poll_pairs(falls: _Falls, chosen: Bools) -> tuple[Ints, Ints, Ints]:
    return falls.before[chosen], falls.after[chosen], falls.confirmed_by[chosen]


def _polls_around_id_changes(points: LogPoints, changes: TopicIdChanges) -> tuple[Ints, Ints, Ints]:
    """The last poll before and the first poll after each change of a topic id."""
    polls = np.flatnonzero(points.polled)
    partition, at = points.partition[polls], points.at[polls]
    before = last_until(partition, at, changes.partition, changes.before)
    after = last_until(partition, at, changes.partition, changes.at, before=True) + 1
    known = (before != NONE) & (after < len(polls))
    before, after = before[known], after[known]
    same = partition[after] == changes.partition[known] if len(polls) else known[:0]
    return polls[before[same]], polls[after[same]], polls[after[same]]


def _merge_overlapping(points: LogPoints, before: Ints, after: Ints, confirmed_by: Ints) -> tuple[Ints, Ints, Ints]:
    """First points of as few incarnations as explain all pairs of polls, with `ended` and `known_from` of each.

    Of pairs that overlap, the one that is known first counts: what is known later changes no earlier window.
    """
    starts, evidence = list[int](), list[tuple[int, int]]()
    order = np.argsort(after, kind="stable")
    known_from = points.at[confirmed_by] - NEXT_POLL_US
    columns = (values[order].tolist() for values in (before, after, known_from, points.at[before]))
    for since, until, known, ended in zip(*columns, strict=True):
        if starts and since < starts[-1]:
            evidence[-1] = min(evidence[-1], (known, -ended))
        else:
            starts.append(until)
            evidence.append((known, -ended))
    known_from, ended_before = np.array(evidence, dtype=np.int64).reshape(-1, 2).T
    return np.array(starts, dtype=np.int64), -ended_before, known_from
