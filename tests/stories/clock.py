"""Times of the stories' day as numbers: milliseconds since 07:50, when the facts begin."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

FACTS_FROM = datetime(2025, 3, 4, 7, 50, tzinfo=UTC)
JUDGED_FROM = datetime(2025, 3, 4, 8, tzinfo=UTC)
JUDGED_UNTIL = datetime(2025, 3, 4, 11, tzinfo=UTC)
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
LENGTH = (JUDGED_UNTIL - FACTS_FROM) // timedelta(milliseconds=1)
_UNITS = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR}


def parse_time(text: str) -> int:
    """Milliseconds since 07:50 of a time such as `08:30`, `08:30:15` or `08:30:00.200`."""
    hours, minutes, *seconds = text.split(":")
    of_day = int(hours) * HOUR + int(minutes) * MINUTE + round(float(seconds[0] if seconds else 0) * SECOND)
    return of_day - (FACTS_FROM.hour * HOUR + FACTS_FROM.minute * MINUTE)


def parse_duration(text: str) -> int:
    """Milliseconds of a duration such as `90s`, `5m` or `1h30m`; a minus sign before it makes it negative."""
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    total = round(sum(float(number) * _UNITS[unit] for number, unit in parts))
    return -total if text.startswith("-") else total


def format_instant(moment: int) -> str:
    """The ISO-8601 time of milliseconds since 07:50."""
    instant = FACTS_FROM + timedelta(milliseconds=moment)
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_minutes(text: str) -> list[str]:
    """The minutes that `08:00-08:05, 08:10, 08:20-` names, as `HH:MM`; both ends included, no end: until 10:59."""
    minutes: list[str] = []
    for span in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = span.partition("-")
        begin, end = (parse_time(name) // MINUTE for name in (first, last or ("10:59" if dash else first)))
        minutes += [format_minute(number) for number in range(begin, end + 1)]
    return minutes


def format_minute(number: int) -> str:
    """`HH:MM` of a number of minutes since 07:50."""
    return (FACTS_FROM + timedelta(minutes=number)).strftime("%H:%M")
