"""What other tables say of the time of a miss: is the group alive, did records expire, brokers, replication. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from kafka_sla.model.entities import FOREVER, Miss
from kafka_sla.sla.root_cause.stats import fetched


@dataclass(frozen=True, slots=True)
class Around:
    """Rows around a miss, of its cluster; None: nobody measures that there."""

    status: pa.Table | None = None
    """consumer_status"""
    lost: pa.Table | None = None
    """non_consumed"""
    brokers: pa.Table | None = None
    """fetch_latency"""
    replication: pa.Table | None = None
    """replication_lag of the flows into the cluster"""
    groups: pa.Table | None = None
    """group_states"""
    members: pa.Table | None = None
    """group_members"""
    transactions: pa.Table | None = None
    """open_transactions"""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Figures of a miss; None where nothing tells."""

    status: str | None = None
    """The consumer status that most windows of the late partitions had."""
    status_share: float | None = None
    """Share of these windows, 0 to 1."""
    members_before: int | None = None
    """The most before the miss: when it begins, they may be gone for as long as the threshold."""
    members_least: int | None = None
    group_state: str | None = None
    """Kafka's word for the group when it had the fewest members."""
    expired_unread_low: int | None = None
    """Records that expired before the group read them, at least."""
    expired_unread_high: int | None = None
    unread_expires_at: datetime | None = None
    """When the next unread records may expire, as the end of the miss saw it."""
    broker_verdict: str | None = None
    """What most windows of the miss say of the brokers."""
    broker_verdict_before: str | None = None
    broker_reason: str | None = None
    broker_confidence: float | None = None
    replication_flow: str | None = None
    replication_lag_worst: int | None = None
    replication_latency_worst_ms: float | None = None
    topic_members: int | None = None
    """The most members that a snapshot of the miss saw assigned to the topic; None where no assignment is known."""
    topics_read: tuple[str, ...] = ()
    """At most five topics that the members read instead where none is assigned to the topic."""
    commit_spacing_ms: float | None = None
    """Usual time between two commits on the late partitions."""
    not_measured: tuple[str, ...] = ()


def surroundings(miss: Miss, partitions: Sequence[int], around: Around) -> Surroundings:
    """The figures of these partitions of the worst group and topic, of what brokers and flows they depend on."""
    values = {
        "group": miss.worst_group,
        "topic": miss.worst_topic,
        "partitions": list(partitions),
        "start": miss.start,
        "end": miss.end or FOREVER,
        "cluster": miss.cluster,
    }
    known: dict[str, Any] = {}
    missing = []
    for what, (query, rows) in {
        "consumer status": (_STATUS, around.status),
        "group members": (_MEMBERS, around.groups),
        "expired records": (_LOST, around.lost),
        "broker pairs": (_BROKERS, around.brokers),
        "replication": (_REPLICATION, around.replication),
    }.items():
        found = [] if rows is None else fetched(query, values, rows=rows)
        known |= found[0] if found else {}
        # Where no flow leads into the cluster, or none copies the topic, replication lacks nothing.
        if (rows is not None and not rows.num_rows) if what == "replication" else not found:
            missing.append(what)
    for query, rows in ((_ASSIGNED, around.members), (_SPACING, around.status)):
        known |= next(iter(fetched(query, values, rows=rows)), {}) if rows is not None else {}
    known["topics_read"] = tuple(known.get("topics_read") or ())
    if expires := known.get("unread_expires_at"):
        known["unread_expires_at"] = expires.astimezone(UTC)
    return Surroundings(**known, not_measured=tuple(missing))


_OF_PARTITIONS = """
    FROM rows WHERE cluster = $cluster AND "group" = $group AND topic = $topic
    AND list_contains($partitions, partition) AND window_start >= $start AND window_start < $end
"""

_STATUS = f"""
    SELECT status, count(*) / sum(count(*)) OVER () AS status_share {_OF_PARTITIONS}
    GROUP BY status ORDER BY count(*) DESC, status = 'OK', status LIMIT 1
"""

_LOST = f"""
    SELECT TRY_CAST(sum(non_consumed_low) AS BIGINT) AS expired_unread_low,
        TRY_CAST(sum(non_consumed_high) AS BIGINT) AS expired_unread_high,
        arg_max(soonest, "end") AS unread_expires_at
    FROM (SELECT window_start AS "end", sum(non_consumed_low) AS non_consumed_low,
              sum(non_consumed_high) AS non_consumed_high, min(unread_expires_at) AS soonest
          {_OF_PARTITIONS} GROUP BY window_start)
    HAVING sum(non_consumed_high) IS NOT NULL
"""

_MEMBERS = """
    SELECT max(members) FILTER ("at" < $start) AS members_before,
        min(members) FILTER ("at" >= $start) AS members_least,
        arg_min(state, members) FILTER ("at" >= $start) AS group_state
    FROM rows WHERE cluster = $cluster AND "group" = $group AND "at" < $end HAVING count(members) > 0
"""

_ASSIGNED = """
    WITH seen AS (
        SELECT "at", count(DISTINCT member) FILTER (topic = $topic AND len(partitions) > 0) AS of_topic,
            list(DISTINCT topic ORDER BY topic) FILTER (topic <> '') AS topics
        FROM rows WHERE cluster = $cluster AND "group" = $group AND "at" >= $start AND "at" < $end
        GROUP BY "at" HAVING count(*) FILTER (topic <> '') > 0
    )
    SELECT max(of_topic) AS topic_members,
        CASE WHEN max(of_topic) = 0 THEN arg_max(topics, "at")[:5] ELSE [] END AS topics_read
    FROM seen HAVING count(*) > 0
"""

_SPACING = """
    SELECT median((epoch_ms(commit_times[-1]) - epoch_ms(commit_times[1])) / (len(commit_times) - 1))
        AS commit_spacing_ms
    FROM rows WHERE cluster = $cluster AND "group" = $group AND topic = $topic
        AND list_contains($partitions, partition) AND window_start < $end
        AND NOT coalesce(polled_only, false) AND len(commit_times) >= 3
    HAVING count(*) > 0
"""

_BROKERS = """
    WITH windows AS (
        SELECT window_start, window_start >= $start AS inside, any_value(verdict) AS verdict,
            any_value(verdict_reason) AS reason, any_value(confidence) AS confidence
        FROM rows WHERE cluster = $cluster AND window_start < $end GROUP BY window_start
    )
    SELECT mode(verdict ORDER BY verdict) FILTER (inside) AS broker_verdict,
        mode(verdict ORDER BY verdict) FILTER (NOT inside) AS broker_verdict_before,
        arg_max(reason, window_start) FILTER (inside AND verdict = (
            SELECT mode(verdict ORDER BY verdict) FROM windows WHERE inside)) AS broker_reason,
        arg_max(confidence, window_start) FILTER (inside AND verdict = (
            SELECT mode(verdict ORDER BY verdict) FROM windows WHERE inside)) AS broker_confidence
    FROM windows HAVING count(*) FILTER (inside) > 0
"""

_REPLICATION = """
    SELECT flow AS replication_flow, max(replication_record_lag_max) AS replication_lag_worst,
        max(replication_latency_max_ms) AS replication_latency_worst_ms
    FROM rows WHERE target = $cluster AND target_topic = $topic AND window_start >= $start AND window_start < $end
    GROUP BY flow ORDER BY replication_latency_worst_ms DESC NULLS LAST, flow LIMIT 1
"""
