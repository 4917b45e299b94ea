"""Offsets that Connect keeps for MirrorMaker 2, in a topic of a real broker, some of them written in transactions."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

from confluent_kafka import Producer

from demo.broker import Cluster as Broker
from kafka_sla.model.entities import Cluster, Connection, KeptPosition, Patterns, ReplicationFlow, epoch_ms
from kafka_sla.sources.kafka.mm2_offsets import read_flow
from tests.kafka_sla.sources.kafka.traffic import topic


def keep(producer: Producer, offsets: str, partition: int, copied: int) -> None:
    """Writes what Connect writes: the last record that was copied of a partition."""
    key = ["MirrorSourceConnector", {"cluster": "prod-eu.west-1", "partition": partition, "topic": "orders.v2"}]
    producer.produce(offsets, json.dumps({"offset": copied}), json.dumps(key), partition=0)
    assert producer.flush(120) == 0


def positions(kafka: Broker, offsets: str, end: int | None = None) -> list[KeptPosition]:
    flow = ReplicationFlow("prod->backup", "backup", offsets, "prod.", topics=Patterns(("orders.v2",)))
    return read_flow(flow, Cluster("backup", "backup"), Connection("backup", extra=dict(kafka.client())), 0, end)


def now_ms() -> int:
    return epoch_ms(datetime.now(UTC))


def transactional(kafka: Broker, name: str) -> Producer:
    producer = Producer({**kafka.client(), "transactional.id": name})
    producer.init_transactions(120)
    return producer


def test_offsets_written_in_a_transaction_count_from_when_it_was_committed_on(kafka: Broker) -> None:
    offsets = topic(kafka, cleanup_policy="compact")
    exactly_once, plain = transactional(kafka, offsets), Producer(kafka.client())
    exactly_once.begin_transaction()
    keep(exactly_once, offsets, 0, 41)
    keep(plain, offsets, 1, 6)
    written = now_ms()
    time.sleep(1)

    held = positions(kafka, offsets)
    committing = now_ms()
    exactly_once.commit_transaction(120)
    free = positions(kafka, offsets)

    assert [(one.partition, one.offset) for one in held] == [(1, 7)]
    assert [(one.partition, one.offset) for one in free] == [(1, 7), (0, 42)]
    assert written < committing - 900
    assert committing - 1 <= free[-1].at_ms <= now_ms()
    assert positions(kafka, offsets, committing - 1) == free[:1]


def test_offsets_of_a_transaction_that_was_aborted_never_count(kafka: Broker) -> None:
    offsets = topic(kafka, cleanup_policy="compact")
    exactly_once = transactional(kafka, offsets)
    for copied, outcome in ((9, exactly_once.commit_transaction), (20, exactly_once.abort_transaction)):
        exactly_once.begin_transaction()
        keep(exactly_once, offsets, 0, copied)
        outcome(120)

    assert [one.offset for one in positions(kafka, offsets)] == [10]
