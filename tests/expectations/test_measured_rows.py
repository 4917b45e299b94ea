"""What the Spark job measures from messy facts breaks no critical rule: suites and metrics agree on the contract."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import Cluster, Patterns, ReplicationFlow, Sla, SteadyState
from kafka_sla.model.tables import (
    COMMITTED_OFFSETS,
    CONSUMER_LATENCY,
    FACTS,
    LOG_OFFSETS,
    METRICS,
    REPLICATION_LAG,
    TABLES,
    Table,
)
from kafka_sla.spark.job_spec import Job, Replay
from kafka_sla.spark_jobs import measure
from tests.expectations.rows import INTERVAL, START, WINDOW_MS, Row

AUDIT = ReplicationFlow("audit", "backup", None, refresh_interval_ms=10_000)
"""One of the two groups is a replication flow, too."""


def _points(chance: random.Random, topic: str) -> list[Row]:
    """A produced timeline with bursts, gaps, retention, look-ups and a word of an imported file."""
    rows, offset, start, seconds = [], chance.randrange(3) * 1_000, 0, -200.0
    while seconds < 400:
        source = chance.choice(["snapshot", "list_offsets", "record", "our archive"])
        log_start = start if source == "snapshot" else None
        rows.append(
            {
                "at": START + timedelta(seconds=round(seconds, 3)),
                "log_end_offset": offset,
                "source": source,
                "log_start_offset": log_start,
            }
        )
        offset += chance.choice([0, 1, 7, 500])
        start = max(start, offset - chance.choice([200, 100_000]))
        seconds += chance.choice([0.2, 3, 30, 130])
    return [row | {"cluster": "prod", "topic": topic, "partition": 0} for row in rows]


def _commits(chance: random.Random, topic: str, group: str, points: list[Row]) -> list[Row]:
    """Commits that follow the timeline, lag, overtake it (clock skew), rewind, stop, and are deleted."""
    rows, seconds = [], chance.uniform(-300, 200)
    while seconds < chance.choice([100, 350]):
        seen = [p["log_end_offset"] for p in points if p["at"] <= START + timedelta(seconds=seconds)] or [0]
        offset = chance.choice([seen[-1], seen[-1], seen[len(seen) // 2], seen[0], seen[-1] + 50])
        rows.append(
            {
                "at": START + timedelta(seconds=round(seconds, 3)),
                "source": "commit_log",
                "committed_offset": None if chance.random() < 0.03 else offset,
            }
        )
        seconds += chance.choice([0.5, 5, 50])
    return [row | {"cluster": "prod", "topic": topic, "partition": 0, "group": group} for row in rows]


def _sla(name: str, grace_period_ms: int | None) -> Sla:
    rules = SteadyState(5_000, grace_period_ms, 200_000)
    return Sla(name, "prod", Patterns(), Patterns(), 30_000, 60_000, 0.999, rules)


def _file(folder: Path, table: Table, rows: list[Row]) -> list[str]:
    pq.write_table(arrow_rows(table, rows), folder / f"{table.name}.parquet")
    return [str(folder / f"{table.name}.parquet")]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    chance, points, commits = random.Random(7), list[Row](), list[Row]()
    for topic in (f"topic-{i}" for i in range(40)):
        own = _points(chance, topic)
        points += own
        for group in ("billing", "audit"):
            commits += _commits(chance, topic, group, own)
    found = {table.name: list[str]() for table in FACTS} | {
        LOG_OFFSETS.name: _file(tmp_path, LOG_OFFSETS, points),
        COMMITTED_OFFSETS.name: _file(tmp_path, COMMITTED_OFFSETS, commits),
    }
    return Job(
        "l1",
        INTERVAL,
        WINDOW_MS,
        (Replay(Cluster("prod", None, replication=(AUDIT,)), None),),
        (_sla("strict", None), _sla("kind", 60_000)),
        found,
        {table.name: [] for table in METRICS},
        str(tmp_path / "out"),
        {},
        0,
        0,
    )


def test_measured_rows_break_no_critical_rule(spark: SparkSession, job: Job) -> None:
    staged = measure.main(job, spark)

    results = spark.read.parquet(f"{job.output}/{TABLES['validation_results'].name}").collect()
    broken = {
        (row["table_name"], row["expectation_id"]): row["observed"]
        for row in results
        if not row["success"] and row["severity"] == "critical"
    }
    assert broken == {}
    assert staged[CONSUMER_LATENCY.name] > 200, "the facts must give the rules something to look at"
    flows = spark.read.parquet(f"{job.output}/{REPLICATION_LAG.name}")
    assert {flow for (flow,) in flows.select("flow").distinct().collect()} == {"audit"}


def test_a_fact_that_two_files_hold_is_told(spark: SparkSession, job: Job, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    inside = [row for row in pq.read_table(job.facts[LOG_OFFSETS.name]).to_pylist() if row["at"] > START]
    paths = job.facts[LOG_OFFSETS.name] + _file(again, LOG_OFFSETS, inside[:3])

    measure.main(replace(job, facts=job.facts | {LOG_OFFSETS.name: paths}), spark)

    results = spark.read.parquet(f"{job.output}/{TABLES['validation_results'].name}").collect()
    told = {
        (row["table_name"], row["severity"], row["observed"])
        for row in results
        if row["expectation_id"] == "keys_unique"
    }
    rows = sum(START <= row["at"] <= INTERVAL.end for row in inside) + 3
    assert (LOG_OFFSETS.name, "warning", f"6 of {rows} rows") in told
    assert (CONSUMER_LATENCY.name, "critical", None) in told
    assert [row["success"] for row in results if row["expectation_id"] == "histogram_sums"] == [True]
