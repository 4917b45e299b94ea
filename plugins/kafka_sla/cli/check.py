"""What works of all that a configuration names, each finding with its cure. Changes nothing outside."""

from __future__ import annotations

import importlib.metadata
import logging
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from kafka_sla.cli.console.context import Workplace
from kafka_sla.config.env_connections import environment_connection
from kafka_sla.errors import KafkaSlaError
from kafka_sla.model.entities import Cluster
from kafka_sla.spark.needs import NAME_THE_USER, java, unnamed_user
from kafka_sla.text.formatting import plural, span

log = logging.getLogger(__name__)

_JAVA = (17, 21)
"""Java versions that Spark 4 is made for."""
_SPARKS = ("4.0.", "4.1.", "4.2.")


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing looked at; `cure` says what to do when it is not ok, or what a missing capability costs."""

    ok: bool
    text: str
    cure: str = ""
    entry: str = ""
    """YAML of a cluster entry that fits."""


def findings(place: Workplace) -> Iterator[Checked]:
    """Everything worth a look, in order. A wrong configuration raises SettingsError: nothing else can be looked at."""
    settings = place.settings
    told = f"{plural(len(settings.clusters), 'cluster')}, {plural(len(settings.slas), 'SLA')}"
    yield Checked(True, f"configuration: {told}")
    yield from _guarded("Java", lambda: [_java()])
    yield from _guarded("Spark", lambda: [_spark(), *_user()])
    yield from _guarded("store", lambda: [_store(place)])
    for cluster in settings.clusters:
        yield from _guarded(f"cluster {cluster.name}", partial(_cluster, place, cluster))
    yield from _guarded("commit rates", partial(_rare_commits, place))
    readers = [one.recipients for one in settings.slas] + [one.recipients for one in settings.digests]
    if settings.freshness_alert or any(readers):
        yield from _guarded("mail", lambda: [_mail(place)])
    yield from _guarded("notifiers", partial(_notifiers, place))
    for conn_id in sorted({webhook.connection for sla in settings.slas for webhook in sla.webhooks}):
        yield from _guarded(f"webhook of connection {conn_id!r}", partial(_webhook, place, conn_id))


def _guarded(name: str, look: Callable[[], Iterable[Checked]]) -> Iterator[Checked]:
    """What `look` finds. An error that it does not expect is a finding too: one odd value hides no other."""
    try:
        yield from look()
    except Exception as error:
        log.warning("checking %s failed", name, exc_info=True)
        yield Checked(
            False, f"{name}: {type(error).__name__}: {error}", "correct its values; if they are right, report it"
        )


def connection_findings(place: Workplace, conn_id: str) -> Iterator[Checked]:
    """What a cluster that no configuration knows can do, and the entry that fits it."""
    from kafka_sla.sources.kafka.probes.permissions import probe

    name = conn_id.removeprefix("kafka_") or conn_id
    found = probe(Cluster(name, conn_id), place.login(conn_id))
    yield from (Checked(finding.ok, finding.text, finding.cure or "") for finding in found)
    if len(found) > 1:
        samples = any(finding.wants_samples for finding in found)
        yield Checked(True, "a cluster entry that fits:", entry=_entry(name, conn_id, samples=samples))


def _entry(name: str, conn_id: str, *, samples: bool) -> str:
    sampled = "    sample_every: 5s\n" if samples else ""
    return f'clusters:\n  {name}:\n    connection: {conn_id}\n    groups: ["*"]\n    topics: ["*"]\n{sampled}'


def _java() -> Checked:
    found = java()
    if found is None:
        return Checked(False, "Java: not found", "install Java 17, or set JAVA_HOME to where it is")
    told = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', told)
    if not version or int(version[1]) not in _JAVA:
        which = version[1] if version else "unknown version"
        return Checked(
            False, f"Java: {which} at {found}", "Spark needs Java 17 or 21: install one and set JAVA_HOME to it"
        )
    return Checked(True, f"Java: {version[1]} at {found}")


def _user() -> Iterator[Checked]:
    if unnamed := unnamed_user():
        yield Checked(False, f"Spark: does not run as {unnamed}", NAME_THE_USER)


def _spark() -> Checked:
    """The provider of Airflow depends on pyspark-client, which shares files with pyspark: both must be of one line."""
    versions = {name: _version(name) for name in ("pyspark", "pyspark-client")}
    if versions["pyspark"] is None:
        return Checked(False, "Spark: pyspark is not installed", "pip install 'kafka-sla[worker]'")
    if not versions["pyspark"].startswith(_SPARKS):
        told = f"Spark: pyspark {versions['pyspark']} is not supported"
        return Checked(False, told, f"install pyspark and pyspark-client {_SPARKS[-1]}0, or an older one from 4.0 on")
    if versions["pyspark-client"] and _line(versions["pyspark-client"]) != _line(versions["pyspark"]):
        told = f"Spark: pyspark {versions['pyspark']} with pyspark-client {versions['pyspark-client']}"
        return Checked(
            False, told, "install both in the same version, 4.2.0 for example: they overwrite each other's files"
        )
    return Checked(True, f"Spark: {versions['pyspark']}")


def _line(version: str) -> str:
    return version.rpartition(".")[0]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _store(place: Workplace) -> Checked:
    """Whether the store can be read. Where there is none yet, none is made: the address may be mistyped."""
    from kafka_sla.lake.lake import Lake
    from kafka_sla.ledger.ledger import Ledger
    from kafka_sla.model.entities import EVERYTHING
    from kafka_sla.model.tables import GROUP_STATES

    try:
        store = place.store
        if not Ledger(store).has_begun():
            cure = "the first run makes it there; if there should be one, correct the address"
            return Checked(True, f"store: there is none yet in {store.warehouse}", cure)
        Ledger(store).publications.slices([], EVERYTHING)
        Lake(store).fact_files(GROUP_STATES, EVERYTHING.end, EVERYTHING.end)
    except (KafkaSlaError, OSError) as error:
        return Checked(False, f"store: {error}", "name a folder with --store, or correct the store's connection")
    return Checked(True, f"store: tables in {store.warehouse}")


def _rare_commits(place: Workplace) -> Iterator[Checked]:
    """Groups that commit less often than the threshold of an SLA allows, as far as anything is published."""
    from kafka_sla.lake.lake import Lake
    from kafka_sla.lake.queries.commit_spacing import newest_commit_spacings
    from kafka_sla.ledger.ledger import Ledger

    try:
        lake, ledger = Lake(place.store), Ledger(place.store)
        spacings = {one.name: newest_commit_spacings(lake, ledger, one.name) for one in place.settings.clusters}
    except (KafkaSlaError, OSError):
        return  # the finding about the store says what is wrong
    for sla in place.settings.slas:
        rare = {
            (group, topic): spacing_ms
            for (group, topic), spacing_ms in spacings[sla.cluster].items()
            if spacing_ms > sla.max_latency_ms and sla.groups.matches(group) and sla.topics.matches(topic)
        }
        if rare:
            (group, topic), spacing_ms = max(rare.items(), key=lambda item: item[1])
            yield Checked(
                True,
                f"SLA {sla.name}: group {group} commits every {span(spacing_ms)} on {topic}: a threshold of"
                f" {span(sla.max_latency_ms)} can be neither met nor shown",
                f"set max_latency to more than {span(spacing_ms)}, or make the consumer commit more often",
            )


def _cluster(place: Workplace, cluster: Cluster) -> Iterator[Checked]:
    if cluster.connection is None:
        yield Checked(True, f"cluster {cluster.name}: imported facts only, no connection")
        return
    from kafka_sla.sources.kafka.probes.permissions import probe

    try:
        found = probe(cluster, environment_connection(cluster.connection, kind="brokers"))
    except KafkaSlaError as error:
        yield Checked(False, f"cluster {cluster.name}: {error}")
        return
    for finding in found:
        yield Checked(finding.ok, f"cluster {cluster.name}: {finding.text}", finding.cure or "")
    if cluster.replication or cluster.checkpoints:
        yield from _elsewhere(place, cluster)


def _elsewhere(place: Workplace, cluster: Cluster) -> Iterator[Checked]:
    """Positions that replication flows and checkpoints keep."""
    from kafka_sla.model.entities import Interval
    from kafka_sla.sources.external_offsets import positions_elsewhere

    now = datetime.now(UTC)
    try:
        found = positions_elsewhere(
            place.settings, cluster, place.login, Interval(now - timedelta(minutes=5), now), live=True
        )
    except KafkaSlaError as error:
        yield Checked(False, f"cluster {cluster.name}: {error}")
        return
    for note in found.notes:
        yield Checked(False, f"cluster {cluster.name}: {note}")
    partitions = Counter(group for group, *_ in {(p.group, p.topic, p.partition) for p in found.positions})
    for group, count in sorted(partitions.items()):
        yield Checked(True, f"cluster {cluster.name}: {group} has positions on {plural(count, 'partition')}")


def _mail(place: Workplace) -> Checked:
    from kafka_sla.notifications.smtp import probe

    try:
        smtp = place.smtp
        if smtp is None:
            return Checked(False, "mail: there are recipients but no smtp_connection", "name one, or drop recipients")
        probe(smtp)
    except KafkaSlaError as error:
        return Checked(False, f"mail: {error}")
    return Checked(True, f"mail: the server of {smtp.id} takes mail")


def _notifiers(place: Workplace) -> Iterator[Checked]:
    """Whether each notifier's path leads to one. Nothing is imported or called."""
    from kafka_sla.config.notifier_classes import verify_notifier

    verified = set()
    for number, sla in enumerate(place.settings.slas):
        for at, notifier in enumerate(sla.notifiers):
            try:
                verify_notifier(notifier.path)
                verified.add(notifier.path)
            except KafkaSlaError as error:
                line = place.line_of(("slas", number, "notifiers", at, "path"))
                yield Checked(False, f"notifier of the SLA {sla.name!r}: {error}", f"correct it in {line}")
    yield from (Checked(True, f"notifier: {path}; it was not called") for path in sorted(verified))


def _webhook(place: Workplace, conn_id: str) -> Iterator[Checked]:
    """Nothing is sent: a receiver would raise an alarm."""
    from kafka_sla.notifications.webhooks.webhook import check

    try:
        check(place.login(conn_id))
    except KafkaSlaError as error:
        yield Checked(False, str(error))
        return
    yield Checked(True, f"webhook: the connection {conn_id} names a receiver; nothing was sent to it")
