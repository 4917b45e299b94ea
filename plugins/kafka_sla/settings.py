"""The configuration file, parsed once to frozen values or refused with every mistake. Knows no Airflow, no Kafka."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka_sla.errors import SettingsError
from kafka_sla.maintenance import parse_maintenance
from kafka_sla.model import Cluster, LookUps, Notifier, Patterns, Sla, SteadyState
from kafka_sla.patterns import parse_patterns
from kafka_sla.settings_mistakes import mistakes, report
from kafka_sla.settings_rules import did_you_mean, merged_slas
from kafka_sla.settings_schema import ClusterKeys, Document, SlaKeys, json_schema
from kafka_sla.yaml_lines import read_yaml

__all__ = ["Settings", "json_schema", "load_settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the configuration file says, valid and with defaults filled in."""

    clusters: tuple[Cluster, ...]
    slas: tuple[Sla, ...] = ()
    window_ms: int = 60_000
    base_url: str | None = None
    smtp_connection: str | None = "smtp_default"
    store_connection: str = "kafka_sla_store"
    look_ups: LookUps = field(default_factory=LookUps)

    def cluster(self, name: str) -> Cluster:
        """The cluster of that name; SettingsError names those there are."""
        known = {cluster.name: cluster for cluster in self.clusters}
        if name not in known:
            raise SettingsError(_no_such("cluster", name, known))
        return known[name]

    def sla(self, name: str) -> Sla:
        """The SLA of that name; SettingsError names those there are."""
        known = {sla.name: sla for sla in self.slas}
        if name not in known:
            raise SettingsError(_no_such("SLA", name, known))
        return known[name]


def load_settings(path: str | Path) -> Settings:
    """Read a configuration file. SettingsError lists every mistake with file, line, key, value and what is allowed."""
    try:
        file = read_yaml(Path(path))
    except OSError as error:
        raise SettingsError(f"cannot read the configuration {path}: {error.strerror}; name the file to read") from error
    if wrong := mistakes(file):
        raise SettingsError(report(path, wrong))
    return _settings(file.values)


def _no_such(kind: str, name: str, known: Iterable[str]) -> str:
    listed = list(known)
    return (
        f"the configuration has no {kind} {name!r};{did_you_mean(name, listed)} it has: {', '.join(listed) or 'none'}"
    )


def _settings(values: dict[str, Any]) -> Settings:
    document = Document.model_validate(values)
    clusters = tuple(_cluster(name, keys) for name, keys in document.clusters.items())
    slas = (SlaKeys.model_validate(sla) for sla in merged_slas(values))
    look_ups = document.look_ups
    return Settings(
        clusters=clusters,
        slas=tuple(_sla(keys, clusters[0].name) for keys in slas),
        window_ms=document.window,
        base_url=document.base_url and document.base_url.rstrip("/"),
        smtp_connection=document.smtp_connection,
        store_connection=document.store_connection,
        look_ups=LookUps(look_ups.floor, look_ups.per_pass, look_ups.max_gap or document.window),
    )


def _cluster(name: str, keys: ClusterKeys) -> Cluster:
    return Cluster(name, keys.connection, parse_patterns(keys.groups), parse_patterns(keys.topics))


def _sla(keys: SlaKeys, only_cluster: str) -> Sla:
    steady = keys.steady_state
    return Sla(
        name=keys.name,
        cluster=keys.cluster or only_cluster,
        groups=_patterns(keys.group, keys.groups),
        topics=_patterns(keys.topic, keys.topics),
        max_latency_ms=keys.max_latency or 0,
        for_ms=keys.for_,
        objective=keys.objective,
        steady_state=SteadyState(steady.caught_up_within or keys.max_latency or 0, steady.grace, steady.expire_group),
        period=keys.period,
        time_zone=keys.time_zone,
        maintenance=tuple(parse_maintenance(m.model_dump(by_alias=True), keys.time_zone) for m in keys.maintenance),
        recipients=tuple(keys.recipients),
        on_miss=keys.on_miss,
        notifiers=tuple(Notifier(n.path, n.kwargs) for n in keys.notifiers),
        description=keys.description,
        team=keys.team,
    )


def _patterns(one: str | None, many: list[str] | None) -> Patterns:
    return parse_patterns([one] if one else many or ["*"])
