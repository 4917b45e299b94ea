"""Offsets that no log has: they are no positions, and everybody else is measured as if they were not there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_sla.model.entities import Cluster
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_STATUS, LOG_OFFSETS
from kafka_sla.spark_jobs.numeric.positions import BEYOND
from tests.spark_jobs.conftest import Row, at, commit, point, sla
from tests.spark_jobs.measuring import Measuring, status_of

Measure = Callable[..., list[Row]]
ENDS = [point(t, t) for t in range(0, 601, 30)]
HEALTHY = [commit(t + 3, t) for t in range(0, 600, 10)]


def reasons(rows: list[Row]) -> list[str | None]:
    return [row["unknown_reason"] for row in rows]


@pytest.mark.parametrize("offset", [10**6, 10**15, 2**63 - 1])
def test_a_commit_beyond_the_log_end_is_no_position_until_the_next_commit(measure: Measure, offset: int) -> None:
    rows = measure(ENDS, [commit(5, 0), commit(95, 90), commit(130, offset), commit(305, 300)], 0, 360)
    assert reasons(rows) == [None, None, BEYOND, BEYOND, BEYOND, None]
    assert [row["committed_offset"] for row in rows[2:5]] == [offset] * 3
    assert [row["records_consumed"] for row in rows] == [0, 90, 0, 0, 0, 0]
    assert {row["backlog_age_max_high_ms"] for row in rows[2:]} == {None}


def test_everybody_else_is_measured_as_if_it_were_not_there(measure: Measure) -> None:
    alone = measure(ENDS, HEALTHY, 0, 600)
    strange = [commit(130, 2**63 - 1, group="stray"), commit(130, 2**62, partition=1)]
    far = [point(t, 2**63 - 1, partition=1, log_start_offset=2**62) for t in range(0, 601, 30)]
    rows = measure([*ENDS, *far], [*HEALTHY, *strange], 0, 600)
    assert [row for row in rows if (row["group"], row["partition"]) == ("billing", 0)] == alone
    assert {row["unknown_reason"] for row in rows if (row["group"], row["partition"]) != ("billing", 0)} == {BEYOND}


def test_a_source_that_saw_the_log_end_behind_a_commit_is_believed_without_any_poll(measure: Measure) -> None:
    looked_up = [point(t, t, source="list_offsets") for t in range(0, 601, 30)]
    commits = [commit(5, 0), commit(130, 500), commit(130, 500, source="beyond_log_end")]
    assert reasons(measure(looked_up, commits, 0, 240)) == [None, None, BEYOND, BEYOND]


def test_an_offset_above_an_earlier_end_is_usual_and_clocks_may_differ(measure: Measure) -> None:
    rows = measure([point(0, 0), point(62, 1000), point(120, 5000)], [commit(5, 0), commit(59, 2000)], 0, 120)
    assert reasons(rows) == [None, None]


def test_a_position_that_is_none_is_none_in_later_pieces_and_leaves_the_consumer_steady(measure: Measure) -> None:
    facts = [commit(5, 5), commit(130, 10**6), commit(305, 300), commit(310, 305)]
    whole, rows = measure(ENDS, facts, 0, 480), list[Row]()
    for start in range(0, 480, 120):
        carried = (start, [row for row in rows if row["window_end"] == at(start)]) if rows else None
        rows += measure(ENDS, facts, start, start + 120, carried=carried)
    assert rows == whole
    assert {row["states"][0]["reason"] for row in whole} == {"caught_up"}


def test_the_next_poll_tells_also_when_it_comes_after_the_interval(measure: Measure) -> None:
    facts = [point(0, 0), *(point(t, 100, source="list_offsets") for t in range(60, 301, 60)), point(303, 100)]
    assert reasons(measure(facts, [commit(5, 0), commit(130, 5000)], 0, 300)) == [None, None, *[BEYOND] * 3]


def test_a_group_that_never_commits_again_is_gone_after_its_time(measure: Measure) -> None:
    rows = measure(ENDS, [commit(5, 10**6)], 0, 600, slas=(sla(expire=180),))
    assert len(rows) == 3


def test_a_poll_that_comes_much_later_counts_from_then_on(measure: Measure) -> None:
    ends = [point(0, 0), *(point(t, 100, source="list_offsets") for t in range(60, 1501, 60)), point(1210, 100)]
    rows = measure(ends, [commit(5, 0), commit(30, 5000)], 0, 1320)
    assert reasons(rows) == [None] * 20 + [BEYOND] * 2


def test_the_status_of_a_consumer_rests_on_its_positions_only(tmp_path: Path) -> None:
    status = Measuring(CONSUMER_STATUS, status_of, tmp_path)
    facts = {COMMITTED_OFFSETS: [*HEALTHY[:10], commit(100, 2**63 - 1)], LOG_OFFSETS: ENDS}
    last = status.whole(facts, 0, 300, (Cluster("prod", None),))[-1]
    assert (last["status"], max(last["commit_offsets"])) == ("STOPPED", 90)
