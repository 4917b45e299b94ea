"""ListOffsets and OffsetFetch as columns, in all versions that brokers speak."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_sla.sources.kafka.protocol.kafka_python import (
    ListOffsetsRequest,
    OffsetFetchRequest,
    WithoutObjects,
)
from kafka_sla.sources.kafka.protocol.partition_rows import Reader, Rows, Writer, layout

_FIRST_WITH_ONE_OFFSET, _ISOLATED, _WITH_EPOCH, _FLEXIBLE, _WITH_TIMEOUT = 1, 2, 4, 6, 10
"""Versions of ListOffsets from which on there is what the name says."""
MANY_GROUPS = 8
"""The version of OffsetFetch from which on it takes many groups."""
_COMMITTED = [("partition", "i"), ("offset", "q"), ("epoch", "i")]
_Ints = npt.NDArray[np.int64]


class ListedOffsets(NamedTuple):
    """An answer of ListOffsets."""

    throttle_time_ms: int
    topics: list[tuple[str, Rows]]
    """`partition`, `error`, `timestamp`, `offset` of each partition."""


class GroupOffsets(NamedTuple):
    """What one group has committed."""

    group_id: str
    error_code: int
    topics: list[tuple[str, Rows]]
    """`partition`, `offset`, `error` of each partition."""


class FetchedOffsets(NamedTuple):
    """An answer of OffsetFetch for many groups."""

    throttle_time_ms: int
    groups: list[GroupOffsets]


def list_offsets(asked: Mapping[str, tuple[_Ints, _Ints]]) -> WithoutObjects:
    """The request for partitions and times (ms) by topic; everything is read uncommitted."""
    message = ListOffsetsRequest(min_version=_FIRST_WITH_ONE_OFFSET)
    return WithoutObjects(message, lambda version: _asked(version, asked), _listed)


def offset_fetch(groups: list[str]) -> WithoutObjects:
    """The request for what many groups have committed."""
    of_groups = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=None) for name in groups]
    message = OffsetFetchRequest(groups=of_groups, min_version=MANY_GROUPS, max_version=MANY_GROUPS)
    return WithoutObjects(message, None, _fetched)


def of_one(answer: Any) -> GroupOffsets:
    """The library's answer of an older OffsetFetch, which is about one group and does not name it."""
    fields = layout([*_COMMITTED, ("error", "h")])
    return GroupOffsets(
        "",
        answer.error_code,
        [
            (
                topic.name,
                np.array([(p.partition_index, p.committed_offset, -1, p.error_code) for p in topic.partitions], fields),
            )
            for topic in answer.topics
        ],
    )


def _asked(version: int, asked: Mapping[str, tuple[_Ints, _Ints]]) -> bytes:
    fields = [("partition", "i"), *([("epoch", "i")] if version >= _WITH_EPOCH else []), ("timestamp", "q")]
    out = Writer(version >= _FLEXIBLE)
    out.numbers("i", -1)
    if version >= _ISOLATED:
        out.numbers("b", 0)
    out.count(len(asked))
    for topic, (partitions, times) in asked.items():
        out.text(topic)
        out.rows(fields, partition=partitions, epoch=-1, timestamp=times)
        out.end()
    if version >= _WITH_TIMEOUT:
        out.numbers("i", 0)
    out.end()
    return out.written()


def _listed(version: int, data: memoryview) -> ListedOffsets:
    fields = [("partition", "i"), ("error", "h"), ("timestamp", "q"), ("offset", "q")]
    fields += [("epoch", "i")] if version >= _WITH_EPOCH else []
    told = Reader(data, version >= _FLEXIBLE)
    throttled, topics = told.number("i") if version >= _ISOLATED else 0, []
    for _ in range(told.count()):
        topics.append((told.text(), told.rows(fields)))
        told.end()
    return ListedOffsets(throttled, topics)


def _fetched(_: int, data: memoryview) -> FetchedOffsets:
    told = Reader(data, flexible=True)
    throttled = told.number("i")
    return FetchedOffsets(throttled, [_of_group(told) for _ in range(told.count())])


def _of_group(told: Reader) -> GroupOffsets:
    name, topics = told.text(), []
    for _ in range(told.count()):
        topics.append((told.text(), told.rows(_COMMITTED, [("error", "h")], text=True)))
        told.end()
    error = told.number("h")
    told.end()
    return GroupOffsets(name, error, topics)
