"""What was read from a cluster as rows of the fact tables. Pure: asks nobody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import Patterns
from kafka_sla.model.tables import Table
from kafka_sla.sources.kafka.produced_timeline import Produced
from kafka_sla.sources.kafka.protocol.group_members import Member
from kafka_sla.sources.kafka.protocol.groups import Group
from kafka_sla.sources.kafka.protocol.share_groups import NO_TIME_LAG, ShareLag
from kafka_sla.sources.kafka.protocol.topics import Topic, TopicConfig, TopicPartition
from kafka_sla.sources.kafka.record_sampling import SampledRange

Row = tuple[Any, ...]
"""Values in the order of the table's columns after `cluster`; times in ms."""
SNAPSHOT, LIST_OFFSETS, RECORD = "snapshot", "list_offsets", "record"


def fact_table(table: Table, cluster: str, rows: Iterable[Row]) -> pa.Table:
    """The rows, each once, as an Arrow table that fits the contract."""
    schema = arrow_schema(table)
    unique = list(dict.fromkeys(rows))
    columns: list[Any] = [[cluster] * len(unique), *(zip(*unique, strict=True) if unique else [[]] * (len(schema) - 1))]
    arrays = [_array(values, kind.type) for values, kind in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def ends_seen(ends: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int], at: int) -> Iterator[Row]:
    for tp, end in ends.items():
        yield *tp, at, starts.get(tp), end, SNAPSHOT


def produced(points: Iterable[Produced]) -> Iterator[Row]:
    for tp, point in points:
        yield *tp, point.at, None, point.offset, RECORD if point.exact else LIST_OFFSETS


def ranges(told: Iterable[SampledRange]) -> Iterator[Row]:
    for tp, at, found in told:
        yield *tp, at, *found


def groups_seen(groups: Iterable[Group], members: Mapping[str, Sequence[Member]], at: int) -> Iterator[Row]:
    for group in groups:
        known = members.get(group.name)
        yield group.name, at, group.type, group.state, None if known is None else len(known)


def members_seen(members: Mapping[str, Sequence[Member]], topics: Patterns, at: int) -> Iterator[Row]:
    """Those that read these topics, and those that read nothing."""
    for group, member in ((group, member) for group, mine in members.items() for member in mine):
        if member.partitions is None:
            continue
        for topic, partitions in (member.partitions or {"": ()}).items():
            if not topic or topics.matches(topic):
                yield group, member.id, topic, at, member.client, member.host, partitions


def shares_seen(lags: Iterable[ShareLag], ends: Mapping[TopicPartition, int], at: int) -> Iterator[Row]:
    for group, tp, start, lag, why in lags:
        yield group, *tp, at, start, ends.get(tp), lag, why, NO_TIME_LAG


def topics_seen(topics: Mapping[str, Topic], configs: Mapping[str, TopicConfig], at: int) -> Iterator[Row]:
    for name, config in configs.items():
        topic = topics[name]
        leaders = tuple(leader for _, leader in sorted(topic.leaders.items()))
        yield (
            name,
            at,
            topic.id,
            len(leaders),
            config.cleanup_policy,
            config.retention_ms,
            config.message_timestamp_type,
            leaders,
        )


def _array(values: Iterable[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array([None if value is None else value * 1000 for value in values], pa.int64()).cast(kind)
    return pa.array(values, kind)
