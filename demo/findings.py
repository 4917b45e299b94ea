"""The other tables of the demonstration in words: status, unread records, replication, brokers. Reads the lake only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka_sla.cli.console.results import aligned
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import CONSUMER_STATUS, FETCH_LATENCY, NON_CONSUMED, REPLICATION_LAG, Table
from kafka_sla.text.formatting import UNKNOWN, count, moment, plural, span

Row = dict[str, Any]


def findings(store: Store, interval: Interval) -> str:
    """What each table says at the end of the interval."""
    parts = [
        f"{title}\n{_text(_newest(store, table, interval), header, cells)}" for title, table, header, cells in _PARTS
    ]
    return "\n\n".join(parts)


def _newest(store: Store, table: Table, interval: Interval) -> list[Row]:
    """The newest row of each key, by key."""
    key = [name for name in table.key if name != "window_start"]
    rows = Lake(store).published(table.name, interval).to_pylist()
    newest = {tuple(row[name] for name in key): row for row in sorted(rows, key=lambda row: row["window_start"])}
    return [newest[one] for one in sorted(newest)]


def _text(rows: list[Row], header: tuple[str, ...], cells: Callable[[Row], tuple[str, ...]]) -> str:
    return aligned(header, [cells(row) for row in rows]) if rows else "nothing was measured"


def _status(row: Row) -> tuple[str, ...]:
    return row["group"], f"{row['topic']}-{row['partition']}", row["status"], row["group_status"], row["reason"]


def _unread(row: Row) -> tuple[str, ...]:
    low, high = row["non_consumed_total_low"], row["non_consumed_total_high"]
    lost = UNKNOWN if low is None else count(low) if low == high else f"{count(low)} to {count(high)}"
    expires = row["unread_expires_at"]
    return (
        row["group"],
        f"{row['topic']}-{row['partition']}",
        lost,
        count(row["unread_records"]),
        moment(expires) if expires else "",
        "" if low is not None else row["unknown_reason"] or "",
    )


def _replication(row: Row) -> tuple[str, ...]:
    lag = row["replication_record_lag"]
    return (
        row["flow"],
        f"{row['topic']}-{row['partition']}",
        row["target_topic"],
        UNKNOWN if lag is None else plural(lag, "record"),
        span(row["replication_latency_max_ms"]),
        row["unknown_reason"] or "",
    )


def _fetches(row: Row) -> tuple[str, ...]:
    verdict = row["verdict"] + (f" {row['verdict_broker']}" if row["verdict_broker"] is not None else "")
    slow = {True: "slow", False: "", None: "?"}[row["slow"]]
    return (
        row["cluster"],
        row["follower"],
        str(row["leader"]),
        span(row["total_ms"]),
        span(row["wait_ms"]),
        span(row["fetch_latency_ms"]),
        slow,
        verdict,
        row["unknown_reason"] or "",
    )


_PARTS: tuple[tuple[str, Table, tuple[str, ...], Callable[[Row], tuple[str, ...]]], ...] = (
    (
        "Consumer status (Burrow's rules)",
        CONSUMER_STATUS,
        ("group", "partition", "status", "of the group", "because"),
        _status,
    ),
    (
        "Records removed unread (KIP-490)",
        NON_CONSUMED,
        ("group", "partition", "lost", "unread", "next expires", "unknown because"),
        _unread,
    ),
    (
        "Replication lag (KIP-971)",
        REPLICATION_LAG,
        ("flow", "partition", "copied to", "lag", "latency, at most", "unknown because"),
        _replication,
    ),
    (
        "Fetch latency between brokers (KIP-736)",
        FETCH_LATENCY,
        ("cluster", "from", "leader", "total", "wait", "true latency", "", "verdict", "unknown because"),
        _fetches,
    ),
)
