"""Which offsets groups read in each window, and what they had not read when an interval began. Pure: asks nobody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kafka_sla.kafka.contents import Stretch
from kafka_sla.kafka.positions import Reader, Track
from kafka_sla.kafka.timeline import Search
from kafka_sla.kafka.topics import TopicPartition


def windows_read(
    tracks: Mapping[Reader, Track], searches: Mapping[TopicPartition, Search], ends: Mapping[TopicPartition, int],
    begin: int, stop: int, width: int, *, first: bool,
) -> Iterator[Stretch]:  # fmt: skip
    """The offsets of each window in [begin, stop) and of the one before, whose last records may not have been there
    when it was looked at; and, when it is the `first` look, what lay before these and was still to be read."""
    readers: dict[TopicPartition, list[Track]] = {}
    for reader, track in tracks.items():
        if reader.tp in searches:
            readers.setdefault(reader.tp, []).append(track)
    earliest = begin // width * width - width
    for tp, of_tp in sorted(readers.items()):
        positions = [track.at(begin) for track in of_tp] if first else []
        positions += [position for track in of_tp for _, position in track.falls_back(begin, stop)]
        boundary = searches[tp].offset_at(earliest)
        position = min((at for at in positions if at is not None), default=boundary)
        if boundary is not None and position is not None and position < boundary:
            yield Stretch(tp, begin, 0, position, boundary, boundary)
        for left in range(earliest, stop, width):
            if window := _window(tp, of_tp, searches[tp], ends[tp], left, left + width):
                yield window


def _window(
    tp: TopicPartition, readers: Iterable[Track], search: Search, log_end: int, left: int, right: int
) -> Stretch | None:
    """From the first record of the window to its end, and to what was read by then although it bears a later time.

    One more, which may be the oldest unread record: where times run backwards, it may belong to the window.
    """
    start, boundary = search.offset_at(left), search.offset_at(right)
    if start is None or boundary is None:
        return None
    commits = tuple(found for track in readers if (found := track.last(left, right)))
    reached = max((position for _, position in commits), default=0)
    if max(reached, boundary) <= start:
        return None
    end = min(log_end, max(boundary, reached) + 1)
    return Stretch(tp, right, left, start, end, boundary, commits) if start < end else None
