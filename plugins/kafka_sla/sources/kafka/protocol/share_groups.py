"""Share groups (KIP-932): where each share-partition starts, and how many records it has left.

Their members acknowledge single records, in any order. So there is no position that all older records lie behind, and
nothing from which a latency in time could be told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kafka.errors import KafkaError, for_code

from kafka_sla.model.entities import Patterns
from kafka_sla.sources.kafka.protocol.client import Ask, Client
from kafka_sla.sources.kafka.protocol.connection_errors import words_of
from kafka_sla.sources.kafka.protocol.groups import Group, by_coordinator
from kafka_sla.sources.kafka.protocol.kafka_python import DescribeShareGroupOffsetsRequest
from kafka_sla.sources.kafka.protocol.topics import TopicPartition

NO_TIME_LAG = (
    "a share group acknowledges single records in any order: it has no position, so its lag in time is not known"
)
NOT_STARTED = "the group has not read from this partition yet"
NOT_REPORTED = "this broker does not report the lag of share groups; Kafka 4.2 and newer do"
_OfGroup = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup


class ShareLag(NamedTuple):
    group: str
    tp: TopicPartition
    start_offset: int | None
    """First offset that is not done with."""
    records_lag: int | None
    unknown_reason: str | None


def read_share_lags(client: Client, groups: Sequence[Group], topics: Patterns) -> tuple[list[ShareLag], list[str]]:
    """The share-partitions of the share groups among these, and notes on what could not be read."""
    shared = by_coordinator([group for group in groups if group.type == "share"])
    asks = [
        Ask(node, DescribeShareGroupOffsetsRequest(groups=[_OfGroup(group_id=name, topics=None) for name in names]))
        for node, names in shared
    ]
    found: list[ShareLag] = []
    failed: Counter[str] = Counter()
    for (_, names), answer in zip(shared, client.ask(asks), strict=True):
        if isinstance(answer, KafkaError):
            failed[words_of(answer)] += len(names)
            continue
        for group in answer.groups:
            if group.error_code:
                failed[words_of(for_code(group.error_code)())] += 1
            found += _lags(group, topics)
    return found, [
        f"{count} share groups have no lag in this snapshot: {cause}; DESCRIBE on a group lets it be read"
        for cause, count in sorted(failed.items())
    ]


def _lags(group: Any, topics: Patterns) -> Iterator[ShareLag]:
    for topic in group.topics:
        for partition in topic.partitions if topics.matches(topic.topic_name) else ():
            tp = TopicPartition(topic.topic_name, partition.partition_index)
            start, lag = (None if value < 0 else int(value) for value in (partition.start_offset, partition.lag))
            error = words_of(for_code(partition.error_code)()) if partition.error_code else None
            why = error or (NOT_STARTED if start is None else NOT_REPORTED if lag is None else None)
            yield ShareLag(group.group_id, tp, start, None if why else lag, why)
