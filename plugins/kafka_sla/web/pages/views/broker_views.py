"""Brokers, replication and unread records in words for the templates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any

from kafka_sla.model.entities import Interval
from kafka_sla.text.formatting import UNKNOWN, bounds, count, moment, plural, span
from kafka_sla.web.queries.schemas import BrokerPairLatency, ReplicationStatus, Truncated, Unread

SOON_MS = timedelta(hours=24) / timedelta(milliseconds=1)
"""Records that expire within that time are called about to be lost."""
VERDICTS = {
    "even": ("met", "✔", "even"),
    "slow_broker": ("missed", "✖", "slow broker"),
    "slow_pair": ("pending", "▲", "slow pair"),
    "slow_all": ("pending", "▲", "all are slow"),
    "unknown": ("unknown", "?", "unknown"),
}


def since(rows: Sequence[Truncated], span: Interval) -> str:
    """From when on the rows are summed up, where that is later than asked; else nothing."""
    first = min((row.covered_from for row in rows), default=span.start)
    return moment(first) if first > span.start else ""


def meshes(rows: Sequence[BrokerPairLatency]) -> list[dict[str, Any]]:
    """A matrix of each cluster: a row per follower, a column per leader."""
    found = []
    for cluster, mine in groupby(rows, key=lambda row: row.cluster):
        pairs = {(row.follower, row.leader): row for row in mine}
        leaders = sorted({leader for _, leader in pairs})
        followers = sorted({follower for follower, _ in pairs}, key=lambda name: (not name.isdigit(), len(name), name))
        newest = next(iter(pairs.values()))
        found.append(
            {
                "name": cluster,
                "leaders": leaders,
                "verdict": VERDICTS[newest.verdict],
                "reason": newest.verdict_reason,
                "rows": [
                    {
                        "name": f"broker {follower}" if follower.isdigit() else follower,
                        "cells": [_cell(follower, leader, pairs.get((follower, leader))) for leader in leaders],
                    }
                    for follower in followers
                ],
            }
        )
    return found


def _cell(follower: str, leader: int, row: BrokerPairLatency | None) -> dict[str, Any]:
    if row is None:
        return {"latency": "" if follower == str(leader) else UNKNOWN, "slow": False, "detail": ""}
    detail = f"worst window {span(row.worst_latency_ms)}"
    if row.low_ms is not None:
        detail += f", newest {bounds(row.low_ms, row.high_ms)}"
    if row.slow_windows:
        detail += f", slow in {row.slow_windows} of {row.windows} windows"
    return {"latency": span(row.latency_ms), "slow": 2 * row.slow_windows > row.windows, "detail": detail}


def flow(row: ReplicationStatus) -> dict[str, Any]:
    behind = row.lag is None or row.lag > 0
    sign = (
        ("unknown", "?", "unknown")
        if row.lag is None
        else ("pending", "▲", "behind")
        if behind
        else ("met", "✔", "all copied")
    )
    return {
        "row": row,
        "badge": sign,
        "partitions": plural(row.partitions, "partition"),
        "lag": count(row.lag),
        "worst": count(row.worst_lag),
        "latency": span(row.latency_ms),
        "worst_latency": span(row.worst_latency_ms),
        "seen": moment(row.last_replicated_at),
        "reason": row.unknown_reason or "",
    }


def unread(row: Unread) -> dict[str, Any]:
    return {
        "row": row,
        "badge": _loss(row),
        "unread": count(row.unread),
        "lost": _lost(row),
        "expires": moment(row.expires_at) if row.expires_at else "never" if row.unread is not None else UNKNOWN,
        "left": span(row.expires_in_ms) if row.expires_in_ms is not None else "",
        "reason": row.unknown_reason or "",
    }


def _loss(row: Unread) -> tuple[str, str, str]:
    if row.lost_high:
        return ("missed", "✖", "lost") if row.lost_low else ("pending", "▲", "maybe lost")
    if row.expires_in_ms is not None and row.expires_in_ms < SOON_MS:
        return "pending", "▲", "expires soon"
    return ("unknown", "?", "unknown") if row.lost_high is None else ("met", "✔", "safe")


def _lost(row: Unread) -> str:
    if row.lost_low is None or row.lost_high is None:
        return UNKNOWN
    return count(row.lost_low) if row.lost_low == row.lost_high else f"{count(row.lost_low)} to {count(row.lost_high)}"
