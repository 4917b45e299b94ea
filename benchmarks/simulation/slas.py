"""The SLAs that a world's groups are measured by. Knows settings of the product, no facts."""

from __future__ import annotations

from typing import get_args

from benchmarks.simulation.making import generator
from benchmarks.simulation.world import CLUSTER, World
from kafka_sla.model.entities import Patterns, Sla, SteadyState, WhenUncertain

THRESHOLDS_S = (1, 5, 30, 300)


def slas_of(world: World) -> tuple[Sla, ...]:
    """One SLA over everything for each threshold."""
    rng = generator(world.seed, "slas")
    grace_period = int(rng.integers(10_000, 900_000)) if rng.random() < 0.3 else None
    expire = int(rng.choice([7 * 86_400_000, 120_000, 600_000], p=[0.8, 0.1, 0.1]))
    deadline = int(rng.choice([1_800_000, 60_000, 300_000], p=[0.3, 0.3, 0.4]))
    allowed_lag = int(rng.choice([0, 1, 50], p=[0.8, 0.1, 0.1]))
    bad_for = int(rng.choice([0, 60_000, 300_000]))
    when_uncertain = rng.choice(get_args(WhenUncertain), p=[0.55, 0.15, 0.15, 0.15])
    return tuple(
        Sla(
            f"within {seconds} s",
            CLUSTER,
            Patterns(),
            Patterns(),
            seconds * 1_000,
            bad_for,
            0.99,
            SteadyState(seconds * 1_000, grace_period, expire, deadline),
            allowed_lag=allowed_lag,
            when_uncertain=str(when_uncertain),  # type: ignore[arg-type]
        )
        for seconds in THRESHOLDS_S
    )
