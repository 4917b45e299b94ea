"""Where each reader stood when, told from its commits. Pure.

A cluster has tens of thousands of readers, so that all of them are asked at once: columns, no object for each.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_sla.sources.kafka.protocol.topics import TopicPartition

DELETED = -1
"""The position of a reader whose offset was deleted, or that has none yet."""
_FAR = np.iinfo(np.int64).max
Ints = npt.NDArray[np.int64]
_PARTITION_BITS = 32


class Reader(NamedTuple):
    """A group and a partition that it reads."""

    group: str
    tp: TopicPartition


class ReaderNumbers:
    """A number for each reader: that of its group and topic, and its partition. Numbers are given as names are met."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str], int] = {}
        self._asked: tuple[Ints, int, tuple[list[TopicPartition], Ints]] | None = None
        """Of which readers partitions were asked last, when there were how many pairs, and what was answered."""

    def pair(self, group: str, topic: str) -> int:
        return self._pairs.setdefault((group, topic), len(self._pairs))

    def number(self, reader: Reader) -> int:
        return int(numbered(self.pair(reader.group, reader.tp.topic), reader.tp.partition))

    def readers(self, numbers: Ints) -> list[Reader]:
        pairs, partitions = list(self._pairs), _partition(numbers).tolist()
        named = (pairs[pair] for pair in (numbers >> _PARTITION_BITS).tolist())
        return [
            Reader(group, TopicPartition(topic, number))
            for (group, topic), number in zip(named, partitions, strict=True)
        ]

    def groups(self, numbers: Ints) -> frozenset[str]:
        pairs = list(self._pairs)
        return frozenset(pairs[pair][0] for pair in np.unique(numbers >> _PARTITION_BITS).tolist())

    def columns(self, numbers: Ints) -> dict[str, pa.Array]:
        """`group`, `topic` and `partition` of fact tables."""
        pairs = pa.array(numbers >> _PARTITION_BITS)
        groups, topics = zip(*self._pairs, strict=True) if self._pairs else ((), ())
        return {
            "group": pa.array(groups, pa.string()).take(pairs),
            "topic": pa.array(topics, pa.string()).take(pairs),
            "partition": pa.array(_partition(numbers)),
        }

    def partitions(self, numbers: Ints) -> tuple[list[TopicPartition], Ints]:
        """The partitions that are read, in their order, and for each reader which one of them it reads."""
        if self._asked and self._asked[0] is numbers and self._asked[1] == len(self._pairs):
            return self._asked[2]
        topics = sorted({topic for _, topic in self._pairs})
        place = {topic: index for index, topic in enumerate(topics)}
        of_pair = np.fromiter((place[topic] for _, topic in self._pairs), np.int64, len(self._pairs))
        keys = numbered(of_pair[numbers >> _PARTITION_BITS], _partition(numbers))
        distinct, which = np.unique(keys, return_inverse=True)
        named = zip((distinct >> _PARTITION_BITS).tolist(), _partition(distinct).tolist(), strict=True)
        found = [TopicPartition(topics[topic], number) for topic, number in named], which
        self._asked = numbers, len(self._pairs), found
        return found


def numbered(pair: int | Ints, partition: int | npt.NDArray[np.int32] | Ints) -> Ints:
    """Numbers of readers."""
    return np.asarray(pair, np.int64) << _PARTITION_BITS | np.asarray(partition, np.int64)


def _partition(numbers: Ints) -> npt.NDArray[np.int32]:
    partitions: npt.NDArray[np.int32] = (numbers & 2**_PARTITION_BITS - 1).astype(np.int32)
    return partitions


@dataclass(slots=True)
class Track:
    """One reader's positions over time, in the order of its commits."""

    times: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)

    def add(self, time_ms: int, position: int | None) -> None:
        """From this time on the reader stands there; None: its offset was deleted."""
        self.times.append(time_ms)
        self.positions.append(DELETED if position is None else position)

    def at(self, moment: int) -> int | None:
        index = bisect_right(self.times, moment) - 1
        return None if index < 0 or self.positions[index] == DELETED else self.positions[index]


class Steps(NamedTuple):
    """Positions that readers took: which reader of some tracks, when (ms), where."""

    reader: Ints
    at: Ints
    position: Ints


@dataclass(frozen=True, slots=True)
class Tracks:
    """The positions of readers over time, one reader's behind the other's, each in the order of its commits."""

    numbers: ReaderNumbers
    readers: Ints
    """Each once, in the order of their numbers."""
    edges: Ints
    """Where the commits of each begin, and the end of all."""
    times: Ints
    positions: Ints

    @classmethod
    def of_commits(cls, numbers: ReaderNumbers, of: Ints, times: Ints, positions: Ints) -> Tracks:
        """The reader of each commit, its time and its position, in the order of the log."""
        order = np.argsort(of, kind="stable")
        ordered = of[order]
        begins = np.flatnonzero(np.diff(ordered, prepend=-1))
        return cls(numbers, ordered[begins], np.append(begins, len(of)), times[order], positions[order])

    @classmethod
    def named(cls, numbers: ReaderNumbers, tracks: Mapping[Reader, Track]) -> Tracks:
        of = [numbers.number(reader) for reader, track in tracks.items() for _ in track.times]
        commits = [one for track in tracks.values() for one in zip(track.times, track.positions, strict=True)]
        times, positions = np.array(commits, np.int64).reshape(-1, 2).T
        return cls.of_commits(numbers, np.array(of, np.int64), times, positions)

    def __or__(self, others: Tracks) -> Tracks:
        """Those of both; a reader of `others` has only what is known there."""
        mine = self.only(~np.isin(self.readers, others.readers))
        both = (mine, others)
        return Tracks.of_commits(
            self.numbers,
            np.concatenate([np.repeat(one.readers, np.diff(one.edges)) for one in both]),
            np.concatenate([one.times for one in both]),
            np.concatenate([one.positions for one in both]),
        )

    def only(self, chosen: npt.NDArray[np.bool_]) -> Tracks:
        """Some of the readers."""
        if chosen.all():
            return self
        of = np.repeat(chosen, np.diff(self.edges))
        edges = np.concatenate([[0], np.cumsum(np.diff(self.edges)[chosen])])
        return Tracks(self.numbers, self.readers[chosen], edges, self.times[of], self.positions[of])

    @property
    def lowest(self) -> Ints:
        """No position of a reader lies before this offset."""
        return np.minimum.reduceat(self.positions, self.edges[:-1]) if len(self.readers) else self.readers

    @property
    def highest(self) -> Ints:
        return np.maximum.reduceat(self.positions, self.edges[:-1]) if len(self.readers) else self.readers

    def at(self, moments: Collection[int]) -> Ints:
        """Each reader's position at each moment, DELETED where it has none."""
        places = self._places(moments, "right") - 1
        return np.where(places < self.edges[:-1, None], DELETED, self._at(self.positions, places))

    def last(self, begins: Collection[int], ends: Collection[int]) -> tuple[Ints, Ints]:
        """Time and position of each reader's last commit in each [begin, end), DELETED where there is none."""
        places = self._places(ends, "left") - 1
        times, positions = self._at(self.times, places), self._at(self.positions, places)
        none = (places < self.edges[:-1, None]) | (times < np.fromiter(begins, np.int64))
        return times, np.where(none, DELETED, positions)

    def falls_back(self, start: int, end: int) -> Steps:
        """Rewinds and beginnings in [start, end): commits that lie before the one before them, or have none."""
        before = np.concatenate([[DELETED], self.positions[:-1]])
        before[self.edges[:-1]] = DELETED
        falls = (self.positions != DELETED) & ((before == DELETED) | (self.positions < before))
        first, last = self._places((start, end), "left").T
        places = np.flatnonzero(falls)
        reader = np.searchsorted(self.edges, places, side="right") - 1
        inside = (places >= first[reader]) & (places < last[reader])
        return Steps(reader[inside], self.times[places[inside]], self.positions[places[inside]])

    def _places(self, moments: Collection[int], side: Literal["left", "right"]) -> Ints:
        """Where each moment would be put among each reader's times: one bisection for all."""
        wanted = np.fromiter(moments, np.int64)
        low = np.repeat(self.edges[:-1, None], len(wanted), 1)
        high = np.repeat(self.edges[1:, None], len(wanted), 1)
        while (undecided := low < high).any():
            middle = (low + high) // 2
            found = self._at(self.times, middle)
            beyond = undecided & (found <= wanted if side == "right" else found < wanted)
            low, high = np.where(beyond, middle + 1, low), np.where(undecided & ~beyond, middle, high)
        return low

    def _at(self, values: Ints, places: Ints) -> Ints:
        """Values at places, whatever where there is no such place."""
        return values.take(places, mode="clip") if len(values) else np.zeros(places.shape, np.int64)


def ends_of(readers: Ints, numbers: ReaderNumbers, ends: Mapping[TopicPartition, int]) -> Ints:
    """The log end that each reader's partition has, far away where it is not known."""
    partitions, which = numbers.partitions(readers)
    return np.array([ends.get(tp, _FAR) for tp in partitions], np.int64)[which]


def beyond_end(tracks: Tracks, ends: Mapping[TopicPartition, int]) -> dict[Reader, tuple[int, int]]:
    """Readers that once stood beyond the log end, which was read after that; how far, and this end."""
    known, highest = ends_of(tracks.readers, tracks.numbers, ends), tracks.highest
    beyond = highest > known
    readers = tracks.numbers.readers(tracks.readers[beyond])
    return dict(zip(readers, zip(highest[beyond].tolist(), known[beyond].tolist(), strict=True), strict=True))


def positions_of(
    numbers: ReaderNumbers, committed: Iterable[tuple[str, str, npt.NDArray[np.int32], Ints]]
) -> tuple[Ints, Ints]:
    """Readers and their positions, from groups and topics with partitions and offsets."""
    parts = [
        (numbered(numbers.pair(group, topic), partitions), offsets) for group, topic, partitions, offsets in committed
    ]
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    readers, offsets = zip(*parts, strict=True)
    return np.concatenate(readers), np.concatenate(offsets).astype(np.int64)
