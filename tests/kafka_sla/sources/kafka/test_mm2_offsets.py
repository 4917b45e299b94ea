"""Offsets that Connect keeps for MirrorMaker 2, in a topic of a real broker, some of them written in transactions."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from demo.broker import Cluster as Broker
from demo.mirror import Flow, Mirror
from kafka_sla.model.entities import Cluster, Connection, KeptPosition, Patterns, ReplicationFlow, epoch_ms
from kafka_sla.sources.kafka.mm2_offsets import read_flow
from tests.kafka_sla.sources.kafka.traffic import admin, in_transactions, produce, topic, wait_for

A, B = "prod-eu.west-1", "backup"


def keep(producer: Producer, offsets: str, partition: int, copied: int) -> None:
    """Writes what Connect writes: the last record that was copied of a partition."""
    key = ["MirrorSourceConnector", {"cluster": A, "partition": partition, "topic": "orders.v2"}]
    producer.produce(offsets, json.dumps({"offset": copied}), json.dumps(key), partition=0)
    assert producer.flush(120) == 0


def positions(kafka: Broker, offsets: str, end: int | None = None) -> list[KeptPosition]:
    flow = ReplicationFlow("prod->backup", "backup", offsets, "prod.", topics=Patterns(("orders.v2",)))
    return read_flow(flow, Cluster("backup", "backup"), Connection("backup", extra=dict(kafka.client())), 0, end)


def now_ms() -> int:
    return epoch_ms(datetime.now(UTC))


def test_offsets_written_in_a_transaction_count_from_when_it_was_committed_on(kafka: Broker) -> None:
    offsets = topic(kafka, cleanup_policy="compact")
    exactly_once, plain = in_transactions(kafka, offsets), Producer(kafka.client())
    exactly_once.begin_transaction()
    keep(exactly_once, offsets, 0, 41)
    keep(plain, offsets, 1, 6)
    written = now_ms()
    time.sleep(1)

    held = positions(kafka, offsets)
    committing = now_ms()
    exactly_once.commit_transaction(120)
    wait_for(lambda: markers(kafka, offsets) == 1)
    free = positions(kafka, offsets)

    assert [(one.partition, one.offset) for one in held] == [(1, 7)]
    assert [(one.partition, one.offset) for one in free] == [(1, 7), (0, 42)]
    assert written < committing - 900
    assert committing - 1 <= free[-1].at_ms <= now_ms()
    assert positions(kafka, offsets, committing - 1) == free[:1]


def test_offsets_of_a_transaction_that_was_aborted_never_count(kafka: Broker) -> None:
    offsets = topic(kafka, cleanup_policy="compact")
    exactly_once = in_transactions(kafka, offsets)
    for copied, outcome in ((9, exactly_once.commit_transaction), (20, exactly_once.abort_transaction)):
        exactly_once.begin_transaction()
        keep(exactly_once, offsets, 0, copied)
        outcome(120)
    wait_for(lambda: markers(kafka, offsets) == 2)

    assert [one.offset for one in positions(kafka, offsets)] == [10]


@pytest.mark.parametrize("key", [b"\xff\xfe", b"17", b"[1]", b"{}", b'["MirrorSourceConnector", 3]', b"[" * 100_000])
def test_records_of_other_programs_cost_nothing(kafka: Broker, key: bytes) -> None:
    offsets, producer = topic(kafka, cleanup_policy="compact"), Producer(kafka.client())
    producer.produce(offsets, b"\xff", key, partition=0)
    keep(producer, offsets, 0, 41)

    assert [one.offset for one in positions(kafka, offsets)] == [42]


@pytest.mark.parametrize(
    "value", ["{", "17", "[]", '{"offset": -7}', '{"offset": 1.9}', '{"offset": "7"}', "[" * 100_000]
)
def test_a_record_of_the_flow_that_holds_no_offset_is_named(kafka: Broker, value: str) -> None:
    offsets, producer = topic(kafka, cleanup_policy="compact"), Producer(kafka.client())
    where = {"cluster": A, "partition": 0, "topic": "orders.v2"}
    producer.produce(offsets, value, json.dumps(["MirrorSourceConnector", where]), partition=0)
    assert producer.flush(120) == 0

    with pytest.raises(ValueError, match=f"record 0 of {offsets}: "):
        positions(kafka, offsets)


def test_what_lies_behind_an_open_transaction_of_the_same_partition_stands(kafka: Broker) -> None:
    """As Connect reads it, in the order of the log: a worker that was fenced off was late."""
    offsets = topic(kafka, cleanup_policy="compact")
    exactly_once, plain = in_transactions(kafka, offsets), Producer(kafka.client())
    exactly_once.begin_transaction()
    keep(exactly_once, offsets, 0, 41)
    keep(plain, offsets, 0, 50)
    exactly_once.commit_transaction(120)
    wait_for(lambda: markers(kafka, offsets) == 1)

    assert [one.offset for one in positions(kafka, offsets)] == [51]


@pytest.mark.slow
def test_a_real_mirrormaker_that_copies_exactly_once_tells_how_far_it_is(kafka: Broker) -> None:
    copied = topic(kafka)
    produce(kafka, copied, range(1_700_000_000_000, 1_700_000_000_030))
    flow = ReplicationFlow("A->B", "B", f"mm2-offsets.{A}.internal", f"{A}.", topics=Patterns((copied,)))

    def found() -> list[KeptPosition]:
        if flow.offsets_topic not in admin(kafka).list_topics(timeout=60).topics:
            return []
        return read_flow(flow, Cluster(B, B), Connection(B, extra=dict(kafka.client())), 0, None)

    with Mirror({A: kafka, B: kafka}, [Flow(A, B, copied)], exactly_once=True) as mirror:
        deadline = time.monotonic() + 300
        while [one.offset for one in found()][-1:] != [30]:
            assert time.monotonic() < deadline, mirror.log[-3_000:]
            time.sleep(0.3)

    assert markers(kafka, str(flow.offsets_topic)) > 0, "it wrote in transactions"


def markers(kafka: Broker, name: str) -> int:
    """How many transactions have ended in the first partition: brokers write that after who ended them was answered."""
    settings = {"group.id": "none", "isolation.level": "read_uncommitted", "enable.partition.eof": True}
    consumer = Consumer({**kafka.client(), **settings})
    first, end = consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=60)
    consumer.assign([TopicPartition(name, 0, first)])
    records = 0
    while (message := consumer.poll(60)) is not None and not message.error():
        records += 1
    consumer.close()
    return int(end - first) - records
