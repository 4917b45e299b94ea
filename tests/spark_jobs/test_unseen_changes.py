"""What nobody saw happen to a log or a group, and what the facts allow then: shapes that the simulator found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_sla.model.tables import TOPIC_CONFIGS
from kafka_sla.spark_jobs.numeric.positions import AROUND, RECREATED
from tests.spark_jobs.conftest import Row, at, commit, point, read, record, void

Measure = Callable[..., list[Row]]


def lookup(seconds: float, offset: int) -> Row:
    return point(seconds, offset, source="list_offsets")


def config(seconds: float, policy: str) -> Row:
    row = {"cluster": "prod", "topic": "orders", "at": at(seconds), "topic_id": "a", "partitions": 1}
    return row | {"cleanup_policy": policy, "retention_ms": None, "message_timestamp_type": "CreateTime"}


def test_lookups_that_another_life_answered_do_not_say_that_nothing_waits(measure: Measure) -> None:
    """Only its commits tell of the first life; the second one answers that it has no record before 330 s."""
    points = [*(lookup(t, 0) for t in range(-60, 301, 60)), *record(330, 0), lookup(360, 3), lookup(420, 5)]
    commits = [commit(10, 5), commit(70, 20), commit(130, 40), commit(340, 1), commit(390, 4)]
    rows = measure(points, commits, 0, 420)
    assert {row["backlog_age_ms"] for row in rows[:5]} == {None}
    assert [(row["backlog_age_high_ms"], row["records_consumed"]) for row in rows[5:]] == [(30_000, 0), (60_000, 3)]


def test_a_topic_that_is_empty_until_its_first_record_is_no_second_life(measure: Measure) -> None:
    points = [lookup(0, 0), lookup(60, 0), *record(70, 0), lookup(120, 3)]
    rows = measure(points, [commit(30, 0), commit(80, 1)], 0, 120)
    assert [row["backlog_age_ms"] for row in rows] == [0.0, pytest.approx(36_000, abs=15_000)]
    assert rows[1]["records_consumed"] == 1


def test_another_lifes_records_are_not_believed_to_come_from_the_future(measure: Measure) -> None:
    """Offsets 0 to 29 are read for a window of the first life, when the second has them."""
    points = [lookup(0, 0), lookup(60, 10), *record(90, 10), lookup(120, 31), point(121, 31, log_start_offset=0)]
    commits = [commit(30, 0), commit(115, 28)]
    later = read(120, 0, 29, 200, 220)
    assert measure(points, commits, 0, 120, ranges=[later]) == measure(points, commits, 0, 120)
    assert measure(points, commits, 0, 120)[1]["backlog_age_ms"] > 0


def flow(end: int) -> list[Row]:
    """A record each ten seconds, each time known."""
    return [row for offset in range(end // 10) for row in record(10 * offset, offset)]


@pytest.mark.parametrize(("policy", "low"), [("delete", 500_000), ("compact", 50_000), ("compact,delete", 50_000)])
def test_of_a_compacted_topic_old_records_may_be_gone(measure: Measure, policy: str, low: int) -> None:
    points = [*flow(600), *(point(t, t // 10, log_start_offset=0) for t in (540, 600, 660))]
    commits = [commit(400, 3), commit(550, 5), commit(570, 8)]
    row = measure(points, commits, 540, 600, facts={TOPIC_CONFIGS: [config(610, policy)]})[0]
    assert row["backlog_age_low_ms"] == pytest.approx(low, abs=20_000)
    assert row["backlog_age_high_ms"] == pytest.approx(520_000, abs=1)
    latency = {name: row[f"records_latency_{name}_ms"] for name in ("low", "high", "max_low", "max_high", "avg_low")}
    exact = {"low": 350_000, "high": 500_000, "max_low": 370_000, "max_high": 520_000, "avg_low": 353_000}
    gone = {"low": 350_000, "high": 520_000, "max_low": 350_000, "max_high": 520_000, "avg_low": 350_000}
    assert latency.keys() == exact.keys()
    for name, value in (exact if policy == "delete" else gone).items():
        assert latency[name] == pytest.approx(value, abs=150_001), name
    assert (latency["high"] < latency["max_high"]) == (policy == "delete")


@pytest.mark.parametrize(("later", "low"), [(0, 29_000), (0.001, 0)])
def test_a_bracket_of_more_than_a_minute_may_have_lost_its_records_to_compaction(
    measure: Measure, later: float, low: float
) -> None:
    points = [point(0, 0), point(30, 100), point(80, 200)]
    commits = [commit(59, 0), commit(60 + later, 100), commit(80, 200)]
    row = measure(points, commits, 0, 120, facts={TOPIC_CONFIGS: [config(5, "compact")]})[1]
    assert row["records_latency_max_low_ms"] == low


def test_recent_records_of_a_compacted_topic_are_there(measure: Measure) -> None:
    points = [*flow(600), *(point(t, t // 10, log_start_offset=0) for t in (540, 600, 660))]
    commits = [commit(530, 52), commit(550, 54), commit(570, 56)]
    rows = [
        measure(points, commits, 540, 600, facts={TOPIC_CONFIGS: [config(610, policy)]})[0]
        for policy in ("delete", "compact")
    ]
    assert rows[0] == rows[1]
    assert rows[0]["records_latency_max_low_ms"] is not None


def test_a_log_that_nobody_polled_again_may_begin_anywhere_by_now(measure: Measure) -> None:
    """DeleteRecords may have removed all that waits after the last poll."""
    points, commits = [point(0, 0, log_start_offset=0), point(130, 130, log_start_offset=0)], [commit(5, 3)]
    alone = measure(points, commits, 120, 180)[0]
    assert (alone["backlog_age_low_ms"], alone["backlog_age_max_low_ms"]) == (0.0, 0.0)
    later = measure([*points, point(200, 200, log_start_offset=0)], commits, 120, 180)[0]
    assert later["backlog_age_low_ms"] == 50_000
    asked = measure([lookup(0, 0), lookup(60, 60), lookup(120, 120), lookup(180, 180)], commits, 120, 180)[0]
    assert asked["backlog_age_low_ms"] == 120_000


def test_records_that_were_read_before_they_were_removed_count_when_they_are_committed(measure: Measure) -> None:
    points = [
        point(0, 0, log_start_offset=0),
        point(10, 100, log_start_offset=0),
        point(300, 200, log_start_offset=150),
    ]
    row = measure([*points, point(400, 260, log_start_offset=150)], [commit(20, 34), commit(350, 190)], 300, 360)[0]
    assert row["records_consumed"] == 40
    assert row["records_latency_max_high_ms"] == 350_000
    assert row["backlog_age_max_high_ms"] == 350_000


def test_a_group_whose_offset_was_deleted_begins_anew_whether_the_run_saw_that_or_not(measure: Measure) -> None:
    points = [point(t, t, log_start_offset=0) for t in range(0, 361, 20)]
    commits = [commit(5, 3), commit(70, None), commit(250, 200), commit(290, 240)]
    whole = measure(points, commits, 0, 300)
    assert measure(points, commits[2:], 240, 300) == whole[-1:]
    assert whole[-1]["backlog_age_max_high_ms"] is None


def test_before_the_first_commit_that_compaction_left_a_group_may_have_been_anywhere(measure: Measure) -> None:
    points = [point(t, t, log_start_offset=0) for t in range(0, 361, 20)]
    commits = [commit(50, 45, source="files.import"), commit(110, 100, source="compacted_commit_log")]
    row = measure(points, commits, 60, 120)[0]
    assert row["records_latency_max_high_ms"] is None
    assert row["backlog_age_max_high_ms"] is None


def test_ranges_that_are_read_later_count_for_the_lower_offsets_of_a_group_that_went_back(measure: Measure) -> None:
    points = [*(lookup(t, t // 2) for t in (0, 60, 120, 180)), point(181, 90, log_start_offset=0)]
    commits = [commit(70, 5), commit(130, 10)]
    ranges = [read(60, 20, 30, 40, 60), void(120, 5, 9)]
    assert measure(points, commits, 120, 180, ranges=ranges)[0]["records_consumed"] == 1
    assert measure(points, commits, 120, 180, ranges=ranges[::-1])[0]["records_consumed"] == 1


def test_a_partition_that_a_topic_has_no_more_since_it_was_created_again_is_not_measured_against_its_first_life(
    measure: Measure,
) -> None:
    """Twice between two snapshots: from three partitions to five and to two. The group follows, a second behind."""
    lives = [(0, 235, 0), (240, 415, 240), (420, 541, 420)]
    commits = [
        commit(t + 1, t - begun, partition=p)
        for begun, end, since in lives
        for t in range(since, end, 5)
        for p in (0, 2)
        if p == 0 or t < 420
    ]
    points = [point(t, t, log_start_offset=0, partition=p) for t in (0, 60, 120, 180) for p in (0, 2)]
    points += [point(t, t - 420, log_start_offset=0) for t in (480, 540)]
    seen = [config(t, "delete") | {"topic_id": name, "partitions": n} for t, name, n in [(180, "a", 3), (480, "c", 2)]]

    rows = measure(points, commits, 0, 540, facts={TOPIC_CONFIGS: seen})

    gone = [row for row in rows if row["partition"] == 2]
    assert [row["unknown_reason"] for row in gone[3:]] == [AROUND] * 4 + [RECREATED] * 2
    assert max(row["records_latency_max_ms"] or 0 for row in gone) < 60_000
    assert [row["unknown_reason"] for row in rows if row["partition"] == 0][-1] is None
