"""Quotas of a broker for the clients of kafka_sla. Knows no request that is throttled."""

from __future__ import annotations

from kafka.protocol.admin import AlterClientQuotasRequest

from demo.broker import Cluster as Broker
from kafka_sla.model.entities import Cluster, Connection
from kafka_sla.sources.kafka.protocol.client import Client

_Entry = AlterClientQuotasRequest.EntryData


def limit(broker: Broker, rate: float, kind: str = "consumer_byte_rate") -> None:
    """Let clients of our name fetch so many bytes a second, or use so many percent of a broker's thread
    (`request_percentage`)."""
    entity = _Entry.EntityData(entity_type="client-id", entity_name="kafka-sla")
    operation = _Entry.OpData(key=kind, value=rate, remove=False)
    request = AlterClientQuotasRequest(entries=[_Entry(entity=[entity], ops=[operation])], validate_only=False)
    with Client(Cluster("demo", "kafka_demo"), Connection("kafka_demo", extra=dict(broker.client()))) as client:
        (entry,) = client.ask_one(request).entries
    assert entry.error_code == 0, entry.error_message
