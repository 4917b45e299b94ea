"""How a world is watched: which runs take snapshots when, and what they may read. A plan, no facts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.simulation.making import generator
from benchmarks.simulation.world import BASE, World


@dataclass(frozen=True, slots=True)
class Run:
    """A snapshot of the interval [start, end), taken at `asked`."""

    start: int
    end: int
    asked: int
    live: bool


@dataclass(frozen=True, slots=True)
class Plan:
    runs: tuple[Run, ...]
    min_gap_ms: int
    max_gap_ms: int
    budget: int
    """Look-ups of each hour."""
    commit_log: bool
    """Else positions are known from polls only."""
    compacted_until: int
    """Of the commit log: before it only the last commit of each reader is kept."""
    polls: tuple[int, ...]
    """Further moments at which positions are polled, as by another tool whose file is imported."""
    points: tuple[int, ...]
    """The same of log ends."""
    exact: bool
    """Every record's own time is known."""
    features: tuple[str, ...]


def plan(world: World) -> Plan:
    """How the world of this seed is watched."""
    rng = generator(world.seed, "seeing")
    how = str(rng.choice(["five minutes", "one minute", "history", "exact", "files"], p=[0.4, 0.1, 0.15, 0.15, 0.2]))
    commit_log = bool(rng.random() < 0.75)
    features = {f"seen: {how}", f"positions: {'commit log' if commit_log else 'polls'}"}
    late = how in ("history", "exact", "files")  # a run that watched has read what compaction removes later
    compacted = int(rng.integers(BASE, world.end)) if late and commit_log and rng.random() < 0.3 else 0
    features.update(["positions: compacted commit log"] * bool(compacted))
    steps = {"five minutes": 300_000, "one minute": 60_000}
    runs = _runs(rng, world, steps[how]) if how in steps else ()
    if how == "history":
        runs = (Run(world.start, world.end, world.end + int(rng.integers(0, 280_000)), False),)
    if runs and len(runs) > 1 and rng.random() < 0.3:  # runs failed, or were never scheduled
        runs = tuple(run for run in runs if rng.random() < 0.7) or runs[:1]
        features.add("seen: runs are missing")
    floor = int(rng.choice([250, 2_000, 15_000], p=[0.2, 0.4, 0.4]))
    budget = int(rng.choice([200_000, 60, 10], p=[0.7, 0.2, 0.1]))
    features.update(["seen: few lookups"] * (budget < 200_000 and bool(runs)))
    sparse = how == "files" or (rng.random() < 0.2)
    points = _moments(rng, world) if sparse and how != "exact" else ()
    polls = _moments(rng, world) if sparse or (how == "exact" and not commit_log) else ()
    return Plan(
        runs, floor, 60_000, budget, commit_log, compacted, polls, points, how == "exact", tuple(sorted(features))
    )


def edges(world: World) -> range:
    """Ends of windows, at which log ends are known of a world whose every record is."""
    return range(world.start // world.window_ms * world.window_ms, world.end + 1, world.window_ms)


def _runs(rng: np.random.Generator, world: World, step: int) -> tuple[Run, ...]:
    step = max(step, world.window_ms)
    starts = range(world.start // step * step, world.end, step)
    delay = int(rng.choice([0, 700, 20_000, 120_000]))
    return tuple(Run(at, at + step, at + step + delay + int(rng.integers(0, 500)), True) for at in starts)


def _moments(rng: np.random.Generator, world: World) -> tuple[int, ...]:
    """Regular, with gaps, or at random."""
    every = int(rng.choice([1_000, 5_000, 15_000, 30_000, 60_000, 300_000]))
    times = np.arange(world.start - 300_000 + int(rng.integers(0, 3)) * 137, world.end + 1, every)
    if rng.random() < 0.4:
        times = times[rng.random(len(times)) < 0.6]
    if rng.random() < 0.3:
        times = np.sort(times + rng.integers(0, max(1, every // 2), len(times)))
    return tuple(times[times >= BASE].tolist())
