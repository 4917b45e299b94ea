"""The periods of objectives: calendar periods by the clock of a time zone, and rolling ones of whole days. Pure; knows
no SLA's figures."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from kafka_sla.model.entities import Interval, Period, Sla
from kafka_sla.text.periods import rolling_days


def period_until(sla: Sla, at: datetime) -> Interval:
    """The calendar period of the SLA that holds the instant just before `at`, or the rolling one that ends there."""
    if days := rolling_days(sla.period):
        return Interval(at - timedelta(days=days), at)
    return calendar_period(sla.period, sla.time_zone, at - timedelta(microseconds=1))


def period_around(sla: Sla, at: datetime, until: datetime) -> Interval:
    """The calendar period of the SLA that holds `at`; of a rolling one, that which ends at `until`."""
    if rolling_days(sla.period):
        return period_until(sla, until)
    return calendar_period(sla.period, sla.time_zone, at)


def period_before(sla: Sla, period: Interval) -> Interval:
    """The one that ended when this one began."""
    return period_until(sla, period.start)


def calendar_period(period: Period, time_zone: str, at: datetime) -> Interval:
    """The day, week (from Monday), month, quarter or year around `at`, from local midnight to local midnight."""
    zone = ZoneInfo(time_zone)
    first, after = _days(period, at.astimezone(zone).date())
    start, end = (datetime.combine(day, time(), zone).astimezone(UTC) for day in (first, after))
    return Interval(start, end)


def _days(period: Period, today: date) -> tuple[date, date]:
    """First day of the period and first day after it."""
    if period in ("day", "week"):
        first = today if period == "day" else today - timedelta(days=today.weekday())
        return first, first + timedelta(days=1 if period == "day" else 7)
    months = {"month": 1, "quarter": 3, "year": 12}[period]
    month = (today.month - 1) // months * months
    year, next_month = today.year + (month + months) // 12, (month + months) % 12
    return date(today.year, month + 1, 1), date(year, next_month + 1, 1)
