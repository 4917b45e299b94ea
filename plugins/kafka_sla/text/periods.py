"""Periods of objectives as people write and name them: `month`, `28d`."""

from __future__ import annotations

import re

CALENDAR_DAYS = {"day": 1, "week": 7, "month": 28, "quarter": 90, "year": 365}
"""Calendar periods, and the days of the shortest of each."""
PERIOD = r"^(day|week|month|quarter|year|[1-9]\d{0,2}d|[1-9]\d?w)$"
PERIOD_ALLOWED = (
    "day, week, month, quarter, year, or a rolling period of whole days, such as 7d, 28d, 30d; 366d at most"
)
_LONGEST_DAYS = 366


def parse_period(value: object) -> str:
    """A calendar period, or a rolling one in days; ValueError says what is allowed."""
    if not isinstance(value, str) or not re.match(PERIOD, value, re.ASCII):
        raise ValueError(f"not a period; allowed: {PERIOD_ALLOWED}")
    if value in CALENDAR_DAYS:
        return value
    days = int(value[:-1]) * (7 if value.endswith("w") else 1)
    if days > _LONGEST_DAYS:
        raise ValueError(f"out of range; allowed: {PERIOD_ALLOWED}")
    return f"{days}d"


def rolling_days(period: str) -> int | None:
    """Length of a rolling period; None: a calendar period."""
    return None if period in CALENDAR_DAYS else int(period.removesuffix("d"))


def shortest_days(period: str) -> int:
    """Length of the shortest period of the kind."""
    return rolling_days(period) or CALENDAR_DAYS[period]


def any_period(period: str) -> str:
    """As an objective names it: `the month`, `any 28 days`."""
    days = rolling_days(period)
    return f"any {_length(days)}" if days else f"the {period}"


def this_period(period: str) -> str:
    """The one that runs now: `this month`, `the last 28 days`."""
    days = rolling_days(period)
    return f"the last {_length(days)}" if days else f"this {period}"


def the_period(period: str) -> str:
    """The one that a figure is of: `the month`, `the last 28 days`."""
    return this_period(period) if rolling_days(period) else f"the {period}"


def during(period: str) -> str:
    """`this month`, `in the last 28 days`."""
    return f"in {this_period(period)}" if rolling_days(period) else this_period(period)


def before(period: str) -> str:
    """The one before the one that runs now: `last month`, `the 28 days before`."""
    days = rolling_days(period)
    return f"the {_length(days)} before" if days else f"last {period}"


def _length(days: int) -> str:
    return "24 hours" if days == 1 else f"{days} days"
