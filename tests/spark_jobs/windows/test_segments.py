"""What each commit did, compared with the one before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from kafka_sla.model.entities import Cluster, Interval
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS, RECORD_RANGES
from kafka_sla.spark.job_spec import Job, Replay
from kafka_sla.spark_jobs.events.chunks import Chunk
from kafka_sla.spark_jobs.windows.segments import Segments, Steps, segments, steps
from tests.spark_jobs.conftest import Row, at, commit, point, read
from tests.spark_jobs.tasks import chunks_of, files

StepsOf = Callable[[list[Row], list[Row]], Steps]
SegmentsOf = Callable[..., Segments]


def chunk_of(folder: Path, points: list[Row], commits: list[Row], ranges: Sequence[Row] = ()) -> Chunk:
    """The first hour."""
    facts = files(folder, {LOG_OFFSETS: points, COMMITTED_OFFSETS: commits, RECORD_RANGES: ranges})
    replays = (Replay(Cluster("prod", None), None),)
    job = Job("load", Interval(at(0), at(3_600)), 60_000, replays, (), facts, {}, "", {}, 0, 0)
    (chunk,) = chunks_of(job)
    return chunk


@pytest.fixture
def steps_of(tmp_path: Path) -> StepsOf:
    """steps_of(points, commits) → the steps of the first hour, in windows of a minute."""
    return lambda points, commits: steps(chunk_of(tmp_path, points, commits), 60_000_000)


@pytest.fixture
def segments_of(tmp_path: Path) -> SegmentsOf:
    """segments_of(points, commits, ranges) → what all commits consumed."""

    def run(points: list[Row], commits: list[Row], ranges: Sequence[Row] = ()) -> Segments:
        chunk = chunk_of(tmp_path, points, commits, ranges)
        step = steps(chunk, 60_000_000)
        return segments(chunk, step, np.flatnonzero(step.known))

    return run


def records(found: Segments) -> list[tuple[int, int]]:
    """First offset and number of records of each."""
    return list(zip(found.offset.tolist(), found.records.tolist(), strict=True))


def test_records_are_cut_at_each_point_inside_and_no_piece_is_empty(segments_of: SegmentsOf) -> None:
    points = [point(10, 50), point(15, 50), point(20, 70), point(30, 100)]

    assert records(segments_of(points, [commit(5, 0), commit(40, 100)])) == [(0, 50), (50, 20), (70, 30)]


def test_what_nothing_bounds_waited_any_time_and_what_may_have_been_passed_over_none(segments_of: SegmentsOf) -> None:
    unbounded = segments_of([point(30, 100)], [commit(5, 0), commit(40, 100)])
    points = [point(0, 0, log_start_offset=0), point(20, 50), point(30, 100, log_start_offset=60)]
    overtaken = segments_of(points, [commit(5, 10), commit(40, 100)])

    assert unbounded.high_ms.tolist() == [np.inf]
    assert (records(overtaken), overtaken.low_ms.tolist(), overtaken.high_ms.tolist()) == ([(60, 40)], [0], [20_000])


def test_records_of_which_only_the_bounds_are_known_are_spread_evenly_between_them(segments_of: SegmentsOf) -> None:
    found = segments_of([point(0, 10)], [commit(5, 10), commit(40, 110)])

    assert (records(found), found.first_ms.tolist(), found.last_ms.tolist()) == ([(10, 100)], [39_800], [200])


def test_ranges_that_were_read_too_late_cut_nothing(segments_of: SegmentsOf) -> None:
    points, commits = [point(0, 0), point(30, 100)], [commit(5, 0), commit(40, 100)]

    assert records(segments_of(points, commits, [read(200, 20, 30, 25, 26)])) == [(0, 100)]
    assert records(segments_of(points, commits, [read(60, 20, 30, 25, 26)])) == [(0, 20), (20, 10), (30, 70)]


@pytest.mark.parametrize(("produced", "negative"), [(20, False), (20.001, True)])
def test_a_record_that_was_read_and_produced_at_the_instant_of_its_commit_is_not_negative(
    segments_of: SegmentsOf, produced: float, negative: bool
) -> None:
    points, commits = [point(0, 0), point(60, 10)], [commit(5, 0), commit(20, 10)]

    found = segments_of(points, commits, [read(60, 0, 10, produced, produced)])

    assert (records(found), found.negative.tolist()) == ([(0, 10)], [negative])


def test_a_log_that_begins_behind_the_position_before_overtook_the_commit_unless_it_consumed_nothing(
    steps_of: StepsOf,
) -> None:
    points = [point(0, 0, log_start_offset=0), point(30, 100, log_start_offset=60), point(50, 100, log_start_offset=60)]

    found = steps_of(points, [commit(1, 10), commit(35, 10), commit(40, 70), commit(45, 90)])

    assert found.overtaken.tolist() == [False, False, True, False]
    assert list(zip(found.begin.tolist(), found.end.tolist(), strict=True)) == [(0, 0), (0, 0), (60, 70), (70, 90)]


def test_a_log_that_begins_at_the_position_before_overtook_nobody(steps_of: StepsOf) -> None:
    points = [point(0, 60, log_start_offset=60), point(50, 100, log_start_offset=60)]

    found = steps_of(points, [commit(1, 60), commit(40, 100)])

    assert (found.overtaken.tolist(), found.exact.tolist()) == ([False] * 2, [True] * 2)


def test_a_lookup_of_the_window_tells_where_the_log_began_at_most(steps_of: StepsOf) -> None:
    """It was polled at 65 s and never again: times from 60 s on are answered with records that are there."""
    looked_up = [point(t, t, source="list_offsets") for t in (0, 62, 110, 180)]

    found = steps_of([*looked_up, point(65, 65, log_start_offset=0)], [commit(63, 61), commit(80, 75)])

    assert found.overtaken.tolist() == [False, False]


def test_back_is_a_rewind_and_gone_is_not(steps_of: StepsOf) -> None:
    found = steps_of([point(0, 100)], [commit(1, 50), commit(10, 20), commit(20, None), commit(30, 10)])

    assert found.rewound.tolist() == [False, True, False, False]
    assert found.first.tolist() == [True, False, False, True]


def test_after_a_poll_or_what_compaction_left_not_all_commits_are_known(steps_of: StepsOf) -> None:
    told = [commit(1, 10), commit(10, 20, source="compacted_commit_log"), commit(20, 30), commit(70, 40)]
    polled = [commit(t, t, group="polled", source="snapshot") for t in (1, 10)]

    found = steps_of([point(t, 100, log_start_offset=0) for t in (0, 80)], [*told, *polled])

    assert found.exact.tolist() == [True, False, True, True, True, False]


def test_a_commit_at_the_instant_that_shows_the_one_before_to_be_impossible_has_none_before_it(
    steps_of: StepsOf,
) -> None:
    looked_up = [point(0, 0), *(point(t, 100, source="list_offsets") for t in range(60, 1_501, 60))]

    found = steps_of([*looked_up, point(1_210, 100)], [commit(5, 0), commit(30, 5_000), commit(1_210, 80)])

    assert (found.after_void.tolist(), found.rewound.tolist()) == ([False, False, True], [False] * 3)


def test_a_commit_in_the_next_life_of_its_topic_is_compared_with_none(steps_of: StepsOf) -> None:
    points = [point(0, 1_000), point(10, 1_000), point(60, 5), point(120, 500)]

    found = steps_of(points, [commit(1, 900), commit(5, 950), commit(130, 480), commit(135, 490)])

    assert (found.recreated.tolist(), found.known.tolist()) == (
        [False, False, True, False],
        [False, True, False, True],
    )


def test_what_follows_a_commit_that_may_be_of_either_life_is_compared_with_none(steps_of: StepsOf) -> None:
    points = [point(0, 1_000), point(5, 1_000), point(60, 90), point(120, 95)]

    found = steps_of(points, [commit(2, 900), commit(10, 950), commit(20, 80)])

    assert (found.void.tolist(), found.recreated.tolist()) == ([False, True, True], [False, False, True])


@pytest.mark.parametrize(("polled", "recreated"), [(1_260, True), (1_260.001, False)])
def test_a_window_knows_of_the_next_life_what_a_poll_within_ten_minutes_of_its_end_tells(
    steps_of: StepsOf, polled: float, recreated: bool
) -> None:
    points = [point(0, 1_000), point(5, 1_000), point(polled, 90), point(1_320, 95)]

    found = steps_of(points, [commit(2, 900), commit(10, 950), commit(650, 980)])

    assert (found.recreated.tolist(), found.known.tolist()) == ([False, False, recreated], [False, True, not recreated])
