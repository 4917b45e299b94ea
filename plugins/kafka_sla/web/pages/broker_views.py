"""Brokers, replication and unread records in words for the templates. Knows no query and no HTML tag."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any

from kafka_sla.model.entities import Interval
from kafka_sla.text.formatting import UNKNOWN, bounds, count, moment, plural, span
from kafka_sla.web.queries.schemas import FlowNow, PairNow, Summed, Unread

SOON_MS = timedelta(hours=24) / timedelta(milliseconds=1)
"""Records that expire within that time are called about to be lost."""
VERDICTS = {"even": ("kept", "✔", "even"), "slow_broker": ("missed", "✖", "slow broker"),
            "slow_pair": ("late", "▲", "slow pair"), "slow_all": ("late", "▲", "all are slow"),
            "unknown": ("no_data", "?", "unknown")}  # fmt: skip


def since(rows: Sequence[Summed], span: Interval) -> str:
    """From when on the rows are summed up, where that is later than asked; else nothing."""
    first = min((row.since for row in rows), default=span.start)
    return moment(first) if first > span.start else ""


def meshes(rows: Sequence[PairNow]) -> list[dict[str, Any]]:
    """A matrix of each cluster: a row per fetcher, a column per leader."""
    found = []
    for cluster, mine in groupby(rows, key=lambda row: row.cluster):
        pairs = {(row.fetcher, row.leader): row for row in mine}
        leaders = sorted({leader for _, leader in pairs})
        fetchers = sorted({fetcher for fetcher, _ in pairs}, key=lambda name: (not name.isdigit(), len(name), name))
        newest = next(iter(pairs.values()))
        found.append({
            "name": cluster, "leaders": leaders, "verdict": VERDICTS[newest.verdict], "reason": newest.verdict_reason,
            "rows": [{"name": f"broker {fetcher}" if fetcher.isdigit() else fetcher,
                      "cells": [_cell(fetcher, leader, pairs.get((fetcher, leader))) for leader in leaders]}
                     for fetcher in fetchers],
        })  # fmt: skip
    return found


def _cell(fetcher: str, leader: int, row: PairNow | None) -> dict[str, Any]:
    if row is None:
        return {"latency": "" if fetcher == str(leader) else UNKNOWN, "slow": False, "detail": ""}
    detail = f"worst window {span(row.worst_ms)}"
    if row.low_ms is not None:
        detail += f", newest {bounds(row.low_ms, row.high_ms)}"
    if row.slow_windows:
        detail += f", slow in {row.slow_windows} of {row.windows} windows"
    return {"latency": span(row.latency_ms), "slow": 2 * row.slow_windows > row.windows, "detail": detail}


def flow(row: FlowNow) -> dict[str, Any]:
    behind = row.lag is None or row.lag > 0
    sign = ("no_data", "?", "unknown") if row.lag is None else ("late", "▲", "behind") if behind else (
        "kept", "✔", "all copied")  # fmt: skip
    return {
        "row": row, "badge": sign, "partitions": plural(row.partitions, "partition"),
        "lag": count(row.lag), "worst": count(row.worst_lag),
        "latency": span(row.latency_ms), "worst_latency": span(row.worst_latency_ms),
        "seen": moment(row.last_replicated_at), "why": row.unknown_reason or "",
    }  # fmt: skip


def unread(row: Unread) -> dict[str, Any]:
    return {
        "row": row, "badge": _loss(row), "unread": count(row.unread), "lost": _lost(row),
        "expires": moment(row.expires_at) if row.expires_at else "never" if row.unread is not None else UNKNOWN,
        "left": span(row.expires_in_ms) if row.expires_in_ms is not None else "", "why": row.unknown_reason or "",
    }  # fmt: skip


def _loss(row: Unread) -> tuple[str, str, str]:
    if row.lost_high:
        return ("missed", "✖", "lost") if row.lost_low else ("late", "▲", "maybe lost")
    if row.expires_in_ms is not None and row.expires_in_ms < SOON_MS:
        return "late", "▲", "expires soon"
    return ("no_data", "?", "unknown") if row.lost_high is None else ("kept", "✔", "safe")


def _lost(row: Unread) -> str:
    if row.lost_low is None or row.lost_high is None:
        return UNKNOWN
    return count(row.lost_low) if row.lost_low == row.lost_high else f"{count(row.lost_low)} to {count(row.lost_high)}"
