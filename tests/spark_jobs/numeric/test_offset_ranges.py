"""Ranges that were read overrule the points: disorder, aborted transactions, clocks ahead; with known truth."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.spark_jobs.conftest import Row, at, commit, point, read, void

Measure = Callable[..., list[Row]]


def test_truth_lies_inside_the_bounds_when_two_clocks_write_one_partition(measure: Measure) -> None:
    times, points, ranges = _two_clocks(random.Random(3), seconds=300, apart=0.7)
    commits, truth = _reader(times, every=2.0, seconds=300)
    rows = measure(points, commits, 0, 300, ranges=ranges)
    assert [r["window_start"] for r in rows] == [at(t) for t in range(0, 300, 60)]
    for row in rows:
        latencies = truth[row["window_start"]]
        assert row["records_consumed"] == len(latencies)
        assert row["records_latency_max_low_ms"] <= max(latencies) <= row["records_latency_max_high_ms"] + 0.01
        assert row["records_latency_max_ms"] == pytest.approx(max(latencies), abs=250)
        mean = sum(max(0.0, latency) for latency in latencies) / (len(latencies) - row["negative_latency_records"])
        assert row["records_latency_avg_low_ms"] <= mean <= row["records_latency_avg_high_ms"]
        assert row["records_latency_avg_ms"] == pytest.approx(mean, rel=0.05)
        assert row["method"] == "bracketed"


def _two_clocks(
    luck: random.Random, seconds: int, apart: float
) -> tuple[list[tuple[float, float]], list[Row], list[Row]]:
    """(written, timestamp) of each record; the points that Kafka's index gives; what reading each ten records tells."""
    written = sorted(round(luck.uniform(0, seconds), 3) for _ in range(10 * seconds))
    times = [(at, round(at + apart * luck.randrange(2), 3)) for at in written]
    firsts = [next((o for o, (_, ts) in enumerate(times) if ts >= t), len(times)) for t in range(seconds + 1)]
    points = [point(t, offset, source="list_offsets") for t, offset in enumerate(firsts)]
    ranges = []
    for first in range(0, len(times), 10):
        stamps = [timestamp for _, timestamp in times[first : first + 10]]
        known = min(stamps) // 60 * 60 + 60
        ranges.append(read(known, first, first + len(stamps), min(stamps), max(stamps)))
    return times, points, ranges


def _reader(times: list[tuple[float, float]], every: float, seconds: int) -> tuple[list[Row], dict[Any, list[float]]]:
    """Commits of a reader that keeps up, and the latencies (ms) of each window."""
    commits, truth, done = [commit(0, 0)], {at(t): list[float]() for t in range(0, seconds, 60)}, 0
    for beat in range(1, int(seconds / every)):
        now = beat * every + 0.1
        ready = sum(written < now for written, _ in times)
        truth[at(now // 60 * 60)] += [(now - timestamp) * 1000 for _, timestamp in times[done:ready]]
        commits.append(commit(now, ready))
        done = ready
    return commits, truth


def test_records_of_a_slightly_slower_clock_are_as_old_as_they_say(measure: Measure) -> None:
    """Record 1 was stamped before record 0: the points alone would have it produced not before second 30."""
    points = [point(0, 0), point(30, 0), point(31, 2), point(60, 2)]
    (row,) = measure(points, [commit(1, 0), commit(40, 2)], ranges=[read(60, 0, 1, 30, 30), read(60, 1, 2, 22, 22)])
    assert (row["records_latency_max_ms"], row["records_latency_max_high_ms"]) == (18_000, 18_000)
    assert row["method"] == "record"


def test_records_that_a_poll_did_not_see_yet_are_as_old_as_their_append(measure: Measure) -> None:
    """Record 1 is stamped 12, and was appended between the polls of seconds 30 and 31."""
    points = [point(0, 0), point(30, 0), point(31, 2), point(60, 2)]
    (row,) = measure(points, [commit(1, 0), commit(40, 2)], ranges=[read(60, 0, 1, 30, 30), read(60, 1, 2, 12, 12)])
    assert (row["records_latency_max_low_ms"], row["records_latency_max_high_ms"]) == (0, 10_000)
    assert row["method"] == "observed"


def test_records_that_were_read_before_compaction_outweigh_what_it_left(measure: Measure) -> None:
    points = [point(t, offset, source="list_offsets") for t, offset in ((0, 0), (30, 0), (31, 3), (60, 3))]
    whole = [read(60, n, n + 1, stamp, stamp) for n, stamp in enumerate((12, 30, 13))]
    compacted = {**read(60, 0, 3, 30, 30), "records": 1}
    (row,) = measure(points, [commit(1, 0), commit(40, 3)], ranges=[compacted, *whole])
    assert row["records_latency_max_high_ms"] == 28_000
    assert row["records_latency_avg_high_ms"] == pytest.approx((28_000 + 10_000 + 27_000) / 3, abs=0.01)


def test_offsets_that_nobody_read_beside_markers_may_be_markers(measure: Measure) -> None:
    """Offsets 2 and 3 were gone before the snapshot; the mean of the two records alone is 30 s."""
    points = [point(0, 0), point(10, 2), point(39, 2), point(40, 4), point(60, 5)]
    ranges = [read(60, 0, 2, 10, 10), void(60, 4, 5)]
    (row,) = measure(points, [commit(1, 0), commit(40, 4)], ranges=ranges)
    assert row["records_consumed"] == 4
    assert row["records_latency_avg_high_ms"] >= 30_000


def test_an_unread_record_of_a_slower_clock_is_waiting(measure: Measure) -> None:
    """Its timestamp lies inside the window although the index of times only finds it behind the window's end."""
    points = [point(0, 0), point(10, 1), point(60, 1)]
    (row,) = measure(points, [commit(1, 0), commit(12, 2)], ranges=[read(60, 1, 2, 61, 61), read(60, 2, 3, 50, 50)])
    assert (row["backlog_age_ms"], row["records_lag"]) == (10_000, 1)
    assert row["backlog_age_low_ms"] <= 10_000 <= row["backlog_age_high_ms"]


@pytest.mark.parametrize(("source", "high"), [("list_offsets", None), ("snapshot", 12_000)])
def test_what_would_have_had_to_be_read_and_was_not_is_bounded_by_polls_only(
    measure: Measure, source: str, high: int | None
) -> None:
    unread = read(60, 0, 100, None, None, records=None)
    points = [point(t, offset, source=source) for t, offset in ((0, 0), (10, 100), (60, 100))]
    (row,) = measure(points, [commit(1, 0), commit(12, 100)], ranges=[unread])
    assert row["records_latency_max_ms"] == pytest.approx(12_000 - 50)
    assert (row["records_latency_max_low_ms"], row["records_latency_max_high_ms"]) == (0, high)
    assert row["method"] == "interpolated"


def test_records_behind_an_open_transaction_bound_the_backlog_age(measure: Measure) -> None:
    """The group waits at offset 10, which an open transaction wrote in second 40; a record a second follows it."""
    points = [point(second, 10 + max(0, second - 39)) for second in range(0, 181)]
    ranges = [read(60, 10, 11, 0, None, records=None), read(60, 11, 31, 41, 60)]
    ranges += [read(120, 31, 91, 61, 120), read(180, 91, 151, 121, 180)]
    rows = measure(points, [commit(1, 0), commit(39, 10)], 0, 180, ranges=ranges)
    assert [row["backlog_age_low_ms"] for row in rows] == [0, 60_000, 120_000]
    assert [row["backlog_age_high_ms"] for row in rows] == [21_000, 81_000, 141_000]
    ranges[1] = read(60, 11, 12, 41, 41)
    assert [
        row["backlog_age_low_ms"] for row in measure(points, [commit(1, 0), commit(39, 10)], 0, 180, ranges=ranges)
    ] == [
        19_000,
        79_000,
        139_000,
    ]


def test_records_that_were_read_later_do_not_bound_an_earlier_backlog_age(measure: Measure) -> None:
    points = [point(second, 10 + max(0, second - 39)) for second in range(0, 121)]
    ranges = [read(60, 10, 11, 0, None, records=None), read(120, 11, 21, 41, 50)]
    rows = measure(points, [commit(1, 0), commit(39, 10)], 0, 120, ranges=ranges)
    assert [row["backlog_age_low_ms"] for row in rows] == [0, 70_000]


def test_records_of_another_partition_do_not_bound_a_backlog_age(measure: Measure) -> None:
    points = [point(second, second, partition=number) for number in (0, 1) for second in range(0, 61)]
    ranges = [read(60, 10, 60, 0, None, records=None), read(60, 10, 20, 10, 20, partition=1)]
    commits = [commit(second, offset, partition=number) for number in (0, 1) for second, offset in ((1, 0), (12, 10))]
    rows = measure(points, commits, 0, 60, ranges=ranges)
    assert [row["backlog_age_low_ms"] for row in rows] == [0, 49_000]


def test_what_aborted_transactions_wrote_is_no_record(measure: Measure) -> None:
    points = [point(0, 0), point(10, 10), point(20, 20), point(60, 20)]
    ranges = [read(60, 0, 5, 1, 5), void(60, 5, 20), read(60, 20, 22, 50, 52)]
    (row,) = measure(points, [commit(1, 0), commit(6, 5), commit(55, 22)], ranges=ranges)
    assert (row["records_consumed"], row["unknown_latency_records"]) == (7, 0)
    assert (row["records_latency_max_ms"], row["records_latency_max_low_ms"]) == (5_000, 0)


def test_what_aborted_transactions_wrote_last_waits_for_nobody(measure: Measure) -> None:
    points = [point(t, 5 if t < 10 else 9) for t in range(0, 181, 5)]
    ranges = [read(60, 0, 5, 1, 2), void(60, 5, 7), void(60, 7, 9)]
    rows = measure(points, [commit(1, 0), commit(6, 5)], 0, 180, ranges=ranges)
    assert [(r["records_lag"], r["backlog_age_ms"]) for r in rows] == [(0, 0)] * 3
    assert [r["effective_position"] for r in rows] == [5] * 3


def test_only_records_stamped_after_their_commit_are_negative(measure: Measure) -> None:
    """A clock is 4 s ahead: of ten records, stamped from second 10 to 19, a commit in second 15 consumes all."""
    points = [point(0, 0), point(10, 0), point(20, 10), point(60, 10)]
    (row,) = measure(points, [commit(5, 0), commit(15.5, 10)], ranges=[read(60, 0, 10, 10, 19)])
    assert row["negative_latency_records"] == 4
    assert (row["records_latency_max_ms"], row["records_latency_ms"]) == (5_500, 500)
    assert row["records_latency_avg_ms"] == pytest.approx(3_000)
    assert sum(row["latency_histogram"].values()) == 6


def test_ranges_leave_all_that_lies_outside_them_as_it_is(measure: Measure) -> None:
    """Neither other partitions, nor what was consumed before, between and behind the ranges of one."""
    partitions = [{"partition": number} for number in range(4)]
    points = [point(t, 2 * t, **which) for which in partitions for t in range(0, 61, 20)]
    commits = [commit(t, 2 * t - 2, **which) for which in partitions for t in (1, 15, 25, 45, 59)]
    alone = measure(points, commits)
    as_points_say = [read(60, first, first + 20, first / 2, first / 2 + 9.5, **partitions[2]) for first in (20, 60)]
    with_ranges = measure(points, commits, ranges=as_points_say)
    assert [row["records_consumed"] for row in with_ranges] == [116] * 4
    assert [with_ranges[number] for number in (0, 1, 3)] == [alone[number] for number in (0, 1, 3)]
    assert with_ranges[2]["records_latency_avg_ms"] == pytest.approx(alone[2]["records_latency_avg_ms"], abs=250)


def test_what_is_read_later_changes_no_row(measure: Measure) -> None:
    points = [point(0, 0), point(10, 100), point(60, 100), point(120, 100)]
    commits = [commit(1, 0), commit(12, 100)]
    alone = measure(points, commits)
    later = [read(120, 0, 100, 3, 4)]
    assert measure(points, commits, ranges=later) == alone
    assert measure(points, commits, ranges=[read(60, 0, 100, 1, 2), *later]) != alone
