"""The table `replication_lag`: records that a replication flow has yet to copy (KIP-971). Expressions only.

MirrorMaker is a consumer of its source cluster whose committed position is the last replicated offset + 1, so the rows
of `consumer_latency` of its group say when it has rows at all, and how late it copied. Times are µs (BIGINT).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_sla.model.entities import ReplicationFlow
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS, POLL_CONFIRMED, REPLICATION_LAG
from kafka_sla.spark.job_spec import Job
from kafka_sla.spark_jobs.events import frames
from kafka_sla.spark_jobs.metrics import Inputs, Metric
from kafka_sla.spark_jobs.uncopied import uncopied

KEY = ("cluster", "group", "topic", "partition")
NO_REFRESH = "no refresh falls into this window: the refresh interval is longer"
NO_POSITION = "the flow had no position at the refresh: it was not seen yet, or it was deleted"
NEVER_COPIED = (
    "the flow has no position on this partition: it has copied nothing of it yet, or its position was deleted"
)
AHEAD = "the last replicated offset is above the known log end: the topic was created again, or the end is an old one"
NO_END = "no log end offset is known around the refresh"
STALE = (
    "records wait, and the last replicated offset is older than its time to live: MirrorMaker has stopped or hangs, or"
    " it flushes its offsets more rarely than that"
)
_POINT, _REFRESH, _SIGHTING = 0, 1, 2
"""Their order in one instant: a window's last refresh sees the log end of its end, but no commit of the next window."""


def wanted(job: Job) -> bool:
    return any(_flows(job))


def measure(inputs: Inputs) -> DataFrame:
    """One row per flow, source partition and window from the flow's first known position on, and for partitions that
    it has no position on."""
    windows = _windows(inputs)
    refreshes = _lags(_known_at(_refreshes(windows), _points(inputs), _sightings(inputs, windows)))
    found = _rows(windows.join(_per_window(refreshes), [*KEY, "end"], how="inner"))
    return found.unionByName(_without_position(inputs, windows), allowMissingColumns=True)


def _without_position(inputs: Inputs, windows: DataFrame) -> DataFrame:
    """Rows that say so."""
    job = inputs.job
    return uncopied(job, _points(inputs), windows).select(
        "cluster",
        F.col("group").alias("flow"),
        "topic",
        "partition",
        "window_start",
        "window_end",
        _of_flow(job, lambda f: f.target).alias("target"),
        F.concat(_of_flow(job, lambda f: f.prefix), "topic").alias("target_topic"),
        F.lit(0).alias("refreshes"),
        F.lit(0).alias("stale_refreshes"),
        "log_end_offset",
        F.lit(NEVER_COPIED).alias("unknown_reason"),
    )


def _flows(job: Job) -> list[tuple[str, ReplicationFlow]]:
    """Source cluster and flow; those whose lag is not to be reported are left out."""
    return [(r.cluster.name, f) for r in job.replays for f in r.cluster.replication if f.refresh_interval_ms]


def _of_flow(job: Job, value: Callable[[ReplicationFlow], Any]) -> Column:
    """A setting of each row's flow; null where its group is none."""
    chosen = F.lit(None)
    for cluster, flow in _flows(job):
        mine = (F.col("cluster") == cluster) & (F.col("group") == flow.name)
        chosen = F.when(mine, F.lit(value(flow))).otherwise(chosen)
    return chosen


def _windows(inputs: Inputs) -> DataFrame:
    """The rows of `consumer_latency` of flows, with the flow's settings."""
    job = inputs.job
    return inputs.latency.withColumns(
        {
            "every": _of_flow(job, lambda f: (f.refresh_interval_ms or 0) * 1_000).cast("bigint"),
            "ttl": _of_flow(job, lambda f: f.ttl_ms * 1_000).cast("bigint"),
            "target": _of_flow(job, lambda f: f.target),
            "prefix": _of_flow(job, lambda f: f.prefix),
            "start": F.unix_micros("window_start"),
            "end": F.unix_micros("window_end"),
        }
    ).where(F.col("every").isNotNull())


def _refreshes(windows: DataFrame) -> DataFrame:
    """The refreshes (start, end] of each window, and its end."""
    first = F.floor(F.col("start") / F.col("every")) * F.col("every") + F.col("every")
    within = F.when(first <= F.col("end"), F.sequence(first, "end", "every")).otherwise(F.array())
    instants = F.array_distinct(F.concat(within, F.array("end")))
    return windows.select(
        *KEY,
        "start",
        "end",
        "every",
        "ttl",
        F.coalesce("log_start_offset", F.lit(0)).alias("log_start"),
        F.explode(instants).alias("at"),
        F.lit(_REFRESH).alias("kind"),
    )


def _points(inputs: Inputs) -> DataFrame:
    inside = inputs.facts(LOG_OFFSETS).where(F.col("at") <= F.lit(inputs.job.interval.end))
    return inside.select(
        "cluster",
        "topic",
        "partition",
        F.unix_micros("at").alias("at"),
        F.col("log_end_offset").alias("offset"),
        F.lit(_POINT).alias("kind"),
    )


def _sightings(inputs: Inputs, windows: DataFrame) -> DataFrame:
    """When which position was seen: the flow's commits, the one the published rows end with, and where only a poll of
    the whole cluster told it, the one that `consumer_latency` goes by."""
    commits = frames.commits_of(inputs.job, inputs.facts(COMMITTED_OFFSETS)).where(
        ~F.col("source").isin("snapshot", POLL_CONFIRMED)
    )
    carried = inputs.carried(REPLICATION_LAG).withColumnRenamed("flow", "group")
    told = windows.where((F.unix_micros("last_commit_at") < F.col("start")) & F.col("committed_offset").isNotNull())
    return (
        commits.select(*KEY, F.unix_micros("at").alias("at"), F.col("committed_offset").alias("offset"))
        .unionByName(
            carried.where(F.col("last_replicated_at").isNotNull()).select(
                *KEY,
                F.unix_micros("last_replicated_at").alias("at"),
                (F.col("last_replicated_offset") + 1).alias("offset"),
            )
        )
        .unionByName(
            told.select(*KEY, F.unix_micros("last_commit_at").alias("at"), F.col("committed_offset").alias("offset"))
        )
        .where(_of_flow(inputs.job, lambda _: True).isNotNull())
        .withColumn("kind", F.lit(_SIGHTING))
    )


def _known_at(refreshes: DataFrame, points: DataFrame, sightings: DataFrame) -> DataFrame:
    """Refreshes with what is known then: `seen` (the position and when it was seen), `before` and `after` (the points
    of the log end around it), and `all_there`, the last point at which nothing else was there to copy."""
    flows = refreshes.select(*KEY).distinct()
    every = (
        refreshes.unionByName(sightings, allowMissingColumns=True)
        .unionByName(points.join(flows, ["cluster", "topic", "partition"], how="inner"), allowMissingColumns=True)
        .withColumn("observed", F.struct("at", "offset"))
    )
    order = Window.partitionBy(*KEY).orderBy("at", "kind", "offset")
    until = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    beyond = order.rowsBetween(1, Window.unboundedFollowing)
    point, sighting = (
        F.when(F.col("kind") == _POINT, F.col("observed")),
        F.when(F.col("kind") == _SIGHTING, F.col("observed")),
    )
    caught_up = F.when((F.col("kind") == _POINT) & (F.col("offset") <= F.col("seen.offset")), F.col("at"))
    return (
        every.withColumns(
            {
                "seen": F.last(sighting, ignorenulls=True).over(until),
                "before": F.last(point, ignorenulls=True).over(until),
                "after": F.first(point, ignorenulls=True).over(beyond),
            }
        )
        .withColumn("all_there", F.max(caught_up).over(until))
        .where(F.col("kind") == _REFRESH)
    )


def _lags(refreshes: DataFrame) -> DataFrame:
    """Each refresh with its `lag`, and whether it is `stale`: then the lag is not told.

    A position stays true while there is nothing else to copy, however long ago it was seen. So it is as old as its
    sighting, or as the last moment at which the log ended there, whichever is younger.
    """
    near = F.col("after.at") <= F.col("end")
    share = (F.col("at") - F.col("before.at")) / (F.col("after.at") - F.col("before.at"))
    grown = F.floor((F.col("after.offset") - F.col("before.offset")) * share)
    log_end = F.when(near & (F.col("after.offset") > F.col("before.offset")), F.col("before.offset") + grown).when(
        near | (F.col("before.at") >= F.col("start")), F.col("before.offset")
    )
    position = F.when(F.col("seen.offset").isNotNull(), F.greatest("seen.offset", "log_start"))
    behind = log_end - position
    passed = near & (F.col("after.offset") >= F.col("seen.offset"))  # between the two points it got there
    ahead = F.coalesce(behind < 0, F.lit(False)) & ~F.coalesce(passed, F.lit(False))
    lag = F.when(~ahead, F.greatest(behind, F.lit(0).cast("bigint")))
    age = F.col("at") - F.greatest("seen.at", "all_there")
    return refreshes.withColumns(
        {
            "counts": F.col("at") % F.col("every") == 0,
            "log_end": log_end,
            "lag": F.when(behind.isNotNull(), lag),
            "ahead": ahead,
            "stale": F.coalesce((lag > 0) & (age > F.col("ttl")), F.lit(False)),
        }
    )


def _per_window(refreshes: DataFrame) -> DataFrame:
    """The figures of each window's refreshes, `newest` of them, and the position at its end."""
    known = F.when(F.col("counts") & ~F.col("stale"), F.col("lag"))
    one = F.struct("lag", "stale", "ahead", "log_end", F.col("seen.offset").alias("position"))
    return refreshes.groupBy(*KEY, "end").agg(
        F.min(known).alias("least"),
        F.max(known).alias("most"),
        F.avg(known).alias("mean"),
        F.count(known).cast("int").alias("refreshes"),
        F.sum((F.col("counts") & F.col("stale")).cast("int")).cast("int").alias("stale_refreshes"),
        F.max_by(F.when(F.col("counts"), one), F.when(F.col("counts"), F.col("at"))).alias("newest"),
        F.max_by("seen", "at").alias("seen"),
    )


def _rows(windows: DataFrame) -> DataFrame:
    """In the columns of the contract."""
    newest = F.col("newest")
    why = (
        F.when(F.col("unknown_reason").isNotNull(), F.col("unknown_reason"))
        .when(newest.isNull(), NO_REFRESH)
        .when(newest["position"].isNull(), NO_POSITION)
        .when(newest["log_end"].isNull(), NO_END)
        .when(newest["ahead"], AHEAD)
        .when(newest["stale"], STALE)
    )
    rows = windows.withColumn("why", why).withColumn("measured", F.col("unknown_reason").isNull())
    lag = F.when(F.col("why").isNull(), newest["lag"])
    return rows.select(
        "cluster",
        F.col("group").alias("flow"),
        "topic",
        "partition",
        "window_start",
        "window_end",
        "target",
        F.concat("prefix", "topic").alias("target_topic"),
        lag.alias("replication_record_lag"),
        F.when(F.col("measured"), F.col("least")).alias("replication_record_lag_min"),
        F.when(F.col("measured"), F.col("most")).alias("replication_record_lag_max"),
        F.when(F.col("measured"), F.round("mean", 3)).alias("replication_record_lag_avg"),
        F.when(F.col("measured"), F.col("refreshes")).otherwise(0).alias("refreshes"),
        F.when(F.col("measured"), F.col("stale_refreshes")).otherwise(0).alias("stale_refreshes"),
        F.when(F.col("seen.offset") > 0, F.col("seen.offset") - 1).alias("last_replicated_offset"),
        F.when(F.col("seen.offset") > 0, F.timestamp_micros("seen.at")).alias("last_replicated_at"),
        "log_end_offset",
        F.col("records_latency_ms").alias("replication_latency_ms"),
        F.col("records_latency_max_ms").alias("replication_latency_max_ms"),
        F.col("records_latency_avg_ms").alias("replication_latency_avg_ms"),
        F.col("why").alias("unknown_reason"),
    )


METRIC = Metric(REPLICATION_LAG, wanted, measure)
