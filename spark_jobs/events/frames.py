"""Facts and carried rows as frames of Spark, and the blocks of all events that a job measures with. Knows the fact
tables, no metric."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import Patterns
from kafka_sla.model.tables import Table
from kafka_sla.spark.job_spec import Job
from kafka_sla.spark_jobs.events.object_files import read_by_arrow
from kafka_sla.spark_jobs.events.python_workers import map_batches
from kafka_sla.spark_jobs.events.read_files import reading, shares, tasks_of
from kafka_sla.spark_jobs.events.shuffle import BLOCKS
from kafka_sla.spark_jobs.events.spark_versions import arrow_function, by_task
from kafka_sla.spark_jobs.events.task_ranges import indexes

_VERIFY = "parquet.page.verify-checksum.enabled"
"""Spark writes checksums of pages by itself; it looks at them only when told to."""
_LOAD_ID = pa.field("load_id", pa.string())
_LITERAL = r"(?:\\[^A-Za-z0-9\n]|[^\\.*+?()\[\]{}^$|\n])"
_SIMPLE = re.compile(rf"(?P<internal>\(\?!__\))?(?P<start>{_LITERAL}*)(?P<rest>\.\*(?P<end>{_LITERAL}*))?")
"""A name, or a glob with one star."""


def read(spark: SparkSession, table: Table, files: list[str]) -> DataFrame:
    """Rows of Parquet files in the columns of a table contract; an empty list gives an empty frame."""
    if not files:
        return spark.createDataFrame([], table.ddl)
    return _files(spark, table, files).select(list(table.names))


def _files(spark: SparkSession, table: Table, files: list[str], *, with_load: bool = False) -> DataFrame:
    """Read files by the contract's schema: a column that a file lacks is null."""
    ddl = table.ddl + (", `load_id` STRING" if with_load else "")
    if "://" in files[0]:
        return read_by_arrow(spark, files, ddl, pa.schema([*arrow_schema(table), *([_LOAD_ID] if with_load else [])]))
    return spark.read.schema(ddl).option(_VERIFY, True).parquet(*files)


def selected(frame: DataFrame, job: Job) -> DataFrame:
    """Rows of the job's clusters whose group and topic that cluster's patterns select."""
    wanted = F.lit(False)
    for replay in job.replays:
        one = F.col("cluster") == replay.cluster.name
        if "topic" in frame.columns:
            one = one & matches("topic", replay.cluster.topics)
        if "group" in frame.columns:
            one = one & matches("group", replay.cluster.groups)
        wanted = wanted | one
    return frame.where(wanted)


def matches(column: str, patterns: Patterns) -> Column:
    """Whether a column's names are selected. Names, and globs with one star, become comparisons. Everything else goes
    through `Patterns`: the regexes of Java and of SQL backtrack, and one name could keep a task busy for days."""
    if not all(map(_SIMPLE.fullmatch, (*patterns.include, *patterns.exclude))):
        return _matching(patterns)(F.col(column))
    found = F.lit(False)
    for pattern in patterns.include:
        found = found | _fits(F.col(column), pattern)
    for pattern in patterns.exclude:
        found = found & ~_fits(F.col(column), pattern)
    return found


def _fits(name: Column, pattern: str) -> Column:
    """The comparison for a pattern that `_SIMPLE` matches. A dot is any character."""
    simple = _SIMPLE.fullmatch(pattern)
    assert simple is not None
    start, end = (re.sub(r"\\(.)", r"\1", simple[part] or "") for part in ("start", "end"))
    if simple["rest"] is None:
        found = name == start
    else:
        found = name.startswith(start) & name.endswith(end)
        found = found & (F.length(name) >= len(start) + len(end)) if start and end else found
    return found & ~name.startswith("__") if simple["internal"] else found


def _matching(patterns: Patterns) -> Callable[[Column], Column]:
    """Which names of a column are selected; each is tested once a batch."""

    def test(names: pa.Array) -> pa.Array:
        encoded = names.dictionary_encode()
        return pa.array([patterns.matches(name) for name in encoded.dictionary.to_pylist()], pa.bool_()).take(
            encoded.indices
        )

    return arrow_function(test, "boolean")


def carried(spark: SparkSession, job: Job, table: Table) -> DataFrame:
    """Published rows of a metric table whose window ends where the replay of their cluster begins."""
    files = job.carry.get(table.name, [])
    wanted = F.lit(False)
    for replay in job.replays:
        if replay.carried:
            own = (F.col("cluster") == replay.cluster.name) & (F.col("load_id") == replay.carried.load_id)
            wanted = wanted | own & (F.col("window_end") == F.lit(replay.carried.at))
    if not files:
        return spark.createDataFrame([], table.ddl)
    return selected(_files(spark, table, files, with_load=True).where(wanted).select(list(table.names)), job)


def commits_of(job: Job, committed: DataFrame) -> DataFrame:
    """Committed offsets that the job replays: from each cluster's carry-over to the interval's end."""
    wanted = F.lit(False)
    for replay in job.replays:
        one = F.col("cluster") == replay.cluster.name
        if replay.carried:
            one = one & (F.col("at") >= F.lit(replay.carried.at))
        wanted = wanted | one
    return committed.where(wanted & (F.col("at") < F.lit(job.interval.end)))


def events(spark: SparkSession, job: Job, tasks: int = 0) -> DataFrame:
    """All events of a job as blocks (shuffle.BLOCKS), those of a topic-partition in one task; as many tasks as the
    files are worth unless told."""
    tasks = tasks or tasks_of(job)
    parts = shares(job)
    return by_task(map_batches(indexes(spark, len(parts)), reading(job, parts, tasks), BLOCKS), tasks, "task")
