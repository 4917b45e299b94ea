"""What one step of a cluster says: rows of differences in, rows with latencies and the cluster's verdict out.

The reckoning is in `fetch_mesh`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kafka_sla.spark_jobs.brokers.equations import Mesh
from kafka_sla.spark_jobs.brokers.solve import Pairs, solve
from kafka_sla.spark_jobs.brokers.verdict import Finding

Row = dict[str, Any]
CONSUMERS = "consumers"
"""Who fetches, where it is not a follower."""


_GRAIN_MS = 1.0
"""Kafka rounds each time to whole milliseconds and shows its parts one after the other while requests go on: a wait
that seems longer than the whole by less than this is as long as it."""


def said_of(steps: list[Row]) -> list[Row]:
    """What the steps of one round say, row by row.

    A step: leader and follower; `fetches` answered in it and the time that they took in `total`, ms; `requests` that
    the leader answered, to all followers or consumers, their `leader_total` and the `leader_remote` part of it.
    """
    mesh = _mesh(steps)
    pairs = solve(mesh)
    cluster = _of_cluster(pairs.finding)
    return [
        step | cluster | (_of_consumers(step) if step["follower"] == CONSUMERS else _of_pair(step, mesh, pairs))
        for step in steps
    ]


def _of_cluster(finding: Finding) -> Row:
    return {
        "verdict": finding.verdict,
        "verdict_broker": finding.broker,
        "verdict_reason": finding.reason,
        "confidence": finding.confidence,
    }


def _of_leader(row: Row) -> Row:
    if not row["requests"]:
        return {}
    total, wait = row["leader_total"] / row["requests"], row["leader_remote"] / row["requests"]
    return {"leader_total_ms": total, "total_local_ms": total - wait if wait <= total else None}


def _too_coarse(observed_ms: float, wait_ms: float) -> Row:
    """That a wait seems longer than the whole is no speed."""
    return {
        "total_ms": observed_ms,
        "wait_ms": wait_ms,
        "unknown_reason": f"{observed_ms:.1f} ms were observed of which {wait_ms:.1f} ms were waited: Kafka's whole"
        " milliseconds are too coarse",
    }


def _of_consumers(row: Row) -> Row:
    """What lies between leader and consumer nobody measures: the latency is the leader's part, and that at least."""
    leader = _of_leader(row)
    if not leader:
        return {"unknown_reason": row["unknown_reason"] or "no consumer fetched"}
    local = leader["total_local_ms"]
    if local is None:
        return leader | _too_coarse(leader["leader_total_ms"], row["leader_remote"] / row["requests"])
    return leader | {
        "total_ms": leader["leader_total_ms"],
        "wait_ms": leader["leader_total_ms"] - local,
        "method": "leader",
        "fetch_latency_ms": local,
        "fetch_latency_low_ms": local,
    }


def _local(leader: Row, row: Row) -> tuple[float | None, float]:
    """The leader's own part of a fetch, and its high bound, ms: next to nothing where the wait seems longer by no more
    than the grain, so that the network share can be told; None where it seems longer than that."""
    local = leader["total_local_ms"]
    if local is not None:
        return local, local
    excess = (row["leader_remote"] - row["leader_total"]) / row["requests"]
    return (0.0 if excess < _GRAIN_MS else None), _GRAIN_MS


def _of_pair(row: Row, mesh: Mesh, pairs: Pairs) -> Row:
    leader = _of_leader(row)
    trip = row["total"] / row["fetches"] if row["fetches"] else None
    if trip is None or not leader:
        silent = "it fetched nothing" if row["fetches"] == 0 else f"broker {row['leader']} answered no fetches"
        return leader | {"total_ms": trip, "unknown_reason": row["unknown_reason"] or silent}
    local, local_high = _local(leader, row)
    if local is None:
        return leader | _too_coarse(leader["leader_total_ms"], row["leader_remote"] / row["requests"])
    at = mesh.brokers.index(int(row["follower"])), mesh.brokers.index(row["leader"])
    low = float(pairs.low[at])
    high = min(float(pairs.high[at]) + local_high * row["requests"] / row["fetches"], trip)
    latency = min(max(float(pairs.network[at]) + local, low), high)
    if latency <= 0:
        return leader | _too_coarse(trip, row["leader_remote"] / row["requests"])
    return leader | {
        "total_ms": trip,
        "wait_ms": trip - latency,
        "fetch_latency_ms": latency,
        "fetch_latency_low_ms": min(low, high),
        "fetch_latency_high_ms": high,
        "method": "solved" if pairs.solved[at] else "simple",
        "slow": pairs.slow.get((min(mesh.brokers[i] for i in at), max(mesh.brokers[i] for i in at))),
    }


def _mesh(rows: list[Row]) -> Mesh:
    pairs = [row for row in rows if row["follower"] != CONSUMERS]
    brokers = tuple(sorted({row["leader"] for row in pairs} | {int(row["follower"]) for row in pairs}))
    at, size = {broker: i for i, broker in enumerate(brokers)}, len(brokers)
    fetches, trip = np.full((size, size), np.nan), np.full((size, size), np.nan)
    answered, total, wait = (np.full(size, np.nan) for _ in range(3))
    for row in pairs:
        follower, leader = at[int(row["follower"])], at[row["leader"]]
        if row["fetches"]:
            fetches[follower, leader], trip[follower, leader] = row["fetches"], row["total"] / row["fetches"]
        if row["requests"]:
            answered[leader] = row["requests"]
            total[leader], wait[leader] = (row[n] / row["requests"] for n in ("leader_total", "leader_remote"))
    return Mesh(brokers, fetches, trip, answered, total, wait)
