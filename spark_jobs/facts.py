"""Facts and carried rows as frames of Spark, and the packs of all events that a job measures with. Knows the fact
tables, no metric."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_sla.job import Job
from kafka_sla.model import Patterns
from kafka_sla.tables import Table
from spark_jobs.packs import COMMITS, LAYOUTS, PACKS, carrying, reading, shares

_TASK_BYTES = 8_000_000
"""Bytes of fact files to a task: a million commits, which take some hundred MB while they are measured."""
_READ_BYTES = 2 * _TASK_BYTES
"""Bytes of fact files that one task reads, in batches: what Spark spends on each task should not show."""


def read(spark: SparkSession, table: Table, files: list[str]) -> DataFrame:
    """Rows of Parquet files in the columns of a table contract; an empty list gives an empty frame."""
    if not files:
        return spark.createDataFrame([], table.ddl)
    return _files(spark, table, files).select(list(table.names))


def _files(spark: SparkSession, table: Table, files: list[str], more: str = "") -> DataFrame:
    """By the contract's schema, not by that of some file: a file of an older version lacks what came since."""
    return spark.read.schema(table.ddl + more).parquet(*files)


def selected(frame: DataFrame, job: Job) -> DataFrame:
    """Rows of the job's clusters whose group and topic that cluster's patterns select."""
    wanted = F.lit(False)
    for replay in job.replays:
        one = F.col("cluster") == replay.cluster.name
        if "topic" in frame.columns:
            one = one & _matches("topic", replay.cluster.topics)
        if "group" in frame.columns:
            one = one & _matches("group", replay.cluster.groups)
        wanted = wanted | one
    return frame.where(wanted)


def _matches(column: str, patterns: Patterns) -> Column:
    include = [_fits(column, pattern) for pattern in patterns.include]
    exclude = [_fits(column, pattern) for pattern in patterns.exclude]
    found = F.lit(False)
    for one in include:
        found = found | one
    for one in exclude:
        found = found & ~one
    return found


def _fits(column: str, pattern: str) -> Column:
    """The usual pattern for all names is not worth a regex on every row; a dot is anything but a new line."""
    return ~F.col(column).contains("\n") if pattern == ".*" else F.col(column).rlike(f"^(?:{pattern})$")


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
    return selected(_files(spark, table, files, ", `load_id` STRING").where(wanted).select(list(table.names)), job)


def commits_of(job: Job, committed: DataFrame) -> DataFrame:
    """Committed offsets that the job replays: from each cluster's carry-over to the interval's end."""
    wanted = F.lit(False)
    for replay in job.replays:
        one = F.col("cluster") == replay.cluster.name
        if replay.carried:
            one = one & (F.col("at") >= F.lit(replay.carried.at))
        wanted = wanted | one
    return committed.where(wanted & (F.col("at") < F.lit(job.interval.end)))


def events(spark: SparkSession, job: Job, latency: DataFrame, steady: DataFrame, status: DataFrame) -> DataFrame:
    """All events of a job as packs (packs.PACKS), those of a topic-partition in one task.

    Read from the job's files of `log_offsets`, `record_ranges` and `committed_offsets`. `latency`, `steady`, `status`:
    the carried rows of `consumer_latency`, `steady_state` and `consumer_status`.
    """
    tasks = 1 + job.input_bytes // _TASK_BYTES
    carried = _carried(latency, steady).unionByName(_gone(latency, status), allowMissingColumns=True)
    names = [F.col(f"`{name}`") for name in LAYOUTS[COMMITS].names]
    packs = carried.select(names).mapInArrow(carrying(tasks), PACKS)
    if parts := shares(job, _READ_BYTES):
        indexes = spark.range(0, len(parts), 1, len(parts))
        packs = packs.union(indexes.mapInArrow(reading(job, parts, tasks), PACKS))
    return packs.repartitionById(tasks, "task")


def _carried(latency: DataFrame, steady: DataFrame) -> DataFrame:
    """One event per group-partition: its last commit before the replay, and its steady states as JSON by SLA."""
    key = ["cluster", "topic", "partition", "group"]
    state = F.struct("state", F.unix_micros("since").alias("since"), "reason")
    states = steady.groupBy(*key).agg(
        F.to_json(F.map_from_entries(F.collect_list(F.struct("sla", state)))).alias("carry")
    )
    return (
        latency.where(F.col("committed_offset").isNotNull())
        .join(states, key, how="left")
        .select(
            *key, F.unix_micros("last_commit_at").alias("at"), F.col("committed_offset").alias("offset"),
            F.col("log_start_offset").alias("log_start"), F.lit(False).alias("polled"),
            (~F.coalesce("polled_only", F.lit(True))).alias("certain"), F.lit(False).alias("earlier_lost"),
            F.lit(True).alias("carried"),
            F.coalesce("carry", F.lit("{}")).alias("carry"),
        )
    )  # fmt: skip


def _gone(latency: DataFrame, status: DataFrame) -> DataFrame:
    """The last commit of each group-partition that has rows no more, while polls still find it: one that expired.

    Without it the next poll would be the first that is known of the group, which would begin anew. No `carry`.
    """
    key = ["cluster", "topic", "partition", "group"]
    return status.join(latency.select(*key), key, how="left_anti").select(
        *key, F.unix_micros("last_commit_at").alias("at"), F.element_at("commit_offsets", -1).alias("offset"),
        F.lit(False).alias("polled"), (~F.col("polled_only")).alias("certain"), F.lit(False).alias("earlier_lost"),
        F.lit(True).alias("carried"),
    )  # fmt: skip
