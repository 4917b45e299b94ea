"""A broker that answers at its bootstrap address and advertises a name that cannot be resolved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.broker import Cluster as Broker
from kafka_sla.errors import KafkaUnreachable
from kafka_sla.model.entities import Cluster, Connection, OffsetLookups, Patterns
from kafka_sla.sources.kafka.probes.permissions import probe
from kafka_sla.sources.kafka.snapshot import snapshot
from tests.kafka_sla.sources.kafka.traffic import this_minute

HOST = "kafka-0.kafka-headless.invalid"


@pytest.fixture(scope="module")
def outside(kafka_classes: None) -> Iterator[Connection]:
    with Broker(advertised_host=HOST) as broker:
        yield Connection("kafka_out", extra={"bootstrap.servers": broker.outside_bootstrap})


def test_check_names_the_advertised_name_and_what_to_do(outside: Connection) -> None:
    finding = probe(Cluster("out", "kafka_out"), outside)[-1]

    assert f"broker 0 advertises {HOST}:" in finding.text
    assert "(advertised.listeners)" in finding.text
    assert finding.cure.startswith("set advertised.listeners of the broker to an address that this machine can reach")


def test_a_snapshot_names_the_advertised_name_and_what_to_do(outside: Connection) -> None:
    with pytest.raises(KafkaUnreachable) as raised:
        snapshot(
            Cluster("out", "kafka_out"),
            outside,
            this_minute(),
            window_ms=10_000,
            groups=Patterns(),
            topics=Patterns(),
            live=True,
            offset_lookups=OffsetLookups(),
        )
    assert f"the name {HOST!r} cannot be resolved here; set advertised.listeners" in str(raised.value)
