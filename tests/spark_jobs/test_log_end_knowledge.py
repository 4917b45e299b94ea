"""What is known of a log end between observations: quiet topics, emptied topics, and records that are hidden."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_sla.model.entities import Cluster
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_STATUS, LOG_OFFSETS, TOPIC_CONFIGS
from kafka_sla.spark_jobs.consumer_latency import NO_LOG_END
from tests.spark_jobs.conftest import Row, commit, point
from tests.spark_jobs.measuring import Measuring, status_of
from tests.spark_jobs.numeric.test_topic_incarnations import config

Measure = Callable[..., list[Row]]
EVERY_5_MIN = range(3, 1_204, 300)


def quiet_polls(log_end: int, log_start: int) -> list[Row]:
    return [point(t, log_end, log_start_offset=log_start) for t in EVERY_5_MIN]


def test_a_quiet_topic_whose_records_have_all_expired_is_known_between_two_equal_polls(measure: Measure) -> None:
    """200 records have expired; the group is at the end and commits every 2 s."""
    rows = measure(quiet_polls(200, 200), [commit(t, 200) for t in range(4, 1_200, 2)], 0, 1_200)
    assert {row["unknown_reason"] for row in rows} == {None}
    assert [(row["log_end_offset"], row["records_lag"]) for row in rows] == [(200, 0)] * 20
    assert {row["backlog_age_high_ms"] for row in rows[1:]} == {0}


def test_between_two_different_polls_the_log_end_stays_unknown(measure: Measure) -> None:
    points = [point(3, 200), point(303, 260), point(603, 260)]
    rows = measure(points, [commit(t, 260) for t in range(400, 600, 2)], 300, 600)
    assert {row["unknown_reason"] for row in rows} == {None}
    rows = measure(points, [commit(5, 200)], 0, 600)
    assert [row["unknown_reason"] for row in rows] == [None, *[NO_LOG_END] * 4, *[None] * 5]


def test_two_equal_polls_far_apart_prove_nothing_yet(measure: Measure) -> None:
    """A run of one window may not read so far ahead, and its rows are those of a long interval."""
    points = [point(0, 200), point(3_000, 200)]
    rows = measure(points, [commit(0, 200)], 0, 3_000)
    assert rows[20]["unknown_reason"] == NO_LOG_END


def test_pieces_are_the_whole_for_a_quiet_topic(measure: Measure) -> None:
    points, commits, rows = quiet_polls(200, 200), [commit(t, 200) for t in range(4, 1_200, 30)], list[Row]()
    for start in range(0, 1_200, 60):
        carried = (start, rows[-1:]) if rows else None
        rows += measure(points, commits, start, start + 60, carried=carried)
    assert rows == measure(points, commits, 0, 1_200)


def test_records_deleted_while_the_group_is_stopped_leave_a_known_log_end(measure: Measure) -> None:
    """DeleteRecords removes everything at second 400; production stops. The group stands at 500 of 1,300."""
    points = [point(3, 1_000, log_start_offset=0), point(303, 1_300, log_start_offset=0)]
    points += [point(t, 1_300, log_start_offset=1_300) for t in (603, 903, 1_203)]
    rows = measure(points, [commit(1, 500)], 0, 1_200)
    assert [row["unknown_reason"] for row in rows[10:]] == [None] * 10
    assert [(row["effective_position"], row["records_lag"]) for row in rows[11:]] == [(1_300, 0)] * 9
    assert [row["backlog_age_ms"] for row in rows[11:]] == [0] * 9


def test_a_dead_group_is_late_in_every_window_although_the_log_end_is_polled_every_five_minutes(
    measure: Measure,
) -> None:
    """No lookup by time tells anything, as on a compacted topic with few keys."""
    points = [point(t, t * 10) for t in EVERY_5_MIN]
    ids = {TOPIC_CONFIGS: [config(t, "one") for t in EVERY_5_MIN]}
    rows = measure(points, [commit(t, t * 10) for t in range(4, 303)], 0, 1_200, facts=ids)
    late = [(row["backlog_age_max_low_ms"] or 0) > 30_000 for row in rows]
    assert late[11:] == [True] * 9
    assert [row["records_lag"] for row in rows[11:14]] == [None] * 3, "its number of records is not known"


@pytest.mark.parametrize("age_s", [60, 120])
def test_a_stop_shows_on_a_compacted_topic_whose_log_end_is_sampled(measure: Measure, age_s: int) -> None:
    """Ten keys and one record a second; the group stops at second 300 for a minute or two; polls every 15 s."""
    compacted = {TOPIC_CONFIGS: [config(t, "one") | {"cleanup_policy": "compact"} for t in range(0, 601, 60)]}
    points = [point(t, t, log_start_offset=0) for t in range(0, 1_201, 15)]
    commits = [commit(t + 0.5, t) for t in range(2, 600, 2) if not 300 < t < 300 + age_s]
    rows = measure(points, commits, 0, 600, facts=compacted)
    assert {row["unknown_reason"] for row in rows} == {None}
    assert rows[5]["backlog_age_max_ms"] > 30_000
    assert max(row["backlog_age_max_low_ms"] for row in rows[5:8]) > 15_000
    assert rows[3]["backlog_age_max_high_ms"] <= 30_000


def test_lookups_that_end_before_a_position_committed_earlier_are_no_log_end(measure: Measure) -> None:
    """A record stamped an hour ahead hides the log end from lookups; the group has read beyond it and died."""
    lookups = [point(t, 50, source="list_offsets") for t in range(60, 301, 60)]
    rows = measure([point(0, 0), *lookups], [commit(1, 0), commit(30, 100)], 0, 300)
    assert [row["unknown_reason"] for row in rows] == [NO_LOG_END] * 5
    assert {row["records_lag"] for row in rows} == {None}


def test_the_status_names_no_lag_where_lookups_end_before_a_position_committed_earlier(tmp_path: Path) -> None:
    lookups = [point(t, 500, source="list_offsets") for t in range(60, 601, 60)]
    facts = {LOG_OFFSETS: [point(0, 0), *lookups], COMMITTED_OFFSETS: [commit(t, 100 * t) for t in range(1, 31)]}
    measuring = Measuring(CONSUMER_STATUS, status_of, tmp_path)
    rows = measuring.whole(facts, 0, 600, (Cluster("prod", None),))
    assert [(row["lag"], row["reason"]) for row in rows] == [(None, "no log end offset is known")] * 10


def test_the_status_names_no_lag_where_the_log_end_is_from_before_the_position(tmp_path: Path) -> None:
    """Polls of seconds 3 and 303 only; the group commits every second what no poll has seen yet."""
    points = [point(3, 30), point(303, 3_030)]
    facts = {LOG_OFFSETS: points, COMMITTED_OFFSETS: [commit(t, 10 * t) for t in range(1, 400)]}
    measuring = Measuring(CONSUMER_STATUS, status_of, tmp_path)
    rows = measuring.whole(facts, 0, 360, (Cluster("prod", None),))
    assert [row["lag"] for row in rows] == [0, None, None, None, None, 0]
