"""How wide bounds are, and how far estimates are off, per kind of flow. Knows rows and truth, nothing that fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.simulation.seeing import Plan
from benchmarks.simulation.slas import THRESHOLDS_S
from benchmarks.simulation.truth import WindowTruth
from benchmarks.simulation.visibility import Visibility
from benchmarks.simulation.world import World
from benchmarks.speed_table import table

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Width:
    """One window of one reader; ms, None where unbounded or unknown."""

    kind: str
    spacing_ms: float
    """Mean time between its commits."""
    latency_ms: float | None
    """Width of the bounds of the largest latency."""
    age_ms: float | None
    is_certain: tuple[bool, ...]
    """At each threshold: the bounds of the worst of both leave no doubt."""
    off_ms: float | None
    """The estimate of the largest latency less the true one."""


def kind_of(world: World, plan: Plan, visible: Visibility) -> tuple[str, float]:
    """What is seen of a reader, in words, and the mean time between its commits."""
    how = next(word for word in plan.features if word.startswith("seen: ") and word not in _DETAILS)[6:]
    clock = "" if visible.skew_ms == 0 else ", skewed clock"
    kind = f"{how}, {'polled' if visible.only_polls else 'commit log'}{clock}"
    commits = visible.reader.commits
    return kind, (commits[-1].at - commits[0].at) / max(1, len(commits) - 1)


_DETAILS = ("seen: few lookups", "seen: runs are missing")


def width_of(kind: tuple[str, float], truth: WindowTruth, row: Row) -> Iterator[Width]:
    latency, age = _bounds(row, "records_latency_max"), _bounds(row, "backlog_age")
    worst = _bounds(row, "backlog_age_max")
    if worst is None:
        return
    certain = tuple(worst[0] > 1_000 * s or worst[1] <= 1_000 * s for s in THRESHOLDS_S)
    off = None
    if latency and len(truth.latencies):
        off = abs(row["records_latency_max_ms"] - int(truth.possible.max()))
    yield Width(*kind, _wide(latency), _wide(age), certain, off)


def _bounds(row: Row, figure: str) -> tuple[float, float] | None:
    if row[f"{figure}_ms"] is None:
        return None
    high = row[f"{figure}_high_ms"]
    return row[f"{figure}_low_ms"] or 0.0, np.inf if high is None else high


def _wide(bounds: tuple[float, float] | None) -> float | None:
    return None if bounds is None or bounds[1] == np.inf else bounds[1] - bounds[0]


def markdown(found: Sequence[Width]) -> str:
    """One line for each kind of flow."""
    head = [
        "seen by",
        "windows",
        "between commits",
        "width of latency max",
        "width of backlog age",
        "unbounded",
        *(f"certain at {s} s" for s in THRESHOLDS_S),
        "latency max off by",
    ]
    return table(head, [_line(kind, [w for w in found if w.kind == kind]) for kind in sorted({w.kind for w in found})])


def _line(kind: str, of: Sequence[Width]) -> list[str]:
    shares = [f"{fmean(w.is_certain[n] for w in of):.1%}" for n in range(len(THRESHOLDS_S))]
    unbounded = fmean(w.age_ms is None for w in of)
    return [
        kind,
        f"{len(of):,}",
        _s(w.spacing_ms for w in of),
        _s(w.latency_ms for w in of),
        _s(w.age_ms for w in of),
        f"{unbounded:.1%}",
        *shares,
        _s(w.off_ms for w in of),
    ]


def _s(values: Any) -> str:
    known = [value for value in values if value is not None]
    return f"{fmean(known) / 1_000:.1f} s" if known else "–"
