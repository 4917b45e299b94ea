"""The merge of commits with timeline points: ours on Spark, a bare Spark scan, and DuckDB's as-of joins.

All three read the same Parquet files. Ours and DuckDB's cut what every commit consumed at every produced point, take
produced times by interpolation, and add up records and latency; both sums are printed, because they must agree.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import chain
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.speed_facts import CLUSTER, START, Shape, committed_offsets, log_offsets, settings
from benchmarks.speed_spark import spark
from benchmarks.speed_table import say, seconds, table
from kafka_sla.files import bytes_of, write_rows
from kafka_sla.model.entities import Cluster, Interval
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_LATENCY, LOG_OFFSETS, Table
from kafka_sla.spark.job_spec import Job, Replay, measured_cluster
from kafka_sla.spark_jobs.events import frames
from kafka_sla.spark_jobs.events.chunks import Room, chunks
from kafka_sla.spark_jobs.events.python_workers import map_batches
from kafka_sla.spark_jobs.events.sort import in_order
from kafka_sla.spark_jobs.events.write_files import WRITTEN, Target, writing
from kafka_sla.spark_jobs.single_pass import tables
from kafka_sla.spark_jobs.windows.segments import segments, steps

_SUMS = "records BIGINT, waited DOUBLE"
_WINDOW_US = 60_000_000
_TIMES = 8
Sums = tuple[int, float]
"""Records, and their latencies added up (ms)."""


def compare(rows: int = 10_000_000, group_partitions: int = 1_000) -> str:
    """Half of the rows are commits, half are points, one of each about every ten seconds, for whole minutes."""
    shape = Shape(group_partitions, commit_seconds=10, point_seconds=10, uneven_ms=500)
    interval = Interval(START, START + timedelta(minutes=-(-10 * rows // 2 // group_partitions // 60)))
    with tempfile.TemporaryDirectory(prefix="kafka_sla-merge-") as folder, spark() as session:
        job = _job(shape, interval, Path(folder))
        say("merging")
        runs: dict[str, Callable[[], Sums | None]] = {
            "bare Spark scan of the files": lambda: _scan(session, job),
            "kafka_sla: the merge": lambda: _merge(session, job),
            "kafka_sla: all tables that one pass makes, as files": lambda: _everything(session, job),
            "DuckDB: as-of joins": lambda: _duckdb(job),
        }
        found = {name: _best(times) for name, times in _in_turn(runs).items()}
        size = bytes_of(chain.from_iterable(job.facts.values()))
    scan, ours = found["bare Spark scan of the files"][0], found["kafka_sla: the merge"][0]
    cells = [
        (
            name,
            seconds(took),
            f"{took / scan:.1f}",
            f"{took / ours:.1f}",
            f"{sums[0]:,}" if sums else "",
            f"{sums[1] / sums[0]:,.1f} ms" if sums else "",
        )
        for name, (took, sums) in found.items()
    ]
    count = 2 * group_partitions * int((interval.end - interval.start).total_seconds()) // 10
    head = ["what is done", "time", "times the scan", "times our merge", "records", "mean latency"]
    return (
        f"{count:,} commits and points of {group_partitions:,} group-partitions,"
        f" {size / 1e6:.0f} MB of Parquet, {shape.uneven_ms} ms out of step; the best of {_TIMES}.\n\n"
        + table(head, cells)
    )


def _in_turn(runs: dict[str, Callable[[], Sums | None]]) -> dict[str, list[tuple[float, Sums | None]]]:
    """How long each takes, one after the other, so that what else the machine does slows all of them."""
    found: dict[str, list[tuple[float, Sums | None]]] = {name: [] for name in runs}
    for _ in range(_TIMES):
        for name, run in runs.items():
            began = time.monotonic()
            sums = run()
            found[name].append((time.monotonic() - began, sums))
        say(", ".join(f"{name}: {times[-1][0]:.1f} s" for name, times in found.items()))
    return found


def _best(times: list[tuple[float, Sums | None]]) -> tuple[float, Sums | None]:
    return min(times, key=lambda one: one[0])


def _job(shape: Shape, interval: Interval, folder: Path) -> Job:
    """The facts as four files a table, and the job that reads them."""
    files: dict[str, list[str]] = {}
    known = Interval(
        interval.start - timedelta(minutes=1), interval.end
    )  # the first commits read what was there before
    facts = {LOG_OFFSETS: log_offsets(shape, known), COMMITTED_OFFSETS: committed_offsets(shape, interval)}
    for of, rows in facts.items():
        part = -(-rows.num_rows // 4)
        files[of.name] = [f"{folder}/{of.name}/{number}.parquet" for number in range(4)]
        for number, path in enumerate(files[of.name]):
            write_rows(path, rows.slice(number * part, part))
    count = sum(rows.num_rows for rows in facts.values())
    return Job(
        load_id="merge",
        interval=interval,
        window_ms=_WINDOW_US // 1_000,
        slas=settings().slas,
        replays=(Replay(measured_cluster(Cluster(CLUSTER, None)), None),),
        facts=files,
        carry={},
        output=f"{folder}/load",
        facts_seq={},
        input_rows=count,
        measured_rows=count,
    )


def _read(session: SparkSession, job: Job, table: Table) -> DataFrame:
    return frames.read(session, table, job.facts.get(table.name, []))


def _scan(session: SparkSession, job: Job) -> None:
    """Every column of every row, and nothing done with it."""
    for of in (LOG_OFFSETS, COMMITTED_OFFSETS):
        _read(session, job, of).write.format("noop").mode("overwrite").save()


def _merge(session: SparkSession, job: Job) -> Sums:
    rows = map_batches(frames.events(session, job), _sums, _SUMS).collect()
    return sum(row["records"] for row in rows), sum(row["waited"] for row in rows)


def _sums(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Segments of all commits of a task, added up."""
    records, waited = 0, 0.0
    for chunk in chunks(in_order(batches), Room()):
        parts = segments(chunk, steps(chunk, _WINDOW_US), np.arange(len(chunk.gp)))
        records += int(parts.records.sum())
        waited += float(np.nansum((parts.first_ms + parts.last_ms) / 2 * parts.records))
    yield pa.RecordBatch.from_pydict({"records": [records], "waited": [waited]})


def _everything(session: SparkSession, job: Job) -> Sums:
    """All rows of the kernel's tables, written as a load writes them."""
    target = Target(job.output, job.interval.start, job.load_id)
    rows = map_batches(frames.events(session, job), writing(target, tables(job)), WRITTEN).collect()
    written = [row["path"] for row in rows if row["name"] == CONSUMER_LATENCY.name]
    sums = "sum(records_consumed), sum(records_consumed * records_latency_avg_ms)"
    with duckdb.connect() as connection:
        records, waited = connection.sql(f"SELECT {sums} FROM read_parquet({written})").fetchall()[0]
    return int(records), float(waited)


def _duckdb(job: Job) -> Sums:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for table_name, paths in job.facts.items():
            connection.read_parquet(paths).create_view(table_name)
        records, waited = connection.sql(_AS_OF).fetchall()[0]
    return int(records), float(waited)


_AS_OF = """
    WITH commits AS (
        SELECT cluster, "group", topic, partition, epoch_us("at") AS "at", committed_offset AS until,
            lag(committed_offset) OVER (PARTITION BY cluster, "group", topic, partition ORDER BY "at") AS since
        FROM committed_offsets
    ), points AS (
        SELECT cluster, topic, partition, epoch_us("at") AS t1, log_end_offset AS o1,
            lead(epoch_us("at")) OVER following AS t2, lead(log_end_offset) OVER following AS o2
        FROM log_offsets WINDOW following AS (PARTITION BY cluster, topic, partition ORDER BY "at")
    ), cuts AS (
        SELECT cluster, "group", topic, partition, since AS cut FROM commits WHERE since IS NOT NULL
        UNION
        SELECT points.cluster, groups."group", points.topic, points.partition, o1 FROM points
        JOIN (SELECT DISTINCT cluster, "group", topic, partition FROM commits) AS groups
            USING (cluster, topic, partition)
    ), pieces AS (
        SELECT cuts.*, commits."at", lead(cut, 1, until) OVER (
            PARTITION BY cuts.cluster, cuts."group", cuts.topic, cuts.partition ORDER BY cut) AS next, commits.until,
            commits.since
        FROM cuts ASOF JOIN commits ON cuts.cluster = commits.cluster AND cuts."group" = commits."group"
            AND cuts.topic = commits.topic AND cuts.partition = commits.partition AND cuts.cut < commits.until
    ), segments AS (
        SELECT pieces."at", least(next, until) - cut AS records,
            t1 + (cut + 0.5 - o1) / (o2 - o1) * (t2 - t1) AS first_at,
            t1 + (least(next, until) - 0.5 - o1) / (o2 - o1) * (t2 - t1) AS last_at
        FROM pieces ASOF JOIN points ON pieces.cluster = points.cluster AND pieces.topic = points.topic
            AND pieces.partition = points.partition AND pieces.cut >= points.o1
        WHERE since IS NOT NULL AND cut >= since AND least(next, until) > cut
    )
    SELECT sum(records), sum(records * ("at" - (first_at + last_at) / 2) / 1000) FROM segments
"""
