"""The figures of a miss, and which cause they show. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kafka_sla.sla.root_cause.context import Surroundings
from kafka_sla.sla.root_cause.open_transactions import OpenTransaction

Cause = Literal[
    "open_transaction",
    "produced_late",
    "left_topic",
    "no_position",
    "one_record_waiting",
    "commits_rarely",
    "not_catching_up",
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
MISSED = 2
"""Usual spacings of commits without one, up to which a consumer that commits rarely has not stopped."""
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
    longest_stall_ms: float = 0.0
    """The longest time in which records waited and none was consumed, from before the miss on."""
    open_transaction: OpenTransaction | None = None
    """The transaction before which the group waits."""
    steady_reason: str | None = None
    """Why the worst late partition counts as steady, as in the table steady_state."""
    steady_since: datetime | None = None
    unread_since: datetime | None = None
    """Produced time of the oldest record of a late partition on which the group has no position."""
    unread_partition: int | None = None
    one_record_waits: bool = False
    """Exactly one record waited on each late partition during the whole miss, committed to after it was produced."""
    append_delay_ms: float | None = None
    """How old records were when they reached Kafka, if the latency of the SLA includes that time."""

    @property
    def cause(self) -> Cause:
        return next(cause for cause, holds in RULES if holds(self))

    @property
    def commit_spacing_ms(self) -> float | None:
        """Usual time between two commits."""
        return self.around.commit_spacing_ms

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
    def left_topic(self) -> bool:
        """The members are known, and none of them is assigned a partition of the topic."""
        return self.around.topic_members == 0

    @property
    def commits_rarely(self) -> bool:
        """The group commits less often than the threshold allows, and has not stopped doing so."""
        spacing_ms = self.commit_spacing_ms
        return bool(spacing_ms and self.max_latency_ms < spacing_ms and self.longest_stall_ms <= MISSED * spacing_ms)

    @property
    def produced_late(self) -> bool:
        """Most of the threshold was spent before the records reached Kafka, and the consumer did not stand still."""
        return (self.append_delay_ms or 0.0) >= OF_THRESHOLD * self.max_latency_ms and not self.stood_still

    @property
    def lost_its_members(self) -> bool:
        """A consumer that assigns partitions to itself never has members, also while all is well."""
        return self.around.members_least == 0 and self.around.members_before != 0

    @property
    def stood_still(self) -> bool:
        """For most of the miss, or for all of the time in which the backlog built up."""
        waiting = self.produce_rate_during if self.lag_worst is None else self.lag_worst
        return (self.stalled_share or 0.0) >= STOOD_STILL or (self.consume_rate_during == 0 and bool(waiting))

    @property
    def _keeps_up(self) -> bool:
        produced, consumed = self.produce_rate_during, self.consume_rate_during
        return bool(produced and consumed and consumed >= BEHIND * produced)

    @property
    def replicated_late(self) -> bool:
        """Records reached the topic late, by a large part of the threshold."""
        late_ms = self.around.replication_latency_worst_ms or 0.0
        return late_ms >= OF_THRESHOLD * self.max_latency_ms

    @property
    def produce_rate_jumped(self) -> bool:
        produced, consumed = self.produce_rate_during, self.consume_rate_during
        usual, pace = self.produce_rate_before, self.consume_rate_before
        kept_pace = consumed and consumed >= SLOWED * (pace or 0)
        return bool(produced and usual and produced >= JUMPED * usual and kept_pace)

    @property
    def too_slow(self) -> bool:
        produced, consumed = self.produce_rate_during, self.consume_rate_during
        return bool(produced is not None and consumed and consumed < BEHIND * produced and self.lag_worst != 0)


RULES: tuple[tuple[Cause, Callable[[Evidence], object]], ...] = (
    ("open_transaction", lambda e: e.open_transaction),
    ("produced_late", lambda e: e.produced_late),
    ("left_topic", lambda e: e.left_topic),
    ("no_position", lambda e: e.unread_since or e.steady_reason == "no_position"),
    ("one_record_waiting", lambda e: e.one_record_waits),
    ("commits_rarely", lambda e: e.commits_rarely),
    ("contradictory", lambda e: e.contradiction),
    ("not_catching_up", lambda e: e.steady_reason == "not_catching_up"),
    ("stalled", lambda e: e.stood_still and e.commits_without_progress),
    ("no_members", lambda e: e.stood_still and e.lost_its_members),
    ("stopped", lambda e: e.stood_still),
    ("rewound", lambda e: e.rewound_records),
    ("replication", lambda e: e.replicated_late),
    ("slow_broker", lambda e: brokers_became_slow(e.around.broker_verdict, e.around.broker_verdict_before)),
    ("produce_rate_jumped", lambda e: e.produce_rate_jumped),
    ("too_slow", lambda e: e.too_slow),
    ("records_expired", lambda e: e.around.expired_unread_low),
    ("unclear", lambda e: True),
)
"""Causes and when each holds; the first that holds is taken."""


def brokers_became_slow(verdict: str | None, before: str | None) -> bool:
    """Do these verdicts on the brokers, during a miss and before it, say that they became slow?"""
    return bool(verdict and verdict.startswith("slow") and verdict != before)
