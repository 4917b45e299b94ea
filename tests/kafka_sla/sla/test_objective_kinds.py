"""Arithmetic of objectives against examples that others publish: their numbers, our code."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kafka_sla.model.entities import Interval, Patterns, Sla, SteadyState
from kafka_sla.sla.attainment import Attainment, attainment_of
from kafka_sla.sla.periods import period_until
from kafka_sla.sla.rollups import Sums
from kafka_sla.sla.wording import budget, budget_left

NOW = datetime(2026, 11, 23, 10, 7, tzinfo=UTC)
MINUTE_MS, DAY_MS = 60_000, 86_400_000


def required(objective: float, period: str, of: str = "time") -> Sla:
    return Sla(
        "payments",
        "main",
        Patterns(),
        Patterns(),
        30_000,
        300_000,
        objective,
        SteadyState(30_000),
        period=period,
        objective_of="records" if of == "records" else "time",
    )


def after(sla: Sla, *, of_days: float | None = None, **sums: Any) -> Attainment:
    """The period that ends now, with these sums; the rest of `of_days` was good."""
    found = Sums(**sums)
    if of_days:
        found = replace(found, good_ms=int(of_days * DAY_MS) - found.bad_ms - found.excluded_ms - found.unknown_ms)
    return attainment_of(sla, period_until(sla, NOW), NOW, found)


@pytest.mark.parametrize(
    ("objective", "period", "allowed_minutes"),
    [
        (0.99, "30d", 432.0),
        (0.999, "30d", 43.2),
        (0.9999, "30d", 4.32),  # SRE Workbook, chapter 5, and Sloth's 30 days
        (0.999, "28d", 40.32),
        (0.999, "7d", 10.08),  # four weeks, as the Workbook's chapter 2 and Sloth's other catalogue
    ],
)
def test_a_rolling_period_allows_bad_time_of_its_whole_length(
    objective: float, period: str, allowed_minutes: float
) -> None:
    assert after(required(objective, period)).budget_ms == pytest.approx(allowed_minutes * MINUTE_MS)


@pytest.mark.parametrize(("objective", "allowed"), [(0.97, "109,897"), (0.9, "366,325"), (0.99, "36,632")])
def test_of_3663253_requests_the_workbook_allows_as_many_bad_ones(objective: float, allowed: str) -> None:
    found = after(required(objective, "28d", "records"), of_days=28, records_due=3_663_253)

    assert budget(found) == f"{allowed} records"


def test_of_the_workbooks_service_3557865_good_requests_meet_97_percent() -> None:
    bad = 3_663_253 - 3_557_865
    found = after(
        required(0.97, "28d", "records"),
        of_days=28,
        records_due=3_663_253,
        records_late=bad,
        records_late_low=bad,
        records_late_high=bad,
    )

    assert round(found.attainment or 0, 5) == 0.97123
    assert (found.decision, found.budget, budget_left(found)) == ("met", "at_risk", "4,509 records")


@pytest.mark.parametrize(("rate", "hours", "spent"), [(14.4, 1, 0.02), (6, 6, 0.05), (1, 72, 0.10)])
def test_a_burn_rate_spends_the_share_of_30_days_that_the_workbook_names(
    rate: float, hours: float, spent: float
) -> None:
    """In the time before, nothing was bad."""
    bad = rate * 0.001 * hours * 60 * MINUTE_MS
    found = after(required(0.999, "30d"), of_days=30, bad_ms=round(bad))

    assert found.left == pytest.approx((1 - spent) * found.allowed)


def test_a_hundred_percent_of_errors_burn_99_9_percent_at_a_rate_of_1000() -> None:
    assert after(required(0.999, "30d"), bad_ms=43 * MINUTE_MS).burn_rate == pytest.approx(1000)


@pytest.mark.parametrize(
    ("good", "bad", "objective", "burned"),
    [
        (9_900, 100, 0.99, 1.0),
        (9_700, 300, 0.99, 3.0),
        (99_950, 50, 0.999, 0.5),
        (95, 5, 0.999, 50.0),
    ],
)
def test_as_in_slo_generator_the_burn_rate_is_the_error_share_over_the_allowed_one(
    good: int, bad: int, objective: float, burned: float
) -> None:
    found = after(required(objective, "7d", "records"), records_due=good + bad, records_late=bad)

    assert found.burn_rate == pytest.approx(burned)


@pytest.mark.parametrize(
    ("late", "low", "high", "unknown", "decision"),
    [
        (50, 40, 90, 0, "met"),
        (150, 120, 190, 0, "not_met"),
        (50, 40, 100, 0, "met"),  # at worst exactly the objective
        (150, 100, 190, 0, "undecided"),  # at best exactly the objective
        (50, 40, 130, 0, "undecided"),
        (120, 60, 130, 0, "undecided"),
        (50, 40, 90, 500, "undecided"),  # all records of unknown time may have been late
        (150, 120, 190, 9_000, "undecided"),  # or none
    ],
)
def test_an_objective_in_records_is_met_by_all_bounds_by_none_or_undecided(
    late: int, low: int, high: int, unknown: int, decision: str
) -> None:
    found = after(
        required(0.99, "7d", "records"),
        records_due=10_000,
        records_late=late,
        records_late_low=low,
        records_late_high=high,
        records_in_unknown_time=unknown,
    )

    assert (found.decision, found.met) == (decision, {"met": True, "not_met": False}.get(decision))
    assert (found.attainment_low or 0) <= (found.attainment or 0) <= (found.attainment_high or 0)


def test_the_share_of_records_in_time_is_never_below_nothing() -> None:
    found = after(required(0.99, "7d", "records"), records_due=600, records_late=600, records_late_high=800)

    assert (found.attainment_low, found.attainment) == (0, 0)


def test_a_calendar_period_of_records_is_open_until_its_end_since_more_records_may_come() -> None:
    sla = required(0.99, "month", "records")
    found = after(sla, records_due=1_000, records_late=11)

    assert (found.decision, found.met, found.budget, budget_left(found)) == ("running", None, "exhausted", "−1 record")


@pytest.mark.parametrize(
    ("bad_minutes", "budget_state", "met"), [(32, "on_track", True), (33, "at_risk", True), (41, "exhausted", False)]
)
def test_a_rolling_budget_is_at_risk_from_four_fifths_on(bad_minutes: int, budget_state: str, met: bool) -> None:
    found = after(required(0.999, "28d"), of_days=28, bad_ms=bad_minutes * MINUTE_MS)

    assert (found.budget, found.met) == (budget_state, met)


def test_exactly_four_fifths_of_a_rolling_budget_are_no_risk_yet() -> None:
    found = [after(required(0.5, "7d"), of_days=7, bad_ms=bad).budget for bad in (241_920_000, 241_920_001)]

    assert found == ["on_track", "at_risk"]


def test_records_of_unknown_time_alone_decide_nothing() -> None:
    found = after(required(0.99, "7d", "records"), records_in_unknown_time=500)

    assert (found.attainment, found.attainment_low, found.attainment_high) == (None, 0.0, 1.0)
    assert (found.decision, found.budget, found.burn_rate) == (None, None, None)


def test_excluded_time_earns_no_budget_in_a_rolling_period_either() -> None:
    assert after(required(0.9, "7d"), excluded_ms=2 * DAY_MS).budget_ms == pytest.approx(0.1 * 5 * DAY_MS)


def test_a_rolling_period_reaches_back_from_the_instant() -> None:
    assert period_until(required(0.99, "28d"), NOW) == Interval(NOW - timedelta(days=28), NOW)
