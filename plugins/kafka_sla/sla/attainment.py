"""How far an SLA was met in a period, and what is left of its error budget. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from kafka_sla.model.entities import Interval, ObjectiveOf, Sla, SlaWindow
from kafka_sla.sla.objective_kinds import KINDS, Counted
from kafka_sla.sla.rollups import Sums, sums_of
from kafka_sla.text.periods import rolling_days

Budget = Literal["on_track", "at_risk", "exhausted"]
Decision = Literal["running", "met", "not_met", "undecided"]
_MUCH = 0.5
"""Share of a calendar period's budget up to which its spending is no reason to worry."""
_MOST = 0.8
"""The same for a budget that does not run out with a period: a rolling one, or one of records."""


@dataclass(frozen=True, slots=True)
class Attainment:
    """One SLA from the start of a period until `at`; shares are 0..1, None where nothing is known."""

    sla: str
    period: Interval
    at: datetime
    objective: float
    objective_of: ObjectiveOf
    rolling: bool
    sums: Sums
    """Its `unknown_ms` is the time judged unknown, or never judged: the rest from the start of the period to `at`."""
    counted: Counted = field(init=False)
    """What the objective counts; nearly every figure asks for it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "counted", KINDS[self.objective_of].counted(self.sums))

    @property
    def attainment(self) -> float | None:
        """Good share of what the objective counts: of judged time, or of records."""
        return self.counted.good_share

    @property
    def attainment_low(self) -> float | None:
        return self.counted.good_share_low

    @property
    def attainment_high(self) -> float | None:
        return self.counted.good_share_high

    @property
    def time_attainment(self) -> float | None:
        """Good time over good and bad time."""
        return KINDS["time"].counted(self.sums).good_share

    @property
    def records_attainment(self) -> float | None:
        """Share of the records due in good and bad time that were read by then."""
        return KINDS["records"].counted(self.sums).good_share

    @property
    def records_due(self) -> int:
        return self.sums.records_due

    @property
    def records_late(self) -> int:
        return self.sums.records_late

    @property
    def good_ms(self) -> int:
        return self.sums.good_ms

    @property
    def bad_ms(self) -> int:
        return self.sums.bad_ms

    @property
    def excluded_ms(self) -> int:
        return self.sums.excluded_ms

    @property
    def unknown_ms(self) -> int:
        return self.sums.unknown_ms

    @property
    def coverage(self) -> float:
        """Share of the elapsed time about which something is known."""
        elapsed = self.good_ms + self.bad_ms + self.excluded_ms + self.unknown_ms
        return 1 - self.unknown_ms / elapsed if elapsed else 0.0

    @property
    def decision(self) -> Decision | None:
        """Whether the objective is met by all bounds, by none, or by some; `running` while the period can still change
        it. None: nothing known."""
        low, high = self.attainment_low, self.attainment_high
        if self.attainment is None or low is None or high is None:
            return None
        if self.at >= self.period.end:
            return "met" if low >= self.objective else "not_met" if high < self.objective else "undecided"
        return "not_met" if KINDS[self.objective_of].known_ahead and self.left < 0 else "running"

    @property
    def met(self) -> bool | None:
        """Known at the end of the period, and as soon as the objective can no longer be met."""
        return {"met": True, "not_met": False}.get(self.decision or "")

    @property
    def allowed(self) -> float:
        """The error budget: milliseconds of bad time, or late records."""
        length_ms = (self.period.end - self.period.start) // timedelta(milliseconds=1)
        return KINDS[self.objective_of].budget(self.objective, self.sums, length_ms)

    @property
    def left(self) -> float:
        """Negative when the budget is overspent."""
        return self.allowed - self.counted.bad

    @property
    def budget(self) -> Budget | None:
        """At risk: more than half of a calendar period's budget is spent, and faster than the period passes; of a
        rolling period, or of records, more than four fifths. None: nothing known."""
        if self.attainment is None:
            return None
        if self.left < 0:
            return "exhausted"
        spent = self.counted.bad / self.allowed if self.allowed else 0.0
        elapsed = (self.at - self.period.start) / (self.period.end - self.period.start)
        ahead = KINDS[self.objective_of].known_ahead and not self.rolling
        return "at_risk" if (spent > _MUCH and spent > elapsed if ahead else spent > _MOST) else "on_track"

    @property
    def budget_ms(self) -> float | None:
        """Bad time that the objective allows in the whole period; None: it counts records."""
        return self.allowed if self.objective_of == "time" else None

    @property
    def budget_left_ms(self) -> float | None:
        return self.left if self.objective_of == "time" else None

    @property
    def budget_records(self) -> float | None:
        """Late records that the objective allows among those of the period so far; None: it counts time."""
        return self.allowed if self.objective_of == "records" else None

    @property
    def budget_left_records(self) -> float | None:
        return self.left if self.objective_of == "records" else None

    @property
    def burn_rate(self) -> float | None:
        """Bad share over the allowed share: 1 spends exactly the budget. None: unknown, or none is allowed."""
        if self.attainment is None or self.objective >= 1:
            return None
        return (1 - self.attainment) / (1 - self.objective)


def attainment_in(sla: Sla, windows: Sequence[SlaWindow], period: Interval, at: datetime | None = None) -> Attainment:
    """Any span of time, up to `at` or all of it; windows of other times are ignored."""
    at = at or period.end
    inside = [w for w in windows if period.start <= w.window.start and w.window.end <= at]
    return attainment_of(sla, period, at, sums_of(inside))


def attainment_of(sla: Sla, period: Interval, at: datetime, sums: Sums) -> Attainment:
    """The same from judged time that was added up already."""
    elapsed = (at - period.start) // timedelta(milliseconds=1)
    whole = replace(sums, unknown_ms=max(0, elapsed - sums.good_ms - sums.bad_ms - sums.excluded_ms))
    rolling = rolling_days(sla.period) is not None
    return Attainment(sla.name, period, at, sla.objective, sla.objective_of, rolling, whole)
