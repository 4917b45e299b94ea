"""Builders for the Spark jobs' tests: facts with defaults, and the measured rows of a job."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kafka_sla.arrow import arrow_rows
from kafka_sla.job import Carried, Job, Replay
from kafka_sla.model import Cluster, Interval, Patterns, Sla, SteadyState
from kafka_sla.tables import (
    COMMITTED_OFFSETS,
    CONSUMER_LATENCY,
    CONSUMER_STATUS,
    LOG_OFFSETS,
    RECORD_RANGES,
    STEADY_STATE,
    Table,
)
from kafka_sla.warehouse import write_rows
from spark_jobs import facts
from spark_jobs.kernel import MEASURED, kernel
from spark_jobs.windows import Scope

EPOCH = datetime(2026, 11, 1, tzinfo=UTC)
Row = dict[str, Any]


def at(seconds: float) -> datetime:
    """An instant some seconds after the tests' epoch, a whole minute."""
    return EPOCH + timedelta(milliseconds=round(seconds * 1000))


def point(seconds: float, offset: int, **more: Any) -> Row:
    """A row of log_offsets: topic orders, partition 0, polled."""
    row = {"cluster": "prod", "topic": "orders", "partition": 0, "at": at(seconds), "log_end_offset": offset}
    return row | {"source": "snapshot"} | more


def record(seconds: float, offset: int) -> list[Row]:
    """The exact produced time of one record, as the two points around it."""
    return [point(seconds, offset, source="record"), point(seconds, offset + 1, source="record")]


def read(known: float, first: int, end: int, earliest: float | None, latest: float | None, **more: Any) -> Row:
    """A row of record_ranges: offsets first … end - 1, each a record, produced in [earliest, latest]."""
    row = {"cluster": "prod", "topic": "orders", "partition": 0, "at": at(known), "first_offset": first}
    times = [None if seconds is None else at(seconds) for seconds in (earliest, latest)]
    return row | {"end_offset": end, "records": end - first, "earliest": times[0], "latest": times[1]} | more


def void(known: float, first: int, end: int) -> Row:
    """A row of record_ranges: offsets that are no records."""
    return read(known, first, end, None, None, records=0)


def commit(seconds: float, offset: int | None, **more: Any) -> Row:
    """A row of committed_offsets: group billing on orders-0, from the commit log."""
    row = {"cluster": "prod", "group": "billing", "topic": "orders", "partition": 0, "at": at(seconds)}
    return row | {"committed_offset": offset, "source": "commit_log"} | more


def sla(max_latency_s: float = 30, **more: Any) -> Sla:
    """An SLA over everything of cluster prod; `within`, `grace`, `expire` in seconds."""
    within = more.pop("within", max_latency_s)
    grace, expire = more.pop("grace", None), more.pop("expire", 7 * 86_400)
    rules = SteadyState(int(within * 1000), grace and int(grace * 1000), int(expire * 1000))
    return Sla("promise", "prod", Patterns(), Patterns(), int(max_latency_s * 1000), 0, 0.99, rules, **more)


@pytest.fixture
def measure(spark: SparkSession, tmp_path: Path) -> Callable[..., list[Row]]:
    """measure(points, commits, start, end, …) → rows with `states`, ordered by group-partition and window.

    `carried`, `status`: rows of earlier runs, of these tables and of `consumer_status`.
    """

    def run(
        points: list[Row],
        commits: list[Row],
        start: float = 0,
        end: float = 60,
        *,
        slas: tuple[Sla, ...] = (),
        window: float = 60,
        ranges: Sequence[Row] = (),
        carried: tuple[float, list[Row]] | None = None,
        status: Sequence[Row] = (),
    ) -> list[Row]:
        carry_at = at(carried[0]) if carried else None
        told = {LOG_OFFSETS: points, RECORD_RANGES: ranges, COMMITTED_OFFSETS: commits}
        files = {table.name: [_file(tmp_path, table, rows)] for table, rows in told.items()}
        job = _job(Interval(at(start), at(end)), slas or (sla(),), carry_at, files)
        latency, steady = _carry_frames(spark, carried[1] if carried else [])
        stream = facts.events(spark, job, latency, steady, _frame(spark, CONSUMER_STATUS, list(status)))
        micros = [int((t - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1e6) for t in (at(start), at(end))]
        scope = Scope(*micros, int(window * 1e6), max(s.steady_state.expire_group_ms for s in job.slas) * 1000)
        table = stream.mapInArrow(kernel(scope, job.slas), MEASURED).toArrow()
        return sorted(_rows(table), key=lambda r: (r["group"], r["topic"], r["partition"], r["window_start"]))

    return run


def _job(interval: Interval, slas: tuple[Sla, ...], carry_at: datetime | None, files: dict[str, list[str]]) -> Job:
    replay = Replay(Cluster("prod", None), Carried(carry_at, "before") if carry_at else None)
    return Job("load", interval, 60_000, (replay,), slas, files, {}, {}, "", {}, 0)


def _file(folder: Path, table: Table, rows: Sequence[Row]) -> str:
    """A fact file with these rows."""
    path = f"{folder}/{table.name}-{uuid.uuid4().hex}.parquet"
    write_rows(path, arrow_rows(table, rows))
    return path


def _rows(table: pa.Table) -> list[Row]:
    return [row | {"latency_histogram": dict(row["latency_histogram"] or [])} for row in table.to_pylist()]


def _frame(spark: SparkSession, table: Any, rows: list[Row]) -> Any:
    return spark.createDataFrame(arrow_rows(table, rows))


def _carry_frames(spark: SparkSession, rows: list[Row]) -> tuple[Any, Any]:
    """The carried tables from measured rows of an earlier run."""
    latency = _frame(spark, CONSUMER_LATENCY, [{n: r[n] for n in CONSUMER_LATENCY.names} for r in rows])
    steady = [{n: (r | s)[n] for n in STEADY_STATE.names} for r in rows for s in r["states"]]
    return latency, _frame(spark, STEADY_STATE, steady)
