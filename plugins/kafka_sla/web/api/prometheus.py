"""The newest figures in Prometheus' text format: those of the SLAs, and after them those of the consumer groups. Judges
nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, get_args

import pyarrow as pa
from fastapi import APIRouter, Query, Response

from kafka_sla.model.entities import MissState, Sla
from kafka_sla.web.api.exposition import CONTENT_TYPE, Gauge, text, written
from kafka_sla.web.api.group_series import groups, newest_rows, partitions
from kafka_sla.web.api.params import RequestContext
from kafka_sla.web.queries.catching_up import newest_catch_ups
from kafka_sla.web.queries.chains import chains_now
from kafka_sla.web.queries.context import Context
from kafka_sla.web.queries.one_moment import OneMoment
from kafka_sla.web.queries.overview import SILENT, overview
from kafka_sla.web.queries.schemas import SlaStatus
from kafka_sla.web.queries.series import unpacked
from kafka_sla.web.queries.timeline import QUANTILES, percentiles

router = APIRouter(tags=["metrics"], route_class=OneMoment)
STATES = ("missed", "pending", "met", "excluded", "unknown")
PerPartition = Annotated[
    bool, Query(alias="partitions", description="leave the series of single partitions out: false")
]


@router.get("/metrics", summary="The newest figures for Prometheus", response_class=Response)
def metrics(context: RequestContext, single: PerPartition = True) -> Response:
    return Response(text(_newest(context, single)), media_type=CONTENT_TYPE)


def _newest(context: Context, single: bool) -> Iterator[Gauge]:
    """One scrape. Prometheus calls the time of a scrape now; how old the figures are is a series of its own."""
    rows, statuses = newest_rows(context)
    yield from slas(context, overview(context, context.settings.slas))
    yield from _catch_ups(context)
    yield from _chains(context)
    yield from groups(rows, statuses)
    if single:
        yield from partitions(rows, statuses)
    yield Gauge(
        "kafka_sla_damaged_files",
        "Stored files that cannot be read, so that their series are missing",
        pa.array([""]),
        [len(context.damaged)],
    )


def slas(context: Context, found: Sequence[SlaStatus]) -> Iterator[Gauge]:
    """The series of the SLAs."""
    states = [(row, state) for row in found for state in STATES]
    yield Gauge(
        "kafka_sla_state",
        "1 for the state that the SLA is in, 0 for the others",
        _named([row for row, _ in states], state=[state for _, state in states]),
        [float(row.state == state) for row, state in states],
    )
    newest = context.ledger.verdicts.newest_miss_of_each([row.name for row in found])
    outcomes = [(row, state) for row in found if row.name in newest for state in get_args(MissState)]
    yield Gauge(
        "kafka_sla_newest_miss_state",
        "1 for the state of the newest miss: excluded is no longer judged, removed is no longer configured",
        _named([row for row, _ in outcomes], state=[state for _, state in outcomes]),
        [float(newest[row.name].state == state) for row, state in outcomes],
    )
    labels = _named(found)
    for name, words, value in _OF_SLAS:
        yield Gauge(name, words, labels, [value(row) for row in found])
    open_burns = {(row.name, burn.severity) for row in found for burn in row.burns}
    alerted = [
        (sla, severity)
        for sla in context.settings.slas
        for severity in dict.fromkeys(pair.severity for pair in sla.burn_pairs)
    ]
    yield Gauge(
        "kafka_sla_burn_alert",
        "1 while the error budget burns faster than alerted above",
        _named([sla for sla, _ in alerted], severity=[severity for _, severity in alerted]),
        [float((sla.name, severity) in open_burns) for sla, severity in alerted],
    )
    yield _percentiles(context, found)


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
        "kafka_sla_unjudged_partitions",
        "Partitions that are not judged at present",
        lambda r: sum(len(part.partitions) for part in r.unjudged),
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
    named = {sla.name: sla for sla in context.settings.slas}
    found = [one for one in newest_catch_ups(context, context.settings.slas).values() if one.state != "unknown"]
    labels = _named([named[one.sla] for one in found])
    for name, words, value in _OF_CATCH_UPS:
        yield Gauge(name, words, labels, [_bounded_seconds(value(one)) for one in found])


_OF_CATCH_UPS: Sequence[tuple[str, str, Any]] = (
    ("kafka_sla_catch_up_seconds", "Until all consumers have caught up at their pace; +Inf: never", lambda c: c.in_ms),
    ("kafka_sla_catch_up_low_seconds", "Its low bound", lambda c: c.in_low_ms),
    ("kafka_sla_catch_up_high_seconds", "Its high bound; +Inf: unbounded", lambda c: c.in_high_ms),
)


def _chains(context: Context) -> Iterator[Gauge]:
    """What each stage of a chain adds; +Inf: unbounded."""
    clusters = {sla.name: sla.cluster for sla in context.settings.slas}
    found = [
        (name, stage) for name, chain in chains_now(context, context.settings.slas).items() for stage in chain.stages
    ]
    stages = [stage for _, stage in found]
    labels = written(
        sla=[name for name, _ in found],
        cluster=[clusters[name] for name, _ in found],
        stage=[str(stage.stage) for stage in stages],
        group=[stage.group for stage in stages],
        topic=[stage.topic for stage in stages],
    )
    low, high = [_seconds(s.added_low_ms) for s in stages], [_bounded_seconds(s.added_high_ms) for s in stages]
    words = "Time that a stage of a chain adds in the newest window"
    yield Gauge("kafka_sla_chain_stage_low_seconds", f"{words}, at least", labels, low)
    yield Gauge("kafka_sla_chain_stage_high_seconds", f"{words}, at most; +Inf: unbounded", labels, high)


def _percentiles(context: Context, rows: Sequence[SlaStatus]) -> Gauge:
    """Of the newest slot of five minutes: one read for all SLAs."""
    judged = max((row.as_of for row in rows if row.as_of), default=context.now)
    newest = context.ledger.rollups.newest_slots([row.name for row in rows], judged - SILENT)
    measured = [sla for sla in context.settings.slas if sla.name in newest]
    found = percentiles([unpacked(newest[sla.name]).histogram() for sla in measured])
    each = [(sla, share) for sla in measured for share in QUANTILES]
    return Gauge(
        "kafka_sla_latency_seconds",
        "Latency of the records consumed in the newest five minutes",
        _named([sla for sla, _ in each], percentile=[f"{share:.0%}".removesuffix("%") for _, share in each]),
        [_seconds(ms) for of_sla in zip(*found, strict=True) for ms in of_sla],
    )


def _named(slas: Sequence[Sla | SlaStatus], **more: Sequence[str]) -> pa.Array:
    """Their labels as they are written."""
    own = {"sla": [sla.name for sla in slas], "cluster": [sla.cluster for sla in slas]}
    return written(**own, team=[sla.team for sla in slas], **more)


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000


def _bounded_seconds(ms: float | None) -> float:
    return math.inf if ms is None else ms / 1000
