"""Attainment, coverage and error budget in calendar periods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kafka_sla.model.entities import Interval, Patterns, Period, Sla, SlaWindow, SteadyState, Verdict
from kafka_sla.sla.attainment import Attainment, attainment_in, attainment_of
from kafka_sla.sla.periods import calendar_period, period_until
from kafka_sla.sla.rollups import Sums

HOUR = timedelta(hours=1)
START = datetime(2026, 3, 1, tzinfo=UTC)


def promise(**changes: Any) -> Sla:
    fields: dict[str, Any] = {
        "name": "payments-30s",
        "cluster": "main",
        "groups": Patterns(),
        "topics": Patterns(),
        "max_latency_ms": 30_000,
        "for_ms": 0,
        "objective": 0.9,
        "steady_state": SteadyState(30_000),
        "period": "day",
    }
    return Sla(**{**fields, **changes})


def hours(letters: str, start: datetime = START, **changes: Any) -> list[SlaWindow]:
    """Hour-long windows from letters: g good, b bad, e excluded, u unknown."""
    names: dict[str, Verdict] = {"g": "good", "b": "bad", "e": "excluded", "u": "unknown"}
    spans = [Interval(start + n * HOUR, start + (n + 1) * HOUR) for n in range(len(letters))]
    return [
        SlaWindow("payments-30s", span, names[letter], True, "", max_latency_ms=30_000, **changes)
        for span, letter in zip(spans, letters, strict=True)
    ]


def attainment(sla: Sla, windows: list[SlaWindow], at: datetime) -> Attainment:
    """The period of the SLA until `at`."""
    return attainment_in(sla, windows, period_until(sla, at), at)


def test_excluded_and_unknown_time_counts_neither_as_good_nor_as_bad() -> None:
    found = attainment(promise(), hours("gggbeeuu"), START + 8 * HOUR)

    assert (found.attainment, found.coverage) == (0.75, 0.75)


@pytest.mark.parametrize(
    ("letters", "met", "budget"),
    [
        ("g", None, "on_track"),
        ("bg", None, "on_track"),
        ("bbggg", None, "at_risk"),
        ("bbgggggggggggggggggggg", None, "on_track"),
        ("b" + 11 * "g", None, "on_track"),
        ("bbbg", False, "exhausted"),
        ("bb" + 22 * "g", True, "on_track"),
        ("bb" + 16 * "g" + 6 * "u", False, "on_track"),
        ("uu", None, None),
    ],
)
def test_an_objective_is_not_met_only_once_it_cannot_be_or_the_period_is_over(
    letters: str, met: bool | None, budget: str | None
) -> None:
    found = attainment(promise(), hours(letters), START + len(letters) * HOUR)

    assert (found.met, found.budget) == (met, budget)


@pytest.mark.parametrize(
    ("letters", "budget"),
    [
        ("bbbbbbg", "on_track"),  # half of the budget, and no more
        ("bbbbbbbgg", "at_risk"),
        (9 * "b" + 9 * "g", "on_track"),  # three quarters of the budget in three quarters of the day
        (9 * "b" + 8 * "g", "at_risk"),
        (12 * "b", "at_risk"),  # all of it, and no more
        (13 * "b", "exhausted"),
    ],
)
def test_a_calendar_budget_is_at_risk_past_its_half_when_it_is_spent_faster_than_the_period_passes(
    letters: str, budget: str
) -> None:
    assert attainment(promise(objective=0.5), hours(letters), START + len(letters) * HOUR).budget == budget


@pytest.mark.parametrize(("objective", "bad_ms"), [(0.5, 43_200_000), (0.9, 8_640_000), (0.9995, 43_200)])
def test_a_budget_that_is_spent_to_the_last_is_not_overspent(objective: float, bad_ms: int) -> None:
    found = attainment_of(
        promise(objective=objective), Interval(START, START + 24 * HOUR), START + 12 * HOUR, Sums(bad_ms=bad_ms)
    )

    assert (found.decision, found.left) == ("running", 0.0)


def test_of_a_period_that_begins_now_nothing_is_known() -> None:
    found = attainment_in(promise(), [], Interval(START, START + 24 * HOUR), START)

    assert (found.coverage, found.unknown_ms, found.decision) == (0.0, 0, None)


@pytest.mark.parametrize(("bad_hours", "decision"), [(12, "met"), (13, "not_met")])
def test_at_the_end_of_a_period_exactly_the_objective_is_enough(bad_hours: int, decision: str) -> None:
    windows = hours(bad_hours * "b" + (24 - bad_hours) * "g")

    found = attainment(promise(objective=0.5), windows, START + 24 * HOUR)
    assert (found.decision, found.unknown_ms, found.coverage) == (decision, 0, 1.0)


def test_what_counts_time_has_no_budget_of_records_and_the_other_way_round() -> None:
    windows = hours("bggg", records_due=100, records_late=3)
    time, records = (attainment(promise(objective_of=of), windows, START + 4 * HOUR) for of in ("time", "records"))

    assert (time.budget_records, time.budget_left_records) == (None, None)
    assert (records.budget_ms, records.budget_left_ms) == (None, None)
    assert (round(records.budget_records or 0, 9), round(records.budget_left_records or 0, 9)) == (40.0, 28.0)
    assert (records.records_due, records.records_late) == (400, 12)
    assert (records.time_attainment, records.records_attainment) == (0.75, 0.97)


def test_time_that_was_never_judged_is_unknown() -> None:
    found = attainment(promise(), hours("gg"), START + 8 * HOUR)

    assert (found.attainment, found.coverage, found.unknown_ms) == (1.0, 0.25, 6 * 3_600_000)


def test_without_any_known_time_nothing_is_claimed() -> None:
    found = attainment(promise(), hours("uu"), START + 2 * HOUR)

    assert (found.attainment, found.records_attainment, found.coverage, found.met, found.burn_rate) == (
        None,
        None,
        0.0,
        None,
        None,
    )


def test_attainment_in_records_leaves_out_excluded_and_unknown_time() -> None:
    windows = [
        *hours("gb", records_due=100, records_late=10),
        *hours("eu", START + 2 * HOUR, records_due=100, records_late=100),
    ]

    assert attainment(promise(), windows, START + 4 * HOUR).records_attainment == 0.9


def test_the_budget_is_what_the_objective_allows_of_the_whole_period_less_excluded_time() -> None:
    found = attainment(promise(), hours("bgggeeee"), START + 8 * HOUR)

    assert (round(found.budget_ms / 3_600_000, 9), round(found.budget_left_ms / 3_600_000, 9)) == (2.0, 1.0)


def test_an_overspent_budget_is_negative() -> None:
    assert attainment(promise(), hours("bbb"), START + 3 * HOUR).budget_left_ms < 0


def test_a_burn_rate_of_one_spends_exactly_the_budget() -> None:
    spent = ("bggggggggg", "bbgggggggg")

    rates = [attainment(promise(), hours(letters), START + 10 * HOUR).burn_rate for letters in spent]

    assert [rate and round(rate, 9) for rate in rates] == [1.0, 2.0]


def test_an_objective_of_all_has_no_budget_and_no_burn_rate() -> None:
    found = attainment(promise(objective=1.0), hours("gggg"), START + 4 * HOUR)

    assert (found.budget_ms, found.burn_rate, found.budget) == (0.0, None, "on_track")


def test_windows_outside_the_period_or_after_the_asked_instant_are_ignored() -> None:
    windows = [*hours("bb", START - 2 * HOUR), *hours("gg"), *hours("b", START + 2 * HOUR)]

    found = attainment(promise(), windows, START + 2 * HOUR)

    assert (found.good_ms, found.bad_ms) == (2 * 3_600_000, 0)


def test_a_window_of_which_only_a_part_lies_in_the_asked_time_is_not_counted() -> None:
    """Half an hour before each full one, so that one window crosses the start and one the end."""
    windows = hours("bggb", START - HOUR / 2)

    found = attainment_in(promise(), windows, Interval(START, START + 24 * HOUR), START + 3 * HOUR)
    until_then = attainment_in(promise(), windows, Interval(START - HOUR / 2, START + 2.5 * HOUR))

    assert (found.good_ms, found.bad_ms, found.unknown_ms) == (2 * 3_600_000, 0, 3_600_000)
    assert (until_then.good_ms, until_then.bad_ms, until_then.at) == (2 * 3_600_000, 3_600_000, START + 2.5 * HOUR)


def test_at_the_end_of_a_period_it_is_that_period_that_is_told() -> None:
    assert Interval(START - 24 * HOUR, START) == attainment(promise(), [], START).period


@pytest.mark.parametrize(
    ("period", "zone", "at", "start", "end"),
    [
        ("day", "UTC", "2026-03-10T12:00", "2026-03-10T00:00", "2026-03-11T00:00"),
        ("day", "Europe/Berlin", "2026-03-10T23:30", "2026-03-10T23:00", "2026-03-11T23:00"),
        ("day", "Europe/Berlin", "2026-03-29T12:00", "2026-03-28T23:00", "2026-03-29T22:00"),  # 23 hours
        ("day", "Europe/Berlin", "2026-10-25T12:00", "2026-10-24T22:00", "2026-10-25T23:00"),  # 25 hours
        ("day", "Asia/Kolkata", "2026-03-10T18:30", "2026-03-10T18:30", "2026-03-11T18:30"),
        ("week", "UTC", "2026-03-01T12:00", "2026-02-23T00:00", "2026-03-02T00:00"),  # Monday to Sunday
        ("week", "America/New_York", "2026-03-08T12:00", "2026-03-02T05:00", "2026-03-09T04:00"),
        ("month", "UTC", "2026-12-31T23:59", "2026-12-01T00:00", "2027-01-01T00:00"),
        ("month", "Europe/Berlin", "2026-03-01T00:00", "2026-02-28T23:00", "2026-03-31T22:00"),
        ("quarter", "UTC", "2026-11-05T00:00", "2026-10-01T00:00", "2027-01-01T00:00"),
        ("year", "Europe/Berlin", "2026-12-31T23:30", "2026-12-31T23:00", "2027-12-31T23:00"),
    ],
)
def test_periods_run_from_local_midnight_to_local_midnight(
    period: Period, zone: str, at: str, start: str, end: str
) -> None:
    instant, first, after = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (at, start, end))

    assert Interval(first, after) == calendar_period(period, zone, instant)
