"""Which transactions are open in a partition, and who opened them (KIP-664).

DescribeProducers takes READ on the topic. ListTransactions lists the transactions of the transactional ids on which
the login has DESCRIBE, and leaves the others out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kafka.errors import KafkaError, for_code

from kafka_sla.sources.kafka.protocol.client import Ask, Client
from kafka_sla.sources.kafka.protocol.connection_errors import words_of
from kafka_sla.sources.kafka.protocol.kafka_python import DescribeProducersRequest, ListTransactionsRequest
from kafka_sla.sources.kafka.protocol.topics import TopicPartition

_Topic = DescribeProducersRequest.TopicRequest


class OpenTransaction(NamedTuple):
    """The oldest transaction that is open in a partition."""

    start_offset: int
    """Of its first record there."""
    producer_id: int
    transactional_id: str | None
    """None: no coordinator lists it, or the login may not see it."""


def describe_open_transactions(
    client: Client, leaders: Mapping[TopicPartition, int]
) -> tuple[dict[TopicPartition, OpenTransaction], list[str]]:
    """The oldest open transaction of each of these partitions, which come with their leaders, and notes on what could
    not be read. Partitions without one are left out."""
    if client.versions(DescribeProducersRequest)[1] < 0:
        notes = ["brokers do not answer DescribeProducers: the producers of open transactions are unknown"]
        return {}, notes if leaders else []
    by_node: dict[int, list[TopicPartition]] = {}
    for tp, node in leaders.items():
        by_node.setdefault(node, []).append(tp)
    answers = client.ask([Ask(node, _describe_producers(partitions)) for node, partitions in by_node.items()])
    open_since: dict[TopicPartition, tuple[int, int]] = {}
    refused: dict[TopicPartition, str] = {}
    for partitions, answer in zip(by_node.values(), answers, strict=True):
        if isinstance(answer, KafkaError):
            refused |= dict.fromkeys(partitions, words_of(answer))
            continue
        for tp, partition in _partitions(answer):
            if partition.error_code:
                refused[tp] = words_of(for_code(partition.error_code)())
            elif opened := _oldest_transaction(partition):
                open_since[tp] = opened
    ids = _transactional_ids(client, sorted({producer for _, producer in open_since.values()}))
    transactions = {
        tp: OpenTransaction(offset, producer, ids.get(producer)) for tp, (offset, producer) in open_since.items()
    }
    return transactions, _notes(refused)


def _describe_producers(partitions: Sequence[TopicPartition]) -> Any:
    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    return DescribeProducersRequest(
        topics=[_Topic(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
    )


def _partitions(answer: Any) -> Iterator[tuple[TopicPartition, Any]]:
    for topic in answer.topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.name, partition.partition_index), partition


def _oldest_transaction(partition: Any) -> tuple[int, int] | None:
    """First offset and producer id of the open transaction that began first; None without one."""
    opened = [
        (producer.current_txn_start_offset, producer.producer_id)
        for producer in partition.active_producers
        if producer.current_txn_start_offset >= 0
    ]
    return min(opened, default=None)


def _transactional_ids(client: Client, producers: Sequence[int]) -> dict[int, str]:
    """By producer id the transactional ids that coordinators list; empty where none may be seen."""
    if not producers or client.versions(ListTransactionsRequest)[1] < 0:
        return {}
    request = {"state_filters": [], "producer_id_filters": list(producers)}
    answers = client.ask([Ask(node, ListTransactionsRequest(**request)) for node in client.brokers])
    return {
        state.producer_id: state.transactional_id
        for answer in answers
        if not isinstance(answer, KafkaError) and not answer.error_code
        for state in answer.transaction_states
    }


def _notes(refused: Mapping[TopicPartition, str]) -> list[str]:
    if not refused:
        return []
    (topic, partition), cause = min(refused.items())
    return [
        f"the producers of open transactions in {len(refused)} partitions are unknown (for instance in"
        f" {topic}-{partition}: {cause}); DescribeProducers takes READ on the topic"
    ]
