"""Times, records and histograms that add up, and what their sums may not hide."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kafka_sla.model.entities import MOST, Interval, SlaWindow, Verdict
from kafka_sla.sla.rollups import (
    DAY_MS,
    HOUR_MS,
    SLOT_MS,
    RecordStats,
    Rollup,
    Sums,
    added,
    in_widths,
    judged,
    less,
    merged,
    packed_histogram,
    sums_of,
    unpacked_histogram,
    whole_spans,
)
from kafka_sla.sla.windows.cells import NO_CELLS, Cells, cells_of, packed_cells, places, unpacked_cells, worst_cells

START = datetime(2026, 3, 2, tzinfo=UTC)


def span(first: str, last: str) -> Interval:
    """From one time to another, each as days and hours: `0 09:30`."""

    def at(text: str) -> datetime:
        days, clock = text.split()
        hours, minutes = clock.split(":")
        return START + timedelta(days=int(days), hours=int(hours), minutes=int(minutes))

    return Interval(at(first), at(last))


HOUR = span("0 09:00", "0 10:00")


def window(minute: int, verdict: Verdict = "good", **more: Any) -> SlaWindow:
    one = Interval(START + timedelta(minutes=minute), START + timedelta(minutes=minute + 1))
    return SlaWindow("payments", one, verdict, more.pop("is_certain", True), "", **({"max_latency_ms": 30_000} | more))


def worst(low: float | None, middle: float | None, high: float | None) -> dict[str, float | None]:
    return {"worst_latency_low_ms": low, "worst_latency_ms": middle, "worst_latency_high_ms": high}


def test_a_slot_an_hour_and_a_day_are_as_long_as_they_are_called() -> None:
    assert [timedelta(milliseconds=width) for width in (SLOT_MS, HOUR_MS, DAY_MS)] == [
        timedelta(minutes=5),
        timedelta(hours=1),
        timedelta(days=1),
    ]


@pytest.mark.parametrize(
    ("interval", "whole"),
    [
        (span("0 09:00", "0 11:00"), span("0 09:00", "0 11:00")),
        (span("0 09:01", "0 11:59"), span("0 10:00", "0 11:00")),
        (span("0 09:01", "0 10:00"), None),
        (span("0 09:01", "0 10:59"), None),
    ],
)
def test_only_whole_spans_of_a_width_are_in_it(interval: Interval, whole: Interval | None) -> None:
    assert whole_spans(interval, HOUR_MS) == whole


def test_an_interval_falls_into_its_widest_spans_and_what_is_left_of_them_in_time_order() -> None:
    found = list(in_widths(span("0 21:50", "2 01:10"), (DAY_MS, HOUR_MS)))

    assert found == [
        (span("0 21:50", "0 22:00"), 0),
        (span("0 22:00", "1 00:00"), HOUR_MS),
        (span("1 00:00", "2 00:00"), DAY_MS),
        (span("2 00:00", "2 01:00"), HOUR_MS),
        (span("2 01:00", "2 01:10"), 0),
    ]


def test_an_interval_without_a_whole_span_is_in_pieces_of_the_next_width() -> None:
    assert list(in_widths(span("0 09:00", "0 10:00"), (DAY_MS, HOUR_MS))) == [(HOUR, HOUR_MS)]
    assert list(in_widths(span("0 09:10", "0 09:20"), (DAY_MS, HOUR_MS))) == [(span("0 09:10", "0 09:20"), 0)]


def test_time_adds_up_by_verdict_and_records_only_in_good_and_bad_time() -> None:
    counts = {"records_due": 10, "records_late": 3}
    bounds = {"records_late_low": 2, "records_late_high": 5}
    verdicts: tuple[Verdict, ...] = ("good", "bad", "excluded", "unknown")
    windows = [window(n, verdict, **counts, **bounds) for n, verdict in enumerate(verdicts)]

    assert sums_of(windows) == Sums(60_000, 60_000, 60_000, 60_000, 20, 6, 4, 10, 10)
    assert sums_of([]) == Sums()


def test_sums_are_added_and_taken_away_each_for_itself() -> None:
    one, other = Sums(*range(1, 10)), Sums(*range(10, 100, 10))

    assert added([one, other]) == Sums(11, 22, 33, 44, 55, 66, 77, 88, 99)
    assert less(other, one) == Sums(9, 18, 27, 36, 45, 54, 63, 72, 81)
    assert added([]) == Sums()


def test_windows_of_a_span_give_their_sums_the_worst_of_them_and_the_last_threshold() -> None:
    windows = [
        window(0, **worst(1.0, 5.0, 9.0), max_latency_ms=10_000),
        window(1, "bad", **worst(3.0, 4.0, 6.0), max_latency_ms=20_000),
        window(2, "unknown", **worst(None, None, None), max_latency_ms=30_000),
    ]
    stats = RecordStats(7, 8, {1: 2}, cells_of([("g", "t", [0], [1.0])]))

    assert judged(HOUR, windows, stats) == Rollup(
        HOUR,
        good_ms=60_000,
        bad_ms=60_000,
        unknown_ms=60_000,
        worst_latency_ms=5.0,
        worst_latency_low_ms=3.0,
        worst_latency_high_ms=9.0,
        max_latency_ms=30_000,
        measured=stats,
    )


def test_one_unbounded_window_leaves_all_of_them_without_a_high_bound() -> None:
    assert judged(HOUR, [window(0, **worst(1.0, 5.0, None)), window(1, **worst(1.0, 4.0, 6.0))], RecordStats()) == (
        Rollup(
            HOUR,
            good_ms=120_000,
            worst_latency_ms=5.0,
            worst_latency_low_ms=1.0,
            worst_latency_high_ms=None,
            max_latency_ms=30_000,
        )
    )


def test_a_window_of_a_version_that_kept_no_low_bound_hides_that_of_no_other() -> None:
    found = judged(HOUR, [window(0, **worst(None, 5.0, 5.0)), window(1, **worst(3.0, 4.0, 4.0))], RecordStats())

    assert found.worst_latency_low_ms == 3.0


def test_parts_that_follow_each_other_are_one_and_keep_the_worst_of_each_partition() -> None:
    parts = [
        Rollup(
            HOUR,
            *range(1, 10),
            **worst(1.0, 5.0, 9.0),
            max_latency_ms=10_000,
            measured=RecordStats(1, 2, {5: 1, 6: 2}, cells_of([("g", "t", [0, 1], [4.0, 1.0])])),
        ),
        Rollup(
            HOUR,
            *range(10, 100, 10),
            **worst(2.0, 4.0, 8.0),
            max_latency_ms=20_000,
            measured=RecordStats(10, 20, {6: 30}, cells_of([("g", "t", [0, 2], [3.0, 7.0])])),
        ),
        Rollup(HOUR, max_latency_ms=None),
    ]

    assert merged(HOUR, parts) == Rollup(
        HOUR,
        *range(11, 110, 11),
        **worst(2.0, 5.0, 9.0),
        max_latency_ms=20_000,
        measured=RecordStats(11, 22, {5: 1, 6: 32}, cells_of([("g", "t", [0, 1, 2], [4.0, 1.0, 7.0])])),
    )


def test_nothing_that_is_known_is_none_and_counts_end_at_the_greatest_number_of_the_store() -> None:
    assert merged(HOUR, []) == Rollup(HOUR)
    full = Rollup(HOUR, records_due=MOST, measured=RecordStats(MOST, MOST, {1: MOST}))

    found = merged(HOUR, [full, full])

    assert (found.records_due, found.measured) == (MOST, RecordStats(MOST, MOST, {1: MOST}))


def test_histograms_and_cells_come_out_of_the_store_as_they_went_in() -> None:
    buckets, counts = unpacked_histogram(packed_histogram({900: 2, 0: 1, 65_535: 3}))
    cells = unpacked_cells(packed_cells(cells_of([("g", "t", [0, 1], [1.5, 2.5]), ("f", "s", [7], [0.25])])))

    assert (buckets.tolist(), counts.tolist()) == ([0, 900, 65_535], [1, 2, 3])
    assert by_place(cells) == {("f", "s", 7): 0.25, ("g", "t", 0): 1.5, ("g", "t", 1): 2.5}
    assert unpacked_cells(packed_cells(NO_CELLS)) == NO_CELLS == cells_of([])


def by_place(cells: Cells) -> dict[tuple[str, str, int], float]:
    return dict(zip(places(cells.head), cells.worst.tolist(), strict=True))


def test_cells_of_spans_with_other_partitions_keep_all_of_them_in_order() -> None:
    spans = [
        cells_of([("b", "t", [1, 3], [1.0, 9.0]), ("a", "t", [0], [2.0])]),
        NO_CELLS,
        cells_of([("a", "t", [0], [5.0]), ("b", "s", [0], [4.0]), ("b", "t", [0, 3], [7.0, 8.0])]),
    ]
    whole = {("a", "t", 0): 5.0, ("b", "s", 0): 4.0, ("b", "t", 0): 7.0, ("b", "t", 1): 1.0, ("b", "t", 3): 9.0}

    assert by_place(worst_cells(spans)) == whole
    assert list(by_place(worst_cells(spans))) == list(whole)
    assert worst_cells(spans) == worst_cells([spans[2], worst_cells(spans[:2])])
