"""The steps of one run as functions, in order, for DAGs and command line alike. Knows neither Airflow nor Spark.

    snapshot (each cluster) → prepare → [Spark: measure] → validate → publish → evaluate (each SLA) → notify

What passes between steps is small and JSON-able: paths, counts, ids. Every step may be repeated after a kill. Each step
may be a process of its own: what only one needs and is slow to import, it imports itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, get_args

from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.errors import ValidationFailed
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.staging import keep_unreadable, staged, staged_files
from kafka_sla.ledger.alerts.report_rows import ASSET, AlertMessage
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.observed_time import VOUCHED
from kafka_sla.model.entities import Connection, Interval, Miss, MissState, Notifier, Sla, SlaWindow, Verdict
from kafka_sla.model.tables import (
    BROKER_REQUESTS,
    COMMITTED_OFFSETS,
    GROUP_MEMBERS,
    GROUP_STATES,
    LOG_OFFSETS,
    METRICS,
    OPEN_TRANSACTIONS,
    QUARANTINE,
    RECORD_RANGES,
    REPLICA_FETCHES,
    SHARE_LAGS,
    TOPIC_CONFIGS,
    VALIDATION_RESULTS,
)
from kafka_sla.pipeline.burn_alerts import judge_burns
from kafka_sla.pipeline.burn_causes import bad_time_behind
from kafka_sla.pipeline.evidence_reader import explained
from kafka_sla.pipeline.expiry import with_expiry
from kafka_sla.pipeline.planning.load_plan import job_for
from kafka_sla.pipeline.rollup_builder import sum_up_all
from kafka_sla.pipeline.unjudged import record_unjudged_partitions
from kafka_sla.pipeline.verdicts import verdicts
from kafka_sla.sla.root_cause.evidence import looks_back
from kafka_sla.sources.external_offsets import Login, positions_elsewhere
from kafka_sla.spark.failures import left
from kafka_sla.spark.job_spec import read_job

_HELD_BACK = timedelta(minutes=30)
"""How long before an interval commits are read again whose time is published: those behind a transaction that was
open then. Twice as long as brokers let one be by default (transaction.max.timeout.ms)."""
_MOST_TOPICS = 10
"""Topics that a warning names."""
_LONGEST_REASON = 1_000


def snapshot(
    settings: Settings,
    store: Store,
    cluster_name: str,
    login: Login,
    interval: Interval,
    *,
    live: bool,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Read what one cluster knows about the interval and land it as facts.

    Returns the cluster's name, rows landed per table, notes, and warnings where nothing of it is measured.
    A cluster without a connection has only imported facts: nothing is read. `login` gives the connection of an id: the
    cluster's own, and those of what keeps positions of its consumers.
    """
    from kafka_sla.sources.kafka.snapshot import LOOK_BACK, snapshot
    from kafka_sla.sources.unseen_clusters import blindness

    cluster = settings.cluster(cluster_name)
    Ledger(store).open(writing=True)
    if cluster.connection is None:
        return {"cluster": cluster_name, "notes": []}
    elsewhere = positions_elsewhere(settings, cluster, login, interval, live=live)
    before = Interval(interval.start - LOOK_BACK, interval.start)
    landed_before = live and not Ledger(store).publications.incomplete([cluster_name], before)
    found = snapshot(
        cluster,
        login(cluster.connection),
        interval,
        window_ms=settings.window_ms,
        groups=cluster.groups,
        topics=cluster.topics,
        live=live,
        offset_lookups=settings.offset_lookups,
        progress=progress,
        kept=elsewhere.positions,
        look_back=_HELD_BACK if landed_before else LOOK_BACK,
    )
    warnings = blindness(settings, cluster, login, found)
    facts = {
        LOG_OFFSETS: found.log_offsets,
        COMMITTED_OFFSETS: found.committed_offsets,
        RECORD_RANGES: found.record_ranges,
        OPEN_TRANSACTIONS: found.open_transactions,
        GROUP_STATES: found.group_states,
        GROUP_MEMBERS: found.group_members,
        SHARE_LAGS: found.share_lags,
        TOPIC_CONFIGS: found.topic_configs,
    }
    told: tuple[str, ...] = ()
    if live and cluster.jmx_exporters:
        from kafka_sla.sources import jmx_exporters

        scraped = jmx_exporters.scrape(cluster)
        facts |= {BROKER_REQUESTS: scraped.broker_requests, REPLICA_FETCHES: scraped.replica_fetches}
        told = scraped.notes
    keep_unreadable(store, cluster_name, interval, found.unreadable_commits)
    lake = Lake(store)
    vouched = max(VOUCHED, 2 * timedelta(milliseconds=settings.interval_ms))
    landed = lake.land({table.name: rows for table, rows in facts.items()}, interval, vouched)
    # On their own: commits of before the interval, from behind a transaction open until now, change what is before it.
    landed |= {"commits": lake.land({COMMITTED_OFFSETS.name: found.commits})[COMMITTED_OFFSETS.name]}
    return {
        "cluster": cluster_name,
        "offset_lookups": found.offset_lookups,
        "notes": [*found.notes, *elsewhere.notes, *told],
        "warnings": warnings,
        **landed,
    }


def prepare(settings: Settings, store: Store, interval: Interval, clusters: Sequence[str]) -> str:
    """Decide what Spark is to read and write; returns the path of the job file."""
    job = job_for(settings, Lake(store), Ledger(store), interval, clusters)
    path = f"{job.output}/job.json"
    job.write(path)
    return path


def validate(store: Store, job_path: str) -> dict[str, Any]:
    """Keep what the expectations said; ValidationFailed when a critical one broke."""
    job, ledger = read_job(job_path), Ledger(store)
    results = staged(job.output, VALIDATION_RESULTS).to_pylist()
    quarantined = staged(job.output, QUARANTINE).to_pylist()
    ledger.validations.store(results, quarantined)
    broken = [r for r in results if not r["success"]]
    topics = _topics_of(quarantined)
    said = [
        (
            r["severity"],
            f"{r['severity']}: {r['table_name']}: {r['expectation']} (observed {r['observed']})"
            + topics.get((r["table_name"], r["expectation_id"]), ""),
        )
        for r in broken
    ]
    if any(severity == "critical" for severity, _ in said):
        raise ValidationFailed(
            f"{job.interval} was not published, the last published data stays readable:\n  "
            + "\n  ".join(text for _, text in said)
            + "\nLook at `kafka-sla export quarantine`, correct facts or expectation, and run it again."
        )
    return {
        "expectations": len(results),
        "broken": len(broken),
        "quarantined_rows": len(quarantined),
        "warnings": [text for severity, text in said if severity == "warning"],
        "notes": [text for severity, text in said if severity != "warning"],
    }


def _topics_of(quarantined: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """The topics of the rows that broke each expectation, as text, by table and expectation id."""
    names: dict[tuple[str, str], set[str]] = {}
    for row in quarantined:
        topic = json.loads(row["row"]).get("topic")
        if topic:
            names.setdefault((row["table_name"], row["expectation_id"]), set()).add(topic)
    return {key: f"; topics: {_first_names(sorted(topics))}" for key, topics in names.items()}


def _first_names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_TOPICS
    return ", ".join(names[:_MOST_TOPICS]) + (f" and {more} more" if more > 0 else "")


def publish(store: Store, job_path: str) -> dict[str, Any]:
    """Make the load readable: its files join the tables, one row switches every reader of ours over, and then the
    tables show other engines the same."""
    job, lake, ledger = read_job(job_path), Lake(store), Ledger(store)
    files = {table.name: staged_files(job.output, table) for table in METRICS}
    names = lake.add_load(job.load_id, job.interval, files)
    ledger.publications.publish(job.clusters, job.interval, job.load_id, job.facts_seq)
    ledger.failures.forget(job.clusters, job.interval)
    lake.show(job.interval, names)
    return {"interval": str(job.interval), "clusters": ", ".join(job.clusters), "load_id": job.load_id}


def keep_failure(
    store: Store, clusters: Sequence[str], interval: Interval, step: str, error: BaseException, job_path: str | None
) -> None:
    """Keep why an interval was not published, until it is: later ones go on without it. `job_path`: the job of the
    clusters that could be read, where there is one already."""
    job = read_job(job_path) if job_path else None
    cause = left(job.output) if job and step == "measure" else None
    Ledger(store).failures.add(job.clusters if job else clusters, interval, step, _reason(error, cause))


def keep_unjudged(store: Store, sla: str, interval: Interval, error: BaseException) -> None:
    """Keep why the SLA was not judged in the interval, for `status` and the page of coverage, until it is."""
    Ledger(store).failures.add_unjudged(sla, interval, _reason(error))


def _reason(error: BaseException, cause: str | None = None) -> str:
    return (cause or " ".join(str(error).split()) or type(error).__name__)[:_LONGEST_REASON]


def evaluate(settings: Settings, store: Store, sla_name: str, interval: Interval) -> dict[str, Any]:
    """Judge one SLA in every window of the interval and replace its verdicts and the misses they touch.

    Returns ids of the misses that overlap the interval by state (`misses`), counts of the verdicts, and which damaged
    files of its time were left out (`damaged_files`).
    """
    ((_, found),) = evaluate_all(settings, store, [sla_name], interval)
    if isinstance(found, Exception):
        raise found
    return found


def evaluate_all(
    settings: Settings, store: Store, slas: Sequence[str], interval: Interval
) -> Iterator[tuple[str, dict[str, Any] | Exception]]:
    """The same for several SLAs, judged together; one that cannot be judged gives its error and keeps no other from
    its verdict."""
    lake, ledger = Lake(store).remembering(), Ledger(store)
    kept: dict[str, dict[str, Any]] = {}
    together = [settings.sla(name) for name in slas]
    for sla, windows in verdicts(settings, together, lake, interval):
        if isinstance(windows, Exception):
            yield sla.name, windows
            continue
        try:
            beside = [other for other in together if other.cluster == sla.cluster]
            kept[sla.name] = _kept(settings, sla, windows, lake, ledger, interval, beside)
        except Exception as error:
            yield sla.name, error
    judged = []
    for sla, left_out in sum_up_all([settings.sla(name) for name in kept], lake, ledger, interval, settings.window_ms):
        if isinstance(left_out, Exception):
            yield sla.name, left_out
        else:
            yield sla.name, kept[sla.name] | {"damaged_files": list(left_out)}
            judged.append(sla)
    record_unjudged_partitions(judged, lake, ledger, interval, settings.window_ms)
    judge_burns(ledger, judged, interval, settings.window_ms)
    ledger.verdicts.end_misses_of_removed_slas([sla.name for sla in settings.slas])


def _kept(
    settings: Settings,
    sla: Sla,
    windows: Sequence[SlaWindow],
    lake: Lake,
    ledger: Ledger,
    interval: Interval,
    beside: Sequence[Sla],
) -> dict[str, Any]:
    """The verdicts in the place of former ones, and the misses that they make."""

    def explain_misses(found: Sequence[Miss], read: Sequence[SlaWindow], before: Miss | None) -> list[Miss]:
        until = max((w.window.end for w in read), default=interval.end)
        same = {before.id: before} if before else {}
        known = [explained(settings, sla, miss, until, lake, same.get(miss.id), beside) for miss in found]
        return [with_expiry(miss, read, same.get(miss.id)) for miss in known]

    ledger.verdicts.replace(sla, interval, windows, explain_misses, looks_back(sla))
    touching = [miss for miss in ledger.verdicts.misses(sla, interval) if not miss.exclusion]
    counted = Counter(w.verdict for w in windows)
    return {
        "sla": sla.name,
        "misses": {state: [m.id for m in touching if m.state == state] for state in get_args(MissState)},
        **{verdict: counted[verdict] for verdict in get_args(Verdict)},
    }


def notify(
    settings: Settings,
    store: Store,
    slas: Sequence[str],
    interval: Interval,
    smtp: Connection | None,
    run_url: str | None,
    call: Callable[[Notifier, Sla, AlertMessage], None] | None = None,
    login: Login | None = None,
) -> dict[str, Any]:
    """Compare the alerts that the interval may have changed with what each receiver has been told, record the messages
    that are due, and send all that is unsent: each once, those that share a cause together. Receivers that forget are
    told again what is open.

    `call` runs an SLA's notifier, and `login` gives the connections of webhooks. Without them, and without a mail
    server, what needs them stays unsent until a process can send it. Returns how many alerts were `queued` and `sent`.
    """
    from kafka_sla.pipeline.alerting.report_planner import Planner
    from kafka_sla.pipeline.deliveries import Deliveries

    ledger, lake = Ledger(store), Lake(store).remembering()
    explain = partial(bad_time_behind, settings, ledger, lake)
    known = [settings.sla(name) for name in slas]
    planned = Planner(settings, known, ledger, interval, run_url, explain).plan_messages()
    deliveries = Deliveries(settings, slas, ledger, lake, interval.end, smtp, call, login)
    return {"queued": planned.count, "sent": deliveries.deliver(planned.going_on)}


def announce(
    settings: Settings,
    store: Store,
    slas: Sequence[str],
    interval: Interval,
    announcer: Callable[[AlertMessage], None],
) -> dict[str, Any]:
    """Make alerts that opened or ended events for other DAGs, each once, whether or not people can be reached."""
    from kafka_sla.pipeline.alerting.report_planner import Planner

    ledger, lake = Ledger(store), Lake(store).remembering()
    explain = partial(bad_time_behind, settings, ledger, lake)
    known = [settings.sla(name) for name in slas]
    planned = Planner(settings, known, ledger, interval, None, explain, is_asset=True).plan_messages()
    configured = {sla.name for sla in settings.slas}
    delivery = ledger.alert_reports.deliver(
        ASSET, announcer, lambda sla: sla in slas or sla not in configured, lambda sla, _: sla.name
    )
    if delivery.errors:
        raise delivery.errors[0]
    return {"queued": planned.count, "sent": delivery.sent}
