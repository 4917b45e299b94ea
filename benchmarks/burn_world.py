"""A synthetic year of verdicts of one SLA, and the incidents in it. Knows no alert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

DAY = 1_440
BUDGET = 43.2
"""Minutes that 99.9 % of 30 days allow to be bad."""
_MATTERS = 0.1
"""Share of it that an incident must cost for somebody to want to know."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Minutes from its first bad one to behind its last."""

    kind: str
    start: int
    end: int
    bad: int

    @property
    def matters(self) -> bool:
        return self.bad >= _MATTERS * BUDGET


@dataclass(frozen=True, slots=True)
class Year:
    """A boolean a minute: judged good or bad, and bad; what is neither is unknown or excluded."""

    known: Any
    bad: Any
    incidents: list[Incident]


def year(seed: int, number: int, days: int = 365, busy: float = 1) -> Year:
    """Outages of 10 minutes to 4 hours, blips of one to three, leaks that are bad 2 to 6 minutes of every hour for half
    a day to four days, a few bad minutes at random, and time of which nothing is known; `busy` times as much of it."""
    rng = np.random.default_rng([seed, number])
    bad, known = rng.random(days * DAY) < 0.00005, np.ones(days * DAY, dtype=np.bool_)
    incidents = []
    for kind, per_year in (("outage", 8), ("blip", 30), ("leak", 4)):
        for _ in range(rng.poisson(busy * per_year * days / 365)):
            start = int(rng.integers(0, days * DAY - 5 * DAY))
            minutes = start + _OF[kind](rng)
            bad[minutes] = True
            incidents.append(Incident(kind, start, int(minutes[-1]) + 1, len(minutes)))
    for _ in range(rng.poisson(busy * 12 * days / 365)):
        start = int(rng.integers(0, days * DAY))
        known[start : start + int(rng.integers(5, 600))] = False
    return Year(known, bad & known, [_seen(one, bad & known) for one in incidents])


def _seen(one: Incident, bad: Any) -> Incident:
    """Its cost is what was judged bad."""
    return Incident(one.kind, one.start, one.end, int(bad[one.start : one.end].sum()))


def _outage(rng: np.random.Generator) -> Any:
    return np.arange(int(rng.integers(10, 240)))


def _blip(rng: np.random.Generator) -> Any:
    return np.arange(int(rng.integers(1, 4)))


def _leak(rng: np.random.Generator) -> Any:
    hours, each = int(rng.integers(12, 96)), int(rng.integers(2, 7))
    return (np.arange(hours)[:, None] * 60 + np.arange(each)[None, :]).ravel()


_OF = {"outage": _outage, "blip": _blip, "leak": _leak}
