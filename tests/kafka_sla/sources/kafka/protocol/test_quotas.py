"""A client whose quota is used up gets answers without records: a snapshot waits, and goes without nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from demo.broker import Cluster as Broker
from demo.quotas import limit
from kafka_sla.errors import KafkaUnreachable
from kafka_sla.model.entities import Cluster, Connection, epoch_ms
from kafka_sla.sources.kafka.protocol import fetch
from kafka_sla.sources.kafka.protocol.client import Client, QuotaUsedUp
from kafka_sla.sources.kafka.protocol.topics import TopicPartition
from tests.kafka_sla.sources.kafka.traffic import commit, look, points, produce, this_minute, topic

pytestmark = pytest.mark.slow


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds of each wait, which do happen."""
    waits, sleep = [], Client.sleep
    monkeypatch.setattr(Client, "sleep", lambda self, seconds: waits.append(seconds) or sleep(self, seconds))
    return waits


def batches_of_12_kb(broker: Broker) -> str:
    """A topic of three partitions whose timestamps run backwards, so that windows are read; all of it is committed."""
    name, now = topic(broker, partitions=3), epoch_ms(datetime.now(UTC))
    for partition in range(3):
        produce(broker, name, [now - 8_000 + 10 * index - 700 * (index % 2) for index in range(400)], partition)
        commit(broker, "g", name, 400, partition)
    return name


def test_a_snapshot_waits_for_a_broker_that_withholds_records(kafka_classes: None, waited: list[float]) -> None:
    with Broker() as broker:
        name = batches_of_12_kb(broker)
        limit(broker, 3_000)

        seen = look(broker, this_minute(), name, live=True)

    assert waited, "the broker withheld nothing"
    assert seen.commits.num_rows == 3
    assert seen.notes == ()


def test_a_snapshot_waits_for_a_broker_that_takes_few_requests(kafka_classes: None) -> None:
    with Broker() as broker:
        name = batches_of_12_kb(broker)
        limit(broker, 1, "request_percentage")

        seen = [look(broker, this_minute(), name, live=True) for _ in range(6)]

    assert [(one.commits.num_rows, one.notes) for one in seen] == [(3, ())] * 6


def test_what_a_quota_never_lets_through_is_not_waited_for_and_all_the_rest_read(
    kafka_classes: None, waited: list[float]
) -> None:
    with Broker() as broker:
        name = batches_of_12_kb(broker)
        limit(broker, 100)  # the few commits fit; for the records the broker names waits of minutes

        seen = look(broker, this_minute(), name, live=True)

    assert sum(waited) <= fetch.PATIENCE_S
    assert seen.commits.num_rows == 3
    assert max(points(seen))[1] == 400, "what is asked of the same broker afterwards is answered"
    assert any("windows were not sampled" in note for note in seen.notes)
    cure = "a quota of this client is used up; raise its consumer_byte_rate or request_percentage"
    assert {note.rpartition(": ")[2] for note in seen.notes} - {"latencies there are estimates without bounds"} == {
        cure
    }


@pytest.mark.parametrize(("rate", "waits"), [(10, 0), (40, 2)], ids=["named too long at once", "too long together"])
def test_a_commit_log_that_a_quota_never_lets_through_fails_the_snapshot_with_the_cure(
    kafka_classes: None, waited: list[float], monkeypatch: pytest.MonkeyPatch, rate: int, waits: int
) -> None:
    monkeypatch.setattr(fetch, "PATIENCE_S", 3)
    with Broker() as broker:
        name = batches_of_12_kb(broker)
        limit(broker, rate)

        with pytest.raises(
            KafkaUnreachable,
            match="quota of this client is used up; raise its consumer_byte_rate or request_percentage",
        ):
            look(broker, this_minute(), name, live=True)

    assert len(waited) >= waits
    assert sum(waited) <= 3


def test_requests_behind_one_that_is_withheld_for_long_are_given_up_for_the_same_cause(
    kafka_classes: None, waited: list[float]
) -> None:
    with Broker() as broker:
        name = batches_of_12_kb(broker)
        limit(broker, 1)
        with Client(Cluster("test", "kafka_test"), Connection("kafka_test", extra=dict(broker.client()))) as client:
            (node,) = client.brokers
            places = [fetch.FetchPosition(node, TopicPartition(name, partition), 0) for partition in range(3)]
            answers = fetch.fetched(client, places, fetch.ONE_BATCH)  # one request each, sent together

    assert [type(answer) for answer in answers] == [QuotaUsedUp] * 3
    assert waited == []
