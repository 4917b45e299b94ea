"""When alerts on burn rates begin and are over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from kafka_sla.model.entities import BurnPair, Patterns, Sla, SteadyState
from kafka_sla.sla.burn import Burn, Lookback, alerting, burns, lookbacks

START = datetime(2026, 11, 23, tzinfo=UTC)
MINUTE_MS = 60_000
FAST = BurnPair(14.4, 60 * MINUTE_MS, 5 * MINUTE_MS, "page", MINUTE_MS)
SLOW = BurnPair(1.0, 3 * 1_440 * MINUTE_MS, 360 * MINUTE_MS, "ticket", 5 * MINUTE_MS)


def alerted(*pairs: BurnPair, **changes: Any) -> Sla:
    fields: dict[str, Any] = {
        "name": "payments",
        "cluster": "main",
        "groups": Patterns(),
        "topics": Patterns(),
        "max_latency_ms": 30_000,
        "for_ms": 300_000,
        "objective": 0.999,
        "steady_state": SteadyState(30_000),
        "burn_pairs": pairs,
    }
    return Sla(**{**fields, **changes})


def judged(sla: Sla, minutes: str, before: tuple[Burn, ...] = ()) -> list[Burn]:
    """Burns over minutes, a letter each: g good, b bad, u unknown."""
    total = np.array([letter in "gb" for letter in minutes]) * MINUTE_MS
    bad = np.array([letter == "b" for letter in minutes]) * MINUTE_MS
    return burns(sla, instants(len(minutes)), {n: _over(total, bad, n // MINUTE_MS) for n in lookbacks(sla)}, before)


def instants(count: int) -> list[datetime]:
    return [START + timedelta(minutes=n + 1) for n in range(count)]


def _over(total: Any, bad: Any, length: int) -> Lookback:
    back = [
        (total[max(0, n + 1 - length) : n + 1].sum(), bad[max(0, n + 1 - length) : n + 1].sum())
        for n in range(len(total))
    ]
    return Lookback(*(np.array(column, dtype=np.int64) for column in zip(*back, strict=True)))


def spans(found: list[Burn]) -> list[tuple[str, int, int | None]]:
    """Severity, minute of the beginning and of the end."""
    minute = timedelta(minutes=1)
    return [(b.severity, (b.start - START) // minute, (b.end - START) // minute if b.end else None) for b in found]


def test_exactly_the_rate_is_not_above_it() -> None:
    pair = BurnPair(1.0, 10 * MINUTE_MS, 10 * MINUTE_MS, "ticket", MINUTE_MS)
    assert judged(alerted(pair, objective=0.9), "ggggbggggg") != []
    assert spans(judged(alerted(pair, objective=0.9), 10 * "g" + "b" + 9 * "g")) == []


def test_with_one_minute_windows_the_workbooks_fast_pair_fires_at_the_first_bad_minute() -> None:
    assert spans(judged(alerted(FAST), 100 * "g" + "b" + 20 * "g")) == [("page", 101, 106)]


def test_a_floor_of_bad_minutes_lets_single_ones_pass() -> None:
    floor = BurnPair(14.4, 60 * MINUTE_MS, 5 * MINUTE_MS, "page", 5 * MINUTE_MS)
    assert judged(alerted(floor), 100 * "g" + "bbbb" + 90 * "g" + "b") == []
    assert spans(judged(alerted(floor), 100 * "g" + "bbbbb" + 90 * "g")) == [("page", 105, 110)]


def test_four_bad_minutes_an_hour_never_miss_an_sla_of_five_but_are_a_ticket_that_stays_open() -> None:
    ((severity, begun, over),) = spans(judged(alerted(SLOW), 8 * (56 * "g" + "bbbb")))
    assert (severity, begun, over) == ("ticket", 117, None)


def test_pairs_of_one_severity_are_one_burn_and_severities_are_apart() -> None:
    sla = alerted(FAST, BurnPair(6.0, 360 * MINUTE_MS, 30 * MINUTE_MS, "page", MINUTE_MS), SLOW)
    found = judged(sla, 400 * "g" + 10 * "b" + 400 * "g")
    assert spans(found) == [("page", 401, 440), ("ticket", 405, 770)]
    assert [b.pair for b in found] == [FAST, SLOW]


def test_unknown_time_is_on_neither_side() -> None:
    """A minute in five is known, and all that is known is bad; then nothing is known; then all is good."""
    minutes = 60 * "g" + 6 * "uuuub" + 30 * "u" + 10 * "g"
    assert spans(judged(alerted(FAST), minutes)) == [("page", 65, 121)]
    assert judged(alerted(FAST), 200 * "u") == []


def test_a_burn_goes_on_where_it_stood_and_keeps_its_id() -> None:
    sla, minutes = alerted(FAST), 100 * "g" + 8 * "b" + 20 * "g"
    (whole,) = judged(sla, minutes)
    (first,) = judged(sla, minutes[:104])
    total, bad = (np.array([letter in of for letter in minutes]) * MINUTE_MS for of in ("gb", "b"))
    rest = {n: _over(total, bad, n // MINUTE_MS) for n in lookbacks(sla)}
    later = {n: Lookback(back.total[104:], back.bad[104:]) for n, back in rest.items()}
    assert first.end is None
    assert burns(sla, instants(len(minutes))[104:], later, [first]) == [whole]


@pytest.mark.parametrize(("late", "fires"), [(9, False), (10, True)])
def test_of_records_the_floor_is_a_number_of_late_ones(late: int, fires: bool) -> None:
    pair = BurnPair(14.4, 3_600_000, 300_000, "page", 10)
    hour = {length: Lookback(np.array([100]), np.array([late])) for length in (3_600_000, 300_000)}
    assert bool(burns(alerted(pair, objective_of="records"), instants(1), hour)) == fires


def test_many_slas_are_asked_at_once_each_by_its_own_pairs_and_objective() -> None:
    """Two of an hour's 60 minutes are bad, all in the last five."""
    lax, strict = alerted(FAST, name="lax", objective=0.99), alerted(FAST, name="strict")
    floor = BurnPair(14.4, 3_600_000, 300_000, "page", 3 * MINUTE_MS)
    floored, quiet = alerted(floor, name="floored"), alerted(FAST, name="quiet")
    bad = np.array([[2], [2], [2], [0]]) * MINUTE_MS
    back = {n: Lookback(np.full((4, 1), n), bad) for n in (3_600_000, 300_000)}

    assert alerting([lax, strict, floored, quiet], back) == {"strict"}
