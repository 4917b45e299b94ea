"""The table `fetch_latency`: how long fetches between brokers take without the wait in the purgatory (KIP-736).

Two successive samples of the brokers' running totals make a step; a window shows the newest step that ended before it
did. What a step says of the pairs and of the cluster is worked out in `fetch_pairs`; here are times and totals only.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafka_sla.job import Job
from kafka_sla.model import epoch_ms
from kafka_sla.tables import BROKER_REQUESTS, FETCH_LATENCY, REPLICA_FETCHES
from spark_jobs.fetch_pairs import CONSUMERS, SAID, STEPS, said_of
from spark_jobs.inputs import Inputs

_REACH_MINUTES = 30
"""A sample says nothing of windows that end more than 30 minutes later, and is compared with none further back: so both
lie in the hour before a window that every job reads, and rows do not depend on the interval that is measured."""
_NOISE = 1e-6
"""Sums are means times counts: they may seem to fall by a rounding error."""
_LEADER = ("requests", "leader_total", "leader_remote")


def wanted(job: Job) -> bool:
    """Some cluster's brokers have exporters."""
    return any(replay.cluster.exporters for replay in job.replays)


def measure(inputs: Inputs) -> DataFrame:
    """Rows of `tables.FETCH_LATENCY` of the job's interval."""
    requests, fetches = inputs.facts(BROKER_REQUESTS), inputs.facts(REPLICA_FETCHES)
    rounds = requests.select("cluster", "at").unionByName(fetches.select("cluster", "at")).distinct()
    start, end = (epoch_ms(t) * 1_000 for t in (inputs.job.interval.start, inputs.job.interval.end))
    windows = _windows(rounds, inputs.job.window_ms * 1_000, start, end)
    shown = windows.select("cluster", F.col("at").alias("round")).distinct()
    steps = _of_pairs(shown, fetches, requests).unionByName(_of_consumers(shown, requests))
    said = steps.groupBy("cluster", "round").applyInArrow(said_of, f"{STEPS}, {SAID}")
    rows = windows.withColumnRenamed("at", "round").join(said, ["cluster", "round"], how="inner")
    return rows.select([F.col(f"`{c.name}`").cast(c.type).alias(c.name) for c in FETCH_LATENCY.columns])


def _windows(rounds: DataFrame, width: int, start: int, end: int) -> DataFrame:
    """The windows of [start, end) that each round of samples is the newest one for; µs."""
    following = F.lead("micros").over(Window.partitionBy("cluster").orderBy("micros"))
    reach = F.col("micros") + _REACH_MINUTES * 60_000_000
    rounds = rounds.withColumn("micros", F.unix_micros("at"))
    until = F.least(F.coalesce(following - 1, reach), reach, F.lit(end))
    first, last = F.ceil(F.greatest("micros", F.lit(start + 1)) / width), F.floor(until / width)
    spans = rounds.withColumn("first", first).withColumn("last", last).where("first <= last")
    one = spans.withColumn("ordinal", F.explode(F.sequence("first", "last")))
    return one.select(
        "cluster", "at",
        F.timestamp_micros((F.col("ordinal") - 1) * width).alias("window_start"),
        F.timestamp_micros(F.col("ordinal") * width).alias("window_end"),
    )  # fmt: skip


def _of_pairs(shown: DataFrame, fetches: DataFrame, requests: DataFrame) -> DataFrame:
    """What was answered to each follower, and what its leader says of all its followers (fetch_pairs.STEPS)."""
    threads = _steps(fetches, ["follower", "leader", "fetcher"], ["responses", "io_wait_ms"], F.col("follower"))
    pairs = threads.groupBy("cluster", "leader", F.col("follower").cast("string").alias("fetcher"), "at").agg(
        F.sum("responses").alias("fetches"), F.sum("io_wait_ms").alias("total"), F.max("before").alias("before"),
        F.max("reason").alias("own_reason"),
    )  # fmt: skip
    leaders = _leaders(requests, "FetchFollower")
    seen = _seen(shown, pairs, ["leader", "fetcher"]).join(
        leaders.drop("before"), ["cluster", "leader", "at"], how="left"
    )
    silent = F.format_string("broker %s shows no totals of its requests", "leader")
    leading = F.when(F.col("requests").isNull() & F.col("leader_reason").isNull(), silent).otherwise(
        F.col("leader_reason")
    )
    return _said(seen, F.coalesce(_gone("fetcher"), F.col("own_reason"), leading))


def _of_consumers(shown: DataFrame, requests: DataFrame) -> DataFrame:
    """What each leader says of its consumers (fetch_pairs.STEPS)."""
    leaders = _leaders(requests, "FetchConsumer").withColumn("fetcher", F.lit(CONSUMERS))
    own = leaders.withColumn("fetches", F.col("requests")).withColumn("total", F.col("leader_total"))
    return _said(_seen(shown, own, ["leader", "fetcher"]), F.coalesce(_gone("leader"), F.col("leader_reason")))


def _leaders(requests: DataFrame, request: str) -> DataFrame:
    own = requests.where(F.col("request") == request).withColumnRenamed("broker", "leader")
    totals = ["requests", "total_ms", "remote_ms"]
    return _steps(own, ["leader"], totals, F.col("leader")).select(
        "cluster", "leader", "at", "before", "requests", F.col("total_ms").alias("leader_total"),
        F.col("remote_ms").alias("leader_remote"), F.col("reason").alias("leader_reason"),
    )  # fmt: skip


def _steps(samples: DataFrame, key: Sequence[str], totals: Sequence[str], broker: Column) -> DataFrame:
    """Each sample less the one before; null, with a reason, where that says nothing."""
    own = Window.partitionBy("cluster", *key).orderBy("at")
    row = samples.withColumn("before", F.lag("at").over(own))
    late = F.unix_micros("at") - F.unix_micros("before") > _REACH_MINUTES * 60_000_000
    row = row.withColumn("before", F.when(~late, F.col("before")))
    fell = F.lit(False)
    for name in totals:
        row = row.withColumn(f"{name}_before", F.lag(name).over(own))
        fell = fell | (F.col(name) < F.col(f"{name}_before") * (1 - _NOISE))
    restarted = F.col("started_at") != F.lag("started_at").over(own)
    reason = (
        F.when(F.col("before").isNull(), F.format_string("broker %s was sampled once only so far", broker))
        .when(restarted, F.format_string("broker %s restarted between the samples", broker))
        .when(fell, F.format_string("the totals of broker %s began anew between the samples", broker))
    )
    deltas = [
        F.when(F.col("reason").isNull(), F.greatest(F.col(name) - F.col(f"{name}_before"), F.lit(0))).alias(name)
        for name in totals
    ]
    return row.withColumn("reason", reason).select("cluster", *key, "at", "before", "reason", *deltas)


def _seen(shown: DataFrame, steps: DataFrame, key: Sequence[str]) -> DataFrame:
    """The newest step of everything that was sampled in the half-hour before a round, the round included."""
    reach = F.unix_micros("round") - F.unix_micros("at")
    near = shown.join(steps, "cluster", how="inner").where((reach >= 0) & (reach < _REACH_MINUTES * 60_000_000))
    newest = F.row_number().over(Window.partitionBy("cluster", "round", *key).orderBy(F.desc("at")))
    return near.withColumn("nth", newest).where("nth = 1").drop("nth")


def _gone(broker: str) -> Column:
    """Why something that was sampled before was not sampled in the round."""
    text = F.format_string(
        "broker %s did not show it at %s", broker, F.date_format("round", "yyyy-MM-dd HH:mm:ss 'UTC'")
    )
    return F.when(F.col("at") < F.col("round"), text)


def _said(seen: DataFrame, reason: Column) -> DataFrame:
    """The columns of fetch_pairs.STEPS; without numbers where there is a reason not to trust them."""
    row = seen.withColumn("unknown_reason", reason)
    gone = F.col("at") < F.col("round")
    return row.select(
        "cluster", "round", "leader", "fetcher",
        F.when(~gone, F.col("before")).alias("sampled_from"), F.when(~gone, F.col("at")).alias("sampled_until"),
        *[F.when(~gone, F.col(name).cast("double")).alias(name) for name in ("fetches", "total", *_LEADER)],
        "unknown_reason",
    )  # fmt: skip
