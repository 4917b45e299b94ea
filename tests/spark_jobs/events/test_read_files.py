"""What is read of fact files, and which part of it goes where: without Spark, as its tasks do it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import Cluster, Interval, Patterns
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS, Table
from kafka_sla.spark.job_spec import Carried, Job, Replay
from kafka_sla.spark_jobs.events.read_files import shares, tasks_of
from kafka_sla.spark_jobs.events.sort import TaskEvents
from kafka_sla.spark_jobs.numeric.arrays import NONE
from tests.spark_jobs.conftest import at, commit, point
from tests.spark_jobs.tasks import Row, events_of

EVERYTHING = Cluster("prod", None)


def _file(path: Path, table: Table, rows: list[Row], lacking: str = "") -> str:
    """A fact file whose row groups have ten rows; `lacking`: a column that its version did not have yet."""
    facts = arrow_rows(table, rows)
    pq.write_table(facts.drop_columns([lacking]) if lacking else facts, path, row_group_size=10)
    return str(path)


def _job(
    files: dict[str, list[str]],
    end: float = 100,
    cluster: Cluster = EVERYTHING,
    since: float | None = None,
    rows: int = 0,
) -> Job:
    replay = Replay(cluster, None if since is None else Carried(at(since), "before"))
    return Job("load", Interval(at(0), at(end)), 60_000, (replay,), (), files, {}, "", {}, rows, rows)


def _offsets(events: TaskEvents) -> list[int | None]:
    found: list[int | None] = events.commits.rows["offset"].to_pylist()
    return found


@pytest.mark.parametrize(("of_a_file", "several"), [(0.3, True), (2.5, False), (100, False)])
def test_files_are_divided_or_read_together_and_every_row_is_read_once(
    tmp_path: Path, of_a_file: float, several: bool
) -> None:
    numbers = [range(100 * nth, 100 * nth + 95) for nth in range(5)]
    files = [_file(tmp_path / f"{n[0]}", COMMITTED_OFFSETS, [commit(i / 10, i) for i in n]) for n in numbers]
    job = _job({COMMITTED_OFFSETS.name: files}, rows=5 * 95)
    parts = shares(job, int(of_a_file * 95))

    assert {part.path for share in parts for part in share} == set(files)
    assert (len(parts) > len(files)) == several
    assert (len(parts) == 1) == (of_a_file == 100)
    assert [i for n in numbers for i in n] == _offsets(events_of(job, parts))


def test_a_file_of_an_older_version_lacks_only_what_came_since(tmp_path: Path) -> None:
    now = _file(tmp_path / "now", LOG_OFFSETS, [point(1, 10, log_start_offset=7)])
    before = _file(tmp_path / "before", LOG_OFFSETS, [point(0, 5)], lacking="log_start_offset")

    assert [NONE, 7] == events_of(_job({LOG_OFFSETS.name: [now, before]})).points.rows["log_start"].to_pylist()


def test_commits_count_from_the_carried_rows_on_and_polls_until_the_end(tmp_path: Path) -> None:
    rows = [commit(seconds, seconds) for seconds in (0, 59, 60, 99, 100, 101)]
    polls = [commit(seconds, 1_000 + seconds, source="snapshot") for seconds in (100, 101)]
    file = _file(tmp_path / "commits", COMMITTED_OFFSETS, rows + polls)

    assert [60, 99, 1_100] == _offsets(events_of(_job({COMMITTED_OFFSETS.name: [file]}, since=60)))
    assert [0, 59, 60, 99, 1_100] == _offsets(events_of(_job({COMMITTED_OFFSETS.name: [file]})))


def test_only_the_names_that_the_cluster_selects_areevents_of(tmp_path: Path) -> None:
    names: list[dict[str, Any]] = [
        {},
        {"group": "Billing"},
        {"group": "billing-test"},
        {"topic": "orders.eu"},
        {"topic": "clicks"},
        {"cluster": "dr"},
    ]
    file = _file(tmp_path / "commits", COMMITTED_OFFSETS, [commit(1, nth, **more) for nth, more in enumerate(names)])
    selective = Cluster("prod", None, Patterns(("billing.*",), (".*-test",)), Patterns((r"orders\..*", "orders")))

    assert _offsets(events_of(_job({COMMITTED_OFFSETS.name: [file]}, cluster=selective))) == [0, 3]
    assert len(_offsets(events_of(_job({COMMITTED_OFFSETS.name: [file]})))) == 5


@pytest.mark.parametrize(("rows", "tasks"), [(0, 1), (999_999, 1), (1_500_000, 2), (12_500_000, 14)])
def test_a_task_has_a_million_events_at_most_and_two_processors_as_many_tasks(rows: int, tasks: int) -> None:
    assert tasks_of(_job({}, rows=rows)) == tasks
