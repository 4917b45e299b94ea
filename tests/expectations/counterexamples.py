"""For every row rule of every suite the rows that break it: what differs from the good row of the table."""

from __future__ import annotations

from tests.expectations.rows import Row, at

_KEYS: dict[str, list[Row]] = {"keys_unique": [{}, {}], "required_known": [{"cluster": None}]}
_WINDOWS: dict[str, list[Row]] = {
    "windows_aligned": [{"window_start": at(30), "window_end": at(90)}, {"window_end": at(120)}],
    "windows_in_interval": [
        {"window_start": at(-60), "window_end": at(0)},
        {"window_start": at(300), "window_end": at(360)},
    ],
    "windows_at_most": [
        {"window_start": at(60 * i), "window_end": at(60 * i + 60), "last_commit_at": at(0)} for i in range(6)
    ],
}

BROKEN: dict[str, dict[str, list[Row]]] = {
    "log_offsets": _KEYS
    | {
        "offsets_not_negative": [{"log_end_offset": -1, "log_start_offset": None}],
        "end_not_below_start": [{"log_start_offset": 101}],
        "source_named": [{"source": " "}],
        "fresh": [{"at": at(239)}],
    },
    "record_ranges": _KEYS
    | {
        "ranges_not_empty": [{"first_offset": 100, "records": None}, {"first_offset": -1}],
        "records_fit": [{"records": 11}, {"records": -1, "earliest": None}],
        "times_ordered": [{"earliest": at(300)}],
        "read_is_known": [{"latest": None}, {"records": 0}],
    },
    "committed_offsets": _KEYS | {"offsets_not_negative": [{"committed_offset": -1}], "source_named": [{"source": ""}]},
    "group_states": _KEYS
    | {
        "members_not_negative": [{"members": -1}],
        "type_known": [{"type": "quorum"}],
        "state_known": [{"state": "Confused"}],
    },
    "share_lags": _KEYS
    | {
        "offsets_not_negative": [{"start_offset": -1}, {"records_lag": -1}],
        "lag_known_or_reasoned": [{"records_lag": None}, {"unknown_reason": "not told"}],
        "lag_fits": [{"records_lag": 6}],
    },
    "topic_configs": _KEYS
    | {
        "partitions_positive": [{"partitions": 0}],
        "retention_not_negative": [{"retention_ms": -1}],
        "cleanup_policy_known": [{"cleanup_policy": "shred"}],
        "timestamp_type_known": [{"message_timestamp_type": "NoTimestampType"}],
    },
    "broker_requests": _KEYS
    | {
        "required_known": [{"broker": None}],
        "totals_not_negative": [{"requests": -1}, {"remote_ms": -1.0}],
        "parts_within_total": [{"remote_ms": 5_017.0}],
        "request_known": [{"request": "Produce"}],
        "started_before_seen": [{"started_at": at(301)}],
    },
    "replica_fetches": _KEYS
    | {
        "required_known": [{"leader": None}],
        "totals_not_negative": [{"responses": -1}, {"io_wait_ms": -1.0}],
        "fetched_from_another": [{"leader": 1}],
        "started_before_seen": [{"started_at": at(301)}],
    },
    "fetch_latency": _KEYS
    | _WINDOWS
    | {
        "required_known": [{"verdict_reason": None}],
        "windows_at_most": [{"window_start": at(60 * i), "window_end": at(60 * i + 60)} for i in range(6)],
        "figures_not_negative": [{"fetches": -1}, {"fetch_latency_low_ms": -1.0}],
        "latency_bounds_ordered": [{"fetch_latency_low_ms": 5.1}, {"fetch_latency_high_ms": 4.9}],
        "latency_is_total_less_wait": [{"wait_ms": 501.0}],
        "local_within_total": [{"total_local_ms": 503.0}],
        "unknown_has_a_reason": [{"unknown_reason": "it restarted"}, {"fetch_latency_ms": None, "slow": None}],
        "method_known": [{"method": "leader"}, {"method": None}, {"follower": "consumers", "slow": None}],
        "verdict_known": [{"verdict": "slow_broker"}, {"verdict": "odd"}, {"verdict_broker": 1}],
        "confidence_of_a_verdict": [{"confidence": None}, {"confidence": 1.1}],
        "slow_needs_a_verdict": [{"slow": None}, {"verdict": "unknown", "confidence": None}],
        "sampled_before_end": [{"sampled_until": at(61)}, {"sampled_from": at(2)}],
    },
    "consumer_latency": _KEYS
    | _WINDOWS
    | {
        "counts_not_negative": [{"negative_latency_records": -1, "unknown_latency_records": 3}],
        "histogram_sums": [
            {"records_consumed": 13},
            {"latency_histogram": None},
            {"latency_histogram": {340: 10, 381: 0}},
            {"latency_histogram": {-1: 10}},
        ],
        "latency_not_negative": [{"backlog_age_low_ms": -1.0}],
        "latency_bounds_ordered": [{"records_latency_low_ms": 901.0}, {"records_latency_high_ms": 899.0}],
        "latency_max_bounds_ordered": [{"records_latency_max_low_ms": 1_901.0}],
        "latency_avg_bounds_ordered": [{"records_latency_avg_high_ms": 1_199.0}],
        "backlog_bounds_ordered": [{"backlog_age_low_ms": 401.0}],
        "backlog_max_bounds_ordered": [{"backlog_age_max_high_ms": 1_899.0}],
        "max_is_largest": [{"records_latency_ms": 1_950.0, "records_latency_high_ms": None}],
        "latency_known_when_counted": [
            {"records_latency_max_ms": None},
            {"records_consumed": 2, "latency_histogram": None},
        ],
        "method_known": [
            {"method": "guessed"},
            {"records_consumed": 0, "latency_histogram": None, "unknown_latency_records": 0},
        ],
        "lag_not_negative": [{"records_lag": -1}, {"records_lag_max": 4}],
        "backlog_max_is_largest": [{"backlog_age_max_ms": 399.0}],
        "caught_up_has_no_age": [{"records_lag": 0}],
        "unknown_has_a_reason": [{"backlog_age_ms": None}, {"unknown_reason": "no log end"}],
        "end_not_below_start": [{"log_start_offset": 101}],
        "position_is_effective": [{"effective_position": 94}, {"log_start_offset": 96}],
        "commit_before_end": [{"last_commit_at": at(61)}],
        "clocks_agree": [{"negative_latency_records": 2, "unknown_latency_records": 0}],
    },
    "steady_state": _KEYS
    | _WINDOWS
    | {
        "state_known": [{"state": "drifting"}, {"reason": "rewind"}],
        "since_before_end": [{"since": at(61), "steady_whole_window": False}],
        "throughout_is_steady": [{"since": at(1)}, {"state": "bootstrapping", "reason": "rewind"}],
        "records_over_threshold_not_negative": [{"records_over_threshold": -1}],
    },
    "consumer_status": _KEYS
    | _WINDOWS
    | {
        "status_known": [{"status": "ASLEEP"}],
        "group_as_bad_as_partition": [
            {"status": "WARNING", "group_status": "OK"},
            {"status": "STALLED", "group_status": "WARNING"},
            {"group_status": "NOTFOUND"},
            {"group_status": "STOPPED"},
        ],
        "complete_is_a_share": [{"complete": 0.0}, {"complete": 1.1}, {"group_complete": 1.1}],
        "lag_known_with_end": [{"lag": -1}, {"lag": None}, {"log_end_offset": None}],
        "caught_up_is_ok": [{"status": "STOPPED", "lag": 0}],
        "commits_together": [
            {"commit_offsets": [90, 95]},
            {"commit_lags": [5]},
            {"commit_times": [], "commit_offsets": [], "commit_lags": []},
        ],
        "commits_in_order": [{"commit_times": [at(28), at(-2), at(58)]}],
        "commits_not_negative": [{"commit_offsets": [90, -1, 95]}, {"commit_lags": [None, -1, 5]}],
        "commit_before_end": [
            {"last_commit_at": at(57)},
            {"last_seen_at": at(57)},
            {"last_seen_at": at(60)},
        ],
    },
    "non_consumed": _KEYS
    | _WINDOWS
    | {
        "counts_bounded": [
            {"non_consumed_low": -1},
            {"non_consumed_low": 6},
            {"non_consumed_total_low": 26},
            {"non_consumed_high": None},
            {"non_consumed_total_high": None},
        ],
        "totals_hold_counts": [{"non_consumed_total_high": 4, "non_consumed_total_low": 0}],
        "unknown_has_a_reason": [
            {"unknown_reason": "not looked at"},
            {"non_consumed_low": None, "non_consumed_high": None},
        ],
        "compacted_refused": [{"cleanup_policy": "compact"}],
        "cleanup_policy_known": [{"cleanup_policy": "delete,compact"}],
        "not_negative": [{"unread_records": -1}, {"log_start_offset": -1}, {"unread_expires_in_ms": -1.0}],
        "forecast_together": [
            {"unread_expires_in_ms": None},
            {"unread_records": 0},
            {"unread_expires_in_ms": 1.0},
        ],
        "oldest_is_unread": [{"oldest_unread_at": at(61)}, {"unread_records": 0, "unread_expires_at": None}],
        "positions_ordered": [{"position_low": 96}],
        "nothing_lost": [{"non_consumed_low": 1}],
    },
    "replication_lag": _KEYS
    | _WINDOWS
    | {
        "counts_not_negative": [{"stale_refreshes": -1}, {"last_replicated_offset": -1}],
        "lag_bounds_ordered": [{"replication_record_lag_min": 6}, {"replication_record_lag": 13}],
        "lag_known_when_refreshed": [
            {"refreshes": 0, "stale_refreshes": 0},
            {"replication_record_lag_avg": None},
        ],
        "unknown_has_a_reason": [{"replication_record_lag": None}, {"unknown_reason": "stale"}],
        "replicated_offset_was_seen": [{"last_replicated_at": at(60)}, {"last_replicated_at": None}],
        "latency_not_negative": [{"replication_latency_ms": 1_901.0}, {"replication_latency_avg_ms": -1.0}],
        "few_refreshes_stale": [{"refreshes": 1, "stale_refreshes": 3}],
    },
}
