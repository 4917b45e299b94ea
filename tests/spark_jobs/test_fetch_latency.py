"""`fetch_latency`: which samples a window shows, and what makes their differences worthless.

Spark is asked once for all stories, each a cluster of its own; what a step says of pairs is in test_fetch_pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import Cluster, Interval
from kafka_sla.model.tables import BROKER_REQUESTS, FETCH_LATENCY, REPLICA_FETCHES
from kafka_sla.spark.job_spec import Job, Replay
from kafka_sla.spark_jobs import fetch_latency
from kafka_sla.spark_jobs.metrics import Inputs
from tests.spark_jobs.conftest import Row, at
from tests.spark_jobs.fetching import Fetching, around

Facts = tuple[list[Row], list[Row]]
MINUTES = 60
START, END = 30 * MINUTES, 80 * MINUTES
FIRST, SECOND = START + 3, START + 303
SLOW, RESTARTED = Fetching(network=around(0)), Fetching(started={1: START + 100.0})


def _silent(facts: Facts) -> Facts:
    """Exporters that say not when their broker started."""
    return tuple([row | {"started_at": None} for row in rows] for rows in facts)  # type: ignore[return-value]


STORIES: dict[str, list[Facts]] = {
    "steady": [SLOW.sampled(FIRST - 300, FIRST, SECOND)],
    "restarted": [Fetching().sampled(FIRST - 300), RESTARTED.sampled(FIRST, SECOND)],
    "silently": [_silent(Fetching().sampled(FIRST - 300)), _silent(RESTARTED.sampled(FIRST))],
    "once": [Fetching().sampled(FIRST)],
    "too far apart": [Fetching().sampled(FIRST - 31 * MINUTES, FIRST)],
    "one is down": [Fetching(4).sampled(FIRST - 300), Fetching(4).sampled(FIRST, without=3)],
}


def _named(cluster: str, stories: Iterable[Facts]) -> Facts:
    every = list(stories)
    return tuple([row | {"cluster": cluster} for facts in every for row in facts[i]] for i in (0, 1))  # type: ignore[return-value]


def _measure(spark: SparkSession, facts: Facts, start: float, end: float) -> list[Row]:
    """Rows by cluster, window, leader and follower."""
    frames = {
        table: spark.createDataFrame(arrow_rows(table, rows))
        for table, rows in zip((BROKER_REQUESTS, REPLICA_FETCHES), facts, strict=True)
    }
    replays = tuple(Replay(Cluster(name, None), None) for name in STORIES)
    job = Job("load", Interval(at(start), at(end)), 60_000, replays, (), {}, {}, "", {}, 0, 0)
    nothing = spark.createDataFrame([], FETCH_LATENCY.ddl)
    inputs = Inputs(job, lambda table: frames[table], nothing, lambda table: nothing)
    found = fetch_latency.measure(inputs).toArrow().to_pylist()
    return sorted(found, key=lambda row: [row[name] for name in ("cluster", "window_start", "leader", "follower")])


@pytest.fixture(scope="module")
def facts() -> Facts:
    named = [_named(cluster, stories) for cluster, stories in STORIES.items()]
    return [row for one in named for row in one[0]], [row for one in named for row in one[1]]


@pytest.fixture(scope="module")
def rows(spark: SparkSession, facts: Facts) -> list[Row]:
    return _measure(spark, facts, START, END)


def _of(rows: list[Row], cluster: str, **wanted: Any) -> list[Row]:
    return [row for row in rows if row["cluster"] == cluster and wanted.items() <= row.items()]


def test_pairs_and_the_verdict_come_from_the_step_before_the_window_ends(rows: list[Row]) -> None:
    found = _of(rows, "steady", window_start=at(START + 60))

    slow = {(row["leader"], row["follower"]) for row in found if row["slow"]}
    assert {(0, "1"), (0, "2"), (1, "0"), (2, "0")} == slow
    assert {("slow_broker", 0)} == {(row["verdict"], row["verdict_broker"]) for row in found}
    assert {(at(FIRST - 300), at(FIRST))} == {(row["sampled_from"], row["sampled_until"]) for row in found}


def test_a_window_shows_the_newest_step_and_for_half_an_hour_only(rows: list[Row]) -> None:
    until = {row["window_start"]: row["sampled_until"] for row in _of(rows, "steady")}

    first = {at(START + s): at(FIRST) for s in range(0, 300, 60)}
    assert first | {at(START + 300 + s): at(SECOND) for s in range(0, 30 * MINUTES, 60)} == until


def test_what_consumers_wait_for_at_a_broker_is_taken_off(rows: list[Row]) -> None:
    (row,) = _of(rows, "steady", leader=1, follower="consumers", window_start=at(START))

    figures = ("fetches", "total_ms", "wait_ms", "fetch_latency_ms", "leader_total_ms", "total_local_ms")
    assert [300, 40.0, 38.5, 1.5, 40.0, 1.5] == pytest.approx([row[name] for name in figures])
    assert "leader" == row["method"]
    assert (pytest.approx(1.5), None) == (row["fetch_latency_low_ms"], row["fetch_latency_high_ms"])


def test_a_restart_makes_a_step_unknown_and_the_next_one_known(rows: list[Row]) -> None:
    (step,) = _of(rows, "restarted", leader=0, follower="1", window_start=at(START))
    (following,) = _of(rows, "restarted", leader=0, follower="1", window_start=at(START + 300))

    assert ("broker 1 restarted between the samples", None) == (step["unknown_reason"], step["fetch_latency_ms"])
    assert 4 == pytest.approx(following["fetch_latency_ms"], abs=2)


def test_totals_that_fall_without_a_word_of_a_restart_are_not_subtracted(rows: list[Row]) -> None:
    assert {"the totals of broker 1 began anew between the samples"} == {
        row["unknown_reason"] for row in _of(rows, "silently", follower="1")
    }


@pytest.mark.parametrize("story", ["once", "too far apart"])
def test_a_sample_with_nothing_to_compare_it_with_says_nothing(rows: list[Row], story: str) -> None:
    found = _of(rows, story, window_start=at(START))

    assert {f"broker {b} was sampled once only so far" for b in range(3)} == {row["unknown_reason"] for row in found}
    assert {("unknown", None)} == {(row["verdict"], row["fetch_latency_ms"]) for row in found}


def test_a_silent_exporter_leaves_what_the_others_tell(rows: list[Row]) -> None:
    found = {(row["follower"], row["leader"]): row for row in _of(rows, "one is down", window_start=at(START))}

    assert "broker 3 did not show it at 2026-11-01 00:30:03 UTC" == found["3", 0]["unknown_reason"]
    assert "broker 3 shows no totals of its requests" == found["0", 3]["unknown_reason"]
    assert "simple" == found["1", 2]["method"]
    assert found["1", 2]["fetch_latency_low_ms"] <= 4 <= found["1", 2]["fetch_latency_high_ms"]


@pytest.mark.parametrize("start", [START, START + 300, START + 31 * MINUTES])
def test_a_short_interval_gives_the_rows_of_the_long_one(
    spark: SparkSession, facts: Facts, rows: list[Row], start: float
) -> None:
    """Each run reads the hour before its interval only."""
    hour = [[row for row in of if at(start - 3_600) <= row["at"] <= at(start + 300)] for of in facts]

    short = _measure(spark, (hour[0], hour[1]), start, start + 300)

    assert [row for row in rows if at(start) <= row["window_start"] < at(start + 300)] == short
