"""How many members groups have, asked of each kind of group in its own words. Knows no offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kafka.errors import KafkaError

from kafka_sla.sources.kafka.protocol.client import Ask, Client
from kafka_sla.sources.kafka.protocol.groups import Group, by_coordinator
from kafka_sla.sources.kafka.protocol.kafka_python import (
    ConsumerGroupDescribeRequest,
    DescribeGroupsRequest,
    ShareGroupDescribeRequest,
)

_REQUESTS: dict[str, Callable[[Sequence[str]], Any]] = {
    "classic": lambda names: DescribeGroupsRequest(groups=names, include_authorized_operations=False),
    "consumer": lambda names: ConsumerGroupDescribeRequest(group_ids=names, include_authorized_operations=False),
    "share": lambda names: ShareGroupDescribeRequest(group_ids=names, include_authorized_operations=False),
}
"""The classic request would show groups of the other kinds as dead."""


def count_members(client: Client, groups: Iterable[Group]) -> dict[str, int]:
    """Members by group; groups of unknown kinds, and those that may not be described, are left out."""
    known = [group for group in groups if group.type in _REQUESTS]
    asks = [
        Ask(node, request(names))
        for kind, request in _REQUESTS.items()
        for node, names in by_coordinator([group for group in known if group.type == kind])
    ]
    answers = [answer for answer in client.ask(asks) if not isinstance(answer, KafkaError)]
    return {
        group.group_id: len(group.members) for answer in answers for group in answer.groups if group.error_code == 0
    }
