"""The newest figures in Prometheus' text format, under our own names and, where they mean the same, under those that
dashboards for Kafka Lag Exporter, Burrow and kminion ask for. Judges nothing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import CONSUMER_LATENCY, CONSUMER_STATUS, Table
from kafka_sla.sla.rollups import SLOT_MS
from kafka_sla.web.api.exposition import CONTENT_TYPE, Gauge, text
from kafka_sla.web.api.params import RequestContext
from kafka_sla.web.queries.catching_up import newest_catch_ups
from kafka_sla.web.queries.chains import chains_now
from kafka_sla.web.queries.context import Context
from kafka_sla.web.queries.overview import SILENT, overview
from kafka_sla.web.queries.schemas import SlaStatus
from kafka_sla.web.queries.series import Pieces, unpacked
from kafka_sla.web.queries.timeline import QUANTILES, percentiles

router = APIRouter(tags=["metrics"])
STATES = ("missed", "pending", "met", "excluded", "unknown")
BURROW = {"NOTFOUND": 0, "OK": 1, "WARNING": 2, "ERROR": 3, "STOPPED": 4, "STALLED": 5, "REWIND": 6}
"""Burrow's own numbers of its statuses."""
Row = dict[str, Any]
_OF_LATENCY = (
    "cluster",
    "group",
    "topic",
    "partition",
    "window_start",
    "window_end",
    "records_lag",
    "backlog_age_ms",
    "committed_offset",
    "log_end_offset",
)
_OF_STATUS = ("cluster", "group", "topic", "partition", "window_start", "status", "group_status")
PerPartition = Annotated[bool, Query(description="leave the series of single partitions out: false")]


@router.get("/metrics", summary="The newest figures for Prometheus", response_class=Response)
def metrics(context: RequestContext, partitions: PerPartition = True) -> Response:
    return Response(text(_newest(context, partitions)), media_type=CONTENT_TYPE)


def _newest(context: Context, with_partitions: bool) -> Iterator[Gauge]:
    """One scrape. Prometheus calls the time of a scrape now; how old the figures are is a series of its own."""
    yield from slas(context, overview(context, context.settings.slas, with_curves=False))
    yield from _catch_ups(context)
    yield from _chains(context)
    rows, statuses = newest_rows(context)
    yield from groups(rows, statuses)
    if with_partitions:
        yield from partitions(rows, statuses)
    yield _filled(
        "kafka_sla_damaged_files",
        "Stored files that cannot be read, so that their series are missing",
        (),
        [((), len(context.damaged))],
    )


def slas(context: Context, found: Sequence[SlaStatus]) -> Iterator[Gauge]:
    """The series of the SLAs."""
    labels = ("sla", "cluster", "team")
    named = {row.name: (row.name, row.cluster, row.team) for row in found}
    states = [((*named[row.name], name), row.state == name) for row in found for name in STATES]
    yield _filled("kafka_sla_state", "1 for the state that the SLA is in, 0 for the others", (*labels, "state"), states)
    for name, words, value in _OF_SLAS:
        yield _filled(name, words, labels, ((named[row.name], value(row)) for row in found))
    alerted = [
        (sla.name, severity)
        for sla in context.settings.slas
        if sla.name in named
        for severity in dict.fromkeys(pair.severity for pair in sla.burn_pairs)
    ]
    open_burns = {(row.name, burn.severity) for row in found for burn in row.burns}
    burning = [((*named[name], severity), (name, severity) in open_burns) for name, severity in alerted]
    yield _filled(
        "kafka_sla_burn_alert",
        "1 while the error budget burns faster than alerted above",
        (*labels, "severity"),
        burning,
    )
    yield _percentiles(context, found, named)


_OF_SLAS: Sequence[tuple[str, str, Any]] = (
    ("kafka_sla_threshold_seconds", "The threshold", lambda r: r.max_latency_ms / 1000),
    ("kafka_sla_objective_ratio", "Share of time or records that must be good", lambda r: r.objective),
    ("kafka_sla_worst_latency_seconds", "Worst latency of the newest window", lambda r: _seconds(r.worst_latency_ms)),
    ("kafka_sla_open_misses", "1 while a miss is open", lambda r: float(r.open_miss is not None)),
    (
        "kafka_sla_newest_verdict_timestamp_seconds",
        "End of the newest judged window",
        lambda r: r.as_of and r.as_of.timestamp(),
    ),
    (
        "kafka_sla_attainment_ratio",
        "Good share of the time or records of the period",
        lambda r: r.period and r.period.attainment,
    ),
    ("kafka_sla_attainment_low_ratio", "Its low bound", lambda r: r.period and r.period.attainment_low),
    ("kafka_sla_attainment_high_ratio", "Its high bound", lambda r: r.period and r.period.attainment_high),
    (
        "kafka_sla_records_attainment_ratio",
        "Share of records in time",
        lambda r: r.period and r.period.records_attainment,
    ),
    (
        "kafka_sla_coverage_ratio",
        "Share of the period about which something is known",
        lambda r: r.period and r.period.coverage,
    ),
    (
        "kafka_sla_error_budget_seconds",
        "Bad time that the period allows",
        lambda r: r.period and _seconds(r.period.budget_ms),
    ),
    (
        "kafka_sla_error_budget_left_seconds",
        "What is left of it; negative: overspent",
        lambda r: r.period and _seconds(r.period.budget_left_ms),
    ),
    (
        "kafka_sla_error_budget_records",
        "Late records that the period allows so far",
        lambda r: r.period and r.period.budget_records,
    ),
    (
        "kafka_sla_error_budget_left_records",
        "What is left of it; negative: overspent",
        lambda r: r.period and r.period.budget_left_records,
    ),
    ("kafka_sla_burn_rate", "1 spends exactly the budget", lambda r: r.period and r.period.burn_rate),
)


def _catch_ups(context: Context) -> Iterator[Gauge]:
    """+Inf is never; what is not known is left out."""
    named = {sla.name: (sla.name, sla.cluster, sla.team) for sla in context.settings.slas}
    found = [one for one in newest_catch_ups(context, context.settings.slas).values() if one.state != "unknown"]
    for name, words, value in _OF_CATCH_UPS:
        samples = [(named[one.sla], math.inf if value(one) is None else value(one) / 1000) for one in found]
        yield _filled(name, words, ("sla", "cluster", "team"), samples)


_OF_CATCH_UPS: Sequence[tuple[str, str, Any]] = (
    ("kafka_sla_catch_up_seconds", "Until all consumers have caught up at their pace; +Inf: never", lambda c: c.in_ms),
    ("kafka_sla_catch_up_low_seconds", "Its low bound", lambda c: c.in_low_ms),
    ("kafka_sla_catch_up_high_seconds", "Its high bound; +Inf: unbounded", lambda c: c.in_high_ms),
)


def _chains(context: Context) -> Iterator[Gauge]:
    """What each stage of a chain adds; +Inf: unbounded."""
    clusters = {sla.name: sla.cluster for sla in context.settings.slas}
    found = [
        ((name, clusters[name], str(stage.stage), stage.group, stage.topic), stage)
        for name, chain in chains_now(context, context.settings.slas).items()
        for stage in chain.stages
    ]
    labels = ("sla", "cluster", "stage", "group", "topic")
    low = [(place, _seconds(stage.added_low_ms)) for place, stage in found]
    high = [(place, math.inf if stage.added_high_ms is None else stage.added_high_ms / 1000) for place, stage in found]
    words = "Time that a stage of a chain adds in the newest window"
    yield _filled("kafka_sla_chain_stage_low_seconds", f"{words}, at least", labels, low)
    yield _filled("kafka_sla_chain_stage_high_seconds", f"{words}, at most; +Inf: unbounded", labels, high)


def _percentiles(context: Context, rows: Sequence[SlaStatus], named: Mapping[str, tuple[str, ...]]) -> Gauge:
    """Of the newest slot of five minutes: one read for all SLAs."""
    samples = []
    judged = max((row.as_of for row in rows if row.as_of), default=context.now)
    newest = context.ledger.rollups.newest_slots([row.name for row in rows], judged - SILENT)
    for sla in context.settings.slas:
        if sla.name not in newest or sla.name not in named:
            continue
        slot = newest[sla.name]
        found = percentiles(Pieces(sla, slot.rollup.span, "slot", SLOT_MS, [unpacked(slot)]))
        for share, column in zip(QUANTILES, found, strict=True):
            samples.append(((*named[sla.name], f"{share:.0%}".removesuffix("%")), _seconds(column[0])))
    return _filled(
        "kafka_sla_latency_seconds",
        "Latency of the records consumed in the newest five minutes",
        ("sla", "cluster", "team", "percentile"),
        samples,
    )


def newest_rows(context: Context) -> tuple[list[Row], dict[tuple[Any, ...], Row]]:
    """The newest published window of each cluster: rows of the latency, and of the status by group-partition."""
    rows: list[Row] = []
    statuses: dict[tuple[Any, ...], Row] = {}
    for cluster in context.settings.clusters:
        newest = context.ledger.publications.latest(cluster.name, context.now + timedelta(days=1))
        if newest is None:
            continue
        end = newest.interval.end
        last = Interval(end - timedelta(milliseconds=context.settings.window_ms), end)
        rows += _rows(context, CONSUMER_LATENCY, last, cluster.name, _OF_LATENCY)
        for row in _rows(context, CONSUMER_STATUS, last, cluster.name, _OF_STATUS):
            statuses[row["cluster"], row["group"], row["topic"], row["partition"]] = row
    return rows, statuses


def _rows(context: Context, table: Table, span: Interval, cluster: str, columns: Sequence[str]) -> list[Row]:
    """By column: making a row's values one by one takes longer than reading them, and times longest."""
    found = context.spared(lambda lake: lake.published(table.name, span, [cluster], columns))
    names = [name for name in columns if not name.startswith("window_")]
    return [
        dict(zip(names, row, strict=True)) for row in zip(*(found[name].to_pylist() for name in names), strict=True)
    ]


def groups(rows: Sequence[Row], statuses: dict[tuple[Any, ...], Row]) -> Iterator[Gauge]:
    """The series of groups, and of their topics."""
    by_group, by_topic = _sums(rows, ("cluster", "group")), _sums(rows, ("cluster", "group", "topic"))
    kle = ("cluster_name", "group")
    yield _filled("kafka_consumergroup_group_sum_lag", "Records that wait", kle, _of(by_group, "sum"))
    yield _filled(
        "kafka_consumergroup_group_max_lag", "Most records waiting in one partition", kle, _of(by_group, "max")
    )
    yield _filled(
        "kafka_consumergroup_group_max_lag_seconds", "Age of the oldest record that waits", kle, _of(by_group, "age")
    )
    yield _filled("kafka_consumergroup_group_topic_sum_lag", "Records that wait", (*kle, "topic"), _of(by_topic, "sum"))
    yield _filled(
        "kminion_kafka_consumer_group_topic_lag",
        "Records that wait",
        ("cluster", "group_id", "topic_name"),
        _of(by_topic, "sum"),
    )
    yield _filled(
        "burrow_kafka_consumer_lag_total", "Records that wait", ("cluster", "consumer_group"), _of(by_group, "sum")
    )
    known = {(row["cluster"], row["group"]): float(BURROW[row["group_status"]]) for row in statuses.values()}
    yield _filled(
        "burrow_kafka_consumer_status",
        "0 not found, 1 OK, 2 warning, 3 error",
        ("cluster", "consumer_group"),
        known.items(),
    )


def partitions(rows: Sequence[Row], statuses: dict[tuple[Any, ...], Row]) -> Iterator[Gauge]:
    """The series of single partitions."""
    kle, burrow = ("cluster_name", "group", "topic", "partition"), ("cluster", "consumer_group", "topic", "partition")
    places = [_place(row) for row in rows]
    lag = [(place, row["records_lag"]) for place, row in zip(places, rows, strict=True)]
    ages = [(place, _seconds(row["backlog_age_ms"])) for place, row in zip(places, rows, strict=True)]
    committed = [(place, row["committed_offset"]) for place, row in zip(places, rows, strict=True)]
    ends = {(p[0], *p[2:]): row["log_end_offset"] for p, row in zip(places, rows, strict=True)}
    yield _filled("kafka_consumergroup_group_lag", "Records that wait", kle, lag)
    yield _filled("kafka_consumergroup_group_lag_seconds", "Age of the oldest record that waits", kle, ages)
    yield _filled("kafka_consumergroup_group_offset", "Next offset that the group reads", kle, committed)
    yield _filled(
        "kafka_partition_latest_offset",
        "Offset that the next record gets",
        ("cluster_name", "topic", "partition"),
        ends.items(),
    )
    yield _filled(
        "kminion_kafka_consumer_group_topic_partition_lag",
        "Records that wait",
        ("cluster", "group_id", "topic_name", "partition_id"),
        lag,
    )
    yield _filled("burrow_kafka_consumer_partition_lag", "Records that wait", burrow, lag)
    yield _filled("burrow_kafka_consumer_current_offset", "Next offset that the group reads", burrow, committed)
    yield _filled(
        "kafka_sla_partition_status",
        "Burrow's rules: 0 not found, 1 OK, 2 warning, 4 stopped, 5 stalled, 6 rewind",
        burrow,
        ((_place(row), BURROW[row["status"]]) for row in statuses.values()),
    )


def _sums(rows: Iterable[Row], keys: Sequence[str]) -> dict[tuple[str, ...], dict[str, float | None]]:
    """Lags added up, their largest, and the largest age; unknown where one of the lags is."""
    members: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        members[tuple(row[key] for key in keys)].append(row)
    found = {}
    for key, mine in members.items():
        lags = [row["records_lag"] for row in mine]
        ages = [row["backlog_age_ms"] for row in mine if row["backlog_age_ms"] is not None]
        whole = None not in lags
        found[key] = {
            "sum": sum(lags) if whole else None,
            "max": max(lags) if whole else None,
            "age": _seconds(max(ages, default=None)),
        }
    return found


def _of(sums: dict[tuple[str, ...], dict[str, float | None]], name: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    return ((key, values[name]) for key, values in sums.items())


def _place(row: Row) -> tuple[str, ...]:
    return row["cluster"], row["group"], row["topic"], str(row["partition"])


def _filled(name: str, words: str, labels: Sequence[str], samples: Iterable[tuple[tuple[str, ...], Any]]) -> Gauge:
    """A gauge; what is unknown is left out, for Prometheus has no null."""
    return Gauge(name, words, labels, [(values, float(sample)) for values, sample in samples if sample is not None])


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000
