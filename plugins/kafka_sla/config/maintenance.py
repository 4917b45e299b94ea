"""Planned maintenances as people write them, to the model's spans."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import time
from typing import Any

from kafka_sla.model.entities import Interval, Maintenance, WeeklyMaintenance
from kafka_sla.text.timestamps import parse_instant

EVERY = r"^\s*[A-Za-z]+(\s*,\s*[A-Za-z]+)*\s+([01]\d|2[0-3]):[0-5]\d\s*-\s*(([01]\d|2[0-3]):[0-5]\d|24:00)\s*$"
EVERY_ALLOWED = "weekdays and a span, such as 'sunday 02:00-04:00', 'saturday,sunday 23:00-01:00' or 'day 03:00-03:15'"
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def parse_every(text: object) -> tuple[tuple[int, ...], time, time]:
    """`sunday 02:00-04:00` as weekdays (0 is Monday), start and end; ValueError says what is allowed."""
    if not isinstance(text, str) or not re.match(EVERY, text, re.ASCII):
        raise ValueError(f"not a weekly span; allowed: {EVERY_ALLOWED}")
    start, end = re.findall(r"\d\d:\d\d", text)
    if start == end:
        raise ValueError(f"an empty span; allowed: {EVERY_ALLOWED}")
    names = re.findall(r"[a-z]+", text.lower())
    weekdays = sorted({day for name in names for day in _weekdays(name)})
    return tuple(weekdays), time.fromisoformat(start), time.fromisoformat(end.replace("24:00", "00:00"))


def parse_maintenance(given: Mapping[str, Any], sla_time_zone: str) -> Maintenance | WeeklyMaintenance:
    """One valid entry of `maintenance`; times without an offset follow its time zone, which defaults to the SLA's."""
    zone, reason = given.get("time_zone") or sla_time_zone, given.get("reason") or "planned maintenance"
    if given.get("every"):
        return WeeklyMaintenance(*parse_every(given["every"]), zone, reason)
    return Maintenance(Interval(parse_instant(given["from"], zone), parse_instant(given["to"], zone)), reason)


def _weekdays(name: str) -> tuple[int, ...]:
    if name == "day":
        return tuple(range(7))
    found = tuple(i for i, day in enumerate(_DAYS) if name in (day, day[:3]))
    if not found:
        raise ValueError(f"not a weekday: {name}; allowed: {EVERY_ALLOWED}")
    return found
