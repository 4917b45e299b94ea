from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafka_sla.spark_jobs.events.layouts import CERTAIN, COMMITS, CONFIGURATIONS, LAYOUTS, POINTS, POLLED
from kafka_sla.spark_jobs.events.shuffle import blocks_of
from kafka_sla.spark_jobs.events.sort import TaskEvents, in_order
from kafka_sla.spark_jobs.numeric.arrays import NONE
from kafka_sla.spark_jobs.numeric.positions import VALID

Commit = tuple[str, str, int, str, int, int | None]
OF_COMMITS = ("cluster", "topic", "partition", "group", "at", "offset")
OF_POINTS = ("cluster", "topic", "partition", "at", "offset")


def _blocks(kind: str, names: tuple[str, ...], *events: tuple[Any, ...], tasks: int = 1) -> pa.RecordBatch:
    rows = [{"flags": 0, "invalid": VALID, **dict(zip(names, event, strict=True))} for event in events]
    return blocks_of(kind, pa.Table.from_pylist(rows, LAYOUTS[kind]), tasks)


def _commits(*events: Commit, tasks: int = 1) -> pa.RecordBatch:
    return _blocks(COMMITS, OF_COMMITS, *events, tasks=tasks)


def _told(events: TaskEvents) -> list[Commit]:
    """The commits in their order, with the names that their numbers stand for."""
    places = [tuple(place.values()) for place in events.places.to_pylist()]
    groups, rows = events.groups.to_pylist(), events.commits.rows.to_pylist()
    return [
        (*places[place], groups[row["group"]], row["at"], None if row["offset"] == NONE else row["offset"])
        for place, row in zip(events.commits.place.tolist(), rows, strict=True)
    ]


def test_commits_are_sorted_by_partition_group_time_and_offset_whatever_they_are_called() -> None:
    commits: list[Commit] = [
        ("b", "orders", 1, "x", 1, 1),
        ("a", "orders", 10, "x", 1, 1),
        ("a", "orders", 2, "y", 1, 1),
        ("a", "orders", 2, "x", 2, 2),
        ("a", "orders", 2, "x", 2, 1),
        ("a", "Orders", 7, "x", 1, 1),
        ("a", "orders", 2, "y", 0, 0),
    ]

    assert sorted(commits) == _told(in_order([_commits(commit) for commit in commits]))
    assert sorted(commits) == _told(in_order([_commits(*commits)]))


def test_what_two_sources_tell_of_one_group_is_sorted_together() -> None:
    one, other = ([("prod", "orders", 0, "billing", at, at) for at in range(start, 100, 3)] for start in (0, 1))

    assert sorted([*one, *other]) == _told(in_order([_commits(*one), _commits(*other)]))


def test_of_equal_events_those_come_first_whose_run_begins_first_whichever_file_is_read_first() -> None:
    names = (*OF_COMMITS, "flags")
    began, followed = (
        _blocks(COMMITS, names, *(("prod", "orders", 0, "billing", at, 7, flags) for at in instants))
        for flags, instants in ((POLLED, (1, 5)), (CERTAIN, (5, 9)))
    )

    for blocks in ([began, followed], [followed, began]):
        assert [POLLED, POLLED, CERTAIN, CERTAIN] == in_order(blocks).commits.rows["flags"].to_pylist()


def test_a_deleted_offset_comes_before_the_commit_of_the_same_instant() -> None:
    deleted, again = ("prod", "orders", 0, "billing", 2, None), ("prod", "orders", 0, "billing", 2, 1)

    assert [deleted, again] == _told(in_order([_commits(again), _commits(deleted)]))


def test_points_and_commits_of_a_partition_share_its_number() -> None:
    points = _blocks(
        POINTS, OF_POINTS, ("prod", "silent", 0, 9, 20), ("prod", "orders", 0, 9, 20), ("prod", "orders", 0, 5, 10)
    )
    events = in_order([points, _commits(("prod", "orders", 0, "billing", 1, 3), ("prod", "read", 4, "billing", 1, 3))])

    topics = events.places["topic"].to_pylist()
    assert ["orders", "read", "silent"] == topics
    assert ["orders", "orders", "silent"] == [topics[place] for place in events.points.place]
    assert [5, 9, 9] == events.points.rows["at"].to_pylist()
    assert ["orders", "read"] == [topics[place] for place in events.commits.place]


@pytest.mark.parametrize("tasks", [1, 2, 7])
def test_a_topic_partition_belongs_to_one_task_whoever_packs_it(tasks: int) -> None:
    def of(batch: pa.RecordBatch) -> dict[tuple[Any, ...], set[int]]:
        found: dict[tuple[Any, ...], set[int]] = {}
        for number in range(batch.num_rows):
            for place in in_order([batch.slice(number, 1)]).places.to_pylist():
                found.setdefault(tuple(place.values()), set()).add(batch["task"][number].as_py())
        return found

    places = [(cluster, topic, n) for cluster in "ab" for topic in ("orders", "clicks") for n in range(20)]
    points = of(_blocks(POINTS, OF_POINTS, *((*place, 1, 1) for place in places), tasks=tasks))
    commits = of(_commits(*((*place, "x", 1, 1) for place in reversed(places)), tasks=tasks))

    assert set(points) == set(places)
    assert points == commits
    assert all(len(owners) == 1 for owners in points.values())
    assert set(range(tasks)) == {task for owners in points.values() for task in owners}


def test_topics_without_an_id_are_configurations_as_the_others_however_many_there_are() -> None:
    rows = [{"cluster": "prod", "topic": f"t{n}", "at": 1, "topic_id": f"id{n}" if n else None} for n in range(300)]
    configurations = pa.Table.from_pylist(rows, LAYOUTS[CONFIGURATIONS])

    events = in_order([blocks_of(CONFIGURATIONS, configurations, 1)])

    told = events.configurations.select(["topic", "topic_id"]).to_pylist()
    assert told == [{name: row[name] for name in ("topic", "topic_id")} for row in rows]


def test_a_task_without_events_has_nothing_to_sort() -> None:
    assert 0 == _commits().num_rows
    assert [] == _told(in_order([]))
    assert 0 == in_order([]).places.num_rows
