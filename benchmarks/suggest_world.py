"""Synthetic days of the worst latency of consumers, minute by minute. Knows no SLA and no suggestion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

DAY = 1_440
Floats = Any
"""One entry a minute, in milliseconds; NaN: nothing is known of it."""
Random = np.random.Generator


def days(kind: str, seed: int, number: int, count: int) -> Floats:
    """So many days of the consumer with that number."""
    kinds = list(KINDS)
    random = np.random.default_rng([seed, kinds.index(kind), number])
    typical = float(np.exp(random.uniform(np.log(300), np.log(60_000))))
    values = KINDS[kind](random, typical, count * DAY)
    values[random.random(len(values)) < 0.002] = np.nan
    return values


def _noise(random: Random, typical: float, count: int, spread: float = 0.25) -> Floats:
    """Lognormal, with some memory: a minute is like the one before."""
    steps = np.convolve(random.normal(0, spread, count), 0.8 * 0.6 ** np.arange(20))[:count]
    return typical * np.exp(steps)


def _steady(random: Random, typical: float, count: int) -> Floats:
    return _noise(random, typical, count)


def _bursty(random: Random, typical: float, count: int) -> Floats:
    """Some 20 to 100 bursts a day at any time, each over in minutes, two to thirty times as late as usual."""
    values = _noise(random, typical, count)
    for at in _times(random, float(random.uniform(20, 100)), count):
        _raise(values, at, 1 + int(random.exponential(3)), typical * float(random.lognormal(1.6, 0.6)))
    return values


def _daily(random: Random, typical: float, count: int) -> Floats:
    """Up to eight times as late at the busy hour as at night."""
    hour = (np.arange(count) + random.integers(DAY)) / DAY * 2 * np.pi
    level = np.exp(random.uniform(0.5, 1.05) * (1 + np.cos(hour)))
    return _noise(random, typical, count) * level


def _incidents(random: Random, typical: float, count: int) -> Floats:
    """One in ten days on average, of five minutes to three hours: the consumer stands still, and catches up."""
    values = _noise(random, typical, count)
    for at in _times(random, 0.1, count):
        _outage(values, at, int(np.clip(random.lognormal(3.2, 0.9), 5, 180)))
    return values


def _batches(random: Random, typical: float, count: int) -> Floats:
    """One to eight times a day, at fixed hours, a batch takes ten minutes to an hour to work off, more or less."""
    values = _noise(random, typical, count)
    for hour in random.choice(24, int(random.integers(1, 9)), replace=False):
        length, height = float(random.uniform(10, 60)), typical * float(random.uniform(5, 60))
        for at in range(int(hour) * 60, count, DAY):
            start = at + int(random.integers(0, 5))
            _raise(values, start, int(length * random.lognormal(0, 0.15)), height * float(random.lognormal(0, 0.1)))
    return values


def _restarts(random: Random, typical: float, count: int) -> Floats:
    """A deployment on most days, in working hours: two to six minutes of rebalancing."""
    values = _noise(random, typical, count)
    for day in range(count // DAY):
        for _ in range(random.poisson(1.5)):
            _outage(values, day * DAY + int(random.integers(9 * 60, 17 * 60)), int(random.integers(2, 7)))
    return values


def _growth(random: Random, typical: float, count: int) -> Floats:
    """One to five percent later every day, on top of a daily pattern."""
    rate = 1 + float(random.uniform(0.01, 0.05))
    return _daily(random, typical, count) * rate ** (np.arange(count) / DAY)


def _idle(random: Random, typical: float, count: int) -> Floats:
    """Records in a tenth of the minutes; nothing waits in the others."""
    return np.where(random.random(count) < 0.1, _noise(random, typical, count), 0.0)


def _times(random: Random, a_day: float, count: int) -> list[int]:
    return sorted(random.integers(0, count, random.poisson(a_day * count / DAY)).tolist())


def _raise(values: Floats, at: int, length: int, height: float) -> None:
    part = values[at : at + length]
    np.maximum(part, height, out=part)


def _outage(values: Floats, at: int, length: int) -> None:
    """The oldest record waits for as long as it lasts, and then half as long again until all are read."""
    up = np.arange(1, length + 1) * 60_000.0
    shape = np.concatenate([up, np.linspace(up[-1], 0, 1 + length // 2)])
    part = values[at : at + len(shape)]
    np.maximum(part, shape[: len(part)], out=part)


KINDS: dict[str, Callable[[Random, float, int], Floats]] = {
    "steady": _steady,
    "bursty": _bursty,
    "daily pattern": _daily,
    "incidents": _incidents,
    "batches": _batches,
    "restarts": _restarts,
    "slow growth": _growth,
    "mostly idle": _idle,
}
