"""What was published about an SLA, read for its verdicts and for the evidence of its misses. Judges nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.config.settings import Settings
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Interval, Miss, Sla
from kafka_sla.model.tables import (
    COMMITTED_OFFSETS,
    CONSUMER_LATENCY,
    CONSUMER_STATUS,
    FETCH_LATENCY,
    GROUP_STATES,
    NON_CONSUMED,
    REPLICATION_LAG,
    STEADY_STATE,
    Table,
)
from kafka_sla.pipeline.chain_rows import chain_evidence
from kafka_sla.sla.compacted_history import doubted, first_commits, window_before
from kafka_sla.sla.root_cause.context import Around
from kafka_sla.sla.root_cause.evidence import evidence, evidence_interval
from kafka_sla.sla.wording import lacking, late_stage


def measured(sla: Sla, lake: Lake, interval: Interval) -> tuple[pa.Table, pa.Table]:
    """The published latency, without the histograms that no verdict needs, and the steady states."""
    columns = [name for name in CONSUMER_LATENCY.names if name != "latency_histogram"]
    latency = lake.published(CONSUMER_LATENCY.name, interval, [sla.cluster], columns)
    steady = lake.published(STEADY_STATE.name, interval, [sla.cluster])
    return latency, _told(sla, lake, interval, steady)


def _told(sla: Sla, lake: Lake, interval: Interval, steady: pa.Table) -> pa.Table:
    """The steady states, those that nobody knows as unknown."""
    if before := window_before(steady):
        steady = pa.concat_tables([lake.published(STEADY_STATE.name, before, [sla.cluster]), steady])
    if first := first_commits(steady):
        steady = doubted(steady, lake.read_facts(COMMITTED_OFFSETS, first, [sla.cluster]))
    return steady.filter(pc.greater_equal(steady["window_start"], pa.scalar(interval.start)))


def explained(settings: Settings, sla: Sla, miss: Miss, until: datetime, lake: Lake) -> Miss:
    """The miss with its evidence from the published rows around it; a damaged file of them costs its rows only."""
    found, left_out = lake.spared(lambda tables: _evidence(settings, sla, miss, until, tables))
    if left_out:
        found |= {"damaged_files": list(left_out), "sentence": f"{found['sentence']} {lacking(left_out)}"}
    return replace(miss, evidence=found)


def _evidence(settings: Settings, sla: Sla, miss: Miss, until: datetime, lake: Lake) -> dict[str, Any]:
    interval = evidence_interval(miss, until)
    latency, steady = measured(sla, lake, interval)
    found = evidence(miss, latency, steady, _around(settings, sla, lake, interval))
    return found | (_of_chain(settings, sla, miss, lake, found) if sla.chain else {})


def _of_chain(settings: Settings, sla: Sla, miss: Miss, lake: Lake, found: Mapping[str, Any]) -> dict[str, Any]:
    """Which stage was late, before why."""
    of_chain = chain_evidence(sla, miss, lake, settings.window_ms)
    return of_chain and of_chain | {"sentence": f"{late_stage(of_chain)} {found['sentence']}"}


def _around(settings: Settings, sla: Sla, lake: Lake, interval: Interval) -> Around:
    """What else was published of that time; None for what the configuration does not ask for."""

    def rows(table: Table, clusters: Sequence[str]) -> pa.Table:
        return lake.published(table.name, interval, clusters)

    own = [sla.cluster]
    sources = [c.name for c in settings.clusters if any(flow.target == sla.cluster for flow in c.replication)]
    return Around(
        status=rows(CONSUMER_STATUS, own),
        lost=rows(NON_CONSUMED, own),
        brokers=rows(FETCH_LATENCY, own) if settings.cluster(sla.cluster).jmx_exporters else None,
        replication=rows(REPLICATION_LAG, sources) if sources else None,
        groups=rows(GROUP_STATES, own),
    )
