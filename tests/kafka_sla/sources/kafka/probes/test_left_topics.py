"""What `check` says about topics that a group has left, on a real broker."""

from __future__ import annotations

from demo.broker import Cluster as Broker
from kafka_sla.model.entities import Cluster, Connection
from kafka_sla.sources.kafka.probes.capabilities import Finding
from kafka_sla.sources.kafka.probes.permissions import probe
from kafka_sla.text.name_patterns import parse_patterns
from tests.kafka_sla.sources.kafka.traffic import commit, joined, produce, topic, wait_for


def left(broker: Broker, group: str) -> list[Finding]:
    cluster = Cluster("test", "kafka_test", groups=parse_patterns([group]))
    findings = probe(cluster, Connection("kafka_test", extra=dict(broker.client())))
    return [finding for finding in findings if "left by their groups" in finding.text]


def test_a_topic_that_no_member_is_assigned_to_is_named_with_what_to_do(kafka: Broker) -> None:
    read, abandoned = topic(kafka), topic(kafka)
    group = f"g-{read}"
    for name in (read, abandoned):
        produce(kafka, name, [0])
        commit(kafka, group, name, 1)
    assert left(kafka, group) == []

    consumer = joined(kafka, group, read)
    wait_for(lambda: bool(consumer.poll(0.1) or left(kafka, group)))
    (finding,) = left(kafka, group)
    consumer.close()

    assert finding.ok
    assert finding.text.endswith(f"(for instance group {group} on {abandoned})")
    assert f"--delete-offsets --group {group} --topic {abandoned}" in str(finding.cure)
    assert left(kafka, group) == []
