"""What truly happened to a reader in a window: by plain loops over records and commits.

A record is consumed at the first commit beyond it of a group that had a position before; what was removed before it was
read is consumed by nobody.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from benchmarks.simulation.world import Commit, Ints, Reader


@dataclass(frozen=True, slots=True)
class Consumed:
    """What one commit consumed: latencies of its records in the order of their offsets, ms; negative as they are."""

    commit: Commit
    latencies: Ints


@dataclass(frozen=True, slots=True)
class WindowTruth:
    """Ms; None where there is none."""

    latencies: Ints
    age: int | None
    """Of the oldest record that waits at the window's end; 0 without one; None without a position or a topic."""
    oldest: int
    """The largest age of the backlog at any moment of the window, as far as it shows at commits and at its end."""

    @property
    def possible(self) -> Ints:
        return np.maximum(self.latencies, 0)


def consumed(reader: Reader) -> list[Consumed]:
    """Of every commit what it consumed."""
    found, before = [], None
    for commit in reader.commits:
        found.append(Consumed(commit, _latencies(reader, before, commit)))
        before = commit
    return found


def _latencies(reader: Reader, before: Commit | None, commit: Commit) -> Ints:
    nothing = np.zeros(0, dtype=np.int64)
    if before is None or before.offset is None or commit.offset is None or before.life != commit.life:
        return nothing
    life = reader.partition.lives[commit.life]
    offsets = np.arange(before.offset, commit.offset)
    offsets = offsets[~np.isin(offsets, commit.lost)] if commit.lost else offsets
    return commit.at - life.stamp[offsets[life.record[offsets]]]


def age(reader: Reader, at: int, commit: Commit | None) -> int | None:
    """Age at that moment of the oldest record that waits for a group that stands where the commit left it."""
    if commit is None or commit.offset is None or reader.partition.life_at(at) != commit.life:
        return None
    life = reader.partition.lives[commit.life]
    offset = life.waiting(commit.offset, at)
    return 0 if offset is None else max(0, at - int(life.stamp[offset]))


def windows(reader: Reader, start: int, end: int, width: int) -> dict[int, WindowTruth]:
    """By its start, every window in [start, end)."""
    steps = consumed(reader)
    times = [step.commit.at for step in steps]
    found = {}
    for begin in range(start // width * width, end, width):
        first, last = (bisect_left(times, moment) for moment in (begin, begin + width))
        inside = steps[first:last]
        parts = [step.latencies for step in inside]
        latencies = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        waits = age(reader, begin + width, reader.standing(begin + width))
        moments = [age(reader, step.commit.at, reader.standing(step.commit.at)) or 0 for step in inside]
        worst = max([waits or 0, int(latencies.max(initial=0)), *moments])
        found[begin] = WindowTruth(latencies, waits, worst)
    return found
