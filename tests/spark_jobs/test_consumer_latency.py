"""`consumer_latency` against flows whose truth is known."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.model.entities import Cluster
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_STATUS, LATENCY_BUCKET_GAMMA, LOG_OFFSETS
from tests.spark_jobs.conftest import Row, at, commit, point, read, record
from tests.spark_jobs.measuring import Measuring, status_of

Measure = Callable[..., list[Row]]


def test_a_consumer_that_commits_what_was_polled_has_latency_from_the_polled_bracket(measure: Measure) -> None:
    rows = measure([point(0, 0), point(10, 100), point(60, 100)], [commit(1, 0), commit(12, 100)])
    (row,) = rows
    assert (row["records_consumed"], row["method"]) == (100, "observed")
    assert row["records_latency_max_ms"] == pytest.approx(12_000 - 50)
    assert row["records_latency_ms"] == pytest.approx(2_050)
    assert row["records_latency_avg_ms"] == pytest.approx(7_000)
    assert (row["records_latency_max_low_ms"], row["records_latency_max_high_ms"]) == (0, 12_000)
    assert (row["records_lag"], row["backlog_age_ms"], row["backlog_age_high_ms"]) == (0, 0, 0)


def test_record_timestamps_give_exact_latency(measure: Measure) -> None:
    points = [*record(10, 0), *record(20, 1), point(60, 2)]
    (row,) = measure(points, [commit(5, 0), commit(25, 2)])
    assert row["method"] == "record"
    assert (row["records_latency_max_ms"], row["records_latency_ms"]) == (15_000, 5_000)
    assert (row["records_latency_max_low_ms"], row["records_latency_max_high_ms"]) == (0, 15_000)


def test_topics_that_nobody_reads_yet_have_no_rows(measure: Measure) -> None:
    assert [] == measure([point(0, 0), point(30, 10)], [])


def test_the_two_points_of_one_record_are_no_slope_to_prolong(measure: Measure) -> None:
    points = [*record(10, 0), *record(20, 100)]
    (row,) = measure(points, [commit(5, 0), commit(40, 201)])
    assert row["method"] == "extrapolated"
    assert row["records_latency_ms"] == pytest.approx(10_000, abs=200)


def test_the_histogram_holds_every_record_within_one_percent(measure: Measure) -> None:
    (row,) = measure([point(0, 0), point(10, 1000), point(60, 1000)], [commit(1, 0), commit(20, 1000)])
    buckets = row["latency_histogram"]
    assert sum(buckets.values()) == row["records_consumed"] == 1000
    median = _quantile(buckets, 0.5)
    assert median == pytest.approx(15_000, rel=0.01)


def _quantile(buckets: dict[int, int], share: float) -> float:
    rank, seen = share * sum(buckets.values()), 0
    for bucket in sorted(buckets):
        seen += buckets[bucket]
        if seen >= rank:
            return float(2 * LATENCY_BUCKET_GAMMA**bucket / (LATENCY_BUCKET_GAMMA + 1))
    raise AssertionError("an empty histogram has no quantile")


def test_a_stopped_consumer_is_judged_by_the_age_of_its_oldest_unread_record(measure: Measure) -> None:
    points = [point(t, t * 10) for t in range(0, 181, 10)]
    commits = [commit(t, t * 10) for t in range(0, 31, 10)]
    rows = measure(points, commits, 0, 180)
    assert [r["backlog_age_ms"] for r in rows] == [pytest.approx(29_950), pytest.approx(89_950), pytest.approx(149_950)]
    assert [r["records_lag"] for r in rows] == [300, 900, 1500]
    assert [r["records_consumed"] for r in rows] == [300, 0, 0]
    assert rows[1]["backlog_age_low_ms"] <= 90_000 <= rows[1]["backlog_age_high_ms"]


def test_an_idle_topic_keeps_quiet(measure: Measure) -> None:
    points = [point(t, 7) for t in range(0, 181, 60)]
    rows = measure(points, [commit(0, 7)], 0, 180)
    assert [(r["records_lag"], r["backlog_age_ms"], r["records_latency_max_ms"]) for r in rows] == [(0, 0.0, None)] * 3


def test_without_a_log_end_offset_in_the_window_lag_and_age_are_null_with_a_reason(measure: Measure) -> None:
    rows = measure([point(0, 0), point(30, 10)], [commit(1, 0), commit(31, 10)], 0, 120)
    assert [r["unknown_reason"] is None for r in rows] == [True, False]
    assert (rows[1]["records_lag"], rows[1]["backlog_age_ms"], rows[1]["log_end_offset"]) == (None, None, 10)


def test_records_produced_after_their_commit_are_negative_and_in_no_latency(measure: Measure) -> None:
    points = [point(0, 0), *record(25, 0), *record(28, 1), point(60, 2)]
    (row,) = measure(points, [commit(1, 0), commit(20, 2)])
    assert (row["negative_latency_records"], row["records_consumed"]) == (2, 2)
    assert (row["records_latency_max_ms"], row["latency_histogram"]) == (None, {})


def test_records_that_were_consumed_long_before_their_timestamps_are_bounded_by_polls(measure: Measure) -> None:
    points = [point(0, 0), *record(45, 0), *record(50, 1), point(60, 2)]
    (row,) = measure(points, [commit(1, 0), commit(20, 2)])
    assert (row["negative_latency_records"], row["records_consumed"]) == (0, 2)
    assert (row["records_latency_max_low_ms"], row["records_latency_max_high_ms"]) == (0, 20_000)
    assert row["method"] == "observed"


def test_records_that_may_be_as_old_as_their_commit_are_not_negative(measure: Measure) -> None:
    (row,) = measure([point(0, 0), point(20, 50), point(40, 100)], [commit(1, 0), commit(20, 60)])
    assert (row["records_consumed"], row["negative_latency_records"]) == (60, 0)


def test_records_that_no_point_tells_a_time_of_are_unknown_and_not_instant(measure: Measure) -> None:
    (row,) = measure([], [commit(1, 0), commit(20, 100)])
    assert (row["unknown_latency_records"], row["records_consumed"]) == (100, 100)
    assert (row["records_latency_max_ms"], row["records_latency_avg_ms"], row["latency_histogram"]) == (None, None, {})


def test_a_window_with_unknown_latencies_has_no_high_bound(measure: Measure) -> None:
    (row,) = measure([point(30, 100), point(60, 100)], [commit(1, 0), commit(20, 100)])
    assert (row["unknown_latency_records"], row["records_latency_max_high_ms"]) == (100, None)
    assert (row["backlog_age_max_ms"], row["backlog_age_max_high_ms"]) == (0, None)


def test_records_that_retention_removed_are_not_consumed(measure: Measure) -> None:
    points = [
        point(0, 100, log_start_offset=0),
        point(30, 100, log_start_offset=60),
        point(60, 100, log_start_offset=60),
    ]
    (row,) = measure(points, [commit(1, 10), commit(40, 100)])
    assert (row["records_consumed"], row["log_start_offset"]) == (40, 60)


def test_a_position_below_the_log_start_is_moved_there_and_both_are_kept(measure: Measure) -> None:
    points = [point(0, 100, log_start_offset=0), point(60, 100, log_start_offset=60)]
    (row,) = measure(points, [commit(1, 10)])
    assert (row["committed_offset"], row["effective_position"], row["records_lag"]) == (10, 60, 40)


def test_a_rewound_consumer_consumes_its_records_again(measure: Measure) -> None:
    points = [point(0, 0), point(10, 100), point(60, 100)]
    (row,) = measure(points, [commit(1, 0), commit(12, 100), commit(20, 50), commit(30, 100)])
    assert row["records_consumed"] == 150


def test_a_rewind_in_the_millisecond_of_a_commit_comes_after_it(measure: Measure) -> None:
    points = [point(0, 0), point(10, 100), point(60, 100)]
    (row,) = measure(points, [commit(1, 0), commit(12, 80), commit(20, 100), commit(20, 50), commit(30, 100)])
    assert (row["records_consumed"], row["records_latency_max_ms"]) == (150, pytest.approx(30_000 - 5_050))


def test_a_recreated_topic_starts_a_new_timeline(measure: Measure) -> None:
    points = [point(0, 1000), point(30, 5), point(60, 50), point(90, 60), point(120, 60)]
    rows = measure(points, [commit(1, 1000), commit(70, 10), commit(95, 60)], 0, 120)
    assert rows[0]["unknown_reason"] is not None
    assert (rows[1]["records_consumed"], rows[1]["records_lag"]) == (50, 0)


def test_a_deleted_committed_offset_ends_the_rows(measure: Measure) -> None:
    points = [point(t, 10) for t in range(0, 181, 60)]
    rows = measure(points, [commit(1, 10), commit(70, None)], 0, 180)
    assert [r["window_start"] for r in rows] == [at(0)]


def test_polled_positions_count_only_until_the_commit_log_speaks(measure: Measure) -> None:
    polled = commit(20, 40, source="snapshot")
    (row,) = measure([point(0, 0), point(10, 100), point(60, 100)], [commit(1, 0), commit(12, 100), polled])
    assert (row["records_consumed"], row["committed_offset"]) == (100, 100)


def test_a_poll_that_finds_the_same_position_is_no_commit(measure: Measure) -> None:
    polls = [commit(t, 10, source="snapshot") for t in (5, 65, 125)]
    rows = measure([point(t, 10 + t) for t in range(0, 181, 60)], polls, 0, 180)
    assert [r["last_commit_at"] for r in rows] == [at(5)] * 3


def test_truth_lies_inside_the_bounds_for_random_flows(measure: Measure) -> None:
    points, commits, truth = _random_flow(random.Random(7), seconds=600)
    rows = measure(points, commits, 0, 600)
    assert sum(r["records_consumed"] for r in rows) == sum(len(v) for v in truth.values())
    for row in rows:
        latencies = truth.get(row["window_start"], [])
        if latencies:
            assert (
                row["records_latency_max_low_ms"] - 0.01 <= max(latencies) <= row["records_latency_max_high_ms"] + 0.01
            )
            mean = sum(latencies) / len(latencies)
            assert row["records_latency_avg_low_ms"] - 0.01 <= mean <= row["records_latency_avg_high_ms"] + 0.01
            assert (
                row["records_latency_max_low_ms"] <= row["records_latency_max_ms"] <= row["records_latency_max_high_ms"]
            )


def _random_flow(luck: random.Random, seconds: int) -> tuple[list[Row], list[Row], dict[Any, list[float]]]:
    """Bursty production, a consumer with a random delay, a coarse poll; truth: ms per window."""
    produced = sorted(luck.uniform(b, b + 3) for b in range(0, seconds - 20, 20) for _ in range(luck.randrange(1, 40)))
    points = [point(t, sum(p < t for p in produced)) for t in range(0, seconds + 1, 15)]
    commits, truth, done, now = [commit(0, 0)], {}, 0, 0.0
    while now < seconds - 5:
        now = round(now + luck.uniform(0.5, 6), 3)
        ready = sum(p < now - luck.uniform(0, 4) for p in produced)
        if ready > done and now < seconds:
            window = at(now // 60 * 60)
            truth.setdefault(window, []).extend((now - produced[i]) * 1000 for i in range(done, ready))
            commits.append(commit(now, ready))
            done = ready
    return points, commits, truth


def test_one_long_interval_gives_the_rows_of_many_short_ones_with_carry_over(measure: Measure) -> None:
    points, commits, _ = _random_flow(random.Random(11), seconds=600)
    whole = measure(points, commits, 0, 600)
    pieces: list[Row] = []
    for start in range(0, 600, 120):
        carried = (start, [r for r in pieces if r["window_end"] == at(start)]) if pieces else None
        pieces += measure(points, commits, start, start + 120, carried=carried)
    assert pieces == whole


def test_groups_topics_and_partitions_do_not_mix(measure: Measure) -> None:
    points = [point(t, t * k, topic=topic, partition=k) for topic in ("a", "b") for k in (1, 2, 3) for t in (0, 30, 60)]
    commits = [
        commit(t, t * k, topic=topic, partition=k, group=group)
        for topic in ("a", "b")
        for k in (1, 2, 3)
        for group in ("x", "y")
        for t in (1, 31)
    ]
    rows = measure(points, commits)
    assert [(r["group"], r["topic"], r["partition"], r["records_consumed"]) for r in rows] == [
        (g, t, k, 30 * k) for g in ("x", "y") for t in ("a", "b") for k in (1, 2, 3)
    ]


def test_ten_thousand_group_partitions_in_one_chunk_keep_their_own_times(measure: Measure) -> None:
    points = [point(t, 10 * t, partition=k) for k in range(2_500) for t in (0, 60)]
    commits = [
        commit(t, 10 * t, partition=k, group=f"g{g}") for k in range(2_500) for g in range(4) for t in (0, 30 + k % 30)
    ]
    rows = measure(points, commits)
    assert len(rows) == 10_000
    assert {(r["partition"] % 30, r["records_consumed"]) for r in rows} == {(k, 300 + 10 * k) for k in range(30)}


def test_commits_told_twice_change_nothing(measure: Callable[..., list[Row]]) -> None:
    """The commit log may tell anew what the store holds: deletions, rewinds and commits of one instant, too."""
    points = [point(s, s * 10) for s in range(0, 121, 10)]
    commits = [
        commit(5, 0),
        commit(15, 100),
        commit(15, 40),
        commit(30, 200),
        commit(40, None),
        commit(50, 300),
        commit(50, None),
        commit(70, 500),
        commit(70, 450),
        commit(100, 900),
    ]
    once = measure(points, commits, end=120)

    assert sum(row["records_consumed"] for row in once) > 0
    assert once == measure(points * 2, commits + commits[::-1], end=120)


def test_the_log_end_stays_known_when_the_last_look_at_it_lies_before_what_is_read(
    measure: Measure, tmp_path: Path
) -> None:
    """Polls that are further apart than the margin with which points are read."""
    look, commits = [point(5, 50)], [commit(10, 20), commit(1_210, 20)]
    facts, prod = {LOG_OFFSETS: look, COMMITTED_OFFSETS: commits}, (Cluster("prod", None),)
    status = Measuring(CONSUMER_STATUS, status_of, tmp_path).whole(facts, 0, 1_200, prod)
    whole = measure(look, commits, 0, 1_260)
    before = measure(look, commits, 0, 1_200)
    carried = (1_200, [row for row in before if row["window_end"] == at(1_200)])

    assert whole[-1]["log_end_offset"] == 50
    assert whole == before + measure(
        [], commits, 1_200, 1_260, carried=carried, status=[row for row in status if row["window_end"] == at(1_200)]
    )


def test_records_were_unread_until_the_commit_that_consumed_them_for_certain(measure: Measure) -> None:
    points = [point(t, t * 10) for t in range(0, 121, 10)]
    for first in (commit(1, 0), commit(1, 0, source="snapshot")):
        rows = measure(points, [first, commit(5, 50), commit(95, 900)], 0, 120)
        assert (rows[1]["records_latency_max_low_ms"], rows[1]["backlog_age_max_low_ms"]) == (0, 85_000)
    assert rows[1]["backlog_age_max_ms"] <= rows[1]["backlog_age_max_high_ms"] == 95_000


def test_the_first_poll_that_is_known_tells_where_the_log_began(measure: Measure) -> None:
    points = [point(0, 200, log_start_offset=100), point(50, 300, log_start_offset=100)]
    (row,) = measure(points, [commit(5, 20), commit(10, 150)])
    assert row["records_consumed"] == 50


def test_records_between_two_polls_without_a_slope_are_spread_evenly(measure: Measure) -> None:
    (row,) = measure([point(0, 0)], [commit(1, 0), commit(20, 100)])
    assert (row["records_latency_max_ms"], row["records_latency_avg_ms"]) == (19_900.0, 10_000.0)


def test_a_position_that_polls_saw_until_the_window_began_was_left_in_the_window(measure: Measure) -> None:
    polls = [commit(t, offset, source="snapshot") for t, offset in ((0, 0), (60, 0), (120, 0), (180, 600))]
    rows = measure([point(0, 0), point(50, 600), point(240, 600)], polls, 0, 180)
    assert rows[-1]["records_consumed"] == 600
    assert rows[-1]["records_latency_max_low_ms"] == 70_000.0


def test_an_impossible_position_is_no_sign_of_a_topic_created_again(measure: Measure) -> None:
    flow = [point(t, t * 10) for t in range(0, 301, 10)]
    rows = measure(flow, [commit(5, 50), commit(100, 10**12), commit(200, 2_000)], 0, 300)
    assert {(state["reason"], state["since"]) for row in rows for state in row["states"]} == {("caught_up", at(5))}


def test_of_a_range_that_was_read_what_was_produced_after_its_commit_is_negative_and_the_rest_is_not(
    measure: Measure,
) -> None:
    (row,) = measure([point(0, 0)], [commit(1, 0), commit(30, 100)], ranges=[read(55, 0, 100, 10, 110)])
    assert (row["records_consumed"], row["negative_latency_records"]) == (100, 80)
    assert (row["records_latency_max_ms"], sum(row["latency_histogram"].values())) == (20_000.0, 20)


def test_a_range_that_was_read_and_may_be_younger_than_its_commit_is_consumed_as_a_whole(measure: Measure) -> None:
    (row,) = measure([point(0, 0)], [commit(1, 0), commit(30, 100)], ranges=[read(55, 0, 100, 10, 40)])
    assert (row["records_consumed"], row["records_latency_max_high_ms"]) == (100, 20_000.0)


LOOKED_UP = {"source": "list_offsets"}
HIDDEN = [point(0, 0, **LOOKED_UP), *(point(t, 50, **LOOKED_UP) for t in range(60, 301, 60))]
"""Lookups of a log of which record 50 is stamped far ahead: they answer it for every time since."""
STOPPED = [commit(1, 0), commit(50, 100)]


def _ages(rows: list[Row]) -> list[tuple[float, float, float]]:
    return [(row["backlog_age_low_ms"], row["backlog_age_ms"], row["backlog_age_high_ms"]) for row in rows]


def test_a_group_that_read_beyond_the_log_end_that_is_told_may_be_behind_since_its_last_record(
    measure: Measure,
) -> None:
    ahead = [
        read(60, 0, 50, 5, 25),
        read(60, 50, 51, 3_000, 3_000),
        read(60, 51, 90, 26, 44),
        read(60, 90, 100, 45, 49),
    ]

    rows = measure(HIDDEN, STOPPED, 0, 300, ranges=ahead)

    assert _ages(rows) == [(0, 0, end - 45_000) for end in (60_000, 120_000, 180_000, 240_000, 300_000)]
    assert [row["records_lag"] for row in rows] == [0] * 5, "as far as anybody knows"


def test_a_poll_of_the_log_end_that_was_hidden_tells_who_is_behind(measure: Measure) -> None:
    ahead = [read(60, 0, 50, 5, 25), read(60, 50, 51, 3_000, 3_000), read(60, 51, 100, 26, 49)]

    caught_up = measure([*HIDDEN, point(150, 100), point(300, 100)], STOPPED, 0, 300, ranges=ahead)
    behind = measure([*HIDDEN, point(150, 180), point(300, 280)], STOPPED, 0, 300, ranges=ahead)

    assert _ages(caught_up)[-1] == (0, 0, 0)
    assert behind[-1]["records_lag"] == 180
    assert _ages(behind)[-1][::2] == (150_000, 300_000 - 26_000), "at most since the last record that it read"


def test_markers_of_transactions_behind_the_last_record_are_no_record_that_was_hidden(measure: Measure) -> None:
    points = [point(0, 0), *(point(t, 98, **LOOKED_UP) for t in range(60, 301, 60))]

    rows = measure(points, STOPPED, 0, 300, ranges=[read(60, 80, 100, 40, 49, records=18)])

    assert _ages(rows) == [(0, 0, 0)] * 5
