"""What the published rows of a chain say of one window: how long it takes, and what each stage adds. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kafka_sla.model.entities import Sla


@dataclass(frozen=True, slots=True)
class ChainStage:
    """What one stage adds at least and at most, to records that came out or to those that wait before it."""

    stage: int
    """From 1."""
    group: str
    topic: str
    partition: int | None
    """On which records waited longest; None: on none."""
    added_low_ms: float
    added_high_ms: float | None
    """None: unbounded."""


@dataclass(frozen=True, slots=True)
class ChainState:
    """A chain in one window: the longest that a record took or has been on its way, between two bounds."""

    sla: str
    at: datetime
    """End of the window."""
    latency_low_ms: float
    latency_high_ms: float | None
    """None: unbounded, for a reason."""
    slowest_stage: int | None
    """None: nothing passed, and nothing waits."""
    stages: tuple[ChainStage, ...]
    reason: str
    """Why there is no high bound; empty where there is one."""


def chain_state(sla: Sla, rows: Sequence[Mapping[str, Any]]) -> ChainState | None:
    """From the rows of `chain_latency` of one window; None where they are not those of all stages."""
    known = {row["stage"]: row for row in rows if row["sla"] == sla.name}
    if known.keys() != set(range(len(sla.chain) + 1)):
        return None
    whole = known.pop(0)
    stages = tuple(
        ChainStage(
            number,
            row["group"],
            row["topic"],
            row["partition"],
            longest(row, "_low_ms") or 0.0,
            longest(row, "_high_ms"),
        )
        for number, row in sorted(known.items())
    )
    return ChainState(
        sla.name,
        whole["window_end"],
        longest(whole, "_low_ms") or 0.0,
        longest(whole, "_high_ms"),
        whole["slowest_stage"],
        stages,
        whole["unknown_reason"] or "",
    )


def longest(row: Mapping[str, Any], bound: str) -> float | None:
    """A bound of what came out and of what waits: the larger one; None where one of them has no such bound."""
    known = [row[f"{name}{bound}"] for name in ("records_latency_max", "backlog_age") if row[f"{name}_ms"] is not None]
    return None if None in known else max(known, default=None)
