"""Where each reader stood when, told from its commits. Pure: knows no requests and no clock."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_sla.sources.kafka.protocol.topics import TopicPartition

DELETED = -1
"""The position of a reader whose offset was deleted."""


class Reader(NamedTuple):
    """A group and a partition that it reads."""

    group: str
    tp: TopicPartition


@dataclass(slots=True)
class Track:
    """A reader's positions over time, in the order of its commits; plain integers, as a day may hold millions."""

    times: array[int] = field(default_factory=lambda: array("q"))
    positions: array[int] = field(default_factory=lambda: array("q"))

    def add(self, time_ms: int, position: int | None) -> None:
        """From this time on the reader stands there; None: its offset was deleted."""
        self.times.append(time_ms)
        self.positions.append(DELETED if position is None else position)

    @property
    def lowest(self) -> int:
        """No position lies before this offset."""
        return min(self.positions)

    @property
    def highest(self) -> int:
        return max(self.positions)

    def at(self, moment: int) -> int | None:
        index = bisect_right(self.times, moment)
        return self._position(index - 1)

    def last(self, start: int, end: int) -> tuple[int, int] | None:
        """Time and position of the last commit in [start, end)."""
        index = bisect_left(self.times, end) - 1
        position = self._position(index)
        return None if position is None or self.times[index] < start else (self.times[index], position)

    def falls_back(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Rewinds and beginnings in [start, end): commits that lie before the one before them, or have none."""
        for index in range(bisect_left(self.times, start), bisect_left(self.times, end)):
            before, position = self._position(index - 1), self._position(index)
            if position is not None and (before is None or position < before):
                yield self.times[index], position

    def _position(self, index: int) -> int | None:
        return None if index < 0 or self.positions[index] == DELETED else self.positions[index]


def tracks_of(
    readers: Sequence[Reader], of: npt.NDArray[np.int64], times: npt.NDArray[np.int64], positions: npt.NDArray[np.int64]
) -> dict[Reader, Track]:
    """The tracks of these commits: the number of each one's reader, its time and its position, in the log's order."""
    order = np.argsort(of, kind="stable")
    ordered = of[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=-1))
    moments, places = array("q", times[order].tobytes()), array("q", positions[order].tobytes())
    return {
        readers[number]: Track(moments[begin:end], places[begin:end])
        for number, (begin, end) in zip(ordered[begins].tolist(), pairwise([*begins.tolist(), len(of)]), strict=True)
    }


class Step(NamedTuple):
    """A reader's position at a moment (ms)."""

    reader: Reader
    at: int
    position: int


def positions_at(tracks: Mapping[Reader, Track], moments: Sequence[int]) -> Iterator[Step]:
    """Every reader's position at each moment that its commits reach."""
    for reader, track in tracks.items():
        for moment in moments:
            if (position := track.at(moment)) is not None:
                yield Step(reader, moment, position)


def beyond_end(tracks: Mapping[Reader, Track], ends: Mapping[TopicPartition, int]) -> dict[Reader, int]:
    """Readers that once stood beyond the log end, which was read after that, and this end."""
    found = {reader: ends.get(reader.tp, track.highest) for reader, track in tracks.items()}
    return {reader: end for reader, end in found.items() if tracks[reader].highest > end}


def falls_back(tracks: Mapping[Reader, Track], start: int, end: int) -> Iterator[Step]:
    """Every rewind and beginning in [start, end)."""
    for reader, track in tracks.items():
        for time_ms, position in track.falls_back(start, end):
            yield Step(reader, time_ms, position)
