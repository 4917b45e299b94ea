"""Plots, looked at pixel by pixel: what must be seen is there, and the same windows make the same picture."""

from __future__ import annotations

import io
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from kafka_sla.model.entities import Interval, Miss, Patterns, Sla, SlaWindow, SteadyState, Verdict
from kafka_sla.reporting.charts import latency_plot, proposal_plot
from kafka_sla.sla.miss_rule import judge_misses

MINUTE = timedelta(minutes=1)
START = datetime(2026, 3, 2, 10, tzinfo=UTC)
SLA = Sla("payments-30s", "main", Patterns(), Patterns(), 30_000, 120_000, 0.999, SteadyState(30_000))
LINE, PROMISE, WHITE = 0x1F4E79, 0xB3261E, 0xFFFFFF
MISS = 0xF5C9C7  # the shade at its opacity on white


def window(minute: int, worst: float | None = 3_000.0, verdict: Verdict = "good", **changes: Any) -> SlaWindow:
    at = START + minute * MINUTE
    bounds: dict[str, Any] = {
        "worst_latency_low_ms": worst and worst * 0.8,
        "worst_latency_high_ms": worst and worst * 1.2,
    }
    where = {"worst_group": "pay", "worst_topic": "orders", "worst_partition": 0}
    return SlaWindow(
        "payments-30s",
        Interval(at, at + MINUTE),
        verdict,
        True,
        "",
        worst,
        **{"max_latency_ms": 30_000, **bounds, **where, **changes},
    )


def colours(windows: list[SlaWindow], found: tuple[Miss, ...] = ()) -> Counter[int]:
    """How many pixels have which colour."""
    pixels = imread(io.BytesIO(latency_plot(SLA, windows, found)))
    values, counts = np.unique((pixels[:, :, :3] * 255).round().astype(int) @ [0x10000, 0x100, 1], return_counts=True)
    return Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))


def test_a_plot_is_a_png_of_the_asked_size_twice_as_sharp_as_it_is_shown() -> None:
    picture = latency_plot(SLA, [window(n) for n in range(60)])

    assert picture[:4] == b"\x89PNG"
    assert imread(io.BytesIO(picture)).shape[:2] == (480, 1280)


def test_the_same_windows_in_any_order_make_the_same_bytes() -> None:
    windows = [window(n, 1_000.0 * n) for n in range(30)]

    assert latency_plot(SLA, windows) == latency_plot(SLA, windows[::-1])


def test_line_and_promise_are_drawn_and_nothing_is_shaded_without_reason() -> None:
    found = colours([window(n) for n in range(60)])

    assert found[LINE] > 500
    assert found[PROMISE] > 500
    assert found[MISS] == 0


def test_a_miss_is_shaded_from_its_start_to_its_end() -> None:
    windows = [window(n, *(90_000.0, "bad") if 20 <= n < 40 else ()) for n in range(60)]

    assert colours(windows, judge_misses(SLA, windows))[MISS] > 1280 * 480 / 8


def test_unknown_and_excluded_time_look_different_from_good_time_and_from_each_other() -> None:
    pictures = {
        verdict: latency_plot(SLA, [window(n, None if verdict == "unknown" else 3_000.0, verdict) for n in range(60)])
        for verdict in ("good", "excluded", "unknown")
    }

    assert len(set(pictures.values())) == 3


def test_time_without_data_breaks_the_line() -> None:
    whole = colours([window(n) for n in range(60)])[LINE]
    judged_unknown = colours(
        [window(n, None if n >= 30 else 3_000.0, "unknown" if n >= 30 else "good") for n in range(60)]
    )
    never_judged = colours([window(n) for n in (*range(15), *range(45, 60))])

    assert 0.4 * whole < judged_unknown[LINE] < 0.65 * whole
    assert 0.4 * whole < never_judged[LINE] < 0.65 * whole


@pytest.mark.parametrize("worst", [0.0, 0.4, 31_000.0, 8.64e7, 3.2e10])
def test_latencies_of_any_size_are_drawn_together_with_the_promise(worst: float) -> None:
    found = colours([window(n, worst) for n in range(10)])

    assert found[LINE] > 500
    assert found[PROMISE] > 500


def test_an_unbounded_latency_is_drawn_up_to_the_top() -> None:
    bounded = colours([window(n) for n in range(10)])
    unbounded = colours([window(n, worst_latency_high_ms=None) for n in range(10)])

    assert bounded[WHITE] > 2 * unbounded[WHITE]


def test_a_month_of_minutes_keeps_its_single_worst_one() -> None:
    windows = [window(n, 25_000.0 if n == 31_111 else 1_000.0) for n in range(44_640)]

    assert colours(windows)[LINE] > colours([window(n, 1_000.0) for n in range(44_640)])[LINE] + 150


def test_without_windows_there_is_nothing_to_draw_and_it_says_so() -> None:
    with pytest.raises(ValueError, match="no windows of SLA 'payments-30s'"):
        latency_plot(SLA, [])


def test_drawing_leaves_the_global_state_of_matplotlib_alone() -> None:
    latency_plot(SLA, [window(0)])

    assert "matplotlib.pyplot" not in sys.modules


def test_a_threshold_that_was_edited_is_drawn_as_a_step() -> None:
    windows = [window(n, 90_000.0, max_latency_ms=60_000 if n < 30 else 30_000) for n in range(60)]
    pixels = (imread(io.BytesIO(latency_plot(SLA, windows)))[:, :, :3] * 255).round().astype(int)
    drawn = (pixels @ [0x10000, 0x100, 1] == PROMISE)[60:]  # below the legend
    left, right = (int(np.median(np.nonzero(half)[0])) for half in (drawn[:, 150:640], drawn[:, 760:]))

    assert right - left > 50


@pytest.mark.parametrize("worst", [None, 3_000.0, 80_000.0, 4_000_000.0])
def test_proposed_thresholds_are_three_lines_whatever_the_latency(worst: float | None) -> None:
    """80 s is more than ten times the smallest of them, and no round duration lies far enough above the largest."""
    proposed = {"strict": 5_000, "balanced": 30_000, "relaxed": 60_000}
    picture = proposal_plot("payments-service on $orders$", [window(n, worst) for n in range(60)], proposed)
    pixels = (imread(io.BytesIO(picture))[:, :, :3] * 255).round().astype(int)
    coloured = np.count_nonzero(pixels @ [0x10000, 0x100, 1] == PROMISE, axis=1)[90:]  # below legend and title

    rows = np.flatnonzero(coloured > 100)
    assert np.count_nonzero(np.diff(rows, prepend=-10) > 2) == 3
