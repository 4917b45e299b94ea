"""Alerts on burn rates: when they begin and when they are over, from sums of judged time and records. Pure."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kafka_sla.model.entities import BurnPair, Severity, Sla, epoch_ms
from kafka_sla.text.durations import bad_share

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
State = Literal["quiet", "burning", "unknown"]
"""`unknown`: nothing is known of the short or the long time, so that a burn neither begins nor ends."""


@dataclass(frozen=True, slots=True)
class Burn:
    """An error budget that is spent too fast. `end` is None while it is."""

    id: str
    sla: str
    cluster: str
    severity: Severity
    start: datetime
    """End of the window with which the rates of a pair were exceeded."""
    end: datetime | None
    burn_rate: float
    """Over the long time of the pair that began it, then."""
    pair: BurnPair


@dataclass(frozen=True, slots=True)
class Lookback:
    """What an objective counts over the same length before each of some instants; of several SLAs a row each."""

    total: Ints
    bad: Ints

    def of(self, rows: int | Sequence[int]) -> Lookback:
        """That of some of the SLAs, or of one."""
        return Lookback(self.total[rows], self.bad[rows])


def burning(
    pair: BurnPair, allowed: float | Floats, back: Mapping[int, Lookback]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """At which instants both rates are exceeded, and at which nothing can be said. `allowed`: the bad share
    that the objective allows. `back`: by length; of several SLAs a row each, and so their shares."""
    long, short = back[pair.long_ms], back[pair.short_ms]
    limit, known = pair.burn_rate * allowed, (long.total > 0) & (short.total > 0)
    over = known & (long.bad >= pair.min_bad)
    for of in (long, short):
        over &= np.divide(of.bad, of.total, out=np.zeros(of.bad.shape), where=of.total > 0) > limit
    return over, ~known


def alerting(slas: Sequence[Sla], back: Mapping[int, Lookback]) -> set[str]:
    """Which of these SLAs, a row each, exceed the rates of one of their pairs at one of the instants at least. All are
    asked at once: mostly none of them does."""
    alike: dict[tuple[BurnPair, ...], list[int]] = defaultdict(list)
    for n, sla in enumerate(slas):
        alike[sla.burn_pairs].append(n)
    found: set[str] = set()
    for pairs, rows in alike.items():
        shares = np.array([[_bad_share(slas[n])] for n in rows])
        mine = {length: of.of(rows) for length, of in back.items()}
        over = np.logical_or.reduce([burning(pair, shares, mine)[0].any(axis=1) for pair in pairs])
        found |= {slas[rows[n]].name for n in np.flatnonzero(over)}
    return found


def burns(
    sla: Sla, instants: Sequence[datetime], back: Mapping[int, Lookback], open_before: Sequence[Burn] = ()
) -> list[Burn]:
    """Every burn that is open before the instants or begins at one of them. One is open per severity; of a severity
    that has no alerts any more it is over with the first instant."""
    severities = dict.fromkeys(pair.severity for pair in sla.burn_pairs)
    gone = [burn for burn in open_before if burn.severity not in severities]
    found = [burn if burn.end else replace(burn, end=instants[0]) for burn in gone] if instants else gone
    for severity in severities:
        before = next((burn for burn in open_before if burn.severity == severity), None)
        found += _of_severity(sla, severity, instants, back, before)
    return found


def _of_severity(
    sla: Sla, severity: Severity, instants: Sequence[datetime], back: Mapping[int, Lookback], before: Burn | None
) -> Iterator[Burn]:
    pairs = [pair for pair in sla.burn_pairs if pair.severity == severity]
    each = [burning(pair, _bad_share(sla), back) for pair in pairs]
    over = np.logical_or.reduce([one for one, _ in each])
    told = np.flatnonzero(over | ~np.logical_or.reduce([unknown for _, unknown in each]))
    changed = told[over[told] != np.append(before is not None, over[told])[:-1]]
    burn = before
    for at in changed.tolist():
        if over[at]:
            pair = next(pair for pair, (one, _) in zip(pairs, each, strict=True) if one[at])
            burn = _begun(sla, pair, instants[at], back[pair.long_ms], at)
        elif burn:
            yield replace(burn, end=instants[at])
            burn = None
    if burn:
        yield replace(burn, end=None)


def _begun(sla: Sla, pair: BurnPair, start: datetime, long: Lookback, at: int) -> Burn:
    name = f"{sla.name}\n{pair.severity}\n{epoch_ms(start)}"
    rate = float(long.bad[at] / long.total[at] / _bad_share(sla))
    return Burn(
        hashlib.sha256(name.encode()).hexdigest()[:16], sla.name, sla.cluster, pair.severity, start, None, rate, pair
    )


def _bad_share(sla: Sla) -> float:
    return float(bad_share(sla.objective))


def lookbacks(sla: Sla) -> list[int]:
    """The lengths that its alerts look back, the longest last."""
    return sorted({length for pair in sla.burn_pairs for length in (pair.long_ms, pair.short_ms)})


def longest(sla: Sla) -> timedelta:
    return timedelta(milliseconds=max(lookbacks(sla), default=0))
