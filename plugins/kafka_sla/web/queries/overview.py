"""Every SLA as it stands: state, period and a small curve, from a handful of queries whatever the history. No HTML."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from kafka_sla.ledger.queries import Newest
from kafka_sla.model.entities import Interval, Miss, Sla, floor_time
from kafka_sla.pipeline.judged_time import attainments
from kafka_sla.sla.attainment import Attainment
from kafka_sla.sla.burn import Burn
from kafka_sla.sla.rollups import HOUR_MS
from kafka_sla.sla.unjudged_partitions import UnjudgedPartitions
from kafka_sla.text.formatting import moment, span
from kafka_sla.text.name_patterns import written
from kafka_sla.text.natural_order import natural
from kafka_sla.web.queries import schemas
from kafka_sla.web.queries.context import Context
from kafka_sla.web.queries.schemas import SlaStatus, Sparkline, State

SILENT = timedelta(minutes=30)
"""Without a verdict for so long, the last one says nothing about now."""
_SPARKLINE_HOURS = 24
_ORDER: dict[State, int] = {"missed": 0, "pending": 1, "unknown": 2, "excluded": 3, "met": 4}


def overview(context: Context, slas: Sequence[Sla]) -> list[SlaStatus]:
    """The worst first, then by name; curves come `with_curves`."""
    newest = context.ledger.queries.newest_verdicts([sla.name for sla in slas], context.now - SILENT)
    misses = {miss.sla: miss for miss in context.ledger.verdicts.misses(open_only=True)}
    periods = attainments(
        context.ledger, [(sla, newest[sla.name].end) for sla in slas if sla.name in newest], newest=True
    )
    undrawn = Sparkline(start=context.now, step_ms=HOUR_MS, worst_latency_ms=[], threshold_ms=[])
    burns = context.ledger.burns.of([sla.name for sla in slas if sla.burn_pairs])
    unjudged = context.ledger.unjudged_partitions.of([sla.name for sla in slas])
    rows = [
        _now(
            context,
            sla,
            newest.get(sla.name),
            misses.get(sla.name),
            periods.get(sla.name),
            undrawn,
            [burn for burn in burns if burn.sla == sla.name],
            unjudged.get(sla.name, []),
        )
        for sla in slas
    ]
    return sorted(rows, key=lambda row: (_ORDER[row.state], natural(row.name)))


def with_curves(context: Context, rows: Sequence[SlaStatus]) -> list[SlaStatus]:
    """The same, each with what its last day looked like."""
    named = {sla.name: sla for sla in context.settings.slas}
    curves = _sparklines(context, [named[row.name] for row in rows])
    return [row.model_copy(update={"sparkline": curves[row.name]}) for row in rows]


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
    burns: Sequence[Burn],
    unjudged: Sequence[UnjudgedPartitions],
) -> SlaStatus:
    state, reason = _state(context.now, newest, miss)
    return SlaStatus(
        name=sla.name,
        cluster=sla.cluster,
        team=sla.team,
        description=sla.description,
        groups=list(written(sla.groups)),
        topics=list(written(sla.topics)),
        max_latency_ms=(newest or sla).max_latency_ms,
        for_ms=sla.for_ms,
        objective=sla.objective,
        objective_of=sla.objective_of,
        state=state,
        reason=reason,
        as_of=newest.end if newest else None,
        worst_latency_ms=newest.worst_latency_ms if newest else None,
        open_miss=miss.id if miss else None,
        open_since=miss.start if miss else None,
        period=attainment_answer(sla, period) if period else None,
        sparkline=sparkline,
        burns=[burn_answer(burn) for burn in burns],
        unjudged=[_unjudged_answer(part) for part in unjudged],
    )


def _unjudged_answer(part: UnjudgedPartitions) -> schemas.UnjudgedPartitions:
    return schemas.UnjudgedPartitions(
        group=part.group,
        topic=part.topic,
        partitions=list(part.partitions),
        since=part.since,
        reason=part.reason,
        text=part.text,
    )


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


def burn_answer(burn: Burn) -> schemas.BurnAnswer:
    """A burn as the API tells it."""
    return schemas.BurnAnswer(
        id=burn.id,
        severity=burn.severity,
        start=burn.start,
        end=burn.end,
        burn_rate=burn.burn_rate,
        alerted_above=burn.pair.burn_rate,
        long_ms=burn.pair.long_ms,
        short_ms=burn.pair.short_ms,
    )


def attainment_answer(sla: Sla, found: Attainment) -> schemas.Attainment:
    """An attainment as the API tells it."""
    return schemas.Attainment(
        period=sla.period,
        start=found.period.start,
        end=found.period.end,
        as_of=found.at,
        objective_of=found.objective_of,
        attainment=found.attainment,
        attainment_low=found.attainment_low,
        attainment_high=found.attainment_high,
        time_attainment=found.time_attainment,
        records_attainment=found.records_attainment,
        coverage=found.coverage,
        decision=found.decision,
        met=found.met,
        budget=found.budget,
        budget_ms=found.budget_ms,
        budget_left_ms=found.budget_left_ms,
        budget_records=found.budget_records,
        budget_left_records=found.budget_left_records,
        burn_rate=found.burn_rate,
        good_ms=found.good_ms,
        bad_ms=found.bad_ms,
        excluded_ms=found.excluded_ms,
        unknown_ms=found.unknown_ms,
    )
