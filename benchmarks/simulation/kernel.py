"""The tables that the product makes of facts, by the functions that Spark's tasks run, in this process."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from benchmarks.simulation.world import CLUSTER
from kafka_sla.files import write_rows as write
from kafka_sla.model.entities import Cluster, Interval, Sla
from kafka_sla.model.tables import CONSUMER_LATENCY, CONSUMER_STATUS, NON_CONSUMED, STEADY_STATE, Table
from kafka_sla.spark.job_spec import Carried, Job, Replay, measured_cluster
from kafka_sla.spark_jobs import consumer_status, group_status
from kafka_sla.spark_jobs.events.read_files import reading, shares
from kafka_sla.spark_jobs.single_pass import tables

Made = dict[Table, pa.Table]
METRICS = (CONSUMER_LATENCY, STEADY_STATE, CONSUMER_STATUS, NON_CONSUMED)
_BEFORE = "before"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for one world's files."""
    path = Path(tempfile.mkdtemp(prefix="simulation-"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def measured(
    into: Path,
    known: Mapping[Table, pa.Table] | Files,
    start: int,
    end: int,
    window_ms: int,
    slas: tuple[Sla, ...],
    carry: Made | None = None,
    anew: tuple[str, ...] = (),
) -> Made:
    """All rows of an interval; `carry`: rows whose last window ends at its start, of all topics but those `anew`."""
    return made(job(into, known, start, end, window_ms, slas, carry, anew=anew))


def job(
    into: Path,
    known: Mapping[Table, pa.Table] | Files,
    start: int,
    end: int,
    window_ms: int,
    slas: tuple[Sla, ...],
    carry: Made | None = None,
    output: str = "",
    anew: tuple[str, ...] = (),
) -> Job:
    """The job that measures an interval of these facts."""
    carry_over = Carried(at(start), _BEFORE) if carry is not None else None
    replay = Replay(measured_cluster(Cluster(CLUSTER, None)), carry_over, anew=anew)
    carried = files(into, {table: _of_load(rows) for table, rows in (carry or {}).items()}).paths
    given = known if isinstance(known, Files) else files(into, known)
    span = Interval(at(start), at(end))
    measured_slas = tuple(sla.measured for sla in slas)
    return Job("load", span, window_ms, (replay,), measured_slas, given.paths, carried, output, {}, 0, 0)


def made(job: Job) -> Made:
    """The rows of a job, as its Spark application makes them of one task."""
    parts = shares(job)
    indexes = [pa.RecordBatch.from_pydict({"id": [number]}) for number in range(len(parts))]
    found: dict[str, list[pa.Table]] = {}
    for some in tables(job)(reading(job, parts, 1)(indexes)):
        for table, rows in some.items():
            found.setdefault(table.name, []).append(rows)
    if group_status.SUMS.name not in found:
        return {}
    of_groups = group_status.together(pa.concat_tables(found.pop(group_status.SUMS.name)))
    found[CONSUMER_STATUS.name] = [
        group_status.with_groups(rows, of_groups, job.status_rules)
        for rows in found.pop(consumer_status.OF_PARTITIONS.name)
    ]
    return {
        table: in_order(pa.concat_tables(rows.select(list(table.names)) for rows in found[table.name]), table)
        for table in METRICS
        if table.name in found
    }


def in_order(rows: pa.Table, table: Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in table.key])


def _of_load(rows: pa.Table) -> pa.Table:
    return rows.append_column("load_id", pa.array([_BEFORE] * len(rows), pa.string()))


@dataclass(frozen=True, slots=True)
class Files:
    """Rows that are written already, by the name of their table."""

    paths: dict[str, list[str]]


def files(into: Path, known: Mapping[Table, pa.Table]) -> Files:
    """One file a table."""
    found = {}
    for table, rows in known.items():
        path = f"{into}/{table.name}-{uuid.uuid4().hex}.parquet"
        write(path, rows)
        found[table.name] = [path]
    return Files(found)


def between(made: Made, start: int, end: int) -> Made:
    """The rows of windows in [start, end)."""
    return {table: rows.filter(_inside(rows, start, end)) for table, rows in made.items()}


def _inside(rows: pa.Table, start: int, end: int) -> pa.Array:
    import pyarrow.compute as pc

    begin = rows["window_start"]
    stamp = pa.timestamp("us", "UTC")
    first, last = pa.scalar(at(start), stamp), pa.scalar(at(end), stamp)
    return pc.and_(pc.greater_equal(begin, first), pc.less(begin, last))


def joined(parts: Sequence[Made]) -> Made:
    """The rows of several intervals."""
    found: dict[Table, list[pa.Table]] = {}
    for part in parts:
        for table, rows in part.items():
            found.setdefault(table, []).append(rows)
    return {table: in_order(pa.concat_tables(rows), table) for table, rows in found.items()}
