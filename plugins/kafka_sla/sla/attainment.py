"""How far an SLA was met in a calendar period, and what is left of its error budget. Pure; knows no store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, get_args
from zoneinfo import ZoneInfo

from kafka_sla.model.entities import Interval, Period, Sla, SlaWindow, Verdict
from kafka_sla.sla.rollups import Sums

Budget = Literal["on_track", "at_risk", "exhausted"]
_MUCH = 0.5
"""Share of the error budget up to which its spending is no reason to worry."""


@dataclass(frozen=True, slots=True)
class Attainment:
    """One SLA from the start of a period until `at`; shares are 0..1, None where nothing is known."""

    sla: str
    period: Interval
    at: datetime
    objective: float
    good_ms: int
    bad_ms: int
    excluded_ms: int
    unknown_ms: int
    """Judged unknown, or never judged: the rest of the time from the start of the period until `at`."""
    records_consumed: int
    records_over_threshold: int

    @property
    def attainment(self) -> float | None:
        """Good time over good and bad time."""
        known = self.good_ms + self.bad_ms
        return self.good_ms / known if known else None

    @property
    def records_attainment(self) -> float | None:
        """Share of the records consumed in good and bad time within the threshold."""
        return 1 - self.records_over_threshold / self.records_consumed if self.records_consumed else None

    @property
    def coverage(self) -> float:
        """Share of the elapsed time about which something is known."""
        elapsed = self.good_ms + self.bad_ms + self.excluded_ms + self.unknown_ms
        return 1 - self.unknown_ms / elapsed if elapsed else 0.0

    @property
    def met(self) -> bool | None:
        """Known at the end of the period, and as soon as the objective can no longer be met."""
        if self.attainment is None:
            return None
        if self.at >= self.period.end:
            return self.attainment >= self.objective
        return False if self.budget_left_ms < 0 else None

    @property
    def budget(self) -> Budget | None:
        """At risk: more than half of the budget is spent, and faster than the period passes. None: nothing known."""
        if self.attainment is None:
            return None
        if self.budget_left_ms < 0:
            return "exhausted"
        spent = self.bad_ms / self.budget_ms if self.budget_ms else 0.0
        elapsed = (self.at - self.period.start) / (self.period.end - self.period.start)
        return "at_risk" if spent > _MUCH and spent > elapsed else "on_track"

    @property
    def budget_ms(self) -> float:
        """Bad time that the objective allows in the whole period; time already excluded earns none."""
        length_ms = (self.period.end - self.period.start) / timedelta(milliseconds=1)
        return (1 - self.objective) * (length_ms - self.excluded_ms)

    @property
    def budget_left_ms(self) -> float:
        """Negative when the budget is overspent."""
        return self.budget_ms - self.bad_ms

    @property
    def burn_rate(self) -> float | None:
        """Share of bad time over the allowed share: 1 spends exactly the budget. None: unknown, or none is allowed."""
        if self.attainment is None or self.objective >= 1:
            return None
        return (1 - self.attainment) / (1 - self.objective)


def attainment_in(sla: Sla, windows: Sequence[SlaWindow], period: Interval, at: datetime | None = None) -> Attainment:
    """Any span of time, up to `at` or all of it; windows of other times are ignored."""
    at = at or period.end
    inside = [w for w in windows if period.start <= w.window.start and w.window.end <= at]
    spent = {f"{verdict}_ms": _length_ms(inside, verdict) for verdict in get_args(Verdict)}
    counted = [w for w in inside if w.verdict in ("good", "bad")]
    consumed, over = sum(w.records_consumed for w in counted), sum(w.records_over_threshold for w in counted)
    return attainment_of(sla, period, at, Sums(**spent, records_consumed=consumed, records_over_threshold=over))


def attainment_of(sla: Sla, period: Interval, at: datetime, sums: Sums) -> Attainment:
    """The same from judged time that was added up already."""
    elapsed = (at - period.start) // timedelta(milliseconds=1)
    return Attainment(
        sla.name, period, at, sla.objective, sums.good_ms, sums.bad_ms, sums.excluded_ms,
        max(0, elapsed - sums.good_ms - sums.bad_ms - sums.excluded_ms), sums.records_consumed,
        sums.records_over_threshold,
    )  # fmt: skip


def period_until(sla: Sla, at: datetime) -> Interval:
    """The calendar period of the SLA that holds the instant just before `at`."""
    return calendar_period(sla.period, sla.time_zone, at - timedelta(microseconds=1))


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


def _length_ms(windows: Sequence[SlaWindow], verdict: Verdict) -> int:
    spans = (w.window.end - w.window.start for w in windows if w.verdict == verdict)
    return sum(spans, timedelta()) // timedelta(milliseconds=1)
