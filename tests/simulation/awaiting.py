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
    # Compaction removes what a slow reader has not read: it still counts.
    _Known(57, "truth in bounds", ("records_latency", "records_latency_avg", "records_latency_max"),
           ("cleanup: compact",)),
    # Facts of two lives of a topic are attributed to one.
    _Known(65, "truth in bounds", ("backlog_age_max", "records_latency_avg", "records_latency_max"),
           (_RECREATED, "positions: compacted commit log", "seen: files")),
    _Known(90, "truth in bounds", ("backlog_age_max",), (_RECREATED, "positions: polls")),
    _Known(127, "truth in bounds", ("backlog_age", "backlog_age_max"), (_RECREATED, "seen: history")),
    _Known(136, "truth in bounds", ("backlog_age", "backlog_age_max"), (_RECREATED, "seen: five minutes")),
    # What is carried over is lost where a reader has no row at the cut.
    _Known(112, "the same rows in pieces", ("consumer_latency.backlog_age_max_high_ms",), ("group: delete_offset",)),
    _Known(127, "the same rows in pieces", ("consumer_latency.records_latency_high_ms",),
           (_RECREATED, "seen: history")),
    _Known(175, "the same rows in pieces", ("steady_state.reason",), (_RECREATED, "seen: one minute")),
    # Records are removed before a slow reader comes to them, and only later is that seen.
    _Known(173, "truth in bounds", ("records_latency_max",), ("retention: time", "seen: files")),
    _Known(187, "truth in bounds", ("backlog_age_max", "records_latency_avg", "records_latency_max"),
           ("retention: delete_records", "positions: compacted commit log")),
)  # fmt: skip


def awaited(outcome: Outcome, failure: Failure) -> bool:
    return any(
        failure.invariant == one.invariant and failure.figure in one.figures and {*one.features} <= {*outcome.features}
        for one in _ALL
    )
