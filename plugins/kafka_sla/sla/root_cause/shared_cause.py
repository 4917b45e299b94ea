"""Which misses have one cause in common, and what to call it: brokers, a replication flow, a topic or a consumer group.
Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kafka_sla.model.entities import FOREVER, Miss
from kafka_sla.sla.root_cause.classify import brokers_became_slow

MOST = 3
"""Causes that are reported one by one; where a cluster shows more at once, they are reported together."""
_OWN = ("rewound", "no_members", "stalled")
"""Causes that slow brokers do not bring about."""


@dataclass(frozen=True, slots=True, order=True)
class SharedCause:
    """What misses have in common."""

    key: str
    """The same for every miss that shares it."""
    words: str
    """`slow brokers of cluster prod`."""


def shared_cause(miss: Miss) -> SharedCause:
    """The cause of one miss as others may share it."""
    found, cluster = miss.evidence, miss.cluster
    cause = found.get("cause", "unclear")
    if cause not in _OWN and _brokers_slow(found):
        return SharedCause(f"{cluster} brokers", f"slow brokers of cluster {cluster}")
    flow = found.get("replication_flow")
    if cause == "replication" and flow:
        return SharedCause(f"{cluster} flow {flow}", f"late replication by {flow} into cluster {cluster}")
    if cause == "produce_rate_jumped":
        return SharedCause(f"{cluster} produced {miss.worst_topic}", f"more records produced to {miss.worst_topic}")
    if cause == "records_expired":
        return SharedCause(f"{cluster} expired {miss.worst_topic}", f"expired records of {miss.worst_topic}")
    if not miss.worst_group:
        return SharedCause(f"{cluster} unclear", f"no cause that stands out in cluster {cluster}")
    return SharedCause(f"{cluster} group {miss.worst_group}", f"consumer group {miss.worst_group}")


def shared_causes(misses: Sequence[Miss]) -> list[str]:
    """A name for the cause of each, in their order, the same for those that share it at the same time. A cause that
    comes twice is two causes, of which the last has the plain name: it may go on."""
    names: dict[int, str] = {}
    groups = sorted(_groups(misses), key=lambda group: max(_end(misses[i]) for i in group[1]), reverse=True)
    for key, group in groups:
        first = min(misses[i].start for i in group)
        names |= dict.fromkeys(group, f"{key} {first:%FT%T}" if key in names.values() else key)
    return [names[i] for i in range(len(misses))]


def _groups(misses: Sequence[Miss]) -> Iterator[tuple[str, list[int]]]:
    """Key and misses of each cause; of a cluster where more than MOST show at once, all of them."""
    causes = [shared_cause(miss).key for miss in misses]
    for cluster in sorted({miss.cluster for miss in misses}):
        for episode in _episodes(misses, [i for i, miss in enumerate(misses) if miss.cluster == cluster]):
            different = sorted({causes[i] for i in episode})
            if len(different) > MOST:
                yield cluster, episode
                continue
            for key in different:
                for group in _episodes(misses, [i for i in episode if causes[i] == key]):
                    yield key, group


def _episodes(misses: Sequence[Miss], which: Sequence[int]) -> list[list[int]]:
    """These misses by time: each overlaps another one of its episode."""
    found: list[list[int]] = []
    until = datetime.min.replace(tzinfo=UTC)
    for i in sorted(which, key=lambda i: misses[i].start):
        if misses[i].start > until or not found:
            found.append([])
        found[-1].append(i)
        until = max(until, _end(misses[i]))
    return found


def _end(miss: Miss) -> datetime:
    return miss.end or FOREVER


def common_words(misses: Sequence[Miss]) -> str:
    """What to call the cause of misses that are one message."""
    words = {shared_cause(miss).words for miss in misses}
    return words.pop() if len(words) == 1 else f"{len(words)} causes in cluster {misses[0].cluster}"


def _brokers_slow(found: dict[str, Any]) -> bool:
    return brokers_became_slow(found.get("broker_verdict"), found.get("broker_verdict_before"))
