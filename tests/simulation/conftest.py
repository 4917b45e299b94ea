"""A world that fails because its records bear other times than the facts were taken from."""

from __future__ import annotations

import pytest

from benchmarks.simulation import checking, making
from benchmarks.simulation.world import World


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> tuple[World, tuple[str, str]]:
    """Its figures are all said to be a minute older than they are."""
    made = making.world(_SEED)
    right = checking.outside

    def late(visible, truth, start, row):  # type: ignore[no-untyped-def]
        yield from right(visible, truth, start, row | {"backlog_age_low_ms": (row["backlog_age_low_ms"] or 0) + 1e9})

    monkeypatch.setattr("benchmarks.simulation.checking.outside", late)
    return made, ("truth in bounds", "backlog_age")


_SEED = 11
"""A world with few readers, in which nothing else fails."""
