"""Partitions of a topic that a group reads, on which it has no committed offset: rows of one pass over the facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.simulation import kernel
from kafka_sla.model.entities import Cluster, Interval, ReplicationFlow, Sla, epoch_ms
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_LATENCY, CONSUMER_STATUS, LOG_OFFSETS, STEADY_STATE
from kafka_sla.spark.job_spec import Carried, Job, Replay, measured_cluster
from tests.spark_jobs.conftest import Row, at, commit, point, sla
from tests.spark_jobs.tasks import BEFORE, files

Measure = Callable[..., kernel.Made]


@pytest.fixture
def measure(tmp_path: Path) -> Measure:
    """measure(points, commits, start, end, …) → all tables of one pass, by table."""

    def run(
        points: list[Row],
        commits: list[Row],
        start: int,
        end: int,
        slas: tuple[Sla, ...] = (sla(60),),
        carry: kernel.Made | None = None,
        cluster: Cluster | None = None,
    ) -> kernel.Made:
        rows = {table: made.to_pylist() for table, made in (carry or {}).items() if table in _CARRIED}
        carried = Carried(at(start), BEFORE) if carry else None
        replay = Replay(measured_cluster(cluster or Cluster("prod", None)), carried)
        facts = files(tmp_path, {LOG_OFFSETS: points, COMMITTED_OFFSETS: commits})
        interval, measured = Interval(at(start), at(end)), tuple(one.measured for one in slas)
        return kernel.made(
            Job("load", interval, 60_000, (replay,), measured, facts, files(tmp_path, rows), "", {}, 0, 0)
        )

    return run


_CARRIED = (CONSUMER_LATENCY, STEADY_STATE, CONSUMER_STATUS)


def produced(partition: int, since: int, until: int, first: int = 0, per_second: int = 10) -> list[Row]:
    """The log end of a partition every ten seconds, records being appended at this rate."""
    return [point(t, first + (t - since) * per_second, partition=partition) for t in range(since, until + 1, 10)]


def reads(partition: int, since: int, until: int, **more: Any) -> list[Row]:
    """Commits of a consumer that keeps up with ten records a second since the epoch."""
    return [commit(t, t * 10, partition=partition, **more) for t in range(since, until, 5)]


def unread(made: kernel.Made, partition: int = 1) -> dict[int, tuple[str, str, int, float]]:
    """Minute → state, reason, assumed offset and lowest backlog age in s, of rows without a committed offset."""
    states = {(r["window_start"], r["partition"]): r for r in made[STEADY_STATE].to_pylist()}
    rows = [r for r in made[CONSUMER_LATENCY].to_pylist() if r["partition"] == partition]
    return {
        round((row["window_start"] - at(0)).total_seconds() / 60): (
            (state := states[row["window_start"], partition])["state"],
            state["reason"],
            row["assumed_offset"],
            row["backlog_age_low_ms"] / 1_000,
        )
        for row in rows
        if row["committed_offset"] is None
    }


NEW_PARTITION = [*produced(0, 0, 3_600), *produced(1, 600, 3_600)]


def test_a_new_partition_that_the_group_never_reads_is_judged_from_its_first_record_on(measure: Measure) -> None:
    rows = unread(measure(NEW_PARTITION, reads(0, 5, 3_600), 0, 3_600))

    assert list(rows) == list(range(10, 60))
    assert {row[:3] for row in rows.values()} == {("steady", "caught_up", 0)}
    assert rows[59][3] == 2_990


def test_records_that_were_there_before_the_group_are_not_its_duty(measure: Measure) -> None:
    points = [*produced(0, 0, 3_600), *(point(t, 5_000, partition=1) for t in range(0, 3_601, 10))]

    rows = unread(measure(points, reads(0, 605, 3_600), 600, 3_600))

    assert {row[2:] for row in rows.values()} == {(5_000, 0)}


def test_a_partition_with_records_bootstraps_until_the_progress_deadline(measure: Measure) -> None:
    points = [*produced(0, 0, 3_600), *produced(1, 0, 3_600, first=100)]

    rows = unread(measure(points, reads(0, 605, 3_600), 600, 3_600))

    assert [row[:2] for row in rows.values()] == [("bootstrapping", "no_position")] * 30 + [
        ("steady", "not_catching_up")
    ] * 20


def test_it_ends_with_the_first_commit_there(measure: Measure) -> None:
    made = measure(NEW_PARTITION, [*reads(0, 5, 3_600), commit(1_000, 10, partition=1)], 0, 3_600)

    assert list(unread(made)) == list(range(10, 16))
    assert made[CONSUMER_LATENCY].num_rows == 60 + 50


def test_after_a_deletion_a_partition_has_no_position_again(measure: Measure) -> None:
    commits = [*reads(0, 5, 3_600), *reads(1, 5, 1_200), commit(1_200, None, partition=1)]

    rows = unread(measure([*produced(0, 0, 3_600), *produced(1, 0, 3_600)], commits, 0, 3_600))

    assert list(rows) == list(range(20, 60))


@pytest.mark.parametrize("source", ["commit_log", "snapshot"])
def test_a_group_that_was_only_polled_has_bounds_that_allow_both(source: str, measure: Measure) -> None:
    rows = unread(measure(NEW_PARTITION, reads(0, 5, 3_600, source=source), 0, 3_600))

    assert rows[59][3] == (2_990 if source == "commit_log" else 0)


def test_an_sla_of_committed_partitions_only_has_none(measure: Measure) -> None:
    promise = replace(sla(60), partitions="committed")
    assert not unread(measure(NEW_PARTITION, reads(0, 5, 3_600), 0, 3_600, slas=(promise,)))


def test_a_replication_flow_reads_what_it_reads(measure: Measure) -> None:
    cluster = replace(Cluster("prod", None), replication=(ReplicationFlow("billing", "backup", None),))
    assert not unread(measure(NEW_PARTITION, reads(0, 5, 3_600), 0, 3_600, cluster=cluster))


def test_another_group_and_another_topic_are_not_concerned(measure: Measure) -> None:
    points = [*NEW_PARTITION, *(row | {"topic": "other"} for row in NEW_PARTITION)]

    made = measure(points, reads(0, 5, 3_600), 0, 3_600)

    assert set(made[CONSUMER_LATENCY]["topic"].to_pylist()) == {"orders"}
    assert {row["partition"] for row in made[CONSUMER_STATUS].to_pylist()} == {0}


STORIES = {
    "a new partition": (NEW_PARTITION, reads(0, 5, 3_600)),
    "one that is read later": (NEW_PARTITION, [*reads(0, 5, 3_600), *reads(1, 1_000, 3_600)]),
    "a partition with records": ([*produced(0, 0, 3_600), *produced(1, 0, 3_600, first=9)], reads(0, 605, 3_600)),
    "a deleted offset": (
        [*produced(0, 0, 3_600), *produced(1, 0, 3_600)],
        [*reads(0, 5, 3_600), *reads(1, 5, 1_200), commit(1_200, None, partition=1), *reads(1, 2_005, 3_600)],
    ),
    "a group that comes back": (
        [*produced(0, 0, 3_600), *produced(1, 0, 3_600)],
        [
            *reads(0, 5, 600),
            *reads(1, 5, 600),
            commit(610, None, partition=0),
            commit(610, None, partition=1),
            *reads(0, 2_005, 3_600),
        ],
    ),
}


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("piece", [300, 1_200])
def test_many_short_intervals_give_the_rows_of_a_long_one(measure: Measure, story: str, piece: int) -> None:
    points, commits = STORIES[story]
    whole = measure(points, commits, 0, 3_600)
    parts = list[kernel.Made]()
    for start in range(0, 3_600, piece):
        carry = (
            kernel.between(parts[-1], epoch_ms(at(start - 60)), epoch_ms(at(start))) if parts and parts[-1] else None
        )
        parts.append(measure(points, commits, start, start + piece, carry=carry or None))
    joined = kernel.joined([part for part in parts if part])
    assert unread(whole)
    for table in (CONSUMER_LATENCY, STEADY_STATE):
        assert joined[table].to_pylist() == whole[table].to_pylist()
