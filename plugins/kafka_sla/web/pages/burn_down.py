"""How the error budget of a calendar period went, as the lines of an SVG. Reads the rollups; knows no HTML tag."""

from __future__ import annotations

from datetime import timedelta
from itertools import accumulate
from typing import Any

from kafka_sla.model.entities import Interval, Sla
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS
from kafka_sla.text.formatting import moment, share, span
from kafka_sla.web.queries.context import Context
from kafka_sla.web.queries.schemas import Attainment

WIDTH, HEIGHT = 1_000, 120
_HOURS_UNTIL = timedelta(days=32)
"""Longer periods are drawn by day."""


def burn_down(context: Context, sla: Sla, period: Attainment | None) -> dict[str, Any] | None:
    """What is left after each hour or day, beside even spending; nothing where no budget is."""
    if period is None or not period.budget_ms or period.attainment is None:
        return None
    whole = Interval(period.start, period.end)
    width_ms = HOUR_MS if whole.end - whole.start <= _HOURS_UNTIL else DAY_MS
    hours = context.ledger.rollups.numbers(sla.name, width_ms, Interval(whole.start, max(period.as_of, whole.start)))
    left = [period.budget_ms - spent for spent in accumulate(hour.bad_ms for hour in hours)]
    lowest = min(0.0, *left, period.budget_left_ms)

    def point(at: Any, ms: float) -> str:
        x = WIDTH * (at - whole.start) / (whole.end - whole.start)
        y = HEIGHT * (period.budget_ms - ms) / (period.budget_ms - lowest)
        return f"{min(x, WIDTH):.1f},{y:.1f}"

    ends = [min(hour.span.end, period.as_of) for hour in hours]
    points = [point(whole.start, period.budget_ms), *(point(at, ms) for at, ms in zip(ends, left, strict=True)),
              point(period.as_of, period.budget_left_ms)]  # fmt: skip
    elapsed = (period.as_of - whole.start) / (whole.end - whole.start)
    text = f"{share(max(0.0, period.budget_left_ms / period.budget_ms))} of {span(period.budget_ms)} is left"
    return {
        "width": WIDTH, "height": HEIGHT, "line": " ".join(points), "overspent": period.budget_left_ms < 0,
        "even": f"{point(whole.start, period.budget_ms)} {point(whole.end, 0)}",
        "zero": point(whole.end, 0).split(",")[1],
        "text": f"{text} after {share(elapsed)} of the {sla.period}", "start": moment(whole.start),
        "end": moment(whole.end),
    }  # fmt: skip
