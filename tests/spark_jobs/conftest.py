"""Builders for the Spark jobs' tests: facts with defaults, and the measured rows of a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest

from kafka_sla.model.entities import Cluster, Interval, Patterns, Sla, SteadyState
from kafka_sla.model.tables import (
    COMMITTED_OFFSETS,
    CONSUMER_LATENCY,
    CONSUMER_STATUS,
    LOG_OFFSETS,
    RECORD_RANGES,
    STEADY_STATE,
    Table,
)
from kafka_sla.spark.job_spec import Carried, Job, Replay
from kafka_sla.spark_jobs.single_pass import measure_chunk, scope_of
from tests.spark_jobs.tasks import BEFORE, Row, chunks_of, files

EPOCH = datetime(2026, 11, 1, tzinfo=UTC)


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
    """An SLA over everything of cluster prod; `within`, `grace_period`, `expire`, `progress_deadline` in seconds."""
    within = more.pop("within", max_latency_s)
    grace_period, expire = more.pop("grace_period", None), more.pop("expire", 7 * 86_400)
    deadline = int(more.pop("progress_deadline", 1_800) * 1000)
    rules = SteadyState(int(within * 1000), grace_period and int(grace_period * 1000), int(expire * 1000), deadline)
    return Sla("promise", "prod", Patterns(), Patterns(), int(max_latency_s * 1000), 0, 0.99, rules, **more)


@pytest.fixture
def measure(tmp_path: Path) -> Callable[..., list[Row]]:
    """measure(points, commits, start, end, …) → rows of consumer_latency with `states`, ordered by group-partition and
    window, without Spark.

    `carried`: an instant, and the rows of an earlier run whose last window ends then; `status`: rows of
    `consumer_status` of that run.
    """

    def run(
        points: list[Row],
        commits: list[Row],
        start: float = 0,
        end: float = 60,
        *,
        slas: tuple[Sla, ...] | None = None,
        window: float = 60,
        ranges: Sequence[Row] = (),
        carried: tuple[float, list[Row]] | None = None,
        status: Sequence[Row] = (),
        facts: Mapping[Table, Sequence[Row]] = MappingProxyType({}),
    ) -> list[Row]:
        carry_at = at(carried[0]) if carried else None
        told = files(tmp_path, {LOG_OFFSETS: points, RECORD_RANGES: ranges, COMMITTED_OFFSETS: commits, **facts})
        carry = _carry(carried[1] if carried else [])
        replay = Replay(Cluster("prod", None), Carried(carry_at, BEFORE) if carry_at else None)
        interval = Interval(at(start), at(end))
        job = Job(
            "load",
            interval,
            int(window * 1_000),
            (replay,),
            (sla(),) if slas is None else slas,
            told,
            files(tmp_path, carry | {CONSUMER_STATUS: status}),
            "",
            {},
            0,
            0,
        )
        found = (measure_chunk(chunk, scope_of(job), job.slas).rows for chunk in chunks_of(job))
        rows = [row for table in found for row in _rows(table)]
        return sorted(rows, key=lambda r: (r["group"], r["topic"], r["partition"], r["window_start"]))

    return run


def _rows(table: pa.Table) -> list[Row]:
    return [row | {"latency_histogram": dict(row["latency_histogram"] or [])} for row in table.to_pylist()]


def _carry(rows: list[Row]) -> dict[Table, list[Row]]:
    """The carried tables from measured rows of an earlier run."""
    return {
        CONSUMER_LATENCY: [{n: r[n] for n in CONSUMER_LATENCY.names} for r in rows],
        STEADY_STATE: [{n: (r | s)[n] for n in STEADY_STATE.names} for r in rows for s in r["states"]],
    }
