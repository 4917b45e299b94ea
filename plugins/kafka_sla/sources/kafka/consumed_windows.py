"""Which offsets groups read in each window, and what they had not read when an interval began. Pure: asks nobody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from kafka_sla.sources.kafka.committed_positions import Reader, Step, Track
from kafka_sla.sources.kafka.offset_search import Search
from kafka_sla.sources.kafka.protocol.topics import TopicPartition
from kafka_sla.sources.kafka.record_sampling import OffsetSpan


def windows_read(
    tracks: Mapping[Reader, Track],
    rewinds: Iterable[Step],
    searches: Mapping[TopicPartition, Search],
    ends: Mapping[TopicPartition, int],
    begin: int,
    stop: int,
    width: int,
    *,
    first: bool,
) -> Iterator[OffsetSpan]:
    """The offsets of each window in [begin, stop) and of the one before, whose last records may not have been there
    when it was looked at; and, when it is the `first` look, what lay before these and was still to be read.

    A window's offsets go from its first record to its end, and to what was read by then although it bears a later time.
    `rewinds`: every rewind and beginning of [begin, stop).
    """
    readers: dict[TopicPartition, list[Track]] = {}
    for reader, track in tracks.items():
        if reader.tp in searches:
            readers.setdefault(reader.tp, []).append(track)
    back: dict[TopicPartition, list[int]] = {}
    for step in rewinds:
        back.setdefault(step.reader.tp, []).append(step.position)
    earliest = begin // width * width - width
    for tp, of_tp in sorted(readers.items()):
        positions = [track.at(begin) for track in of_tp] if first else []
        positions += back.get(tp, [])
        boundary = searches[tp].offset_at(earliest)
        position = min((at for at in positions if at is not None), default=boundary)
        if boundary is not None and position is not None and position < boundary:
            yield OffsetSpan(tp, begin, 0, position, boundary, boundary)
        farthest = max(track.highest for track in of_tp)
        bounds = [(at, searches[tp].offset_at(at)) for at in range(earliest, stop + width, width)]
        for (left, offset), (right, next_offset) in pairwise(bounds):
            if offset is None or next_offset is None or max(next_offset, farthest) <= offset:
                continue
            commits = tuple(found for track in of_tp if (found := track.last(left, right)))
            reached = max((position for _, position in commits), default=0)
            # One more, which may be the oldest unread record: where times run backwards, it may belong to the window.
            end = min(ends[tp], max(next_offset, reached) + 1)
            if max(next_offset, reached) > offset and offset < end:
                yield OffsetSpan(tp, right, left, offset, end, next_offset, commits)
