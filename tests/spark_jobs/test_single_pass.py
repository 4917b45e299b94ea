"""The tables of one pass are the same however its events are shared out among tasks."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_sla.model.entities import Cluster, Interval
from kafka_sla.model.tables import (
    COMMITTED_OFFSETS,
    CONSUMER_LATENCY,
    CONSUMER_STATUS,
    LOG_OFFSETS,
    NON_CONSUMED,
    STEADY_STATE,
)
from kafka_sla.spark.job_spec import Job, Replay
from kafka_sla.spark_jobs import consumer_status, group_status
from kafka_sla.spark_jobs.events.read_files import reading, shares
from kafka_sla.spark_jobs.single_pass import tables
from tests.spark_jobs.conftest import at, commit, point, sla
from tests.spark_jobs.tasks import Row, files

TOPICS, GROUPS, SECONDS = [f"topic-{n}" for n in range(12)], ("billing", "audit"), 600
CLUSTER = Cluster("prod", None)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Twelve topics whose log starts move, read by two groups that lag, rewind and are deleted."""
    chance, points, commits = random.Random(3), list[Row](), list[Row]()
    for topic in TOPICS:
        speed = chance.choice([1, 5, 20])
        points += [
            point(t, t * speed, topic=topic, log_start_offset=max(0, t - 200) * speed) for t in range(0, 601, 30)
        ]
        for group in GROUPS:
            for t in sorted(chance.sample(range(SECONDS), 25)):
                offset = None if chance.random() < 0.02 else chance.randrange(max(1, t * speed // 2), t * speed + 2)
                commits.append(commit(t, offset, topic=topic, group=group))
    told = files(tmp_path_factory.mktemp("facts"), {LOG_OFFSETS: points, COMMITTED_OFFSETS: commits})
    return Job("load", Interval(at(0), at(SECONDS)), 60_000, (Replay(CLUSTER, None),), (sla(),), told, {}, "", {}, 0, 0)


def made(job: Job, tasks: int) -> dict[str, list[Row]]:
    """All rows of all tables, by key, from so many tasks."""
    parts = shares(job)
    indexes = [pa.RecordBatch.from_pydict({"id": [number]}) for number in range(len(parts))]
    blocks = [batch.slice(n, 1) for batch in reading(job, parts, tasks)(indexes) for n in range(batch.num_rows)]
    found: dict[str, list[pa.Table]] = {}
    for task in range(tasks):
        for some in tables(job)(block for block in blocks if block["task"][0].as_py() == task):
            for table, rows in some.items():
                found.setdefault(table.name, []).append(rows)
    of_groups = group_status.together(pa.concat_tables(found.pop(group_status.SUMS.name)))
    of_partitions = found.pop(consumer_status.OF_PARTITIONS.name)
    found[CONSUMER_STATUS.name] = [
        group_status.with_groups(rows, of_groups, job.status_rules) for rows in of_partitions
    ]
    return {
        table.name: sorted(
            (row for rows in found.pop(table.name) for row in rows.select(list(table.names)).to_pylist()),
            key=lambda row: [row[name] for name in table.key],
        )
        for table in (CONSUMER_LATENCY, STEADY_STATE, CONSUMER_STATUS, NON_CONSUMED)
    }


@pytest.fixture(scope="module")
def whole(job: Job) -> dict[str, list[Row]]:
    return made(job, 1)


@pytest.mark.parametrize(("tasks", "at_once"), [(2, 2_000_000), (40, 2_000_000), (1, 1), (3, 200)])
def test_any_number_of_tasks_and_chunks_makes_the_same_rows(
    job: Job, whole: dict[str, list[Row]], monkeypatch: pytest.MonkeyPatch, tasks: int, at_once: int
) -> None:
    monkeypatch.setattr("kafka_sla.spark_jobs.events.chunks._CHUNK_EVENTS", at_once)

    assert made(job, tasks) == whole


def test_one_clock_in_1970_does_not_mix_up_the_others(tmp_path: Path) -> None:
    """Half a century in µs, as often as there are group-partitions, does not fit into 64 bits."""
    partitions = range(6_000)
    points = [point(5, 10, partition=n) for n in partitions]
    commits = [commit(30, 8, partition=n) for n in partitions]
    long_ago = commit(0, 3, partition=0) | {"at": datetime(1970, 1, 1, tzinfo=UTC)}
    told = files(tmp_path, {LOG_OFFSETS: points, COMMITTED_OFFSETS: [*commits, long_ago]})
    replays, interval = (Replay(CLUSTER, None),), Interval(at(0), at(60))
    rows = made(Job("load", interval, 60_000, replays, (sla(),), told, {}, "", {}, 0, 0), 1)

    for table, lag in ((CONSUMER_LATENCY, "records_lag"), (CONSUMER_STATUS, "lag"), (NON_CONSUMED, "unread_records")):
        assert [(row["partition"], row[lag]) for row in rows[table.name]] == [(n, 2) for n in partitions]


def test_the_rows_of_these_tests_tell_of_groups_over_many_topics_and_of_losses(whole: dict[str, list[Row]]) -> None:
    assert all(len(rows) > 200 for rows in whole.values())
    assert ("OK", "ERROR") in {(row["status"], row["group_status"]) for row in whole[CONSUMER_STATUS.name]}
    assert max(row["non_consumed_total_high"] or 0 for row in whole[NON_CONSUMED.name]) > 0
