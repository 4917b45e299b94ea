"""Which step of a cluster's totals a window shows, and what is missing in it. Arrow and Python."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import FOREVER, Interval
from kafka_sla.model.tables import FETCH_LATENCY
from kafka_sla.spark_jobs.brokers.pairs import CONSUMERS, said_of

FOLLOWERS = "followers"
"""All of a leader's followers together, where it tells who fetches."""
REACH = timedelta(minutes=30)
"""A sample says nothing of windows that end later than this, and is compared with none further back: so both lie in the
hour before a window that every job reads, and rows do not depend on the interval that is measured."""

Row = dict[str, Any]


def rows_of(interval: Interval, window_ms: int, steps: pa.Table) -> pa.Table:
    """Rows of `fetch_latency` of one cluster."""
    rows: list[Row] = []
    ordered = sorted(steps.to_pylist(), key=lambda step: step["at"])
    times, grid = [step["at"] for step in ordered], list(interval.windows(window_ms))
    ends = [window.end for window in grid]
    for at, following in pairwise([*sorted(set(times)), FOREVER]):
        windows = grid[bisect_left(ends, at) : bisect_left(ends, min(following, at + REACH))]
        if windows:
            near = ordered[bisect_right(times, at - REACH) : bisect_right(times, at)]
            rows += _in_windows(windows, said_of(_round(at, near)), ordered[0]["cluster"])
    return arrow_rows(FETCH_LATENCY, rows)


def _in_windows(windows: list[Interval], said: list[Row], cluster: str) -> Iterator[Row]:
    for window in windows:
        span = {"cluster": cluster, "window_start": window.start, "window_end": window.end}
        yield from (row | span for row in said)


def _round(at: datetime, steps: list[Row]) -> list[Row]:
    """What is known of each follower in the round at `at`, of all that were seen lately."""
    newest = {(s["leader"], s["follower"]): s["at"] for s in steps}
    now: dict[tuple[int, str], list[Row]] = {}
    for step in steps:
        if step["at"] == at:
            now.setdefault((step["leader"], step["follower"]), []).append(step)
    return [
        _known(leader, follower, now[leader, follower], now.get((leader, _told_as(follower)), []))
        if seen == at
        else _gone(leader, follower, at)
        for (leader, follower), seen in newest.items()
        if follower != FOLLOWERS
    ]


def _told_as(follower: str) -> str:
    """Under which name the leader counts it."""
    return CONSUMERS if follower == CONSUMERS else FOLLOWERS


def _known(leader: int, follower: str, own: list[Row], told: list[Row]) -> Row:
    """The step of a follower, all its threads together, and of its leader."""
    silent = None if told else f"broker {leader} shows no totals of its requests"
    reasons = [step["reason"] for step in (*own, *told) if step["reason"]]
    leading = told[0] if told else {}
    return {
        "leader": leader,
        "follower": follower,
        "sampled_from": own[0]["before"],
        "sampled_until": own[0]["at"],
        "fetches": _sum(own, "fetches"),
        "total": _sum(own, "total"),
        "requests": leading.get("fetches"),
        "leader_total": leading.get("total"),
        "leader_remote": leading.get("wait"),
        "unknown_reason": reasons[0] if reasons else silent,
    }


def _sum(steps: list[Row], name: str) -> float | None:
    values = [step[name] for step in steps]
    return None if None in values else sum(values)


def _gone(leader: int, follower: str, at: datetime) -> Row:
    """Something that was sampled before and not in this round."""
    teller = leader if follower == CONSUMERS else follower
    nothing = dict.fromkeys(("fetches", "total", "requests", "leader_total", "leader_remote"))
    reason = f"broker {teller} did not show it at {at.astimezone(UTC):%F %T} UTC"
    return {"leader": leader, "follower": follower, "unknown_reason": reason, **nothing}
