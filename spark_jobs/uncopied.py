"""Source partitions that a replication flow should copy and has no position on, for `replication_lag`: a MirrorMaker
that never copied anything would be invisible. Expressions only.

A flow says which topics it copies by `topics`. Where it names none, those count of which it copies another partition,
and all of them as long as it has no position at all.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_sla.model.entities import ReplicationFlow
from kafka_sla.spark.job_spec import Job
from kafka_sla.spark_jobs.events.frames import matches

_ALL = {".*", "(?!__).*"}
"""Patterns that name no topic in particular."""
_START = ("cluster", "group", "window_start")


def uncopied(job: Job, points: DataFrame, windows: DataFrame) -> DataFrame:
    """Flow, partition and window of each, with the log end that points of that window tell. `points`: `at` in µs and
    `offset`; `windows`: those in which a flow has positions."""
    width = 1_000 * job.window_ms
    first = F.floor((F.col("at") - 1) / width) * width
    looked = (
        points.groupBy("cluster", "topic", "partition", F.timestamp_micros(first).alias("window_start"))
        .agg(F.max("offset").alias("log_end_offset"))
        .where((F.col("window_start") >= F.lit(job.interval.start)) & (F.col("window_start") < F.lit(job.interval.end)))
    )
    expected = looked.withColumn("flow", F.explode(_flows(job))).select(
        *looked.columns, F.col("flow.name").alias("group"), F.col("flow.named").alias("named")
    )
    moving = windows.select(*_START).distinct().withColumn("moving", F.lit(True))
    there = windows.select(*_START, "topic").distinct().withColumn("there", F.lit(True))
    return (
        expected.join(windows.select(*_START, "topic", "partition"), [*_START, "topic", "partition"], how="left_anti")
        .join(moving, [*_START], how="left")
        .join(there, [*_START, "topic"], how="left")
        .where(F.col("named") | F.col("moving").isNull() | F.col("there"))
        .withColumn("window_end", F.timestamp_micros(F.unix_micros("window_start") + width))
    )


def _flows(job: Job) -> Column:
    """Name of each flow that copies a row's topic, as far as the configuration says, and whether it names it."""
    found = [
        F.when(
            (F.col("cluster") == r.cluster.name) & _copies(flow),
            F.struct(F.lit(flow.name).alias("name"), F.lit(not _ALL & set(flow.topics.include)).alias("named")),
        )
        for r in job.replays
        for flow in r.cluster.replication
        if flow.refresh_interval_ms
    ]
    return F.array_compact(F.array(*found))


def _copies(flow: ReplicationFlow) -> Column:
    """Topics that begin with __ are Kafka's own, which MirrorMaker leaves alone."""
    return matches("topic", flow.topics) & ~F.col("topic").startswith("__")
