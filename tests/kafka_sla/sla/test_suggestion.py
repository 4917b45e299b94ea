"""Which thresholds and objectives are proposed for latencies that show only what matters."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kafka_sla.sla.suggestion import (
    BAD,
    GOOD,
    OBJECTIVES,
    OTHER,
    Codes,
    Judging,
    Proposal,
    likely_bad_share,
    most_spells,
    proposals,
)

MINUTE, DAY = 60_000, 1_440
Floats = np.typing.NDArray[np.float64]


def steadily(ms: float, days: float = 1) -> Floats:
    """Every window as late as the one before."""
    return np.full(round(days * DAY), float(ms))


def judging(values: Floats) -> Judging:
    def codes(threshold_ms: int, limit_ms: float) -> Codes:
        return np.where(np.isnan(values), OTHER, np.where(values > limit_ms, BAD, GOOD)).astype(np.int8)

    return codes


def proposed(values: Floats) -> tuple[Proposal, ...]:
    found = proposals(judging(values), int(np.count_nonzero(values > 0)), MINUTE)
    assert not isinstance(found, str), found
    return found


def refused(values: Floats) -> str:
    found = proposals(judging(values), int(np.count_nonzero(values > 0)), MINUTE)
    assert isinstance(found, str)
    return found


def test_three_round_thresholds_rise_and_leave_room_above_what_was_seen() -> None:
    assert [(one.level, one.max_latency_ms) for one in proposed(steadily(3_900))] == [
        ("strict", 5_000),
        ("balanced", 10_000),
        ("relaxed", 15_000),
    ]
    assert proposed(steadily(4_100))[0].max_latency_ms == 10_000


def test_a_strict_threshold_lets_one_window_of_twenty_be_late_and_a_relaxed_one_next_to_none() -> None:
    values = steadily(1_000, days=7)
    values[::30] = 40_000

    strict, balanced, relaxed = proposed(values)

    assert (strict.max_latency_ms, balanced.max_latency_ms, relaxed.max_latency_ms) == (2_000, 60_000, 120_000)
    assert strict.objective == 0.95 and balanced.objective == 0.995


def test_the_longer_time_was_good_the_more_is_required() -> None:
    objectives = [proposed(steadily(3_000, days))[1].objective for days in (1, 7, 28)]

    assert objectives == [0.99, 0.995, 0.999]


def test_an_outage_lowers_the_objective_of_a_threshold_below_it_and_not_of_one_above() -> None:
    values = steadily(3_000, days=7)
    values[2_000:2_060] = 600_000

    strict, *_, relaxed = proposed(values)

    assert (strict.max_latency_ms, strict.objective) == (5_000, 0.95)
    assert (relaxed.max_latency_ms, relaxed.objective) == (900_000, 0.995)


def test_a_day_as_bad_as_the_worst_one_still_holds_the_objective() -> None:
    values = steadily(3_000, days=28)
    values[5 * DAY : 5 * DAY + 100] = 600_000

    assert likely_bad_share(judging(values)(5_000, 5_000), MINUTE) >= 100 / DAY


def test_spells_of_bad_time_that_come_often_are_a_miss_a_day_at_most() -> None:
    values = steadily(1_000, days=2)
    for start in range(100, 2 * DAY, 600):
        values[start : start + 12] = 400_000

    assert proposed(values)[0].for_ms == 15 * MINUTE


def test_unknown_time_is_not_good_time() -> None:
    values = steadily(3_000)
    values[:721] = np.nan
    assert refused(values) == "only 11 h 59 min of the time can be judged; 12 h are needed"

    assert refused(np.concatenate([steadily(3_000), np.full(DAY + 1, np.nan)])) == (
        "only 1 d of 2 d can be judged; half of the time is needed"
    )
    few = np.where(np.arange(2 * DAY) % 2, steadily(3_000, 2), np.nan)
    assert proposed(few)[1].objective == proposed(steadily(3_000))[1].objective


def test_a_topic_without_records_gives_no_threshold() -> None:
    values = steadily(0)
    values[:29] = 3_000

    assert refused(values) == "records were consumed or waited in 29 windows; 30 are needed"


def test_a_consumer_that_stands_still_for_most_of_the_time_gets_no_threshold() -> None:
    assert refused(np.arange(DAY) * float(MINUTE)) == (
        "no threshold up to 6 h, a quarter of the time, fits: it is later than that, or the bounds of its latency are"
        " too wide"
    )


@pytest.mark.parametrize(("seen", "days", "most"), [(0, 1, 4), (0, 7, 1), (0, 20, 0), (1, 1, 6), (7, 7, 3)])
def test_the_next_day_has_at_most_as_many_spells_as_are_not_improbable(seen: int, days: float, most: int) -> None:
    """Beside `seen` in `days`, one more than `most` are: the binomial tail of Nelson's conditional limit."""

    def tail(more: int) -> float:
        of, p = seen + more, days / (days + 1)
        return sum(math.comb(of, k) * p**k * (1 - p) ** (of - k) for k in range(seen + 1))

    assert most_spells(seen, days) == most
    assert tail(most + 1) <= 0.05 < tail(most)


@pytest.mark.parametrize("a_day", [0.1, 1, 5, 60, 300])
def test_the_limit_holds_for_95_percent_of_the_days_that_a_poisson_process_makes(a_day: float) -> None:
    random = np.random.default_rng(17)
    held = [
        random.poisson(a_day) <= most_spells(int(random.poisson(a_day * days)), days)
        for days in (1, 3, 7, 28)
        for _ in range(500)
    ]
    assert np.mean(held) >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / len(held))


def test_only_customary_objectives_are_proposed() -> None:
    random = np.random.default_rng(3)
    values = 2_000 * np.exp(random.normal(0, 1, 3 * DAY))

    assert {one.objective for one in proposed(values)} <= set(OBJECTIVES)
