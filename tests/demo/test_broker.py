from __future__ import annotations

from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from demo.broker import Cluster, free_ports
from demo.warm_up import create_topic


def _client(cluster: Cluster, user: str = "admin", **more: str) -> dict[str, Any]:
    return {**cluster.client(user), "log_level": 0, **more}


def _create(cluster: Cluster, topic: str) -> None:
    create_topic(AdminClient(_client(cluster)), NewTopic(topic, 1, 1))


def _write(cluster: Cluster, topic: str, records: int) -> None:
    producer = Producer(_client(cluster))
    for number in range(records):
        producer.produce(topic, str(number))
    assert producer.flush(120) == 0


def _log_end(cluster: Cluster, topic: str) -> int:
    consumer = Consumer(_client(cluster, **{"group.id": "reader of ends"}))
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)[1])
    finally:
        consumer.close()


def test_a_fresh_cluster_takes_the_first_commit(kafka: Cluster) -> None:
    _create(kafka, "first-commit")
    consumer = Consumer(_client(kafka, **{"group.id": "first-commit"}))
    place = TopicPartition("first-commit", 0, 5)

    answered = consumer.commit(offsets=[place], asynchronous=False)
    committed = consumer.committed([place], timeout=60)
    consumer.close()

    assert [None] == [one.error for one in answered or []]
    assert [5] == [one.offset for one in committed]


def test_a_killed_node_comes_back_with_its_records_and_nothing_stays_after_the_block(kafka_classes: None) -> None:
    with Cluster() as cluster:
        _create(cluster, "kept")
        _write(cluster, "kept", 3)
        cluster.nodes[0].kill()
        cluster.nodes[0].launch()
        cluster.nodes[0].wait()
        pid = cluster.nodes[0].pid

        assert 3 == _log_end(cluster, "kept")

    assert not psutil.pid_exists(pid)
    assert not cluster.folder.exists()


def test_three_nodes_share_a_topic(kafka3: Cluster) -> None:
    admin = AdminClient(_client(kafka3))
    create_topic(admin, NewTopic("shared", 3, 3))

    leaders = {p.leader for p in admin.list_topics("shared", timeout=60).topics["shared"].partitions.values()}

    assert {0, 1, 2} == leaders


def test_a_secure_cluster_shows_a_user_only_what_the_lists_allow(kafka_sasl: Cluster) -> None:
    _create(kafka_sasl, "secret")

    seen_by = {
        user: set(AdminClient(_client(kafka_sasl, user)).list_topics(timeout=60).topics) for user in ("admin", "reader")
    }

    assert "secret" in seen_by["admin"]
    assert set() == seen_by["reader"]


@pytest.mark.parametrize(
    "wrong", [{"sasl.password": "guessed"}, {"ssl.ca.location": "probe"}, {"security.protocol": "PLAINTEXT"}]
)
def test_a_secure_cluster_refuses_strangers(kafka_sasl: Cluster, wrong: dict[str, str]) -> None:
    with pytest.raises(KafkaException):
        AdminClient({**_client(kafka_sasl), **wrong}).list_topics(timeout=2)


def test_free_ports_are_different() -> None:
    assert 20 == len(set(free_ports(20)))
