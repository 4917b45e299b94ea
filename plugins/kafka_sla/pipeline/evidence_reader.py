"""What was published about an SLA, read for its verdicts and for the evidence of its misses. Judges nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.config.settings import Settings
from kafka_sla.errors import DamagedFile
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.queries.latency_rows import compacted_commits
from kafka_sla.model.entities import Interval, Miss, Sla, ceil_time, floor_time
from kafka_sla.model.tables import (
    CONSUMER_LATENCY,
    CONSUMER_STATUS,
    FETCH_LATENCY,
    GROUP_MEMBERS,
    GROUP_STATES,
    NON_CONSUMED,
    OPEN_TRANSACTIONS,
    REPLICATION_LAG,
    STEADY_STATE,
    Table,
)
from kafka_sla.pipeline.chain_rows import chain_evidence
from kafka_sla.sla.compacted_history import doubted, first_commits, window_before
from kafka_sla.sla.rollups import HOUR_MS
from kafka_sla.sla.root_cause.context import Around
from kafka_sla.sla.root_cause.evidence import covered, evidence, evidence_times, is_explained
from kafka_sla.sla.windows.wanted_rows import groups_of
from kafka_sla.sla.wording import lacking, late_stage
from kafka_sla.spark.job_spec import NEXT_POLL

_JUDGED = (
    "cluster",
    "group",
    "topic",
    "partition",
    "window_start",
    "records_consumed",
    "records_latency_max_ms",
    "records_latency_max_low_ms",
    "records_latency_max_high_ms",
    "unknown_latency_records",
    "records_lag",
    "assumed_offset",
    "backlog_age_max_ms",
    "backlog_age_max_low_ms",
    "backlog_age_max_high_ms",
    "append_delay_ms",
    "unknown_reason",
)
_FOR_MEASURING = {"rewound_from", "rewound_at", "rewinds", "progress_at", "lowest_age_ms", "lowest_lag"}
_STATES = tuple(name for name in STEADY_STATE.names if name not in _FOR_MEASURING)
_EXPLAINING = tuple(name for name in CONSUMER_LATENCY.names if name != "latency_histogram")
Groups = Collection[str] | None
"""Names; None: all."""
ROWS_AT_ONCE = 2_000_000
"""So many rows of latency are held to judge by, and as many of each of their SLAs: of a thousand group-partitions a day
is one piece, of two million each window."""
_MANY_ROWS = 200_000
"""Of a cluster: where there are so many, a miss is explained by those of its worst group, and late partitions are
counted piece by piece."""


def measured(
    sla: Sla, lake: Lake, interval: Interval, groups: Collection[str] | None = None
) -> tuple[pa.Table, pa.Table]:
    """The published latency, without the histograms that no verdict needs, and the steady states, in no order; of all
    groups, or of these."""

    def states(of: Interval) -> pa.Table:
        return lake.published(STEADY_STATE.name, of, [sla.cluster], _STATES, groups, in_order=False)

    latency = lake.published(CONSUMER_LATENCY.name, interval, [sla.cluster], _JUDGED, groups, in_order=False)
    return latency, _told(sla, lake, interval, states)


def _told(sla: Sla, lake: Lake, interval: Interval, states: Callable[[Interval], pa.Table]) -> pa.Table:
    """The steady states, those that nobody knows as unknown."""
    steady = states(interval)
    if before := window_before(steady):
        steady = pa.concat_tables([states(before), steady])
    if (first := first_commits(steady)) and (lost := compacted_commits(lake, sla.cluster, first)).num_rows:
        steady = doubted(steady, lost)
    return steady.filter(pc.greater_equal(steady["window_start"], pa.scalar(interval.start)))


def explained(
    settings: Settings,
    sla: Sla,
    miss: Miss,
    until: datetime,
    lake: Lake,
    before: Miss | None = None,
    beside: Sequence[Sla] = (),
) -> Miss:
    """The miss with its evidence from the published rows around it; a damaged file of them costs its rows only. That of
    `before`, the same miss some windows ago, is kept where it says the same. `beside`: SLAs of which others may be
    missed in the same time; what they need is read with it."""
    if before and is_explained(miss, before, covered(miss, until, evidence_times(miss, until, settings.window_ms))):
        return replace(miss, evidence=before.evidence)
    own, together = groups_of([sla]), groups_of([sla, *beside])

    def found_by(tables: Lake, read: Groups) -> dict[str, Any]:
        return _evidence(settings, sla, miss, until, _Rows(tables, own, read))

    left_out: tuple[str, ...] = ()
    try:
        found = found_by(lake, together)
    except DamagedFile:  # perhaps of others alone
        found, left_out = lake.spared(lambda tables: found_by(tables, own))
    if left_out:
        found |= {"damaged_files": list(left_out), "sentence": f"{found['sentence']} {lacking(left_out)}"}
    return replace(miss, evidence=found)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Published rows of an SLA's groups, read for those of several SLAs and for whole hours, because other misses want
    the same ones."""

    lake: Lake
    own: Groups
    together: Groups

    def of(self, table: Table, time: Interval, clusters: Sequence[str], columns: Sequence[str] | None) -> pa.Table:
        """Its rows of the time, by key; of tables without a group, all."""
        has_group = "group" in table.names
        groups = self.together if has_group else None
        rows = self.lake.published(table.name, _hours(time), clusters, columns, groups)
        at = rows[table.time]
        mine = pc.and_(pc.greater_equal(at, pa.scalar(time.start)), pc.less(at, pa.scalar(time.end)))
        if has_group and self.own is not None:
            mine = pc.and_(mine, pc.is_in(rows["group"], pa.array(sorted(self.own), pa.string())))
        return rows.filter(mine)


def _hours(time: Interval) -> Interval:
    return Interval(floor_time(time.start, HOUR_MS), ceil_time(time.end, HOUR_MS))


def _evidence(settings: Settings, sla: Sla, miss: Miss, until: datetime, rows: _Rows) -> dict[str, Any]:
    lake, own = rows.lake, [sla.cluster]
    times = evidence_times(miss, until, settings.window_ms)
    during = [Interval(max(miss.start, time.start), time.end) for time in times]
    judged: Iterable[tuple[pa.Table, pa.Table]]
    shown = sum(lake.rows_shown(CONSUMER_LATENCY, _hours(time), sla.cluster, _MANY_ROWS) for time in times)
    if shown < _MANY_ROWS:
        latency = pa.concat_tables([rows.of(CONSUMER_LATENCY, time, own, _EXPLAINING) for time in times])
        states = [_told(sla, lake, time, lambda of: rows.of(STEADY_STATE, of, own, _STATES)) for time in during]
        judged = [(latency, pa.concat_tables(states))]
    else:
        if miss.worst_group is not None:
            rows = _Rows(lake, [miss.worst_group], [miss.worst_group])
        latency = pa.concat_tables([rows.of(CONSUMER_LATENCY, time, own, _EXPLAINING) for time in times])
        judged = (
            measured(sla, lake, piece, groups_of([sla]))
            for time in during
            for piece in lake.in_pieces(CONSUMER_LATENCY, time, sla.cluster, settings.window_ms, ROWS_AT_ONCE)
        )
    around = _around(settings, sla, times, rows)
    found = evidence(miss, latency, judged, around, counts_append_delay=sla.latency_from == "created")
    found |= covered(miss, until, times)
    return found | (_of_chain(settings, sla, miss, lake, found) if sla.chain else {})


def _of_chain(settings: Settings, sla: Sla, miss: Miss, lake: Lake, found: Mapping[str, Any]) -> dict[str, Any]:
    """Which stage was late, before why."""
    of_chain = chain_evidence(sla, miss, lake, settings.window_ms)
    return of_chain and of_chain | {"sentence": f"{late_stage(of_chain)} {found['sentence']}"}


def _around(settings: Settings, sla: Sla, times: Sequence[Interval], rows: _Rows) -> Around:
    """What else was published of these times; None for what the configuration does not ask for."""

    def of(table: Table, clusters: Sequence[str]) -> pa.Table:
        return pa.concat_tables([rows.of(table, time, clusters, None) for time in times])

    own = [sla.cluster]
    sources = [c.name for c in settings.clusters if any(flow.target == sla.cluster for flow in c.replication)]
    states = [rows.lake.published(GROUP_STATES.name, time, own) for time in times]

    def seen(table: Table) -> pa.Table:
        """What snapshots saw, also the first one after the newest window."""
        return pa.concat_tables([rows.lake.published(table.name, _until_next_poll(time), own) for time in times])

    return Around(
        status=of(CONSUMER_STATUS, own),
        lost=of(NON_CONSUMED, own),
        brokers=of(FETCH_LATENCY, own) if settings.cluster(sla.cluster).jmx_exporters else None,
        replication=of(REPLICATION_LAG, sources) if sources else None,
        groups=pa.concat_tables(states),
        members=seen(GROUP_MEMBERS),
        transactions=seen(OPEN_TRANSACTIONS),
    )


def _until_next_poll(time: Interval) -> Interval:
    return Interval(time.start, time.end + NEXT_POLL)
