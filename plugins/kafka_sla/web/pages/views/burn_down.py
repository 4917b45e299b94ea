"""How the error budget of a period went, as the lines of an SVG. Reads the rollups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from kafka_sla.model.entities import Interval, Sla
from kafka_sla.sla.attainment import attainment_of
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS, Rollup, Sums, added, less
from kafka_sla.sla.wording import budget, share_of_budget_left
from kafka_sla.text.formatting import moment, share
from kafka_sla.text.periods import rolling_days, the_period, this_period
from kafka_sla.web.queries.context import Context
from kafka_sla.web.queries.schemas import Attainment

WIDTH, HEIGHT = 1_000, 120
_HOURS_UNTIL = timedelta(days=32)
"""Longer periods are drawn by day."""
_Left = tuple[datetime, float]


def burn_down(context: Context, sla: Sla, period: Attainment | None) -> dict[str, Any] | None:
    """What is left after each hour or day, beside even spending of a calendar period; nothing where no budget is."""
    whole = share_of_budget_left(period) if period else None
    if period is None or whole is None or period.attainment is None:
        return None
    shown = Interval(period.start, period.end)
    left = [*_left(context, sla, shown, period.as_of), (period.as_of, whole)]
    lowest = min(0.0, *(part for _, part in left))

    def point(at: datetime, part: float) -> str:
        x = WIDTH * (at - shown.start) / (shown.end - shown.start)
        return f"{min(x, WIDTH):.1f},{HEIGHT * (1 - part) / (1 - lowest):.1f}"

    even = f"{point(shown.start, 1)} {point(shown.end, 0)}" if period.budget_ms and not rolling_days(sla.period) else ""
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "line": " ".join(point(at, part) for at, part in left),
        "overspent": whole < 0,
        "even": even,
        "zero": point(shown.end, 0).split(",")[1],
        "text": _text(sla, period, whole),
        "start": moment(shown.start),
        "end": moment(shown.end),
    }


def _text(sla: Sla, period: Attainment, left: float) -> str:
    text = f"{share(max(0.0, left))} of {budget(period)} is left"
    if rolling_days(sla.period):
        return f"{text} of {this_period(sla.period)}"
    elapsed = 100 * (period.as_of - period.start) // (period.end - period.start)
    return f"{text} after {elapsed} % of {the_period(sla.period)}"


def _left(context: Context, sla: Sla, shown: Interval, until: datetime) -> list[_Left]:
    """The share of its budget that was left at the end of each hour or day: of a rolling period, of the one that ended
    there."""
    width_ms = HOUR_MS if shown.end - shown.start <= _HOURS_UNTIL else DAY_MS
    days = rolling_days(sla.period)
    first = shown.start - timedelta(days=days) if days else shown.start
    rollups = context.ledger.rollups.numbers(sla.name, width_ms, Interval(first, max(until, shown.start)))
    until_each = list(accumulate((rollup.sums for rollup in rollups), lambda one, other: added([one, other])))
    spent = _rolling(rollups, until_each, timedelta(days=days)) if days else until_each
    known = [
        (min(rollup.span.end, until), part)
        for rollup, sums in zip(rollups, spent, strict=True)
        if rollup.span.end > shown.start
        for part in _share(sla, shown, sums)
    ]
    return known if days else [(shown.start, 1.0), *known]


def _rolling(rollups: Sequence[Rollup], until_each: Sequence[Sums], length: timedelta) -> Iterator[Sums]:
    """The sums of the period that ends with each rollup."""
    before = 0
    for rollup, sums in zip(rollups, until_each, strict=True):
        while rollups[before].span.end <= rollup.span.end - length:
            before += 1
        yield less(sums, until_each[before - 1]) if before else sums


def _share(sla: Sla, period: Interval, sums: Sums) -> list[float]:
    found = share_of_budget_left(attainment_of(sla, period, period.end, sums))
    return [] if found is None else [found]
