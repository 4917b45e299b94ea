"""The last year of an SLA as a calendar of days, which the template draws. Reads the rollups."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from kafka_sla.model.entities import Interval, Sla, floor_time
from kafka_sla.sla.objective_kinds import KINDS
from kafka_sla.sla.rollups import DAY_MS, Rollup
from kafka_sla.text.formatting import plural, share, span
from kafka_sla.web.queries.context import Context

WEEKS, CELL = 53, 14
"""A column a week, the newest is the present one; pixels from a cell to the next."""
LEVELS = {
    "good": "no bad time",
    "slight": "bad time within the objective",
    "below": "below the objective",
    "far-below": "more than a tenth of the day bad",
    "excluded": "excluded",
    "unknown": "unknown",
    "never": "never judged",
}
_TENTH = 0.1
_DAY = timedelta(milliseconds=DAY_MS)


def year_map(context: Context, sla: Sla) -> dict[str, Any]:
    """A cell a UTC day with its level and figures in words; days with bad time lead to themselves."""
    today = floor_time(context.now, DAY_MS)
    monday = today - timedelta(days=today.weekday(), weeks=WEEKS - 1)
    known = context.ledger.rollups.numbers(sla.name, DAY_MS, Interval(monday, today + _DAY))
    by_day = {rollup.span.start: rollup for rollup in known}
    cells = [
        _cell(sla, monday, number, by_day.get(monday + number * _DAY)) for number in range((today - monday).days + 1)
    ]
    return {
        "width": WEEKS * CELL,
        "height": 7 * CELL,
        "cells": cells,
        "months": _months(monday),
        "levels": [(level, words) for level, words in LEVELS.items() if any(c["level"] == level for c in cells)],
        "text": _text(Counter(cell["level"] for cell in cells)),
    }


def _cell(sla: Sla, monday: datetime, number: int, rollup: Rollup | None) -> dict[str, Any]:
    day, (week, weekday) = monday + number * _DAY, divmod(number, 7)
    good = KINDS[sla.objective_of].counted(rollup.sums).good_share if rollup else None
    return {
        "x": week * CELL,
        "y": weekday * CELL,
        "level": _level(sla, rollup, good) if rollup else "never",
        "text": f"{day:%Y-%m-%d}: {_figures(rollup, good) if rollup else LEVELS['never']}",
        "from": f"{day:%Y-%m-%dT%H:%M}",
        "to": f"{day + _DAY:%Y-%m-%dT%H:%M}",
        "leads": rollup is not None and rollup.bad_ms > 0,
    }


def _level(sla: Sla, day: Rollup, good: float | None) -> str:
    if good is None:
        return (
            "never"
            if not (day.excluded_ms or day.unknown_ms)
            else ("excluded" if day.excluded_ms >= day.unknown_ms else "unknown")
        )
    bad = 1 - good
    if bad > _TENTH:
        return "far-below"
    return "good" if not bad else "slight" if bad <= 1 - sla.objective else "below"


def _figures(day: Rollup, good: float | None) -> str:
    words = [f"{share(good)} attained"] if good is not None else []
    words += [f"{span(day.bad_ms)} bad"] if day.bad_ms else []
    words += [f"worst latency {span(day.worst_latency_ms)}"] if day.worst_latency_ms is not None else []
    words += [f"{span(day.excluded_ms)} excluded"] if day.excluded_ms else []
    words += [f"{span(day.unknown_ms)} unknown"] if day.unknown_ms else []
    return ", ".join(words) or LEVELS["never"]


def _months(monday: datetime) -> list[tuple[int, str]]:
    """Where the first Monday of each month stands, but for one beside the edge, which has no room for its name."""
    starts = [monday + timedelta(weeks=week) for week in range(WEEKS)]
    return [(week * CELL, f"{at:%b}") for week, at in enumerate(starts) if at.day <= 7 and week < WEEKS - 1]


def _text(levels: Counter[str]) -> str:
    judged = sum(levels.values()) - levels["never"]
    late = levels["below"] + levels["far-below"]
    return f"{plural(judged, 'day')} judged in the last year, {late} of them below the objective"
