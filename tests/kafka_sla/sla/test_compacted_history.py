"""A group whose earlier commits were compacted away is not excluded as bootstrapping: its verdict is unknown."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import COMMITTED_OFFSETS, COMPACTED, STEADY_STATE
from kafka_sla.sla.compacted_history import REASON, doubted, first_commits, window_before
from tests.kafka_sla.loads import MINUTE, at

KEY = {"cluster": "a", "group": "g", "topic": "orders", "partition": 0}


def state(clock: str, **more: Any) -> dict[str, Any]:
    """A minute of bootstrapping since 10:00:30."""
    return (
        KEY
        | {
            "sla": "s",
            "window_start": at(clock),
            "window_end": at(clock) + MINUTE,
            "state": "bootstrapping",
            "since": at("10:00") + timedelta(seconds=30),
            "reason": "first_commit",
            "steady_whole_window": False,
            "records_due": 0,
            "records_late": 0,
            "records_late_low": 0,
            "records_late_high": 0,
        }
        | more
    )


def commit(source: str, **more: Any) -> dict[str, Any]:
    since = {"at": at("10:00") + timedelta(seconds=30), "committed_offset": 7, "source": source}
    return KEY | since | more


def told(states: list[dict[str, Any]], commits: list[dict[str, Any]]) -> list[tuple[bool | None, str]]:
    rows = doubted(arrow_rows(STEADY_STATE, states), arrow_rows(COMMITTED_OFFSETS, commits))
    return [(row["steady_whole_window"], row["reason"]) for row in rows.to_pylist()]


def test_bootstrapping_from_a_commit_that_may_not_be_the_first_is_not_known() -> None:
    assert told([state("10:00"), state("10:01")], [commit(COMPACTED)]) == [(None, REASON), (None, REASON)]


@pytest.mark.parametrize(
    "commits",
    [
        [commit("commit_log")],
        [commit("commit_log"), commit(COMPACTED)],
        [commit(COMPACTED, group="other")],
        [commit(COMPACTED, at=at("10:02"))],
        [],
    ],
    ids=["all is kept", "seen before it was compacted", "of another group", "at another time", "nothing"],
)
def test_bootstrapping_that_is_known_stays_an_excuse(commits: list[dict[str, Any]]) -> None:
    assert told([state("10:00")], commits) == [(False, "first_commit")]


def test_a_rewind_and_a_steady_state_do_not_rest_on_the_first_commit() -> None:
    others = [
        state("10:00", reason="rewind"),
        state("10:01", state="steady", reason="caught_up", steady_whole_window=True),
    ]
    assert told(others, [commit(COMPACTED)]) == [(False, "rewind"), (True, "caught_up")]


def caught_up(clock: str, **more: Any) -> dict[str, Any]:
    """A minute in which the bootstrapping ended, 40 s after its start."""
    return state(clock, state="steady", since=at(clock) + timedelta(seconds=40), reason="caught_up") | more


def test_nor_is_one_known_that_ended_in_a_window_whether_it_began_there_or_before() -> None:
    assert told([caught_up("10:00")], [commit(COMPACTED)]) == [(None, REASON)]
    assert told([state("10:00"), caught_up("10:01")], [commit(COMPACTED)]) == [(None, REASON), (None, REASON)]


def test_one_that_ended_is_known_where_something_else_began_it() -> None:
    steady = state("09:59", state="steady", since=at("09:00"), reason="caught_up", steady_whole_window=True)
    assert told([steady, caught_up("10:00")], [commit(COMPACTED)])[1] == (False, "caught_up")
    assert told([caught_up("10:00")], [commit("commit_log")]) == [(False, "caught_up")]


def test_the_window_before_is_asked_for_where_it_tells_how_the_first_one_began() -> None:
    tables = [
        arrow_rows(STEADY_STATE, rows) for rows in ([caught_up("10:00")], [state("10:00"), caught_up("10:01")], [])
    ]
    assert [window_before(table) for table in tables] == [Interval(at("09:59"), at("10:00")), None, None]
    assert first_commits(tables[0]) == Interval(at("10:00"), at("10:00") + timedelta(seconds=40, microseconds=1))


def test_only_the_time_of_first_commits_is_looked_at() -> None:
    states = [state("10:00"), state("10:05", reason="rewind", since=at("10:05"))]
    since = at("10:00") + timedelta(seconds=30)
    assert first_commits(arrow_rows(STEADY_STATE, states)) == Interval(since, since + timedelta(microseconds=1))
    assert first_commits(arrow_rows(STEADY_STATE, states[1:])) is None


def test_the_rows_keep_their_types() -> None:
    rows = doubted(arrow_rows(STEADY_STATE, [state("10:00")]), arrow_rows(COMMITTED_OFFSETS, []))
    assert isinstance(rows, pa.Table)
    assert [field.type for field in rows.schema] == [field.type for field in arrow_rows(STEADY_STATE, []).schema]
