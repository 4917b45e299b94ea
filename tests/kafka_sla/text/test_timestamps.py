"""Instants as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kafka_sla.text.timestamps import parse_instant


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-01T02:00:00Z",
        "2026-11-01T03:00+01:00",
        "2026-11-01 02:00",
        "20261101T0200Z",
        "2026-W44-7T02:00",
        " 2026-10-31T21:00-05:00 ",
    ],
)
def test_a_time_may_be_written_in_any_way_of_iso_8601(text: str) -> None:
    assert datetime(2026, 11, 1, 2, tzinfo=UTC) == parse_instant(text)


@pytest.mark.parametrize("text", ["2026-11-01-05:00", "2026-11-01+01:00", "20261101-0500", "2026-W44-7+01:00"])
def test_an_offset_is_never_taken_for_the_time_of_day(text: str) -> None:
    with pytest.raises(ValueError, match="T or a blank stands between date and time of day"):
        parse_instant(text)


def test_the_beginning_of_a_day_needs_no_time() -> None:
    assert datetime(2026, 11, 1, tzinfo=UTC) == parse_instant("2026-11-01")
