"""Clusters of which a login sees nothing: refused where that is certain, else a warning. Reads no fact."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kafka_sla.config.settings import Settings
from kafka_sla.model.entities import Cluster, Patterns
from kafka_sla.sources.external_offsets import Login
from kafka_sla.sources.kafka.probes.named import check_visible
from kafka_sla.text.name_patterns import plain_names


class Sight(Protocol):
    """What was looked at, by a snapshot or between two."""

    @property
    def sees_topics(self) -> bool: ...

    @property
    def sees_consumers(self) -> bool: ...


def blindness(settings: Settings, cluster: Cluster, login: Login, found: Sight) -> list[str]:
    """What measuring is worth less for, though nothing failed; KafkaUnreachable where what is named is hidden."""
    if not found.sees_topics:
        _check_named(settings, cluster, login)
    return _unseen(found)


def _check_named(settings: Settings, cluster: Cluster, login: Login) -> None:
    """KafkaUnreachable where a cluster that shows no topic hides one that is named, or a group: its interval must not
    count as covered. Where all is selected by patterns, a hidden cluster cannot be told from one that is new and empty:
    its run goes on, with a warning. Groups whose positions are kept elsewhere need no rights here."""
    slas = [sla for sla in settings.slas if sla.cluster == cluster.name]
    elsewhere = {flow.name for flow in cluster.replication} | {one.group for one in cluster.checkpoints}
    topics = _named([cluster.topics, *(sla.topics for sla in slas)], cluster.topics)
    groups = _named([cluster.groups, *(sla.groups for sla in slas)], cluster.groups) - elsewhere
    if topics or groups:
        check_visible(cluster, login(str(cluster.connection)), sorted(topics), sorted(groups))


def _named(selected: Iterable[Patterns], measured: Patterns) -> set[str]:
    """Names that are given plainly, and measured."""
    return {name for patterns in selected for name in plain_names(patterns) or () if measured.matches(name)}


def _unseen(found: Sight) -> list[str]:
    kinds = (("topics", found.sees_topics), ("groups", found.sees_consumers))
    hidden = [kind for kind, seen in kinds if not seen]
    if not hidden:
        return []
    return [
        f"{' and '.join(f'0 {kind}' for kind in hidden)} are seen, so no consumer is measured; if the cluster has some,"
        " correct the configuration, or grant the login"
        f" {' and '.join(f'DESCRIBE on the {kind}' for kind in hidden)}"
    ]
