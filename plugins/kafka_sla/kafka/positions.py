"""Where each reader stood when, told from its commits. Pure: knows no requests and no clock."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kafka_sla.kafka.commit_log import Reader

Track = Sequence[tuple[int, int | None]]
"""Times (ms) and the next offset to read from then on, in the order of the commits; None: deleted."""


class Step(NamedTuple):
    """A reader's position at a moment (ms)."""

    reader: Reader
    at: int
    position: int


def positions_at(tracks: Mapping[Reader, Track], moments: Sequence[int]) -> Iterator[Step]:
    """Every reader's position at each moment that its commits reach."""
    for reader, track in tracks.items():
        times = [time_ms for time_ms, _ in track]
        for moment in moments:
            index = bisect_right(times, moment)
            position = track[index - 1][1] if index else None
            if position is not None:
                yield Step(reader, moment, position)


def falls_back(tracks: Mapping[Reader, Track], start: int, end: int) -> Iterator[Step]:
    """Rewinds and beginnings: commits in [start, end) that lie before the one before them, or have none before them."""
    for reader, track in tracks.items():
        previous: int | None = None
        for time_ms, position in track:
            if position is not None and start <= time_ms < end and (previous is None or position < previous):
                yield Step(reader, time_ms, position)
            previous = position
