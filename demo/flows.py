"""Seven topics with their consumers, each with a known behaviour: what the demonstration expects. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

FIRST_FIGURES_SECONDS, OPENED_SECONDS, RECOVERED_SECONDS = 20, 82, 170
"""When the traffic is measured: for the first time, once misses are open, and once one of them is over."""
_STOPS, _RETURNS = 30, 135


@dataclass(frozen=True, slots=True)
class Flow:
    """One topic, who writes it and who reads it. Seconds count from the start of the traffic."""

    sla: str
    """Name of its SLA in demo/kafka_sla.yml."""
    topic: str
    group: str
    made: Callable[[float], int]
    """Records written in the first so many seconds."""
    partitions: int = 1
    history: int = 0
    """Records that are in the topic before, with timestamps of the last two hours."""
    reads_per_second: float | None = None
    """What its consumer can do; None: whatever comes."""
    absent: tuple[float, float] | None = None
    """While the consumer is stopped."""
    retention_seconds: int | None = None
    """Records are removed after that, read or not; None: never."""
    missed: bool = False
    """The SLA must be missed."""

    def reads_at(self, seconds: float) -> bool:
        return not (self.absent and self.absent[0] <= seconds < self.absent[1])


def steady(per_second: float) -> Callable[[float], int]:
    return lambda seconds: int(seconds * per_second)


def bursts(size: int, every: float) -> Callable[[float], int]:
    return lambda seconds: size * (1 + int(seconds // every))


def once(size: int) -> Callable[[float], int]:
    return lambda seconds: size


FLOWS = (
    Flow("orders: healthy", "orders", "billing", steady(40), partitions=3),
    Flow("payments: too slow", "payments", "fraud-check", steady(30), partitions=2, reads_per_second=15, missed=True),
    Flow("shipments: stopped", "shipments", "tracking", steady(20), absent=(_STOPS, _RETURNS), missed=True),
    Flow("clicks: bootstrapping", "clicks", "search-index", steady(10), 2, history=60_000, reads_per_second=100),
    Flow("reports: bursty", "reports", "mailer", bursts(300, every=15), reads_per_second=200),
    Flow("alerts: idle", "alerts", "pager", once(3)),
    Flow("audit: expiring", "audit", "archive", steady(20), absent=(_STOPS, 1e9), retention_seconds=45, missed=True),
)
