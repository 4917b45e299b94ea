"""The door to Kafka: what a cluster knows of an interval, or keeps us from reading. Knows no store and no Spark."""

from kafka_sla.kafka.mirror import read_flow
from kafka_sla.kafka.probe import Finding, probe
from kafka_sla.kafka.snapshot import Snapshot, snapshot

__all__ = ["Finding", "Snapshot", "probe", "read_flow", "snapshot"]
