"""What is measured beside latency: consumer status, fetch latency of brokers, replication, records never read. Sums of
published rows by DuckDB; draws nothing."""

from __future__ import annotations

from typing import Any

from kafka_sla.lake.duckdb_reader import opened, shown
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.sla_stats import OF_PAIRS, add_pairs
from kafka_sla.ledger.publications import Slice
from kafka_sla.model.entities import Interval, Sla, epoch_ms
from kafka_sla.model.tables import CONSUMER_STATUS, FETCH_LATENCY, NON_CONSUMED, REPLICATION_LAG, Table
from kafka_sla.web.queries.context import Context
from kafka_sla.web.queries.schemas import BrokerPairLatency, ReplicationStatus, StatusLine, StatusRow, Unread

MOST_ROWS = 50_000_000
"""What one answer sums up: seconds of work. Of a longer span the newest part is told, and each row says since when."""
STATUSES = ("OK", "NOTFOUND", "WARNING", "REWIND", "STALLED", "STOPPED")
"""From the best to the worst; the worst of a step is told."""


def pairs(context: Context, span: Interval) -> list[BrokerPairLatency]:
    """Each pair of brokers: means over the span, and what the newest window says."""
    return [BrokerPairLatency(**row) for row in _summed(context, FETCH_LATENCY, span, _PAIRS)]


def flows(context: Context, span: Interval) -> list[ReplicationStatus]:
    """Each replicated topic of each flow: what waits now, and the worst of the span."""
    return [ReplicationStatus(**row) for row in _summed(context, REPLICATION_LAG, span, _FLOWS)]


def unread(context: Context, span: Interval) -> list[Unread]:
    """Each group and topic that lost records in the span, or is about to; the soonest first."""
    return [Unread(**row) for row in _summed(context, NON_CONSUMED, span, _UNREAD)]


def status_lines(context: Context, sla: Sla, span: Interval, step_ms: int) -> StatusLine:
    """The worst status of the partitions of each group and topic of an SLA, step by step."""
    first, last = epoch_ms(span.start) // step_ms, (epoch_ms(span.end) - 1) // step_ms
    rows = _summed(context, CONSUMER_STATUS, span, _STATUS, sla, ranks=list(STATUSES), width=step_ms)
    lines: dict[str, list[str | None]] = {}
    for row in rows:
        line = lines.setdefault(f"{row['group']} {row['topic']}", [None] * (last - first + 1))
        line[row["step"] - first] = STATUSES[row["worst"]]
    steps = [step * step_ms for step in range(first, last + 1)]
    told = [StatusRow(name=name, statuses=line) for name, line in sorted(lines.items())]
    covered_from = min((row["covered_from"] for row in rows), default=span.start)
    return StatusLine(
        sla=sla.name, start=span.start, end=span.end, covered_from=covered_from, step_ms=step_ms, at_ms=steps, rows=told
    )


def _summed(
    context: Context, table: Table, span: Interval, query: str, sla: Sla | None = None, **values: Any
) -> list[dict[str, Any]]:
    """The query over the visible rows of the span, or of its newest part, as the view `shown`; of one SLA or of all."""
    published = context.ledger.publications.slices([sla.cluster] if sla else None, span)
    return context.spared(lambda lake: _summed_in(lake, table, span, published, query, sla, values))


def _summed_in(
    lake: Lake, table: Table, span: Interval, published: list[Slice], query: str, sla: Sla | None,
    values: dict[str, Any],
) -> list[dict[str, Any]]:  # fmt: skip
    slices = lake.newest_slices(table, published, MOST_ROWS)
    files = lake.published_files(table, slices)
    if not files:
        return []
    covered_from = max(span.start, min(s.interval.start for s in slices)) if slices != published else span.start
    with opened(table, files, slices) as db:
        if sla:
            add_pairs(db, sla)
        of_sla = OF_PAIRS if sla else ""
        db.run(f"CREATE TEMP VIEW shown AS SELECT files.* FROM files {shown('window_start')} {of_sla}")
        return [row | {"covered_from": covered_from} for row in db.rows(query, **values)]


_PAIRS = """
    SELECT cluster, leader, follower, sum(fetches)::BIGINT AS fetches,
        sum(fetch_latency_ms * fetches) FILTER (fetch_latency_ms IS NOT NULL)
            / nullif(sum(fetches) FILTER (fetch_latency_ms IS NOT NULL), 0) AS latency_ms,
        max(fetch_latency_ms) AS worst_latency_ms, max_by(fetch_latency_low_ms, window_start) AS low_ms,
        max_by(fetch_latency_high_ms, window_start) AS high_ms,
        sum(total_local_ms * fetches) FILTER (total_local_ms IS NOT NULL)
            / nullif(sum(fetches) FILTER (total_local_ms IS NOT NULL), 0) AS local_ms,
        count(*) FILTER (slow)::INT AS slow_windows, count(*)::INT AS windows,
        arg_max(verdict, window_start) AS verdict, arg_max(verdict_reason, window_start) AS verdict_reason
    FROM shown GROUP BY ALL ORDER BY cluster, leader, follower
"""
_FLOWS = """
    WITH newest AS (SELECT cluster, flow, max(window_start) AS last FROM shown GROUP BY ALL)
    SELECT cluster, flow, target, topic, any_value(target_topic) AS target_topic,
        count(DISTINCT partition)::INT AS partitions,
        CASE WHEN count(replication_record_lag) FILTER (window_start = last) = count(*) FILTER (window_start = last)
            THEN TRY_CAST(sum(replication_record_lag) FILTER (window_start = last) AS BIGINT) END AS lag,
        max(replication_record_lag_max) AS worst_lag, max(replication_latency_max_ms) AS worst_latency_ms,
        max(replication_latency_ms) FILTER (window_start = last) AS latency_ms,
        max(last_replicated_at) AS last_replicated_at,
        min(unknown_reason) FILTER (window_start = last) AS unknown_reason
    FROM shown JOIN newest USING (cluster, flow) GROUP BY ALL ORDER BY cluster, flow, target, topic
"""
_UNREAD = """
    WITH newest AS (SELECT cluster, max(window_start) AS last FROM shown GROUP BY ALL)
    SELECT cluster, "group", topic,
        TRY_CAST(sum(non_consumed_low) AS BIGINT) AS lost_low, TRY_CAST(sum(non_consumed_high) AS BIGINT) AS lost_high,
        TRY_CAST(sum(unread_records) FILTER (window_start = last) AS BIGINT) AS unread,
        min(unread_expires_at) FILTER (window_start = last) AS expires_at,
        min(unread_expires_in_ms) FILTER (window_start = last) AS expires_in_ms,
        min(unknown_reason) FILTER (window_start = last) AS unknown_reason
    FROM shown JOIN newest USING (cluster) GROUP BY ALL
    ORDER BY expires_in_ms NULLS LAST, lost_high DESC NULLS LAST, cluster, "group", topic
"""
_STATUS = """
    SELECT "group", topic, (epoch_ms(window_start) // $width)::BIGINT AS step,
        max(list_position($ranks, status) - 1)::INT AS worst
    FROM shown GROUP BY ALL
"""
