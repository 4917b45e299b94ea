"""Names and values that earlier versions wrote, and what replaced them: the one list of them. Reads no store."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

YAML_KEYS = {
    "exporters": "jmx_exporters",
    "floor": "min_gap",
    "grace": "grace_period",
    "lateness": "freshness_alert",
    "look_ups": "offset_lookups",
    "per_pass": "max_per_hour",
    "unread_expires_within": "min_time_to_expiry",
}
"""Former key → key."""
TABLES = {"sla_rollups": "sla_stretches", "sla_rollup_details": "sla_stretch_details"}
"""SQL table → its former name."""
COLUMNS: dict[str, dict[str, str]] = {
    "replica_fetches": {"fetcher_thread": "fetcher"},
    "steady_state": {"steady_whole_window": "steady_throughout", "records_over_threshold": "records_over"},
    "fetch_latency": {"follower": "fetcher"},
    "sla_windows": {"is_certain": "certain", "records_over_threshold": "records_over"},
    "sla_misses": {"is_certain": "certain"},
    "sla_rollups": {
        "excluded_ms": "excused_ms",
        "records_over_threshold": "records_over",
        "worst_latency_ms": "worst_ms",
        "worst_latency_low_ms": "worst_low_ms",
        "worst_latency_high_ms": "worst_high_ms",
    },
    "late_runs": {"reported_at": "told_at"},
}
"""Table → column → its former name."""
VALUES: dict[str, dict[str, dict[str, str]]] = {
    "committed_offsets": {"source": {"unchanged": "poll_confirmed"}},
    "steady_state": {"reason": {"grace_over": "grace_period_over"}},
    "sla_windows": {"verdict": {"excused": "excluded"}},
    "sla_misses": {"state": {"closed": "recovered"}},
}
"""Table → column → former value → value."""
UNKNOWN_THEN = {"sla_misses": {"for_ms": "0"}}
"""Table → required column that earlier versions did not keep → what its rows get, in SQL."""
IN_DIGESTS = ("grace_period_ms", "grace_ms")
"""A field, and its name in the digests of rules that stores hold: under another digest all would be measured anew."""


def expressions(table: str, there: Collection[str]) -> dict[str, str]:
    """SQL for each column of the table that had another name or other values, over rows with the columns `there`: the
    same for DuckDB, Spark, SQLite and Postgres."""
    former, values = COLUMNS.get(table, {}), VALUES.get(table, {})
    found = {}
    for name in (*former, *values):
        names = [known for known in dict.fromkeys((name, former.get(name, name))) if known in there]
        if names:
            value = f"coalesce({', '.join(names)})" if len(names) > 1 else names[0]
            cases = " ".join(f"WHEN '{old}' THEN '{new}'" for old, new in values.get(name, {}).items())
            found[name] = f"CASE {value} {cases} ELSE {value} END" if cases else value
    return found


def renamed(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its columns under today's names."""
    today = {old: new for new, old in COLUMNS.get(table, {}).items()}
    return {today.get(name, name): value for name, value in row.items()}
