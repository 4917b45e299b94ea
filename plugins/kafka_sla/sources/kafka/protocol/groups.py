"""Consumer groups: who is there, in which state, and what each has committed now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from kafka.errors import (
    AuthorizationError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    KafkaError,
    NoError,
    NotCoordinatorError,
    UnsupportedVersionError,
    for_code,
)

from kafka_sla.model.entities import Patterns
from kafka_sla.sources.kafka.protocol.client import TAKE_OVER_S, Ask, Client
from kafka_sla.sources.kafka.protocol.connection_errors import words_of
from kafka_sla.sources.kafka.protocol.kafka_python import ListGroupsRequest, OffsetFetchRequest
from kafka_sla.sources.kafka.protocol.partition_messages import MANY_GROUPS, GroupOffsets, of_one, offset_fetch
from kafka_sla.text.name_patterns import plain_names

_MOVING = (NotCoordinatorError, CoordinatorLoadInProgressError, CoordinatorNotAvailableError)
_GROUPS_PER_REQUEST = 500
ALL_TOPICS = 2
"""The version of OffsetFetch from which on it takes a group without its topics."""
_NOT_SPOKEN = (UnsupportedVersionError, IncompatibleBrokerVersion, KafkaConnectionError)
"""What brokers do that say they know a version and do not: answer so, or hang up."""


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


Offsets = list[tuple[str, npt.NDArray[np.int32], npt.NDArray[np.int64]]]
"""Of some topics: numbers of partitions, and the next offset to read in each."""


@dataclass(frozen=True, slots=True)
class Committed:
    """Next offsets to read by group, and a note for what could not be read."""

    offsets: dict[str, Offsets]
    notes: list[str]

    def by_topic(self) -> Iterator[tuple[str, str, npt.NDArray[np.int32], npt.NDArray[np.int64]]]:
        """Group, topic, numbers of partitions, and the next offset to read in each."""
        for group, of_topics in self.offsets.items():
            for of_topic in of_topics:
                yield group, *of_topic


def list_groups(client: Client, wanted: Patterns) -> list[Group]:
    """The groups that match and may be seen. Each broker lists those that it coordinates.

    A broker that is taking over groups lists what it has so far, and says so: all are asked again until none says so,
    because a group that is missing in the list would be missing in the snapshot without a word.
    """
    found: dict[str, Group] = {}
    moving = _list(client, wanted, found)
    for pause_s in TAKE_OVER_S:
        if moving is None:
            break
        client.pause(pause_s)
        moving = _list(client, wanted, found)
    if moving:
        raise moving
    return [found[name] for name in sorted(found)]


def _list(client: Client, wanted: Patterns, found: dict[str, Group]) -> KafkaError | None:
    """Adds to `found` what the brokers list; returns why the list is not whole, raises what waiting does not cure."""
    moving = None
    brokers = client.brokers
    for node, answer in zip(brokers, client.ask([Ask(node, ListGroupsRequest()) for node in brokers]), strict=True):
        if error := _error(answer):
            moving = error
        for listed in () if isinstance(answer, KafkaError) else answer.groups:
            if wanted.matches(listed.group_id):
                kind = (getattr(listed, "group_type", "") or "classic").lower()
                found[listed.group_id] = Group(listed.group_id, kind, listed.group_state or "Unknown", node)
    return moving


def see_groups(client: Client, wanted: Patterns, topics: Patterns) -> tuple[list[Group], Committed]:
    """The groups that match, with what each has committed.

    They are listed before and after: a group whose coordinator moves is for a moment on no broker's list, and no broker
    says so.
    """
    seen: dict[str, Group] = {}
    committed = Committed({}, [])
    while new := [group for group in list_groups(client, wanted) if group.name not in seen]:
        seen |= {group.name: group for group in new}
        more = read_committed(client, new, topics)
        committed = Committed(committed.offsets | more.offsets, [*committed.notes, *more.notes])
    for group, positions in _unlisted(client, [name for name in plain_names(wanted) or () if name not in seen], topics):
        seen[group.name] = group
        committed.offsets[group.name] = positions
    return [seen[name] for name in sorted(seen)], committed


def _unlisted(client: Client, names: Sequence[str], topics: Patterns) -> Iterator[tuple[Group, Offsets]]:
    """Those of the named groups that no broker lists and one knows positions of: some services list running groups
    only. All are asked, for the request that finds a coordinator may create a topic."""
    for node in client.brokers if names else ():
        for name, answer in _answers(client, [Group(name, "classic", "Unknown", node) for name in names]):
            answered = not isinstance(answer, KafkaError) and not answer.error_code
            if answered and (positions := _positions(answer, topics, {})):
                yield Group(name, "classic", "Unknown", node), positions


def hidden_groups(client: Client, names: Iterable[str]) -> list[str]:
    """Those of the named groups that the login may not see, whether or not there are such groups. Any broker knows:
    it looks at rights before it looks whose the group is."""
    named = [Group(name, "classic", "Unknown", client.brokers[0]) for name in names]
    return [name for name, answer in _answers(client, named) if isinstance(_error_in(answer), AuthorizationError)]


def _error_in(answer: Any) -> BaseException:
    error: BaseException = answer if isinstance(answer, KafkaError) else for_code(answer.error_code)()
    return error


def read_committed(client: Client, groups: Sequence[Group], topics: Patterns) -> Committed:
    """What each group has committed, in one request per coordinator.

    A group whose coordinator moves is asked again after looking where it went; any other error costs only that group.
    """
    offsets: dict[str, Offsets] = {}
    failed: dict[str, KafkaError] = {}
    waiting = _fetch(client, [group for group in groups if group.commits], topics, offsets, failed)
    for pause_s in TAKE_OVER_S:
        if not waiting:
            break
        client.pause(pause_s)
        listed = {group.name: group for group in list_groups(client, Patterns())}
        again = _fetch(client, [listed[g.name] for g in waiting if g.name in listed], topics, offsets, failed)
        waiting = again + [group for group in waiting if group.name not in listed]
    return Committed(offsets, _notes({name: error for name, error in failed.items() if name not in offsets}))


def _fetch(
    client: Client,
    groups: Sequence[Group],
    topics: Patterns,
    offsets: dict[str, Offsets],
    failed: dict[str, KafkaError],
) -> list[Group]:
    """Adds what the coordinators answer to `offsets` or `failed`; returns the groups whose coordinator moves."""
    matching: dict[str, bool] = {}
    for name, answer in _answers(client, groups):
        if isinstance(answer, KafkaError):
            failed[name] = _as_moving(answer)
        elif answer.error_code:
            failed[name] = for_code(answer.error_code)()
        else:
            offsets[name] = _positions(answer, topics, matching)
    return [g for g in groups if g.name not in offsets and isinstance(failed.get(g.name), _MOVING)]


def _answers(client: Client, groups: Sequence[Group]) -> Iterator[tuple[str, Any]]:
    """What the coordinators answer, by group: in few requests where they can, else in one for each group."""
    alone = {group.name: group for group in groups}
    if client.versions(OffsetFetchRequest)[1] >= MANY_GROUPS:
        requests = by_coordinator(groups)
        asks = [Ask(node, offset_fetch(names)) for node, names in requests]
        for (_, names), answer in zip(requests, client.ask(asks), strict=True):
            if isinstance(answer, _NOT_SPOKEN):
                continue
            parts = dict.fromkeys(names, answer) if isinstance(answer, KafkaError) else _parts(answer)
            for name, part in parts.items():
                alone.pop(name, None)
                yield name, part
    asks = [Ask(group.coordinator, _of_one(name)) for name, group in alone.items()]
    yield from zip(alone, client.ask(asks), strict=True)


def _parts(answer: Any) -> dict[str, Any]:
    return {group.group_id: group for group in answer.groups}


def _of_one(name: str) -> Any:
    return OffsetFetchRequest(group_id=name, topics=None, min_version=ALL_TOPICS, max_version=MANY_GROUPS - 1)


def _positions(group: Any, topics: Patterns, matching: dict[str, bool]) -> Offsets:
    found = []
    for topic, rows in (group if isinstance(group, GroupOffsets) else of_one(group)).topics:
        if topic not in matching:
            matching[topic] = topics.matches(topic)
        known = (rows["offset"] >= 0) & (rows["error"] == 0)
        if matching[topic] and known.any():
            found.append((topic, rows["partition"][known], rows["offset"][known]))
    return found


def by_coordinator(groups: Sequence[Group]) -> list[tuple[int, list[str]]]:
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


def _error(answer: Any) -> KafkaError | None:
    """What keeps an answer from being whole, if it heals by itself; anything else is raised."""
    error = answer if isinstance(answer, KafkaError) else for_code(answer.error_code)()
    if isinstance(error, NoError):
        return None
    if not error.retriable:
        raise error
    return error


def _notes(failed: dict[str, KafkaError]) -> list[str]:
    by_cause = Counter(words_of(error) for error in failed.values())
    return [
        f"{count} groups have no committed offsets in this snapshot: {cause}"
        f" (for instance {min(name for name, error in failed.items() if words_of(error) == cause)!r});"
        " a group may be read with READ or DESCRIBE permission on it"
        for cause, count in sorted(by_cause.items())
    ]
