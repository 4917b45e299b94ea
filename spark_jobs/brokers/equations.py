"""The equations of one step: what followers and leaders saw, as means of what lies between two brokers. NumPy only.

A follower sees round trips, a leader sees waits, pooled over its followers. What lies between two brokers is the same
both ways: the same links carry the request and the answer of either. So each leader gives one equation,

    sum over followers of fetches * (round trip - network of the pair) = sum of TotalTimeMs at the leader

and each of its followers a rough value: its own wait is the pooled one, give or take as much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

_EDGE = 4.0
"""Fetches of each follower at the edges of a step that only one side has counted, at most."""
_FOREIGN = 0.05
"""Share of its fetches that a leader may have answered to others than the known followers."""
_ROUNDING_MS = 0.5
"""Kafka rounds each time to whole milliseconds."""

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Mesh:
    """Means over one step in ms; rows are followers and columns leaders, in the order of `brokers`; NaN for unknown."""

    brokers: tuple[int, ...]
    fetches: Floats
    trip: Floats
    answered: Floats
    """Fetches that each leader answered to all followers."""
    total: Floats
    wait: Floats

    @property
    def local(self) -> Floats:
        return np.maximum(self.total - self.wait, 0.0)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs that fetch from each other, one way at least; as positions in `brokers`, the smaller first."""
        known = ~np.isnan(self.trip)
        return [(int(a), int(b)) for a, b in np.argwhere(np.triu(known | known.T, 1))]


@dataclass(frozen=True, slots=True)
class Equations:
    """Leader by leader: the shares that the pairs (columns) have in a mean, that mean in ms, and what it is off by.

    And for each pair a rough value, with a standard deviation that is infinite where there is none.
    """

    brokers: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    """Broker ids, the smaller first."""
    shares: Floats
    means: Floats
    errors: Floats
    """At most: fetches at the edges of the step that one side has counted and the other has not."""
    rough: Floats
    rough_off: Floats

    @property
    def off(self) -> Floats:
        """What the means usually are off by: fetches at the edges are like the others, more or less."""
        return self.errors / 6

    def moved(self, more: Floats) -> Equations:
        """The same with pairs that take so much longer."""
        return replace(self, means=self.means + self.shares @ more, rough=self.rough + more)


def equations(mesh: Mesh) -> Equations:
    """One equation per leader whose fetches are all known, one rough value per pair."""
    rows = [row for leader in range(len(mesh.brokers)) if (row := _of_leader(mesh, leader))]
    names = tuple((mesh.brokers[a], mesh.brokers[b]) for a, b in mesh.pairs)
    shares = np.array([row[0] for row in rows]).reshape(len(rows), len(names))
    means, errors = (np.array([row[i] for row in rows], dtype=float) for i in (1, 2))
    return Equations(mesh.brokers, names, shares, means, errors, *_rough(mesh))


def _of_leader(mesh: Mesh, leader: int) -> tuple[list[float], float, float] | None:
    """Shares, mean and error; None when it answered others than the followers that are known."""
    followers = np.flatnonzero(~np.isnan(mesh.trip[:, leader]))
    fetches, trips = mesh.fetches[followers, leader], mesh.trip[followers, leader]
    unmatched = abs(mesh.answered[leader] - fetches.sum())
    if not len(followers) or not unmatched <= _EDGE * len(followers) + _FOREIGN * mesh.answered[leader]:
        return None
    share = dict(zip(followers.tolist(), (fetches / fetches.sum()).tolist(), strict=True))
    shares = [share.get(a + b - leader, 0.0) if leader in (a, b) else 0.0 for a, b in mesh.pairs]
    total = float(mesh.total[leader])
    error = (float(trips.sum()) + total) / float(fetches.sum()) + _ROUNDING_MS
    return shares, float(fetches @ trips / fetches.sum()) - total, error


def _rough(mesh: Mesh) -> tuple[Floats, Floats]:
    """Round trip less the leader's mean time, both ways weighed: sharp where fetches wait little, blunt elsewhere."""
    value = mesh.trip - mesh.total[None, :]
    edge = (mesh.trip + mesh.total[None, :]) / mesh.fetches / 6
    weight = np.nan_to_num((edge + _ROUNDING_MS + mesh.wait[None, :]) ** -2.0)
    both, weighed = weight + weight.T, np.nan_to_num(value) * weight
    at = tuple(np.array(mesh.pairs, dtype=int).reshape(-1, 2).T)
    with np.errstate(divide="ignore"):
        return ((weighed + weighed.T)[at] / np.maximum(both[at], 1e-300)), both[at] ** -0.5
