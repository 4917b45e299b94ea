"""The door to Kafka: what a cluster knows of an interval, or keeps us from reading. Knows no store and no Spark."""

from kafka_sla.sources.kafka.mm2_offsets import read_flow
from kafka_sla.sources.kafka.permissions import Finding, probe
from kafka_sla.sources.kafka.snapshot import LOOK_BACK, Snapshot, snapshot

__all__ = ["LOOK_BACK", "Finding", "Snapshot", "probe", "read_flow", "snapshot"]
