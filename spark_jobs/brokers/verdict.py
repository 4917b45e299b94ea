"""Which broker or pair is slow: the simplest explanation of what the leaders' equations say. NumPy only, no totals.

The explanations are few: all pairs alike; all pairs of one broker slower; one pair slower. Each is two levels, fitted
to as many equations as there are leaders, so from three brokers on there is something to be wrong about. The confidence
is the best one's share of the likelihood of all: an honest low figure when several fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafka_sla.spark_jobs.brokers.equations import Bools, Equations, Floats

SLOW_ALL_MS = 100.0
"""All pairs alike and at least this slow are a finding, too."""
STANDS_OUT_MS = 5.0
"""A slow pair takes twice as long as the others, and longer by this: less is no trouble to anybody."""
_UNLIKE = 0.2
"""Share by which healthy pairs may differ; brokers are not all in one rack."""
_UNLIKE_MS = 1.0
_FITS = 3
_SURE = 0.5
"""Confidence from which an explanation is named."""
_MISFIT = 6.0
"""Standard deviations by which the misfit may exceed what chance makes it, before no explanation fits."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a step says of a cluster."""

    verdict: str
    reason: str
    broker: int | None
    confidence: float | None
    slow: Bools | None
    """By pair; None where the verdict is unknown."""
    near: Floats
    """What each pair would take by the best explanation, ms."""


@dataclass(frozen=True, slots=True)
class _Fit:
    """Pairs in `slow` take `usual` + `more`, the others `usual`."""

    slow: Bools
    usual: float
    more: float
    off: float
    """Standard deviation of `more`."""
    misfit: float
    likelihood: float
    """Its logarithm, with how likely that explanation is before the equations are looked at."""

    @property
    def stands_out(self) -> bool:
        return self.more >= max(STANDS_OUT_MS, self.usual)

    @property
    def denied(self) -> bool:
        """It does not stand out, and would have been seen if it did by much."""
        return not self.stands_out and 2 * self.off < SLOW_ALL_MS


def find(eq: Equations) -> Finding:
    """The verdict on a cluster."""
    if not len(eq.pairs):
        return _unknown("no two brokers are known to fetch from each other", np.zeros(0))
    fits = [_fit(eq, slow, chance) for slow, chance in _explanations(eq)]
    weights = _weights(fits)
    alike = sum(w for f, w in zip(fits, weights, strict=True) if f.denied)
    best, sure = max(zip(fits, weights, strict=True), key=lambda one: one[1])
    if not best.stands_out:
        best, sure = fits[0], alike
    near = np.asarray(best.usual + best.more * best.slow)
    spare = max(1, len(eq.means) + len(eq.pairs) - 2)
    if best.misfit > spare + _MISFIT * (2 * spare) ** 0.5:
        return _unknown("pairs differ, but neither one broker nor one pair explains it", near)
    if sure < _SURE:
        return _unknown("the totals fit several explanations alike", near)
    return _named(eq, best, float(sure), near)


def _unknown(reason: str, near: Floats) -> Finding:
    return Finding("unknown", reason, None, None, None, near)


def _named(eq: Equations, best: _Fit, sure: float, near: Floats) -> Finding:
    usual, slower = f"{best.usual:.0f} ms", f"{best.usual + best.more:.0f} ms"
    if not best.slow.any():
        verdict = "slow_all" if best.usual >= SLOW_ALL_MS else "even"
        return Finding(verdict, f"all pairs take about {usual}", None, sure, best.slow | (verdict == "slow_all"), near)
    slow = [pair for pair, is_slow in zip(eq.pairs, best.slow, strict=True) if is_slow]
    if len(slow) == 1:
        what = f"the pair {slow[0][0]}–{slow[0][1]} takes about {slower}, the others {usual}"
        return Finding("slow_pair", what, None, sure, best.slow, near)
    (broker,) = set.intersection(*(set(pair) for pair in slow))
    what = f"every pair of broker {broker} takes about {slower}, the others {usual}"
    return Finding("slow_broker", what, broker, sure, best.slow, near)


def _explanations(eq: Equations) -> list[tuple[Bools, float]]:
    """Which pairs are slow, and how likely that is beforehand: none, those of a broker and one are equally so."""
    none = np.zeros(len(eq.pairs), dtype=np.bool_)
    brokers = [np.array([broker in pair for pair in eq.pairs], dtype=np.bool_) for broker in eq.brokers]
    brokers = [slow for slow in brokers if 1 < slow.sum() < len(eq.pairs)]
    pairs = list(np.eye(len(eq.pairs), dtype=np.bool_)) if len(eq.pairs) > 1 else []
    return [(none, 1.0), *((s, 1 / len(brokers)) for s in brokers), *((s, 1 / len(pairs)) for s in pairs)]


def _fit(eq: Equations, slow: Bools, chance: float) -> _Fit:
    """The levels that fit best; how much pairs may differ depends on the levels, so it is fitted again."""
    levels = np.array([float(np.abs(eq.means).mean()) if len(eq.means) else 0.0, 0.0])
    by_pair = np.stack([np.ones(len(slow)), slow], axis=1)
    for _ in range(_FITS):
        # A pair that is known roughly is first drawn to its rough value; the leaders then see what is left open.
        differ = (_UNLIKE * (by_pair @ levels) + _UNLIKE_MS) ** 2
        width = differ + eq.rough_off**2
        left = 1 - differ / width
        root = np.linalg.cholesky((eq.shares * differ * left) @ eq.shares.T + np.diag(eq.off**2))
        columns = np.linalg.solve(root, eq.shares @ (by_pair * left[:, None]))
        target = np.linalg.solve(root, eq.means - eq.shares @ ((1 - left) * eq.rough))
        columns = np.concatenate([columns, by_pair / np.sqrt(width)[:, None]])
        target = np.concatenate([target, eq.rough / np.sqrt(width)])
        levels = _levels(columns, target)
    misfit = float(((columns @ levels - target) ** 2).sum())
    scale = np.log(np.diag(root)).sum() + np.log(width[np.isfinite(width)]).sum() / 2
    off = float(np.linalg.pinv(columns.T @ columns)[1, 1]) ** 0.5
    return _Fit(slow, float(levels[0]), float(levels[1]), off, misfit, float(np.log(chance) - misfit / 2 - scale))


def _levels(columns: Floats, target: Floats) -> Floats:
    """Least squares with two levels that are not negative."""
    tried = [np.zeros(2)]
    for use in ([0], [1], [0, 1]):
        levels = np.zeros(2)
        levels[use] = np.linalg.lstsq(columns[:, use], target, rcond=None)[0]
        tried.append(levels)
    allowed = [levels for levels in tried if (levels >= 0).all()]
    return min(allowed, key=lambda levels: float(((columns @ levels - target) ** 2).sum()))


def _weights(fits: list[_Fit]) -> Floats:
    logs = np.array([f.likelihood for f in fits])
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())
