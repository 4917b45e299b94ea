"""A client whose quota is used up gets answers without records: a snapshot waits, and goes without nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from kafka.protocol.admin import AlterClientQuotasRequest

from demo.broker import Cluster as Broker
from kafka_sla.kafka.client import Client
from kafka_sla.model import Cluster, Connection, epoch_ms
from tests.kafka_sla.kafka.traffic import commit, look, produce, this_minute, topic

_Entry = AlterClientQuotasRequest.EntryData


def limit(broker: Broker, bytes_a_second: float) -> None:
    """Let clients of our name fetch so much."""
    entity = _Entry.EntityData(entity_type="client-id", entity_name="kafka-sla")
    rate = _Entry.OpData(key="consumer_byte_rate", value=bytes_a_second, remove=False)
    request = AlterClientQuotasRequest(entries=[_Entry(entity=[entity], ops=[rate])], validate_only=False)
    with Client(Cluster("test", "kafka_test"), Connection("kafka_test", extra=dict(broker.client()))) as client:
        (entry,) = client.ask_one(request).entries
    assert entry.error_code == 0, entry.error_message


def test_a_snapshot_waits_for_a_broker_that_withholds_records(
    kafka_classes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited, sleep = [], Client.sleep
    monkeypatch.setattr(Client, "sleep", lambda self, seconds: waited.append(seconds) or sleep(self, seconds))
    with Broker() as broker:
        name, now = topic(broker, partitions=3), epoch_ms(datetime.now(UTC))
        for partition in range(3):
            produce(broker, name, [now - 8_000 + 10 * index - 700 * (index % 2) for index in range(400)], partition)
            commit(broker, "g", name, 400, partition)
        limit(broker, 2_000)

        seen = look(broker, this_minute(), name, live=True)

    assert waited, "the broker withheld nothing"
    assert seen.commit_records.num_rows == 3
    assert seen.notes == ()
