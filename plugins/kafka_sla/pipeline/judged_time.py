"""Judged time and records of any interval, from as few rows as hold it: whole days, whole hours, and single windows at
the edges. Changes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np

from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Sla, ceil_time
from kafka_sla.sla.attainment import Attainment, attainment_of
from kafka_sla.sla.burn import Ints, Lookback
from kafka_sla.sla.objective_kinds import KINDS
from kafka_sla.sla.periods import period_until
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS, SLOT_MS, Sums, added, in_widths

_MS = timedelta(milliseconds=1)


def attainments(
    ledger: Ledger, until: Sequence[tuple[Sla, datetime]], *, newest: bool = False
) -> dict[str, Attainment]:
    """The period of each SLA that ends at that instant or holds it, up to there. `newest`: nothing was judged after,
    so that the day that is not over is one row."""
    alike: dict[tuple[Interval, datetime], list[Sla]] = defaultdict(list)
    for sla, at in until:
        alike[period_until(sla, at), at].append(sla)
    found: dict[str, Attainment] = {}
    for (period, at), mine in alike.items():
        end = ceil_time(at, DAY_MS) if newest else at
        sums = judged_time(ledger, [sla.name for sla in mine], Interval(period.start, end))
        found |= {sla.name: attainment_of(sla, period, at, sums[sla.name]) for sla in mine}
    return found


def judged_time(ledger: Ledger, slas: Sequence[str], interval: Interval) -> dict[str, Sums]:
    """Everything that was judged inside the interval."""
    return _summed(ledger, slas, interval, [DAY_MS, HOUR_MS])


def lookbacks(
    ledger: Ledger, slas: Sequence[Sla], lengths: Sequence[int], interval: Interval, window_ms: int
) -> dict[int, Lookback]:
    """What each of these SLAs, a row each, had in each of these lengths before the end of every window of the interval.

    The time before the interval is added up once; each window then adds what it holds and takes off what has become
    too old, so that a run of five minutes reads five windows a length, however long it is.
    """
    newest = _grid(ledger, slas, interval, window_ms)
    names, before = [sla.name for sla in slas], np.zeros((2, len(slas), 1), dtype=np.int64)
    slots_since, found, reached = ledger.rollups.slots_since(names), {}, interval.start
    for length in sorted(lengths):
        back = timedelta(milliseconds=length)
        kept = slots_since is not None and interval.start - back >= slots_since
        widths = [DAY_MS, HOUR_MS, SLOT_MS] if kept else [DAY_MS, HOUR_MS]
        before = before + _before(ledger, slas, Interval(interval.start - back, reached), widths)
        reached = interval.start - back
        oldest = _grid(ledger, slas, Interval(reached, interval.end - back), window_ms)
        found[length] = Lookback(*(before + np.cumsum(newest - oldest, axis=2)))
    return found


def _before(ledger: Ledger, slas: Sequence[Sla], interval: Interval, widths: Sequence[int]) -> Ints:
    """Total and bad of each SLA in the interval."""
    place = {sla.name: n for n, sla in enumerate(slas)}
    sums = np.zeros((4, len(slas), 1), dtype=np.int64)
    for piece, width_ms in in_widths(interval, widths):
        for name, of in _read(ledger, list(place), width_ms, piece).items():
            sums[:, place[name], 0] += (of.good_ms, of.bad_ms, of.records_due, of.records_late)
    return _counted(slas, sums)


def _grid(ledger: Ledger, slas: Sequence[Sla], interval: Interval, window_ms: int) -> Ints:
    """Total and bad of each SLA in each window of the interval."""
    place = {sla.name: n for n, sla in enumerate(slas)}
    sums = np.zeros((4, len(slas), (interval.end - interval.start) // timedelta(milliseconds=window_ms)), np.int64)
    if rows := ledger.verdicts.counted_windows(list(place), interval, window_ms):
        names, starts, bad, seconds, due, late = zip(*rows, strict=True)
        at = np.array([place[name] for name in names]), np.array(starts, dtype=float).astype(np.int64)
        lengths = np.rint(np.array(seconds, dtype=float) * 1000).astype(np.int64)
        np.add.at(sums, (np.array(bad), *at), lengths)
        for n, records in ((2, due), (3, late)):
            np.add.at(sums[n], at, np.array(records, dtype=np.int64))
    return _counted(slas, sums)


def _counted(slas: Sequence[Sla], sums: Ints) -> Ints:
    """Total and bad as each SLA's objective counts them, of good and bad time and of records due and late."""
    good, bad, due, late = sums
    counted = np.zeros((2, *good.shape), dtype=np.int64)
    for objective_of, kind in KINDS.items():
        mine = [n for n, sla in enumerate(slas) if sla.objective_of == objective_of]
        found = kind.counted(Sums(good[mine], bad[mine], records_due=due[mine], records_late=late[mine]))
        counted[:, mine] = found.total, found.bad
    return counted


def _summed(ledger: Ledger, slas: Sequence[str], interval: Interval, widths: Sequence[int]) -> dict[str, Sums]:
    parts = [_read(ledger, slas, width_ms, piece) for piece, width_ms in in_widths(interval, widths)]
    if len(parts) == 1:
        return {sla: parts[0].get(sla, Sums()) for sla in slas}
    return {sla: added(part[sla] for part in parts if sla in part) for sla in slas}


def _read(ledger: Ledger, slas: Sequence[str], width_ms: int, piece: Interval) -> dict[str, Sums]:
    return ledger.rollups.sums(slas, width_ms, piece) if width_ms else ledger.verdicts.sums_of_slas(slas, piece)
