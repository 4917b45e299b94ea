"""One promise, an hour of verdicts on it and its miss: the story that mails and reports are tested with."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kafka_sla.model.entities import Interval, Miss, Patterns, Sla, SlaWindow, SteadyState, Verdict
from kafka_sla.sla.miss_rule import judge_misses

MINUTE = timedelta(minutes=1)
START = datetime(2026, 3, 2, 9, 40, tzinfo=UTC)
EVIDENCE: dict[str, Any] = {
    "cause": "stopped",
    "sentence": "Group payments consumed nothing from orders after 2026-03-02 09:59:31 UTC "
    "while up to 55,200 records waited.",
    "group": "payments",
    "topic": "orders",
    "late_partitions": 6,
    "partitions": ["payments orders-3"],
    "produce_rate_before": 50.1,
    "produce_rate_during": 49.8,
    "consume_rate_before": 50.0,
    "consume_rate_during": 0.0,
    "records_consumed": 0,
    "lag_at_start": 120,
    "lag_worst": 55_200,
    "last_commit_at": "2026-03-02T09:59:31.250Z",
    "stalled_share": 0.9,
    "stalled_ms": 1_140_000.0,
    "stalled_from": None,
    "stalled_until": None,
    "commits_without_progress": False,
    "rewound_records": None,
    "rewound_at": None,
    "max_latency_ms": 30_000,
    "status": "STOPPED",
    "status_share": 0.85,
    "members_before": 3,
    "members_least": 3,
    "group_state": "Stable",
    "expired_unread_low": 0,
    "expired_unread_high": 0,
    "unread_expires_at": "2026-03-02T21:59:31.000Z",
    "broker_verdict": "even",
    "broker_verdict_before": "even",
    "broker_reason": "all pairs take about 2 ms",
    "broker_confidence": 0.99,
    "replication_flow": None,
    "replication_lag_worst": None,
    "replication_latency_worst_ms": None,
    "not_measured": [],
}


def promise(**changes: Any) -> Sla:
    fields: dict[str, Any] = {
        "name": "payments-30s",
        "cluster": "main",
        "groups": Patterns(("payments",)),
        "topics": Patterns(("orders",)),
        "max_latency_ms": 30_000,
        "for_ms": 120_000,
        "objective": 0.999,
        "steady_state": SteadyState(30_000),
        "recipients": ("oncall@example.com", "lead@example.com"),
        "team": "Payments",
        "description": "Card payments are booked while the customer waits.",
    }
    return Sla(**{**fields, **changes})


def hour(**where: Any) -> list[SlaWindow]:
    """60 minutes: maintenance in the 11th to 13th, late from the 21st to the 41st, no data in the 51st and 52nd."""
    return [_window(minute, **where) for minute in range(60)]


def miss(**changes: Any) -> Miss:
    """The miss of that hour; with an `end` of None it is open."""
    if "end" in changes:
        changes = {"state": "recovered" if changes["end"] else "open", **changes}
    (found,) = judge_misses(promise(), hour())
    return replace(found, **{"evidence": EVIDENCE, **changes})


def _window(minute: int, **where: Any) -> SlaWindow:
    span = Interval(START + minute * MINUTE, START + (minute + 1) * MINUTE)
    late = 20 <= minute < 41
    verdict: Verdict = (
        "bad" if late else "unknown" if minute in (50, 51) else "excluded" if 10 <= minute < 13 else "good"
    )
    reason = {"unknown": "no data for group payments", "excluded": "maintenance: broker upgrade"}.get(verdict, "")
    if verdict == "unknown":
        return SlaWindow("payments-30s", span, verdict, False, reason, unknown_partitions=6, max_latency_ms=30_000)
    worst = 3_000.0 if not late else 58_000.0 * (min(minute, 37) - 19) - 250_000.0 * max(0, minute - 37)
    place = {"worst_group": "payments", "worst_topic": "orders", "worst_partition": 3, **where}
    return SlaWindow(
        "payments-30s",
        span,
        verdict,
        True,
        reason,
        worst,
        worst * 0.95,
        worst * 1.05,
        **place,
        steady_partitions=6,
        records_due=3_000,
        records_late=900 if late else 0,
        max_latency_ms=30_000,
    )
