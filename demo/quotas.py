"""Quotas of a broker for the clients of kafka_sla."""

from __future__ import annotations

import uuid

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka.protocol.admin import AlterClientQuotasRequest

from demo.broker import Cluster as Broker
from demo.warm_up import create_topic
from kafka_sla.model.entities import Cluster, Connection
from kafka_sla.sources.kafka.protocol.client import Client

_Entry = AlterClientQuotasRequest.EntryData


def limit(broker: Broker, rate: float, kind: str = "consumer_byte_rate") -> None:
    """Let clients of our name fetch so many bytes a second, or use so many percent of a broker's thread
    (`request_percentage`), from now on."""
    entity = _Entry.EntityData(entity_type="client-id", entity_name="kafka-sla")
    operation = _Entry.OpData(key=kind, value=rate, remove=False)
    request = AlterClientQuotasRequest(entries=[_Entry(entity=[entity], ops=[operation])], validate_only=False)
    with Client(Cluster("demo", "kafka_demo"), Connection("kafka_demo", extra=dict(broker.client()))) as client:
        (entry,) = client.ask_one(request).entries
    assert entry.error_code == 0, entry.error_message
    # A broker takes what changed in order, and shows a topic before it heeds a quota that came with it.
    admin = AdminClient({**broker.client(), "log_level": 0})
    for _ in range(2):
        create_topic(admin, NewTopic(f"after-a-quota-{uuid.uuid4().hex}", 1, 1))
