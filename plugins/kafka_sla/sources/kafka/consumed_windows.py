"""Which offsets groups read in each window, and what they had not read when an interval began. Pure: asks nobody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from kafka_sla.sources.kafka.committed_positions import DELETED, Steps, Tracks
from kafka_sla.sources.kafka.protocol.topics import TopicPartition
from kafka_sla.sources.kafka.record_sampling import OffsetSpan
from kafka_sla.sources.kafka.timeline.offset_search import Search

_NONE = np.iinfo(np.int64).max


def windows_read(
    tracks: Tracks,
    rewinds: Steps,
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
    if not len(tracks.readers):
        return
    partitions, which = tracks.numbers.partitions(tracks.readers)
    lowest = np.full(len(partitions), _NONE)
    np.minimum.at(lowest, which[rewinds.reader], rewinds.position)
    if first:
        standing = tracks.at([begin])[:, 0]
        np.minimum.at(lowest, which, np.where(standing == DELETED, _NONE, standing))
    farthest = np.zeros(len(partitions), np.int64)
    np.maximum.at(farthest, which, tracks.highest)
    earliest = begin // width * width - width
    edges = [*range(earliest, stop + width, width)]
    times, positions = tracks.last(edges[:-1], edges[1:])
    readers = np.argsort(which, kind="stable")
    of_partition = np.searchsorted(which[readers], np.arange(len(partitions) + 1))
    for place, (tp, low, far) in enumerate(zip(partitions, lowest.tolist(), farthest.tolist(), strict=True)):
        search = searches.get(tp)
        if search is None:
            continue
        boundary = search.offset_at(earliest)
        if boundary is not None and low < boundary:
            yield OffsetSpan(tp, begin, 0, low, boundary, boundary)
        if boundary is not None and far <= boundary == search.offset_at(edges[-1]):
            continue  # nothing came, and nothing that came later was read
        bounds = [(at, search.offset_at(at)) for at in edges]
        mine = readers[of_partition[place] : of_partition[place + 1]]
        for window, ((left, offset), (right, next_offset)) in enumerate(pairwise(bounds)):
            if offset is None or next_offset is None or max(next_offset, far) <= offset:
                continue
            there = mine[positions[mine, window] != DELETED]
            commits = tuple(zip(times[there, window].tolist(), positions[there, window].tolist(), strict=True))
            reached = max((position for _, position in commits), default=0)
            # One more, which may be the oldest unread record: where times run backwards, it may belong to the window.
            end = min(ends[tp], max(next_offset, reached) + 1)
            if max(next_offset, reached) > offset and offset < end:
                yield OffsetSpan(tp, right, left, offset, end, next_offset, commits)
