"""Every SLA as it stands: state, period and a small curve, from a handful of queries whatever the history. No HTML."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.queries import Newest
from kafka_sla.model.entities import Interval, Miss, Sla, floor_time
from kafka_sla.sla.attainment import Attainment, attainment_of, period_until
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS, Sums
from kafka_sla.text.formatting import moment, span
from kafka_sla.text.name_patterns import written
from kafka_sla.web.queries import schemas
from kafka_sla.web.queries.context import Context
from kafka_sla.web.queries.schemas import SlaStatus, Sparkline, State

SILENT = timedelta(minutes=30)
"""Without a verdict for so long, the last one says nothing about now."""
_SPARKLINE_HOURS = 24
_ORDER: dict[State, int] = {"missed": 0, "pending": 1, "unknown": 2, "excluded": 3, "met": 4}


def overview(context: Context, slas: Sequence[Sla]) -> list[SlaStatus]:
    """The worst first, then by name."""
    newest = context.ledger.queries.newest_verdicts([sla.name for sla in slas], context.now - SILENT)
    misses = {miss.sla: miss for miss in context.ledger.verdicts.misses(open_only=True)}
    periods = attainments(context.ledger, [(sla, newest[sla.name].end) for sla in slas if sla.name in newest])
    sparklines = _sparklines(context, slas)
    rows = [
        _now(context, sla, newest.get(sla.name), misses.get(sla.name), periods.get(sla.name), sparklines[sla.name])
        for sla in slas
    ]
    return sorted(rows, key=lambda row: (_ORDER[row.state], row.name))


def attainments(ledger: Ledger, until: Sequence[tuple[Sla, datetime]]) -> dict[str, Attainment]:
    """The calendar period of each SLA that holds its newest verdict, up to there."""
    alike: dict[tuple[Interval, datetime], list[Sla]] = defaultdict(list)
    for sla, at in until:
        alike[period_until(sla, at), at].append(sla)
    found: dict[str, Attainment] = {}
    for (period, at), mine in alike.items():
        sums = summed(ledger, [sla.name for sla in mine], Interval(period.start, at))
        found |= {sla.name: attainment_of(sla, period, at, sums[sla.name]) for sla in mine}
    return found


def summed(ledger: Ledger, slas: Sequence[str], interval: Interval) -> dict[str, Sums]:
    """Judged time of an interval after which nothing was judged: whole days by day, the rest of the first day by hour,
    an hour that is cut (some time zones begin their day at half past) by its windows."""
    hour, day = timedelta(milliseconds=HOUR_MS), timedelta(milliseconds=DAY_MS)
    first_hour = min(_ceil(interval.start, HOUR_MS, hour), interval.end)
    first_day = min(_ceil(interval.start, DAY_MS, day), interval.end)
    parts = [ledger.rollups.sums(slas, HOUR_MS, Interval(first_hour, first_day))] if first_hour < first_day else []
    parts += [ledger.rollups.sums(slas, DAY_MS, Interval(first_day, interval.end))] if first_day < interval.end else []
    if interval.start < first_hour:
        parts.append({sla: ledger.verdicts.sums(sla, Interval(interval.start, first_hour)) for sla in slas})
    return {sla: _total([part[sla] for part in parts if sla in part]) for sla in slas}


def _total(parts: Sequence[Sums]) -> Sums:
    return Sums(*(sum(getattr(part, field.name) for part in parts) for field in fields(Sums)))


def _ceil(at: datetime, width_ms: int, width: timedelta) -> datetime:
    floor = floor_time(at, width_ms)
    return floor if floor == at else floor + width


def _sparklines(context: Context, slas: Sequence[Sla]) -> dict[str, Sparkline]:
    end = floor_time(context.now, HOUR_MS) + timedelta(milliseconds=HOUR_MS)
    shown = Interval(end - timedelta(hours=_SPARKLINE_HOURS), end)
    starts = [span.start for span in shown.windows(HOUR_MS)]
    rows = context.ledger.rollups.worst_by_sla([sla.name for sla in slas], HOUR_MS, shown)
    return {sla.name: _spark(sla, shown.start, starts, rows[sla.name]) for sla in slas}


def _spark(sla: Sla, start: datetime, starts: Sequence[datetime], rows: Sequence[tuple[Any, ...]]) -> Sparkline:
    worst = {at: ms for at, ms, _ in rows}
    applied = {at: threshold for at, _, threshold in rows if threshold is not None}
    thresholds = [applied.get(at, sla.max_latency_ms) for at in starts]
    return Sparkline(
        start=start, step_ms=HOUR_MS, worst_latency_ms=[worst.get(at) for at in starts], threshold_ms=thresholds
    )


def _now(
    context: Context,
    sla: Sla,
    newest: Newest | None,
    miss: Miss | None,
    period: Attainment | None,
    sparkline: Sparkline,
) -> SlaStatus:
    state, reason = _state(context.now, newest, miss)
    return SlaStatus(
        name=sla.name, cluster=sla.cluster, team=sla.team, description=sla.description,
        groups=list(written(sla.groups)), topics=list(written(sla.topics)),
        max_latency_ms=(newest or sla).max_latency_ms, for_ms=sla.for_ms, objective=sla.objective,
        state=state, reason=reason,
        as_of=newest.end if newest else None, worst_latency_ms=newest.worst_latency_ms if newest else None,
        open_miss=miss.id if miss else None, open_since=miss.start if miss else None,
        period=attainment_answer(sla, period) if period else None, sparkline=sparkline,
    )  # fmt: skip


def _state(now: datetime, newest: Newest | None, miss: Miss | None) -> tuple[State, str]:
    """What can be said of now. An open miss stays open, also while nobody looks; then it says so, too."""
    if newest is None:
        return "unknown", "never judged yet"
    silent = f"no verdict since {moment(newest.end)}, {span((now - newest.end) / timedelta(milliseconds=1))} ago"
    is_silent = now - newest.end > SILENT
    if miss:
        return "missed", silent if is_silent else ""
    if is_silent:
        return "unknown", silent
    known: dict[str, State] = {"good": "met", "bad": "pending", "excluded": "excluded", "unknown": "unknown"}
    return known[newest.verdict], newest.reason or ""


def attainment_answer(sla: Sla, found: Attainment) -> schemas.Attainment:
    """An attainment as the API tells it."""
    return schemas.Attainment(
        period=sla.period, start=found.period.start, end=found.period.end, as_of=found.at, attainment=found.attainment,
        records_attainment=found.records_attainment, coverage=found.coverage, met=found.met,
        budget=found.budget, budget_ms=found.budget_ms,
        budget_left_ms=found.budget_left_ms, burn_rate=found.burn_rate, good_ms=found.good_ms, bad_ms=found.bad_ms,
        excluded_ms=found.excluded_ms, unknown_ms=found.unknown_ms,
    )  # fmt: skip
