"""What lies between the brokers of a cluster in one step, solved from its equations. NumPy only.

Three brokers give as many equations of leaders as there are pairs. With more brokers there are fewer: then the pairs
are taken to be near to the simplest explanation that fits (`fetch_verdict`), and bounds say what is certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from kafka_sla.spark_jobs.brokers.equations import Bools, Equations, Floats, Mesh, equations
from kafka_sla.spark_jobs.brokers.verdict import Finding, find

_ROUNDS = 30
"""Bounds tighten each other; they settle in few rounds."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """What lies between two brokers (not the leader's own time), ms; symmetric, NaN for unknown."""

    network: Floats
    low: Floats
    high: Floats
    solved: Bools
    slow: dict[tuple[int, int], bool]
    """By broker ids, the smaller first; empty where the verdict is unknown."""
    finding: Finding


def solve(mesh: Mesh) -> Pairs:
    """Every pair's latency, as near to the best explanation as the equations allow, and what bounds it."""
    eq, own = equations(mesh), _own(mesh)
    finding = find(eq.moved(own))
    low, high = _bounds(eq, _shortest(mesh))
    network = np.clip(_nearest(eq, np.maximum(finding.near - own, 0.0)), low, high)
    slow = {} if finding.slow is None else dict(zip(eq.pairs, map(bool, finding.slow), strict=True))
    solved = (eq.shares > 0).any(axis=0)
    square = partial(_square, mesh)
    return Pairs(square(network), square(low), square(high), square(solved.astype(float)) == 1.0, slow, finding)


def _own(mesh: Mesh) -> Floats:
    """What the two brokers of each pair themselves take for a fetch: its share of the pair's latency."""
    local = np.nan_to_num(mesh.local)
    return np.array([(local[a] + local[b]) / 2 for a, b in mesh.pairs])


def _shortest(mesh: Mesh) -> Floats:
    """The shorter round trip of each pair: no network takes longer."""
    return np.array([np.nanmin([mesh.trip[a, b], mesh.trip[b, a]]) for a, b in mesh.pairs])


def _nearest(eq: Equations, near: Floats) -> Floats:
    """The latencies nearest to `near` that rough values and equations allow (regularised least squares)."""
    freedom = np.full(len(near), max([1.0, *near]) ** 2)
    trust = freedom / (freedom + eq.rough_off**2)
    near, freedom = near + trust * (eq.rough - near), freedom * (1 - trust)
    spread = (eq.shares * freedom) @ eq.shares.T + np.diag(eq.off**2)
    return np.asarray(near + freedom * (eq.shares.T @ np.linalg.solve(spread, eq.means - eq.shares @ near)))


def _bounds(eq: Equations, trips: Floats) -> tuple[Floats, Floats]:
    """What the equations leave open: what one pair takes, the others of the same leader cannot."""
    low, high = np.zeros(len(eq.pairs)), trips.copy()
    there = eq.shares > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_ROUNDS):
            most = (eq.means + eq.errors - eq.shares @ low)[:, None] / eq.shares + low
            least = (eq.means - eq.errors - eq.shares @ high)[:, None] / eq.shares + high
            high = np.minimum(high, np.where(there, most, np.inf).min(axis=0, initial=np.inf))
            low = np.maximum(low, np.where(there, least, -np.inf).max(axis=0, initial=-np.inf))
    if len(eq.means) and np.linalg.matrix_rank(eq.shares) == len(eq.pairs):
        inverse = np.linalg.pinv(eq.shares)
        middle, off = inverse @ eq.means, np.abs(inverse) @ eq.errors
        low, high = np.maximum(low, middle - off), np.minimum(high, middle + off)
    high = np.maximum(high, 0.0)
    return np.minimum(low, high), high


def _square(mesh: Mesh, values: Floats) -> Floats:
    """Values of pairs as a symmetric matrix."""
    found = np.full((len(mesh.brokers), len(mesh.brokers)), np.nan)
    for (a, b), value in zip(mesh.pairs, values, strict=True):
        found[a, b] = found[b, a] = value
    return found
