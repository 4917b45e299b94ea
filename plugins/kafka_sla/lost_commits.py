"""Steady states that are not known: they begin with a commit before which compaction removed others. Pure.

A group that was reading long before looks like one that has just begun. Calling it bootstrapping would excuse it.
"""

from __future__ import annotations

from datetime import timedelta

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.arrow import arrow_schema
from kafka_sla.model import Interval
from kafka_sla.tables import COMPACTED, STEADY_STATE

REASON = "its earlier commits were compacted away, so whether it was bootstrapping is not known"


def first_commits(steady: pa.Table) -> Interval | None:
    """The time of the first commits that excuse anybody in these rows of `steady_state`; None without any."""
    excused = steady.filter(
        pc.and_(pc.equal(steady["state"], "bootstrapping"), pc.equal(steady["reason"], "first_commit"))
    )
    span = pc.min_max(excused["since"]).as_py()
    return Interval(span["min"], span["max"] + timedelta(microseconds=1)) if excused.num_rows else None


def doubted(steady: pa.Table, commits: pa.Table) -> pa.Table:
    """The rows of `steady_state`, with null for steady where it is not known. `commits`: facts of `first_commits`."""
    with duckdb.connect(":memory:") as db:
        db.execute("SET TimeZone = 'UTC'")
        db.register("steady", steady)
        db.register("commits", commits)
        found = db.sql(_DOUBTED, params={"reason": REASON, "compacted": COMPACTED}).to_arrow_table()
    return found.select(list(STEADY_STATE.names)).cast(_NULLABLE)


_NULLABLE = pa.schema([field.with_nullable(True) for field in arrow_schema(STEADY_STATE)])

_DOUBTED = """
    WITH lost AS (
        SELECT cluster, "group", topic, partition, "at" AS first_at FROM commits
        GROUP BY ALL HAVING bool_and(source = $compacted)
    )
    SELECT steady.* REPLACE (
        CASE WHEN first_at IS NULL OR state <> 'bootstrapping' THEN steady_throughout END AS steady_throughout,
        CASE WHEN first_at IS NULL OR state <> 'bootstrapping' THEN steady.reason ELSE $reason END AS reason)
    FROM steady LEFT JOIN lost ON lost.cluster = steady.cluster AND lost."group" = steady."group"
        AND lost.topic = steady.topic AND lost.partition = steady.partition AND first_at = steady.since
        AND steady.reason = 'first_commit'
"""
