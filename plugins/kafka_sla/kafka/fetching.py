"""Fetch requests as a monitor needs them: without a group, one partition each, never waiting for new records.

Knows requests, not what the records mean. Fetch needs READ permission on the topic, everything else only DESCRIBE.
"""

from __future__ import annotations

from kafka.protocol.consumer import FetchRequest, IsolationLevel

from kafka_sla.kafka.client import Ask
from kafka_sla.kafka.topics import TopicPartition

_Topic = FetchRequest.FetchTopic
_Partition = _Topic.FetchPartition
_LAST_VERSION_WITH_NAMES = 12
ONE_BATCH = 1
"""A limit that nothing fits: the broker then answers with exactly one batch, but only for the first partition asked."""


def fetch(node: int, tp: TopicPartition, offset: int, max_bytes: int, *, committed: bool = False) -> Ask:
    """Whole batches of one partition from the one that holds `offset` on, `max_bytes` of them but one at least.

    `committed` leaves out what open transactions hold back, and answers which transactions were aborted.
    """
    isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    partition = _Partition(partition=tp.partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    return Ask(node, FetchRequest(
        replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, isolation_level=int(isolation),
        topics=[_Topic(topic=tp.topic, partitions=[partition])], max_version=_LAST_VERSION_WITH_NAMES,
    ))  # fmt: skip
