"""The periods that a digest tells of: which hold an instant, which fall due when, what they are called."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from kafka_sla.model.entities import Digest, Interval, Sla
from kafka_sla.sla.periods import calendar_period


def period_of(digest: Digest, at: datetime) -> Interval:
    """The period of the digest that holds the instant."""
    return calendar_period(digest.every, digest.time_zone, at)


def last_instant(digest: Digest, sla: Sla, period: Interval) -> datetime:
    """An instant on the last day of the period, by the clock of the SLA: east of the digest that day ended earlier, and
    the SLA's next calendar period may have begun."""
    last = (period.end - timedelta(microseconds=1)).astimezone(ZoneInfo(digest.time_zone))
    return min(last.replace(tzinfo=ZoneInfo(sla.time_zone)).astimezone(UTC), period.end - timedelta(microseconds=1))


def due_at(digest: Digest, period: Interval) -> datetime:
    """When a period is told: after it has ended, at the digest's hour."""
    zone = ZoneInfo(digest.time_zone)
    return datetime.combine(period.end.astimezone(zone).date(), digest.at, zone).astimezone(UTC)


def periods_due(digest: Digest, interval: Interval) -> Iterator[Interval]:
    """The periods that fall due in the interval, oldest first."""
    period = period_of(digest, interval.start - timedelta(days=2))
    while period.end <= interval.end:
        if interval.start <= due_at(digest, period) < interval.end:
            yield period
        period = period_of(digest, period.end)


def period_name(digest: Digest, period: Interval) -> str:
    """`Friday 20 November 2026`, `16 to 22 November 2026`, `November 2026`, by the digest's clock."""
    zone = ZoneInfo(digest.time_zone)
    first = period.start.astimezone(zone)
    last = (period.end - timedelta(microseconds=1)).astimezone(zone)
    if digest.every == "day":
        return f"{first:%A} {first.day} {first:%B %Y}"
    if digest.every == "month":
        return f"{first:%B %Y}"
    start = f"{first.day}" if first.month == last.month else f"{first.day} {first:%B}"
    start += "" if first.year == last.year else f" {first.year}"
    return f"{start} to {last.day} {last:%B %Y}"
