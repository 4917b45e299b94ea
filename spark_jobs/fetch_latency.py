"""The table `fetch_latency`: how long fetches between brokers take without the wait in the purgatory (KIP-736).

Two successive samples of a running total make a step. Here are steps; which of them a window shows is for
`fetch_rounds` to say, and what they tell of pairs and cluster for `fetch_pairs`.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_sla.model.tables import BROKER_REQUESTS, FETCH_LATENCY, REPLICA_FETCHES
from kafka_sla.spark.job_spec import Job
from kafka_sla.spark_jobs.brokers.pairs import CONSUMERS
from kafka_sla.spark_jobs.brokers.rounds import FOLLOWERS, REACH, rows_of
from kafka_sla.spark_jobs.metrics import Inputs, Metric

_NOISE = 1e-6
"""Sums are means times counts: they may seem to fall by a rounding error."""
_TOTALS = ("fetches", "total", "wait")


def wanted(job: Job) -> bool:
    """Some cluster's brokers have exporters."""
    return any(replay.cluster.jmx_exporters for replay in job.replays)


def measure(inputs: Inputs) -> DataFrame:
    """Rows of `tables.FETCH_LATENCY` of the job's interval."""
    steps = _steps(_samples(inputs.facts(BROKER_REQUESTS), inputs.facts(REPLICA_FETCHES)))
    interval, window_ms = inputs.job.interval, inputs.job.window_ms

    def rows(of_cluster: pa.Table) -> pa.Table:  # Spark reads the annotations: no partial
        return rows_of(interval, window_ms, of_cluster)

    found = steps.groupBy("cluster").applyInArrow(rows, FETCH_LATENCY.ddl.replace(" NOT NULL", ""))
    return found.select([F.col(f"`{name}`") for name in FETCH_LATENCY.names])


def _samples(requests: DataFrame, fetches: DataFrame) -> DataFrame:
    """Totals of a leader's fetches: as it counts them itself, by kind, and as each follower's threads do."""
    kind = F.when(F.col("request") == "FetchConsumer", CONSUMERS).when(F.col("request") == "FetchFollower", FOLLOWERS)
    told = requests.select(
        "cluster",
        "at",
        "started_at",
        F.col("broker").alias("teller"),
        F.col("broker").alias("leader"),
        kind.alias("follower"),
        F.lit(0).alias("thread"),
        F.col("requests").cast("double").alias("fetches"),
        F.col("total_ms").alias("total"),
        F.col("remote_ms").alias("wait"),
    )
    waited = fetches.select(
        "cluster",
        "at",
        "started_at",
        F.col("follower").alias("teller"),
        "leader",
        F.col("follower").cast("string").alias("follower"),
        F.col("fetcher_thread").alias("thread"),
        F.col("responses").cast("double").alias("fetches"),
        F.col("io_wait_ms").alias("total"),
        F.lit(0.0).alias("wait"),
    )
    return told.where(F.col("follower").isNotNull()).unionByName(waited)


def _steps(samples: DataFrame) -> DataFrame:
    """Each sample less the one before; null, with a reason, where that says nothing."""
    own = Window.partitionBy("cluster", "leader", "follower", "thread").orderBy("at")
    last = {name: F.lag(name).over(own).alias(f"{name}_before") for name in ("at", "started_at", *_TOTALS)}
    row = samples.select("*", *last.values())
    far = F.unix_micros("at") - F.unix_micros("at_before") > REACH.total_seconds() * 1e6
    fell = F.lit(False)
    for name in _TOTALS:
        fell = fell | (F.col(name) < F.col(f"{name}_before") * (1 - _NOISE))
    reason = (
        F.when(F.col("at_before").isNull() | far, _says("broker %s was sampled once only so far"))
        .when(F.col("started_at") != F.col("started_at_before"), _says("broker %s restarted between the samples"))
        .when(fell, _says("the totals of broker %s began anew between the samples"))
    )
    less = [F.greatest(F.col(name) - F.col(f"{name}_before"), F.lit(0.0)) for name in _TOTALS]
    known = [F.when(reason.isNull(), one).alias(name) for one, name in zip(less, _TOTALS, strict=True)]
    before = F.when(~far, F.col("at_before")).alias("before")
    return row.select("cluster", "leader", "follower", "at", before, *known, reason.alias("reason"))


def _says(text: str) -> Column:
    return F.format_string(text, F.col("teller"))


METRIC = Metric(FETCH_LATENCY, wanted, measure)
