"""Figures as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kafka_sla.text.formatting import bounds, count, moment, plural, rate, share, span


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "unknown"),
        (0, "0 ms"),
        (850, "850 ms"),
        (999.6, "1 s"),
        (1_000, "1 s"),
        (12_400, "12.4 s"),
        (59_940, "59.9 s"),
        (59_960, "1 min"),
        (1_290_000, "21 min 30 s"),
        (3_600_000, "1 h"),
        (11_100_000, "3 h 5 min"),
        (187_200_000, "2 d 4 h"),
        (-90_000, "−1 min 30 s"),
    ],
)
def test_durations_show_their_two_largest_units(ms: float | None, text: str) -> None:
    assert text == span(ms)


def test_bounds_say_where_the_truth_lies() -> None:
    assert [bounds(50_000, 70_000), bounds(50_000, None), bounds(None, None)] == [
        "50 s – 1 min 10 s",
        "at least 50 s",
        "at least 0 ms",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (1.0, "100 %"),
        (0.999, "99.9 %"),
        (0.9999996, "99.999 %"),
        (0.5, "50 %"),
        (0.0, "0 %"),
        (0.99, "99 %"),
        (1.2345, "123.45 %"),
    ],
)
def test_shares_are_cut_and_never_rounded_up(value: float | None, text: str) -> None:
    assert text == share(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (0.0, "0/s"),
        (0.05, "0.05/s"),
        (48.23, "48.2/s"),
        (12_345.6, "12,346/s"),
    ],
)
def test_rates_show_three_digits(value: float | None, text: str) -> None:
    assert text == rate(value)


def test_counts_are_separated_by_thousands_and_nouns_agree_with_them() -> None:
    assert [count(12_300), count(None), plural(1, "record"), plural(2_000, "record")] == [
        "12,300",
        "unknown",
        "1 record",
        "2,000 records",
    ]


def test_moments_are_told_in_utc() -> None:
    assert [moment(datetime(2026, 3, 2, 10, 4, tzinfo=UTC)), moment(None)] == ["2026-03-02 10:04:00 UTC", "unknown"]
