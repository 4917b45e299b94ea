"""How far MirrorMaker 2 has copied, from the topic on the target in which its Connect keeps source offsets.

Knows the topic's records, not what they are used for. The topic is compacted: of the past it has what compaction left.
Where Connect writes offsets in transactions (`exactly.once.source.support`), they count from the moment on at which the
transaction was committed, together with the records that they are about.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kafka.errors import KafkaError, UnknownTopicOrPartitionError, for_code

from kafka_sla.model.entities import Cluster, Connection, KeptPosition, ReplicationFlow
from kafka_sla.model.position_values import MAX_OFFSET, whole_number
from kafka_sla.sources.kafka.protocol.client import Client
from kafka_sla.sources.kafka.protocol.connection_errors import words_of
from kafka_sla.sources.kafka.protocol.fetch import FetchPosition, fetched
from kafka_sla.sources.kafka.protocol.list_offsets import Offsets
from kafka_sla.sources.kafka.protocol.record_batches import (
    Record,
    Transactions,
    read_batches,
    read_records,
)
from kafka_sla.sources.kafka.protocol.topics import TopicPartition, read_topic

SOURCE = "mm2_offsets"
_BYTES_PER_FETCH = 4 * 1024**2


def read_flow(
    flow: ReplicationFlow, target: Cluster, connection: Connection, start: int, end: int | None
) -> list[KeptPosition]:
    """The flow's positions on its source cluster from `start` to `end` (ms; None: now), and the last one before.

    Raises KafkaUnreachable with cause and cure.
    """
    assert flow.offsets_topic
    with Client(target, connection) as client:
        try:
            records = list(_records(client, flow.offsets_topic, end))
        except UnknownTopicOrPartitionError as error:
            raise client.unreachable(
                f"there is no topic {flow.offsets_topic}: start MirrorMaker, or correct the offsets_topic of flow"
                f" {flow.name!r}"
            ) from error
        except KafkaError as error:
            raise client.unreachable(
                f"the topic {flow.offsets_topic} may not be read ({words_of(error)}); grant READ on it"
            ) from error
    return list(_since(start, (found for record in records if (found := _position(flow, record)))))


def _records(client: Client, topic: str, end: int | None) -> Iterator[Record]:
    """All records that count before `end`, each partition's in the order in which they came to count. Of a key, one
    that lies before another that counts already says nothing any more: Connect reads the log in its order."""
    log = read_topic(client, topic)
    offsets = Offsets(client, {topic: log})
    ends, starts = offsets.ends(), offsets.starts()
    transactions = {tp: Transactions() for tp in starts}
    last: dict[bytes | None, int] = {}
    left = starts
    while left := {tp: at for tp, at in left.items() if at < ends.get(tp, 0)}:
        places = [FetchPosition(log.leaders[tp.partition], tp, at) for tp, at in left.items()]
        answers = fetched(client, places, _BYTES_PER_FETCH)
        for (_, tp, _), answer in zip(places, answers, strict=True):
            left[tp] = ends[tp]
            for batch in read_batches(_data(answer)):
                left[tp] = batch.last_offset + 1
                for one in (record for told in transactions[tp].told(batch) for record in read_records(told)):
                    if one.offset >= max(starts[tp], last.get(one.key, 0)) and (end is None or one.timestamp < end):
                        last[one.key] = one.offset
                        yield one


def _data(answer: Any) -> bytes:
    if isinstance(answer, KafkaError):
        raise answer
    if answer.error_code:
        raise for_code(answer.error_code)()
    return answer.records or b""


def _position(flow: ReplicationFlow, record: Record) -> KeptPosition | None:
    """The position that a record tells of the flow; None for records of other connectors and of other programs. Connect
    keeps the offset of the last record copied, so the position is one higher. ValueError if the value is none."""
    where = _source_partition(flow, record)
    if where is None or not flow.topics.matches(str(where.get("topic"))):
        return None
    topic, partition = where.get("topic"), where.get("partition")
    try:
        copied = None if record.value is None else json.loads(record.value)["offset"]
        offset = None if copied is None else whole_number(copied, MAX_OFFSET - 1) + 1
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"record {record.offset} of {flow.offsets_topic}: {error}") from error
    return KeptPosition(flow.name, topic, partition, record.timestamp, offset, SOURCE)  # type: ignore[arg-type]


def _source_partition(flow: ReplicationFlow, record: Record) -> dict[str, Any] | None:
    """What the key of a record of this flow's connector says: cluster, topic and partition; None of other records."""
    try:
        connector, where = json.loads(record.key or "[null, {}]")
    except (ValueError, TypeError, RecursionError):
        return None
    return where if connector == flow.connector and isinstance(where, dict) else None


def _since(start: int, positions: Iterator[KeptPosition]) -> Iterator[KeptPosition]:
    before: dict[TopicPartition, KeptPosition] = {}
    later: list[KeptPosition] = []
    for found in positions:
        if found.at_ms < start:
            before[TopicPartition(found.topic, found.partition)] = found
        else:
            later.append(found)
    yield from before.values()
    yield from later
