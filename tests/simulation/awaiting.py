"""Failures that are known and not mended yet, each by invariant, figures and what brings it about, with the seed that
shows it. This list is to become empty."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.simulation.bounds import Failure
from benchmarks.simulation.checking import Outcome

_RECREATED = "topic: deleted and created again"


class _Known(NamedTuple):
    seed: int
    invariant: str
    figures: tuple[str, ...]
    features: tuple[str, ...]
    """The world has all of these."""


_ALL = (
    _Known(57, "truth in bounds", ("records_latency", "records_latency_avg", "records_latency_max"),
           ("cleanup: compact",)),
    _Known(65, "truth in bounds", ("backlog_age_max", "records_latency_avg", "records_latency_max"),
           (_RECREATED, "positions: compacted commit log", "seen: files")),
    _Known(88, "truth in bounds", ("backlog_age",), (_RECREATED, "positions: compacted commit log", "seen: history")),
    _Known(90, "truth in bounds", ("backlog_age_max",), (_RECREATED, "positions: polls")),
)  # fmt: skip


def awaited(outcome: Outcome, failure: Failure) -> bool:
    return any(
        failure.invariant == one.invariant and failure.figure in one.figures and {*one.features} <= {*outcome.features}
        for one in _ALL
    )
