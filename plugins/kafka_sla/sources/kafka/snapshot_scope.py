"""What one pass over a cluster is about: its topics and settings, its interval and patterns. Observes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_sla.model.entities import Interval, Patterns
from kafka_sla.sources.kafka.committed_positions import ReaderNumbers
from kafka_sla.sources.kafka.protocol.client import Client
from kafka_sla.sources.kafka.protocol.list_offsets import Offsets
from kafka_sla.sources.kafka.protocol.topics import Topic, TopicConfig, read_configs, read_topics


@dataclass(frozen=True, slots=True)
class SnapshotScope:
    """What one pass is about and asks with."""

    client: Client
    interval: Interval
    groups: Patterns
    matching: Patterns
    """Which topics."""
    topics: Mapping[str, Topic]
    configs: Mapping[str, TopicConfig]
    offsets: Offsets
    numbers: ReaderNumbers
    notes: list[str]
    since: int
    """From when on commits are read (ms)."""

    def may_be_compacted(self, topic: str) -> bool:
        """True also where the settings may not be read."""
        return topic not in self.configs or self.configs[topic].compacted


def scope_of(client: Client, interval: Interval, groups: Patterns, matching: Patterns, since: int) -> SnapshotScope:
    """Reads the topics and their settings."""
    topics = read_topics(client, matching)
    configs, refused = read_configs(client, topics)
    notes = [f"{refused.text}; {refused.cure}"] if refused else []
    if not topics:
        notes.append(
            "no topic matches, or none may be seen: correct the configuration, or grant DESCRIBE on the topics"
        )
    offsets, numbers = Offsets(client, topics), ReaderNumbers()
    return SnapshotScope(client, interval, groups, matching, topics, configs, offsets, numbers, notes, since)
