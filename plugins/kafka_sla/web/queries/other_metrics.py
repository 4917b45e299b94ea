"""What is measured beside latency: consumer status, fetch latency of brokers, replication, records never read. Added up
from what is published; draws nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kafka_sla.lake.duckdb_reader import opened, shown
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.queries.sla_stats import OF_PAIRS, add_pairs
from kafka_sla.lake.queries.span_totals import totals
from kafka_sla.ledger.publications import Slice
from kafka_sla.ledger.rollups import SLOTS_KEPT
from kafka_sla.model.entities import Interval, Sla, ceil_time, epoch_ms, floor_time
from kafka_sla.model.tables import CONSUMER_STATUS, FETCH_LATENCY, NON_CONSUMED, REPLICATION_LAG, Table
from kafka_sla.sla.rollups import HOUR_MS, SLOT_MS
from kafka_sla.text.natural_order import natural
from kafka_sla.web.queries.context import Context
from kafka_sla.web.queries.schemas import BrokerPairLatency, ReplicationStatus, StatusLine, StatusRow, Unread

MOST_ROWS = 50_000_000
"""What one answer reads: seconds of work. Of more the newest part is added up, and each row says since when."""
STATUSES = ("OK", "NOTFOUND", "WARNING", "REWIND", "STALLED", "STOPPED")
"""From the best to the worst; the worst of a step is told."""


def pairs(context: Context, span: Interval) -> list[BrokerPairLatency]:
    """Each pair of brokers: means over the span, and what the newest window says."""
    return [BrokerPairLatency(**row) for row in _totals(context, FETCH_LATENCY, span, _PAIRS)]


def flows(context: Context, span: Interval) -> list[ReplicationStatus]:
    """Each replicated topic of each flow: what waits now, and the worst of the span."""
    return [ReplicationStatus(**row) for row in _totals(context, REPLICATION_LAG, span, _FLOWS)]


def unread(context: Context, span: Interval) -> list[Unread]:
    """Each group and topic that lost records in the span, or is about to; the soonest first."""
    return [Unread(**row) for row in _totals(context, NON_CONSUMED, span, _UNREAD)]


def status_lines(context: Context, sla: Sla, span: Interval, step_ms: int) -> StatusLine:
    """The worst status of the partitions of each group and topic of an SLA, step by step."""
    first, last = epoch_ms(span.start) // step_ms, (epoch_ms(span.end) - 1) // step_ms
    rows = _summed(context, sla, span, _STATUS, ranks=list(STATUSES), width=step_ms)
    lines: dict[str, list[str | None]] = {}
    for row in rows:
        line = lines.setdefault(f"{row['group']} {row['topic']}", [None] * (last - first + 1))
        line[row["step"] - first] = STATUSES[row["worst"]]
    steps = [step * step_ms for step in range(first, last + 1)]
    told = [
        StatusRow(name=name, statuses=line) for name, line in sorted(lines.items(), key=lambda one: natural(one[0]))
    ]
    covered_from = min((row["covered_from"] for row in rows), default=span.start)
    return StatusLine(
        sla=sla.name, start=span.start, end=span.end, covered_from=covered_from, step_ms=step_ms, at_ms=steps, rows=told
    )


def _totals(context: Context, table: Table, span: Interval, query: str) -> list[dict[str, Any]]:
    """The query over the totals of the slots that the span touches; of hours where slots are not kept any more."""
    width_ms = SLOT_MS if span.start >= context.now - SLOTS_KEPT + timedelta(days=1) else HOUR_MS
    whole = Interval(floor_time(span.start, width_ms), ceil_time(span.end, width_ms))
    rows, start = context.spared(lambda lake: totals(lake, context.ledger, table, whole, query, MOST_ROWS))
    return [row | {"covered_from": max(span.start, start)} for row in rows]


def _summed(context: Context, sla: Sla, span: Interval, query: str, **values: Any) -> list[dict[str, Any]]:
    """The query over the visible status rows of an SLA in the span, or in its newest part, as the view `shown`."""
    published = context.ledger.publications.slices([sla.cluster], span)
    return context.spared(lambda lake: _summed_in(lake, sla, span, published, query, values))


def _summed_in(
    lake: Lake, sla: Sla, span: Interval, published: list[Slice], query: str, values: dict[str, Any]
) -> list[dict[str, Any]]:
    slices = lake.newest_slices(CONSUMER_STATUS, published, MOST_ROWS)
    files = lake.published_files(CONSUMER_STATUS, slices)
    if not files:
        return []
    covered_from = max(span.start, min(s.interval.start for s in slices)) if slices != published else span.start
    with opened(CONSUMER_STATUS, files, slices) as db:
        add_pairs(db, sla)
        db.run(f"CREATE TEMP VIEW shown AS SELECT files.* FROM files {shown('window_start')} {OF_PAIRS}")
        return [row | {"covered_from": covered_from} for row in db.rows(query, **values)]


_PAIRS = """
    SELECT cluster, leader, follower, TRY_CAST(fetches AS BIGINT) AS fetches,
        latency_sum / nullif(latency_fetches, 0) AS latency_ms, worst_latency_ms, newest.low_ms AS low_ms,
        newest.high_ms AS high_ms, local_sum / nullif(local_fetches, 0) AS local_ms, slow_windows, windows,
        newest.verdict AS verdict, newest.verdict_reason AS verdict_reason
    FROM totals ORDER BY cluster, leader, follower
"""
_FLOWS = """
    WITH latest AS (SELECT cluster, flow, max(newest_at) AS last FROM totals GROUP BY ALL)
    SELECT cluster, flow, target, topic, target_topic, len(partitions)::INT AS partitions,
        CASE WHEN newest_at = last THEN newest.lag END AS lag, worst_lag, worst_latency_ms,
        CASE WHEN newest_at = last THEN newest.latency_ms END AS latency_ms, last_replicated_at,
        CASE WHEN newest_at = last THEN newest.unknown_reason END AS unknown_reason
    FROM totals JOIN latest USING (cluster, flow) ORDER BY cluster, flow, target, topic
"""
_UNREAD = """
    WITH latest AS (SELECT cluster, max(newest_at) AS last FROM totals GROUP BY ALL)
    SELECT cluster, "group", topic, TRY_CAST(non_consumed_low AS BIGINT) AS lost_low,
        TRY_CAST(non_consumed_high AS BIGINT) AS lost_high,
        CASE WHEN newest_at = last THEN newest.unread END AS unread,
        CASE WHEN newest_at = last THEN newest.expires_at END AS expires_at,
        CASE WHEN newest_at = last THEN newest.expires_in_ms END AS expires_in_ms,
        CASE WHEN newest_at = last THEN newest.unknown_reason END AS unknown_reason
    FROM totals JOIN latest USING (cluster)
    ORDER BY expires_in_ms NULLS LAST, lost_high DESC NULLS LAST, cluster, "group", topic
"""
_STATUS = """
    SELECT "group", topic, (epoch_ms(window_start) // $width)::BIGINT AS step,
        max(list_position($ranks, status) - 1)::INT AS worst
    FROM shown GROUP BY ALL
"""
