"""Thresholds and objectives that fit what was measured of a group and topic. Pure.

A threshold is a round duration that the windows kept to with room to spare. Its objective is one that the next day
holds in 95 % of cases: bad time comes in spells, and how many of them the next day may have follows from how many there
were, by the conditional limit for a future Poisson count (W. Nelson, "Confidence intervals for the ratio of two Poisson
means and Poisson predictor intervals", IEEE Transactions on Reliability R-19, 1970).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kafka_sla.text.formatting import plural, span

Level = Literal["strict", "balanced", "relaxed"]
Codes = NDArray[np.int8]
"""One entry per window: GOOD, BAD, or OTHER (excluded, or unknown)."""
GOOD, BAD, OTHER = 0, 1, 2
Judging = Callable[[int, float], Codes]
"""What each window would be whose steady state goes by the first duration and that may be as late as the second."""

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
THRESHOLDS_MS = (
    100,
    200,
    500,
    *(n * _SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 4, 6, 12)),
    *(n * _DAY for n in (1, 2, 7)),
)
LATE_SHARES: dict[Level, float] = {"strict": 0.05, "balanced": 0.01, "relaxed": 0.001}
"""Of the windows with records, how many may have come too close to the threshold, or over it."""
HEADROOM = 1.25
"""A window is close to the threshold if it were over it on a day on which all takes a quarter longer."""
OBJECTIVES = (0.999, 0.995, 0.99, 0.98, 0.97, 0.95, 0.9, 0.85, 0.8, 0.75)
CONFIDENCE = 0.95
UNSEEN_SPELL_MS = 3 * _MINUTE
"""A spell of bad time that nobody has seen yet is supposed to last so long."""
FORS_MS = (5 * _MINUTE, 10 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE, _HOUR)
LARGEST_SHARE = 0.25
"""A threshold is at most so much of the time: of a longer one nobody saw often enough that it was kept."""
LEAST_KNOWN_MS = 12 * _HOUR
LEAST_COVERAGE = 0.5
LEAST_ACTIVE = 30
"""Windows in which records were consumed or waited."""
_MANY = 200
"""Spells from which on their number is as good as normally distributed."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One threshold, and what may be required with it."""

    level: Level
    max_latency_ms: int
    for_ms: int
    objective: float


def proposals(judging: Judging, active: int, window_ms: int) -> tuple[Proposal, ...] | str:
    """One proposal per level, thresholds rising; or why there is none. `active`: windows with records."""
    known = judging(THRESHOLDS_MS[-1], THRESHOLDS_MS[-1])
    largest = len(known) * window_ms * LARGEST_SHARE
    if wanting := _wanting(known, active, window_ms):
        return wanting
    found: list[Proposal] = []
    above = 0
    for level, share in LATE_SHARES.items():
        durations = (ms for ms in THRESHOLDS_MS if above < ms <= largest)
        fits = (_fitting(level, ms, share * active, judging, window_ms) for ms in durations)
        proposal = next((one for one in fits if one), None)
        if proposal is None:
            return (
                f"no threshold up to {span(largest)}, a quarter of the time, fits: it is later than that, or the bounds"
                " of its latency are too wide"
            )
        found.append(proposal)
        above = proposal.max_latency_ms
    return tuple(found)


def _wanting(codes: Codes, active: int, window_ms: int) -> str:
    """What there is too little of; empty where there is enough."""
    known_ms = _count(codes != OTHER) * window_ms
    if known_ms < LEAST_KNOWN_MS:
        return f"only {span(known_ms)} of the time can be judged; {span(LEAST_KNOWN_MS)} are needed"
    if known_ms < LEAST_COVERAGE * len(codes) * window_ms:
        return f"only {span(known_ms)} of {span(len(codes) * window_ms)} can be judged; half of the time is needed"
    if active < LEAST_ACTIVE:
        return f"records were consumed or waited in {plural(active, 'window')}; {LEAST_ACTIVE} are needed"
    return ""


def _fitting(level: Level, max_latency_ms: int, most_late: float, judging: Judging, window_ms: int) -> Proposal | None:
    codes = judging(_below(max_latency_ms), max_latency_ms / HEADROOM)
    known = _count(codes != OTHER)
    if _count(codes == BAD) > most_late or known * window_ms < LEAST_KNOWN_MS or known < LEAST_COVERAGE * len(codes):
        return None
    bad_share = likely_bad_share(codes, window_ms)
    objective = next((one for one in OBJECTIVES if bad_share <= 1 - one), None)
    if objective is None:
        return None
    spells, days = _spells(judging(max_latency_ms, max_latency_ms)), known * window_ms / _DAY
    return Proposal(level, max_latency_ms, _for_ms(spells, days, window_ms), objective)


def _below(threshold_ms: int) -> int:
    """The threshold before it: a group that has just caught up to within the threshold itself is always close to it."""
    return THRESHOLDS_MS[max(0, THRESHOLDS_MS.index(threshold_ms) - 1)]


def likely_bad_share(codes: Codes, window_ms: int) -> float:
    """The share of the next day that is bad at most, with a confidence of 95 %."""
    days = _count(codes != OTHER) * window_ms / _DAY
    spells = _spells(codes)
    mean = (int(spells.sum()) + UNSEEN_SPELL_MS / window_ms) / (len(spells) + 1)
    return max(most_spells(len(spells), round(days, 2)) * mean * window_ms / _DAY, _worst_day(codes, window_ms))


@lru_cache(maxsize=100_000)
def most_spells(seen: int, days: float) -> int:
    """How many the next day has at most, with a confidence of 95 %, when so many days had `seen` of them: the largest
    number that is not improbably large beside those, were both days alike."""
    if seen >= _MANY:
        mean = seen / days
        return math.ceil(mean + 1.645 * math.sqrt(mean * (1 + 1 / days)))
    more = int(seen / days)
    while _at_most(seen, seen + more + 1, days / (days + 1)) > 1 - CONFIDENCE:
        more += 1
    return more


def _at_most(count: int, of: int, probability: float) -> float:
    """Probability of so many successes at most: the binomial distribution."""
    return math.fsum(math.comb(of, k) * probability**k * (1 - probability) ** (of - k) for k in range(count + 1))


def _worst_day(codes: Codes, window_ms: int) -> float:
    """The bad share of the worst of the whole days; 0 where there is but one."""
    width = _DAY // window_ms
    days = [codes[i : i + width] for i in range(0, len(codes) - width + 1, width)]
    shares = [_count(day == BAD) / known for day in days if (known := _count(day != OTHER)) >= LEAST_COVERAGE * width]
    return max(shares) if len(shares) > 1 else 0.0


def _spells(codes: Codes) -> NDArray[np.int64]:
    """Lengths of runs of bad windows, in windows; unknown ones in between do not part them."""
    bad = np.concatenate([[False], codes[codes != OTHER] == BAD, [False]])
    edges = np.flatnonzero(bad[1:] != bad[:-1])
    return np.asarray(edges[1::2] - edges[::2], dtype=np.int64)


def _for_ms(spells: NDArray[np.int64], days: float, window_ms: int) -> int:
    """The shortest for which a miss a day, at most, would have opened."""
    few = (ms for ms in FORS_MS if _count(spells * window_ms >= ms) <= max(1.0, days))
    return next(few, FORS_MS[-1])


def _count(which: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(which))
