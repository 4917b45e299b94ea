"""Groups that have committed offsets on topics that none of their members reads any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafka_sla.sources.kafka.probes.capabilities import Finding
from kafka_sla.sources.kafka.protocol.client import Client
from kafka_sla.sources.kafka.protocol.group_members import Member, describe_members
from kafka_sla.sources.kafka.protocol.groups import Committed, Group
from kafka_sla.sources.kafka.protocol.topics import Topic
from kafka_sla.text.formatting import plural


def left_topics(
    client: Client, groups: Sequence[Group], committed: Committed, topics: Mapping[str, Topic]
) -> Iterator[Finding]:
    """A finding where stable groups have offsets on some of these topics, but no member assigned to them."""
    stable = [group for group in groups if group.commits and group.state == "Stable"]
    assigned = {name: _assigned(members) for name, members in describe_members(client, stable, topics).items()}
    left = sorted(
        (group, topic)
        for group, topic, _, _ in committed.by_topic()
        if topic in topics and assigned.get(group) and topic not in assigned[group]
    )
    if left:
        group, topic = left[0]
        yield Finding(
            True,
            f"{plural(len(left), 'topic')} left by their groups: committed offsets remain, but no member is assigned"
            f" (for instance group {group} on {topic})",
            "their records count as waiting: exclude such a topic in the SLA, or delete its offsets:"
            f" kafka-consumer-groups.sh --delete-offsets --group {group} --topic {topic}",
        )


def _assigned(members: Sequence[Member]) -> set[str]:
    """The topics that are assigned to these members; empty where one's assignment is not known."""
    if any(member.partitions is None for member in members):
        return set()
    return {topic for member in members for topic in member.partitions or {}}
