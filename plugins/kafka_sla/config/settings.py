"""The configuration file, parsed once to frozen values or refused with every mistake."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import time
from pathlib import Path
from typing import Any

from kafka_sla.config.burn_pairs import burn_pairs
from kafka_sla.config.chains import stages_of
from kafka_sla.config.maintenance import parse_maintenance
from kafka_sla.config.problems import mistakes, report
from kafka_sla.config.reading.references import Variable, environment_variable
from kafka_sla.config.rules import all_or_count, did_you_mean, merged_slas
from kafka_sla.config.schema import (
    ClusterKeys,
    DigestKeys,
    Document,
    NotifierKeys,
    ReplicationKeys,
    SlaKeys,
    json_schema,
)
from kafka_sla.config.sla_files import read_configuration
from kafka_sla.errors import SettingsError
from kafka_sla.model.entities import (
    Checkpoint,
    Cluster,
    Digest,
    Exporter,
    FreshnessAlert,
    Notifier,
    OffsetLookups,
    Patterns,
    ReplicationFlow,
    Sla,
    StatusRules,
    SteadyState,
    Webhook,
)
from kafka_sla.text.name_patterns import parse_patterns

__all__ = ["STORE_CONNECTION", "Settings", "json_schema", "load_settings"]

STORE_CONNECTION = "kafka_sla_store"
"""Airflow connection of the store, unless the configuration names another one."""
_SHARES_OF_THRESHOLD = 4


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the configuration file says, valid and with defaults filled in."""

    clusters: tuple[Cluster, ...]
    slas: tuple[Sla, ...] = ()
    digests: tuple[Digest, ...] = ()
    window_ms: int = 60_000
    interval_ms: int = 300_000
    """How often the DAG `kafka_sla` measures."""
    base_url: str | None = None
    smtp_connection: str | None = "smtp_default"
    store_connection: str = STORE_CONNECTION
    offset_lookups: OffsetLookups = field(default_factory=OffsetLookups)
    freshness_alert: FreshnessAlert | None = None
    """None: nobody is mailed when the measuring is late."""

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

    def digest(self, name: str) -> Digest:
        """The digest of that name; SettingsError names those there are."""
        known = {digest.name: digest for digest in self.digests}
        if name not in known:
            raise SettingsError(_no_such("digest", name, known))
        return known[name]


def load_settings(path: str | Path, variable: Variable = environment_variable) -> Settings:
    """Read a configuration file and the SLA files beside it. SettingsError lists every mistake with file, line, key,
    value and what is allowed. `variable`: how Airflow variables are asked for."""
    try:
        file = read_configuration(Path(path), variable)
    except OSError as error:
        raise SettingsError(f"cannot read the configuration {path}: {error.strerror}; name the file to read") from error
    if wrong := mistakes(file):
        raise SettingsError(report(path, wrong))
    return _settings(file.values)


def supposed_slas(values: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> list[Sla]:
    """What these entries would be in `slas` of a valid configuration with these values: its defaults hold for them,
    too."""
    return list(_settings({**values, "slas": list(entries), "digests": []}).slas)


def _no_such(kind: str, name: str, known: Iterable[str]) -> str:
    listed = list(known)
    return f"the configuration has no {kind} {name!r};{did_you_mean(name, listed)} it has: {all_or_count(listed)}"


def _settings(values: dict[str, Any]) -> Settings:
    document = Document.model_validate(values)
    clusters = tuple(_cluster(name, keys) for name, keys in document.clusters.items())
    slas = (SlaKeys.model_validate(sla) for sla in merged_slas(values))
    offset_lookups, late = document.offset_lookups, document.freshness_alert
    runbooks = {team: of_team.runbook for team, of_team in document.teams.items()}
    judged = tuple(_sla(keys, clusters[0].name, runbooks) for keys in slas)
    return Settings(
        clusters=clusters,
        slas=judged,
        digests=tuple(_digest(keys) for keys in document.digests),
        window_ms=document.window,
        interval_ms=document.interval,
        base_url=document.base_url and document.base_url.rstrip("/"),
        smtp_connection=document.smtp_connection,
        store_connection=document.store_connection,
        offset_lookups=OffsetLookups(
            offset_lookups.min_gap,
            offset_lookups.max_per_hour,
            offset_lookups.max_gap or _max_gap(judged, document.window, offset_lookups.min_gap),
        ),
        freshness_alert=FreshnessAlert(tuple(late.recipients), late.after) if late else None,
    )


def _max_gap(slas: Sequence[Sla], window_ms: int, least_ms: int) -> int:
    """Bounds of a steady flow are as far apart as its points: with a quarter of the tightest threshold nearly every
    latency is on one side of it."""
    tightest = min((sla.max_latency_ms for sla in slas), default=_SHARES_OF_THRESHOLD * window_ms)
    return min(window_ms, max(least_ms, tightest // _SHARES_OF_THRESHOLD))


def _cluster(name: str, keys: ClusterKeys) -> Cluster:
    """Replication flows and checkpoints are consumer groups of the cluster too, whatever `groups` says."""
    flows = tuple(_flow(name, flow) for flow in keys.replication)
    named = [flow.name for flow in flows] + [one.group for one in keys.checkpoints]
    groups = parse_patterns(keys.groups)
    status = keys.consumer_status
    return Cluster(
        name,
        keys.connection,
        Patterns((*groups.include, *map(re.escape, named)), groups.exclude),
        parse_patterns(keys.topics),
        StatusRules(status.commits, status.allowed_lag, status.min_complete, status.expire_group),
        tuple((topic, tuple(listed)) for topic, listed in keys.non_consumed_offsets_groups.items()),
        flows,
        tuple(Exporter(int(broker), url) for broker, url in keys.jmx_exporters.items()),
        tuple(Checkpoint(one.group, one.path) for one in keys.checkpoints),
        keys.sample_every,
    )


def _flow(source: str, keys: ReplicationKeys) -> ReplicationFlow:
    topic = None if keys.connect else keys.offsets_topic or f"mm2-offsets.{source}.internal"
    return ReplicationFlow(
        name=keys.name or f"{source}->{keys.to}",
        target=keys.to,
        offsets_topic=topic,
        connect=keys.connect,
        connector=keys.connector,
        topics=parse_patterns(keys.topics),
        prefix=f"{source}." if keys.prefix is None else keys.prefix,
        refresh_interval_ms=None if keys.refresh_interval == -1 else keys.refresh_interval,
        ttl_ms=keys.ttl,
    )


def _sla(keys: SlaKeys, only_cluster: str, runbooks: Mapping[str, str | None]) -> Sla:
    steady, chain = keys.steady_state, stages_of(keys.chain)
    return Sla(
        name=keys.name,
        cluster=keys.cluster or only_cluster,
        groups=_patterns(keys.group, keys.groups or [stage.group for stage in chain]),
        topics=_patterns(keys.topic, keys.topics or [stage.topic for stage in chain]),
        chain=chain,
        max_latency_ms=keys.max_latency or 0,
        for_ms=keys.for_,
        objective=keys.objective,
        steady_state=SteadyState(
            steady.caught_up_within or keys.max_latency or 0,
            steady.grace_period,
            steady.expire_group,
            steady.progress_deadline,
        ),
        objective_of=keys.objective_of,
        burn_pairs=burn_pairs(keys),
        period=keys.period,
        time_zone=keys.time_zone,
        maintenance=tuple(parse_maintenance(m.model_dump(by_alias=True), keys.time_zone) for m in keys.maintenance),
        recipients=tuple(keys.recipients),
        when_uncertain=keys.when_uncertain,
        on_miss=keys.on_miss,
        notifiers=tuple(Notifier(n.path, n.kwargs, _each_miss(n)) for n in keys.notifiers),
        webhooks=tuple(Webhook(w.connection, w.format) for w in keys.webhooks),
        description=keys.description,
        team=keys.team,
        min_time_to_expiry_ms=keys.min_time_to_expiry,
        allowed_lag=keys.allowed_lag,
        partitions=keys.partitions,
        latency_from=keys.latency_from,
        runbook=keys.runbook or runbooks.get(keys.team) or "",
    )


def _each_miss(keys: NotifierKeys) -> bool:
    """Arguments that speak of one miss mean a call for each; a class that takes no template may read what it likes."""
    if keys.each_miss is not None:
        return keys.each_miss
    used = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"\{[{%].*?[%}]\}", json.dumps(keys.kwargs)))))
    return bool(used & {"miss", "burn", "sla", "team"}) or not used & {"message", "misses"}


def _digest(keys: DigestKeys) -> Digest:
    return Digest(
        name=keys.name,
        every=keys.every,
        at=time.fromisoformat(keys.at),
        time_zone=keys.time_zone,
        slas=tuple(keys.slas),
        team=keys.team,
        recipients=tuple(keys.recipients),
    )


def _patterns(one: str | None, many: list[str] | None) -> Patterns:
    return parse_patterns([one] if one else many or ["*"])
