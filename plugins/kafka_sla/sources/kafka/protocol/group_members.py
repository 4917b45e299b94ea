"""Who is in a group and reads which partitions, asked of each kind of group in its own words."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafka.errors import KafkaError

from kafka_sla.sources.kafka.protocol.client import Ask, Client
from kafka_sla.sources.kafka.protocol.groups import Group, by_coordinator
from kafka_sla.sources.kafka.protocol.kafka_python import (
    ConsumerGroupDescribeRequest,
    ConsumerProtocolAssignment,
    DescribeGroupsRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)
from kafka_sla.sources.kafka.protocol.topics import Topic

_REQUESTS: dict[str, Callable[[Sequence[str]], Any]] = {
    "classic": lambda names: DescribeGroupsRequest(groups=names, include_authorized_operations=False),
    "consumer": lambda names: ConsumerGroupDescribeRequest(group_ids=names, include_authorized_operations=False),
    "share": lambda names: ShareGroupDescribeRequest(group_ids=names, include_authorized_operations=False),
    "streams": lambda names: StreamsGroupDescribeRequest(group_ids=names, include_authorized_operations=False),
}
"""The classic request would show groups of the other kinds as dead."""
_CONSUMERS = ("consumer", "")
"""Protocols of classic groups whose members are consumers: what Connect's workers share out are no partitions."""


class Member(NamedTuple):
    id: str
    client: str
    host: str
    partitions: dict[str, tuple[int, ...]] | None
    """By topic; None: not known."""


def describe_members(client: Client, groups: Iterable[Group], topics: Mapping[str, Topic]) -> dict[str, list[Member]]:
    """Members by group; groups of unknown kinds, and those that may not be described, are left out. `topics`: those
    that are looked at."""
    known = [group for group in groups if group.type in _REQUESTS]
    asks = [
        Ask(node, request(names))
        for kind, request in _REQUESTS.items()
        for node, names in by_coordinator([group for group in known if group.type == kind])
    ]
    answers = [answer for answer in client.ask(asks) if not isinstance(answer, KafkaError)]
    return {
        group.group_id: [_member(group, member, topics) for member in group.members]
        for answer in answers
        for group in answer.groups
        if group.error_code == 0
    }


def _member(group: Any, member: Any, topics: Mapping[str, Topic]) -> Member:
    host = str(member.client_host).removeprefix("/")
    return Member(str(member.member_id), str(member.client_id), host, _partitions(group, member, topics))


def _partitions(group: Any, member: Any, topics: Mapping[str, Topic]) -> dict[str, tuple[int, ...]] | None:
    """A classic group's assignment is bytes that its own leader wrote, which the broker never read."""
    if hasattr(group, "topology"):
        return _of_tasks(group.topology, member.assignment.active_tasks, topics)
    if not hasattr(member, "member_assignment"):
        return {each.topic_name: tuple(each.partitions) for each in member.assignment.topic_partitions}
    if group.protocol_type not in _CONSUMERS:
        return None
    if not member.member_assignment:
        return {}
    try:
        assigned = ConsumerProtocolAssignment.decode(member.member_assignment).assigned_partitions
    except (struct.error, ValueError, IndexError, TypeError):
        return None
    return {each.topic: tuple(each.partitions) for each in assigned}


def _of_tasks(topology: Any, active: Iterable[Any], topics: Mapping[str, Topic]) -> dict[str, tuple[int, ...]]:
    """Task n of a subtopology reads partition n of each of its topics, of those that have so many. Standby and warm-up
    tasks read changelogs, which nobody commits."""
    reads = {
        part.subtopology_id: [*part.source_topics, *(each.name for each in part.repartition_source_topics)]
        for part in (topology and topology.subtopologies) or ()
    }
    found: dict[str, set[int]] = defaultdict(set)
    for tasks in active:
        for name in reads.get(tasks.subtopology_id, ()):
            there = topics[name].leaders.keys() if name in topics else tasks.partitions
            found[name].update(number for number in tasks.partitions if number in there)
    return {name: tuple(sorted(partitions)) for name, partitions in found.items() if partitions}
