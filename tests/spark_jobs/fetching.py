"""Brokers that fetch from each other as told: the running totals that their exporters would show, and steps of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.spark_jobs.conftest import Row, at

Figure = Callable[[int, int], float]
"""What holds for a follower (first) and a leader."""


def between(*pairs: tuple[int, int], slow: float = 100.0, usual: float = 3.0) -> Figure:
    """Network latency in ms: slow between these brokers, usual elsewhere."""
    return lambda a, b: slow if (a, b) in pairs or (b, a) in pairs else usual


def around(broker: int, slow: float = 100.0, usual: float = 3.0) -> Figure:
    """Network latency in ms: slow on all links of a broker."""
    return lambda a, b: slow if broker in (a, b) else usual


@dataclass(slots=True)
class Fetching:
    """A cluster whose brokers all fetch from each other; `wait` and `local` are what leaders take, in ms."""

    brokers: int = 3
    network: Figure = field(default_factory=between)
    wait: Figure = lambda follower, leader: 500.0
    local: Callable[[int], float] = lambda leader: 1.0
    started: dict[int, float] = field(default_factory=dict)
    """When brokers started; 0 unless told."""
    cluster: str = "prod"

    def sampled(self, *seconds: float, without: int | None = None) -> tuple[list[Row], list[Row]]:
        """Rows of broker_requests and replica_fetches at these times; one broker's exporter may be down."""
        up = [b for b in range(self.brokers) if b != without]
        requests = [
            self._requests(b, t, kind) for t in seconds for b in up for kind in ("FetchFollower", "FetchConsumer")
        ]
        fetches = [self._fetches(f, b, t) for t in seconds for f in up for b in range(self.brokers) if f != b]
        return requests, fetches

    def step(self, seconds: float = 300.0) -> list[Row]:
        """What has happened in so much time, as `fetch_pairs` gets it."""
        requests, fetches = self.sampled(0, seconds)
        totals = {(r["broker"], r["at"]): r for r in requests if r["request"] == "FetchFollower"}
        ways = {(r["follower"], r["leader"], r["at"]): r for r in fetches}
        return [
            {"leader": b, "follower": str(f), "unknown_reason": None}
            | _less(ways[f, b, at(seconds)], ways[f, b, at(0)], {"fetches": "responses", "total": "io_wait_ms"})
            | _less(
                totals[b, at(seconds)],
                totals[b, at(0)],
                {"requests": "requests", "leader_total": "total_ms", "leader_remote": "remote_ms"},
            )
            for f in range(self.brokers)
            for b in range(self.brokers)
            if f != b
        ]

    def trip(self, follower: int, leader: int) -> float:
        return self.network(follower, leader) + self.local(leader) + self.wait(follower, leader)

    def _answers(self, follower: int, leader: int, seconds: float) -> int:
        """What one has fetched from the other since both run."""
        since = max(self.started.get(follower, -86_400.0), self.started.get(leader, -86_400.0))
        return int((seconds - since) * 1000 / self.trip(follower, leader))

    def _requests(self, broker: int, seconds: float, kind: str) -> Row:
        row = self._row(broker, seconds) | {"broker": broker, "request": kind, "local_ms": 0.0}
        if kind == "FetchConsumer":
            return row | {
                "requests": int(seconds + 1e6),
                "total_ms": 40.0 * int(seconds + 1e6),
                "remote_ms": 38.5 * int(seconds + 1e6),
            }
        counts = {f: self._answers(f, broker, seconds) for f in range(self.brokers) if f != broker}
        waited = sum(n * self.wait(f, broker) for f, n in counts.items())
        total = waited + sum(counts.values()) * self.local(broker)
        return row | {"requests": sum(counts.values()), "total_ms": total, "remote_ms": waited}

    def _fetches(self, follower: int, leader: int, seconds: float) -> Row:
        answers = self._answers(follower, leader, seconds)
        return self._row(follower, seconds) | {
            "follower": follower,
            "leader": leader,
            "fetcher_thread": 0,
            "responses": answers,
            "io_wait_ms": answers * self.trip(follower, leader),
        }

    def _row(self, broker: int, seconds: float) -> dict[str, Any]:
        started = at(self.started.get(broker, -86_400.0))
        return {"cluster": self.cluster, "at": at(seconds), "started_at": started}


def _less(after: Row, before: Row, names: dict[str, str]) -> Row:
    return {name: float(after[column] - before[column]) for name, column in names.items()}
