"""One good row of every validated table, for tests that break it in one place. Times are seconds after START."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kafka_sla.model.entities import Interval

START = datetime(2026, 11, 1, 10, tzinfo=UTC)
INTERVAL = Interval(START, START + timedelta(minutes=5))
WINDOW_MS = 60_000
Row = dict[str, Any]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


_PARTITION: Row = {"cluster": "prod", "topic": "orders", "partition": 0}
_WINDOW: Row = _PARTITION | {"group": "billing", "window_start": at(0), "window_end": at(60)}
_LATENCY: Row = {
    "records_latency_ms": 900.0,
    "records_latency_low_ms": 800.0,
    "records_latency_high_ms": 1_000.0,
    "records_latency_max_ms": 1_900.0,
    "records_latency_max_low_ms": 1_800.0,
    "records_latency_max_high_ms": 2_000.0,
    "records_latency_avg_ms": 1_200.0,
    "records_latency_avg_low_ms": 1_100.0,
    "records_latency_avg_high_ms": 1_300.0,
    "backlog_age_ms": 400.0,
    "backlog_age_low_ms": 300.0,
    "backlog_age_high_ms": 500.0,
    "backlog_age_max_ms": 1_900.0,
    "backlog_age_max_low_ms": 1_800.0,
    "backlog_age_max_high_ms": 2_000.0,
}
_POSITION: Row = {
    "records_lag": 5,
    "records_lag_max": 12,
    "committed_offset": 95,
    "effective_position": 95,
    "log_start_offset": 10,
    "log_end_offset": 100,
    "last_commit_at": at(59),
}
_COUNTS: Row = {
    "records_consumed": 12,
    "latency_histogram": {340: 7, 381: 3},
    "negative_latency_records": 0,
    "unknown_latency_records": 2,
    "polled_only": False,
    "method": "bracketed",
    "unknown_reason": None,
}
_STEADY: Row = {
    "sla": "payments",
    "state": "steady",
    "since": at(-30),
    "reason": "caught_up",
    "steady_whole_window": True,
    "records_over_threshold": 0,
}
_TOPIC: Row = {
    "partitions": 3,
    "topic_id": "q1",
    "cleanup_policy": "delete",
    "retention_ms": None,
    "message_timestamp_type": "CreateTime",
}

_REPLICATION: Row = {
    "flow": "A->B",
    "window_start": at(0),
    "window_end": at(60),
    "target": "B",
    "target_topic": "A.orders",
    "replication_record_lag": 5,
    "replication_record_lag_min": 0,
    "replication_record_lag_max": 12,
    "replication_record_lag_avg": 5.5,
    "refreshes": 4,
    "stale_refreshes": 0,
    "last_replicated_offset": 94,
    "last_replicated_at": at(58),
    "log_end_offset": 100,
    "replication_latency_ms": 900.0,
    "replication_latency_max_ms": 1_900.0,
    "replication_latency_avg_ms": 1_200.0,
    "unknown_reason": None,
}

_BROKER: Row = {"cluster": "prod", "at": at(300), "started_at": at(-9_000)}
_FETCH: Row = {
    "leader": 0,
    "follower": "1",
    "window_start": at(0),
    "window_end": at(60),
    "sampled_from": at(-298),
    "sampled_until": at(2),
    "fetches": 600,
    "total_ms": 505.0,
    "wait_ms": 500.0,
    "fetch_latency_ms": 5.0,
    "fetch_latency_low_ms": 4.0,
    "fetch_latency_high_ms": 6.0,
    "leader_total_ms": 502.0,
    "total_local_ms": 2.0,
    "method": "solved",
    "slow": False,
    "verdict": "even",
    "verdict_reason": "all pairs take about 5 ms",
    "verdict_broker": None,
    "confidence": 0.99,
    "unknown_reason": None,
}

_STATUS: Row = {
    "status": "OK",
    "complete": 0.3,
    "group_status": "ERROR",
    "group_complete": 0.5,
    "reason": "the lag was zero at one of the commits",
    "lag": 5,
    "log_end_offset": 100,
    "last_commit_at": at(58),
    "last_seen_at": at(59),
    "polled_only": False,
    "commit_times": [at(-2), at(28), at(58)],
    "commit_offsets": [90, 92, 95],
    "commit_lags": [None, 0, 5],
}

_NON_CONSUMED: Row = {
    "non_consumed_low": 0,
    "non_consumed_high": 5,
    "non_consumed_total_low": 10,
    "non_consumed_total_high": 25,
    "unread_records": 5,
    "oldest_unread_at": at(40),
    "unread_expires_at": at(3_600),
    "unread_expires_in_ms": 3_540_000.0,
    "cleanup_policy": "delete",
    "retention_ms": 3_600_000,
    "log_start_offset": 10,
    "committed_offset": 95,
    "position_low": 90,
    "position_high": 95,
    "unknown_reason": None,
}

GOOD: dict[str, Row] = {
    "log_offsets": _PARTITION | {"at": at(300), "log_start_offset": 10, "log_end_offset": 100, "source": "snapshot"},
    "record_ranges": _PARTITION
    | {"at": at(300), "first_offset": 90, "end_offset": 100, "records": 8, "earliest": at(290), "latest": at(299)},
    "committed_offsets": _PARTITION
    | {"group": "billing", "at": at(59), "committed_offset": 95, "source": "commit_log"},
    "group_states": {
        "cluster": "prod", "group": "billing", "at": at(300), "type": "classic", "state": "Stable", "members": 2,
    },
    "share_lags": _PARTITION
    | {"group": "pickers", "at": at(300), "start_offset": 95, "log_end_offset": 100, "records_lag": 4,
       "unknown_reason": None, "no_time_lag": "it has no position"},
    "topic_configs": {"cluster": "prod", "topic": "orders", "at": at(300)} | _TOPIC,
    "broker_requests": _BROKER | {"broker": 0, "request": "FetchFollower", "requests": 10, "total_ms": 5_020.0,
                                  "remote_ms": 5_000.0, "local_ms": 15.0},
    "replica_fetches": _BROKER | {"follower": 1, "leader": 0, "fetcher_thread": 0, "responses": 10,
                                    "io_wait_ms": 5_050.0},
    "fetch_latency": _FETCH | {"cluster": "prod"},
    "consumer_latency": _WINDOW | _LATENCY | _POSITION | _COUNTS,
    "steady_state": _WINDOW | _STEADY,
    "consumer_status": _WINDOW | _STATUS,
    "non_consumed": _WINDOW | _NON_CONSUMED,
    "replication_lag": _PARTITION | _REPLICATION,
}  # fmt: skip
"""A good row by table name."""

IDENTITY = {
    "log_offsets": "topic",
    "record_ranges": "topic",
    "committed_offsets": "group",
    "group_states": "group",
    "share_lags": "group",
    "topic_configs": "topic",
    "broker_requests": "cluster",
    "replica_fetches": "cluster",
    "fetch_latency": "cluster",
    "consumer_latency": "group",
    "steady_state": "group",
    "consumer_status": "group",
    "non_consumed": "group",
    "replication_lag": "flow",
}
"""The key column that tests give another value to tell rows apart."""


def good(table: str, name: str = "good", **more: Any) -> Row:
    """A row that breaks nothing, known by `name`, save for what `more` says."""
    return GOOD[table] | {IDENTITY[table]: name} | more
