"""The figures of a miss, and which cause they show. Pure: knows no rows and no words for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kafka_sla.sla.root_cause.context import Surroundings

Cause = Literal[
    "no_members",
    "stopped",
    "stalled",
    "rewound",
    "slow_broker",
    "replication",
    "produce_rate_jumped",
    "too_slow",
    "records_expired",
    "contradictory",
    "unclear",
]
STOOD_STILL = 0.5
"""Share of a miss without progress from which the consumer is said to have stopped."""
JUMPED = 1.5
"""Produce rate over the usual one from which it is said to have jumped."""
SLOWED = 0.7
"""Consume rate over the usual one below which the consumer did not keep its pace."""
BEHIND = 0.95
"""Consume rate over produce rate below which the consumer is said to be too slow."""
NOTICED_MS = 30 * 60_000.0
"""Time without progress that Burrow's rules must notice: they need a silence longer than that of the last commits."""
OF_THRESHOLD = 0.5
"""Replication latency over the threshold from which records are said to have come late."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Figures over the late partitions of the worst group and topic; None where the rows do not tell."""

    group: str
    topic: str
    late_partitions: int
    """Late partitions of all groups and topics of the SLA."""
    partitions: tuple[str, ...]
    """At most ten of them, the worst first."""
    produce_rate_before: float | None
    """Records per second."""
    produce_rate_during: float | None
    consume_rate_before: float | None
    consume_rate_during: float | None
    records_consumed: int
    """In the whole miss."""
    lag_at_start: int | None
    lag_worst: int | None
    last_commit_at: datetime | None
    stalled_share: float | None
    """Share of the windows of the miss, of those that tell, in which records waited and none was consumed."""
    stalled_ms: float
    """How long that was."""
    stalled_from: datetime | None
    """Last commit before the longest such time; None when nothing stood still."""
    stalled_until: datetime | None
    """Start of the window in which the group moved again; None while it has not."""
    commits_without_progress: bool
    """It committed while it stood still: alive, but stuck."""
    rewound_records: int | None
    """Records that it went back, from what was usual until the end; None when it did not."""
    rewound_at: datetime | None
    max_latency_ms: int
    """The threshold that was broken."""
    around: Surroundings

    @property
    def cause(self) -> Cause:
        if self.contradiction:
            return "contradictory"
        if self._stood_still:
            if self.commits_without_progress:
                return "stalled"
            # A consumer that assigns partitions to itself never has members, also while all is well.
            left = self.around.members_least == 0 and self.around.members_before != 0
            return "no_members" if left else "stopped"
        if self.rewound_records:
            return "rewound"
        return self._outside or self._pace

    @property
    def contradiction(self) -> str | None:
        """What cannot both be true, in words."""
        status, share = self.around.status, self.around.status_share or 0.0
        if self.stalled_share and self.stalled_ms >= NOTICED_MS and status == "OK" and share > STOOD_STILL:
            return f"nothing was consumed for {self.stalled_share:.0%} of the time, yet the consumer status was OK"
        if self.stalled_share == 0 and status in ("STOPPED", "STALLED") and share > STOOD_STILL and self._keeps_up:
            return f"the consumer status was {status}, yet as much was consumed as produced"
        return None

    @property
    def _stood_still(self) -> bool:
        """For most of the miss, or for all of the time in which the backlog built up."""
        waiting = self.produce_rate_during if self.lag_worst is None else self.lag_worst
        return (self.stalled_share or 0.0) >= STOOD_STILL or (self.consume_rate_during == 0 and bool(waiting))

    @property
    def _keeps_up(self) -> bool:
        produced, consumed = self.produce_rate_during, self.consume_rate_during
        return bool(produced and consumed and consumed >= BEHIND * produced)

    @property
    def _outside(self) -> Cause | None:
        """What is not the consumer's doing: brokers that became slow, or records that came late."""
        late_ms = self.around.replication_latency_worst_ms or 0.0
        if late_ms >= OF_THRESHOLD * self.max_latency_ms:
            return "replication"
        slow = brokers_became_slow(self.around.broker_verdict, self.around.broker_verdict_before)
        return "slow_broker" if slow else None

    @property
    def _pace(self) -> Cause:
        produced, consumed = self.produce_rate_during, self.consume_rate_during
        usual, pace = self.produce_rate_before, self.consume_rate_before
        if produced and usual and produced >= JUMPED * usual and consumed and consumed >= SLOWED * (pace or 0):
            return "produce_rate_jumped"
        if produced is not None and consumed and consumed < BEHIND * produced and self.lag_worst != 0:
            return "too_slow"
        return "records_expired" if self.around.expired_unread_low else "unclear"


def brokers_became_slow(verdict: str | None, before: str | None) -> bool:
    """Do these verdicts on the brokers, during a miss and before it, say that they became slow?"""
    return bool(verdict and verdict.startswith("slow") and verdict != before)
