"""Consumer groups: who is there, in which state, and what each has committed now. Knows no log and no past."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaError,
    NoError,
    NotCoordinatorError,
    for_code,
)
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import OffsetFetchRequest

from kafka_sla.kafka.client import Ask, Client
from kafka_sla.kafka.diagnosis import words_of
from kafka_sla.kafka.topics import TopicPartition
from kafka_sla.model import Patterns

_MOVING = (NotCoordinatorError, CoordinatorLoadInProgressError, CoordinatorNotAvailableError)
_ATTEMPTS = 4
_OfGroup = OffsetFetchRequest.OffsetFetchRequestGroup
_GROUPS_PER_REQUEST = 500


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    type: str
    """classic, consumer (KIP-848), share or streams; brokers before 3.8 know only the first and do not say so."""
    state: str
    coordinator: int

    @property
    def commits(self) -> bool:
        """Share groups acknowledge single records: they have no position that could be compared with a log end."""
        return self.type != "share"


@dataclass(frozen=True, slots=True)
class Committed:
    """Next offset to read per group and partition, and a note for what could not be read."""

    offsets: dict[str, dict[TopicPartition, int]]
    notes: list[str]


def list_groups(client: Client, wanted: Patterns) -> list[Group]:
    """The groups that match and may be seen. Each broker lists those that it coordinates."""
    brokers = client.brokers
    answers = client.ask([Ask(node, ListGroupsRequest()) for node in brokers])
    found = {}
    for node, answer in zip(brokers, answers, strict=True):
        _raise_error(answer)
        for listed in answer.groups:
            if wanted.matches(listed.group_id):
                kind = (getattr(listed, "group_type", "") or "classic").lower()
                found[listed.group_id] = Group(listed.group_id, kind, listed.group_state or "Unknown", node)
    return [found[name] for name in sorted(found)]


def count_members(client: Client, groups: Iterable[Group]) -> dict[str, int]:
    """Members of classic groups. Others are left out: this request shows KIP-848 groups as dead."""
    asks = [
        Ask(node, DescribeGroupsRequest(groups=names, include_authorized_operations=False))
        for node, names in _requests([group for group in groups if group.type == "classic"])
    ]
    answers = [answer for answer in client.ask(asks) if not isinstance(answer, KafkaError)]
    return {
        group.group_id: len(group.members) for answer in answers for group in answer.groups if group.error_code == 0
    }


def read_committed(client: Client, groups: Sequence[Group], topics: Patterns) -> Committed:
    """What each group has committed, in one request per coordinator.

    A group whose coordinator moves is asked again after looking where it went; any other error costs only that group.
    """
    offsets: dict[str, dict[TopicPartition, int]] = {}
    failed: dict[str, KafkaError] = {}
    waiting = [group for group in groups if group.commits]
    for attempt in range(_ATTEMPTS):
        if not waiting:
            break
        if attempt:
            client.pause(0.1 * 2**attempt)
            listed = {group.name: group for group in list_groups(client, Patterns())}
            waiting = [listed[group.name] for group in waiting if group.name in listed]
        failed |= _fetch(client, waiting, topics, offsets)
        waiting = [group for group in waiting if isinstance(failed.get(group.name), _MOVING)]
    return Committed(offsets, _notes({name: error for name, error in failed.items() if name not in offsets}))


def _fetch(
    client: Client, groups: Sequence[Group], topics: Patterns, offsets: dict[str, dict[TopicPartition, int]]
) -> dict[str, KafkaError]:
    """Adds to `offsets` what the coordinators answer; returns the errors by group."""
    requests = _requests(groups)
    asks = [
        Ask(node, OffsetFetchRequest(groups=[_OfGroup(group_id=name, topics=None) for name in names],
                                     min_version=8, max_version=8))
        for node, names in requests
    ]  # fmt: skip
    failed: dict[str, KafkaError] = {}
    matching: dict[str, bool] = {}
    for (_, names), answer in zip(requests, client.ask(asks), strict=True):
        if isinstance(answer, KafkaError):
            failed |= dict.fromkeys(names, _as_moving(answer))
            continue
        for group in answer.groups:
            if group.error_code:
                failed[group.group_id] = for_code(group.error_code)()
            else:
                offsets[group.group_id] = _positions(group, topics, matching)
    return failed


def _positions(group: Any, topics: Patterns, matching: dict[str, bool]) -> dict[TopicPartition, int]:
    found = {}
    for topic in group.topics:
        if topic.name not in matching:
            matching[topic.name] = topics.matches(topic.name)
        if matching[topic.name]:
            for partition in topic.partitions:
                if partition.committed_offset >= 0 and not partition.error_code:
                    found[TopicPartition(topic.name, partition.partition_index)] = int(partition.committed_offset)
    return found


def _requests(groups: Sequence[Group]) -> list[tuple[int, list[str]]]:
    """Group names per coordinator, in requests of a size that a broker answers at once."""
    by_node: dict[int, list[str]] = {}
    for group in groups:
        by_node.setdefault(group.coordinator, []).append(group.name)
    return [
        (node, names[start : start + _GROUPS_PER_REQUEST])
        for node, names in by_node.items()
        for start in range(0, len(names), _GROUPS_PER_REQUEST)
    ]


def _as_moving(error: KafkaError) -> KafkaError:
    """A coordinator that does not answer at all may have been replaced: its groups are looked for again."""
    return CoordinatorNotAvailableError(words_of(error)) if error.retriable else error


def _raise_error(answer: Any) -> None:
    if isinstance(answer, KafkaError):
        raise answer
    error = for_code(answer.error_code)
    if error is not NoError and not issubclass(error, _MOVING):
        raise error()


def _notes(failed: dict[str, KafkaError]) -> list[str]:
    by_cause = Counter(words_of(error) for error in failed.values())
    return [
        f"{count} groups have no committed offsets in this snapshot: {cause}"
        f" (for instance {min(name for name, error in failed.items() if words_of(error) == cause)!r});"
        " a group may be read with READ or DESCRIBE permission on it"
        for cause, count in sorted(by_cause.items())
    ]
