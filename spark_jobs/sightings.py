"""Where groups were seen to stand: commits with the lag of their instant, and polls between them, in order. Knows the
fact tables and the carried rows of `consumer_status`, no rule that judges a consumer.

A group-partition *exists* from its first sighting until its offset is deleted, or until neither a commit nor a poll has
told of it for `expire_group`. Where the commit log tells of it, polls are no commits. Elsewhere a poll that finds
another position than the sighting before it stands for the commit, and one that finds the same is none: a poll must not
make a dead consumer look alive. Times are µs (BIGINT).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_sla.job import Job
from kafka_sla.model import Cluster
from kafka_sla.tables import COMMITTED_OFFSETS, CONSUMER_STATUS, EVERY_COMMIT, LOG_OFFSETS
from spark_jobs import facts
from spark_jobs.inputs import Inputs

PARTITION = ("cluster", "topic", "`partition`")
KEY = ("cluster", "`group`", "topic", "`partition`")


def in_order(*keys: str) -> str:
    """Sightings of each group-partition (and what else is named) as they came; a deletion comes last in its instant."""
    apart = ", ".join((*KEY, *keys))
    return f"PARTITION BY {apart} ORDER BY at, nth, `offset` NULLS LAST, logged DESC"


def of_cluster(job: Job, value: Callable[[Cluster], Any]) -> str:
    """A setting of each row's cluster, as SQL."""
    cases = [f"WHEN '{replay.cluster.name}' THEN {value(replay.cluster)}" for replay in job.replays]
    return f"CASE cluster {' '.join(cases)} END"


def sightings(inputs: Inputs) -> DataFrame:
    """KEY, what `in_order` orders by, `position` (null: deleted), `lag`, and of each sighting:

    `is_commit`; `begins`: nothing is known of the group-partition before it; `next_at`: the sighting after it;
    `polled_only`: the commit log has not told of it yet; `expire`: expire_group.
    """
    known = ("at", "nth", "`offset`", "logged", "carried", "lag", "log_end")
    near = [f"{f} OVER ({in_order()}) AS {name}" for name, f in _NEAR.items()]
    expire = of_cluster(inputs.job, lambda c: c.status.expire_group_ms * 1_000)
    told = [f"last(IF({what}, at, NULL)) IGNORE NULLS OVER ({in_order()} ROWS UNBOUNDED PRECEDING) AS {what}_at"
            for what in ("begins", "logged")]  # fmt: skip
    return (
        _with_log_ends(inputs)
        .selectExpr(*KEY, *known, *near, f"{expire} AS expire")
        .selectExpr(*KEY, *known, "next_at", "expire", *_OF_EACH)
        .selectExpr("*", *told)
        .selectExpr("*", "logged_at IS NULL OR logged_at < begins_at AS polled_only")
        .selectExpr(
            *KEY, "at", "nth", "`offset`", "logged", "position", "begins", "next_at", "polled_only", "expire",
            "counts AND (begins OR logged OR polled_only AND moves) AS is_commit",
            f"IF(carried, lag, {lag_behind('log_end', 'position')}) AS lag",
        )
    )  # fmt: skip


_NEAR = {
    "at_1": "lag(at)", "offset_1": "lag(`offset`)", "at_2": "lag(at, 2)", "offset_2": "lag(`offset`, 2)",
    "next_at": "lead(at)", "next_offset": "lead(`offset`)",
}  # fmt: skip
_OF_EACH = (
    "offset_1 IS NULL OR NOT carried AND at - at_1 > expire AS begins",
    "`offset` IS NOT NULL AND NOT coalesce(at = at_1 AND `offset` = offset_1, false) AS counts",
    "`offset` <> offset_1 AS moves",
    # A group that commits and is set back in one instant is told in the order of its offsets, which would read as if it
    # stood at the higher one: the two change places.
    """CASE WHEN carried THEN `offset`
        WHEN next_at = at AND at_1 < at AND `offset` < offset_1 AND next_offset >= offset_1 THEN next_offset
        WHEN at_1 = at AND at_2 < at AND offset_1 < offset_2 AND `offset` >= offset_2 THEN offset_1
        ELSE `offset` END AS position""",
)


def log_ends(inputs: Inputs) -> DataFrame:
    """PARTITION, `at`, `log_end`: every known log end offset, and the one that the published rows end with."""
    points = inputs.facts(LOG_OFFSETS).where(F.col("at") <= F.lit(inputs.job.interval.end))
    carried = inputs.carried(CONSUMER_STATUS).where("log_end_offset IS NOT NULL")
    return points.selectExpr(*PARTITION, "unix_micros(at) AS at", "log_end_offset AS log_end").union(
        carried.selectExpr(*PARTITION, "unix_micros(window_end)", "log_end_offset")
    )


def lag_behind(log_end: str, position: str) -> str:
    """Not below 0: ends are known at some instants only, a commit may be ahead of the newest. Null without an end."""
    return f"IF({log_end} < {position}, 0L, {log_end} - {position})"


def _with_log_ends(inputs: Inputs) -> DataFrame:
    """Sightings, each with the newest log end offset of its instant or before."""
    points = log_ends(inputs).selectExpr("*", "true AS is_point")
    seen = _new(inputs).unionByName(_carried(inputs)).selectExpr("*", "false AS is_point")
    until = f"PARTITION BY {', '.join(PARTITION)} ORDER BY at, is_point DESC, log_end ROWS UNBOUNDED PRECEDING"
    newest = f"last(log_end) IGNORE NULLS OVER ({until}) AS log_end"
    together = seen.unionByName(points, allowMissingColumns=True)
    return together.selectExpr(*[f"`{name}`" for name in seen.columns], newest).where("NOT is_point")


def _new(inputs: Inputs) -> DataFrame:
    committed = facts.commits_of(inputs.job, inputs.facts(COMMITTED_OFFSETS))
    return committed.selectExpr(
        *KEY, "unix_micros(at) AS at", "0 AS nth", "committed_offset AS `offset`",
        f"source IN {EVERY_COMMIT} AS logged", "CAST(NULL AS BIGINT) AS lag", "false AS carried",
    )  # fmt: skip


def _carried(inputs: Inputs) -> DataFrame:
    """The evaluated commits of the published rows, and the poll after them, in their order."""
    poll = """struct(last_seen_at AS commit_times, element_at(commit_offsets, -1) AS commit_offsets,
        CAST(NULL AS BIGINT) AS commit_lags)"""
    every = f"""posexplode(concat(arrays_zip(commit_times, commit_offsets, commit_lags),
        IF(last_seen_at > last_commit_at, array({poll}), array()))) AS (nth, one)"""
    seen = inputs.carried(CONSUMER_STATUS).selectExpr(*KEY, "polled_only", "size(commit_times) AS n", every)
    return seen.selectExpr(
        *KEY, "unix_micros(one.commit_times) AS at", "nth", "one.commit_offsets AS `offset`",
        "NOT polled_only AND nth < n AS logged",
        "one.commit_lags AS lag", "true AS carried",
    )  # fmt: skip
