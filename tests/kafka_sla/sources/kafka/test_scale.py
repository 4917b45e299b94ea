"""A cluster of the size that the project promises, and brokers that go away."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from demo.broker import Cluster as Broker
from tests.kafka_sla.sources.kafka.traffic import admin, commit, interval, look, ms, produce, this_minute, topic

pytestmark = pytest.mark.slow

GROUPS, PARTITIONS = 100, 100


def test_ten_thousand_group_partitions_are_seen_in_one_pass(kafka: Broker) -> None:
    name = topic(kafka, PARTITIONS)
    produce(kafka, name, [ms(1)])
    positions = [TopicPartition(name, partition, 0) for partition in range(PARTITIONS)]
    for number in range(GROUPS):
        request = ConsumerGroupTopicPartitions(f"many-{number}", positions)
        for committed in admin(kafka).alter_consumer_group_offsets([request]).values():
            committed.result(120)
    look(kafka, interval(0, 5), name, groups="many-.*")  # what is imported once is not the pass's time

    began = time.process_time()
    seen = look(kafka, this_minute(), name, groups="many-.*", live=True)
    took = time.process_time() - began

    assert sum(row["source"] == "snapshot" for row in seen.committed_offsets.to_pylist()) == GROUPS * PARTITIONS
    assert seen.notes == ()
    assert took < 5  # of processor time, which is 0.4 s: how busy the machine is matters little


def test_a_cluster_that_loses_a_broker_is_still_read() -> None:
    with Broker(3, properties={"broker.session.timeout.ms": "3000"}) as brokers:
        name = topic(brokers, 3)
        for partition in range(3):
            produce(brokers, name, [ms(1)], partition)
            commit(brokers, f"g{partition}-{name}", name, 1, partition)
        brokers.nodes[1].kill()
        while len(admin(brokers).list_topics(name, timeout=60).brokers) > 2:
            time.sleep(0.2)

        seen = look(brokers, this_minute(), name, groups=f"g.-{name}", live=True)

        answered = {row["partition"] for row in seen.log_offsets.to_pylist() if row["source"] == "snapshot"}
        assert len(answered) == 2
        assert any("offset lookups were not answered" in note for note in seen.notes)
