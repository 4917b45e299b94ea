"""Steady states that are not known: they begin with a commit before which compaction removed others. Pure.

A group that was reading long before looks like one that has just begun. Calling it bootstrapping would excuse it.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import COMPACTED, STEADY_STATE
from kafka_sla.sql import database

REASON = "its earlier commits were compacted away, so whether it was bootstrapping is not known"


def window_before(steady: pa.Table) -> Interval | None:
    """The window before the first of these rows, if how a bootstrapping began that ended in the first stands there."""
    if not steady.num_rows:
        return None
    start, end = pc.min(steady["window_start"]).as_py(), pc.min(steady["window_end"]).as_py()
    ended = pc.and_(_caught_up(steady), pc.equal(steady["window_start"], start))
    return Interval(start - (end - start), start) if pc.any(ended).as_py() else None


def first_commits(steady: pa.Table) -> Interval | None:
    """The time of the first commits that excuse anybody in these rows of `steady_state`; None without any."""
    first = pc.and_(pc.equal(steady["state"], "bootstrapping"), pc.equal(steady["reason"], "first_commit"))
    excluded = steady.filter(pc.or_(first, _caught_up(steady)))
    if not excluded.num_rows:
        return None
    began = pc.if_else(_caught_up(excluded), excluded["window_start"], excluded["since"])
    return Interval(pc.min(began).as_py(), pc.max(excluded["since"]).as_py() + timedelta(microseconds=1))


def _caught_up(steady: pa.Table) -> pa.ChunkedArray:
    """Rows whose bootstrapping ended in their window, where it may have begun, too."""
    return pc.and_(pc.equal(steady["state"], "steady"), pc.invert(steady["steady_whole_window"]))


def doubted(steady: pa.Table, commits: pa.Table) -> pa.Table:
    """The rows of `steady_state`, with null for steady where it is not known. `commits`: facts of `first_commits`, at
    least those of instants of which a commit was compacted."""
    with database(steady=steady, commits=commits) as db:
        found = db.arrow(_DOUBTED, reason=REASON, compacted=COMPACTED)
    contract = arrow_schema(STEADY_STATE)
    return found.cast(pa.schema([contract.field(name).with_nullable(True) for name in found.column_names]))


# How a bootstrapping began that ended in its window, the row before tells; without one it began in the window.
_DOUBTED = """
    WITH lost AS (
        SELECT cluster, "group", topic, partition, "at" AS first_at FROM commits
        GROUP BY ALL HAVING bool_and(source = $compacted)
    ), followed AS (
        SELECT *, lag({state: state, reason: reason, since: since, "end": window_end}) OVER (
            PARTITION BY sla, cluster, "group", topic, partition ORDER BY window_start) AS before FROM steady
    ), begun AS (
        SELECT * EXCLUDE before, CASE
            WHEN state = 'bootstrapping' THEN CASE WHEN reason = 'first_commit' THEN [since, since] END
            WHEN steady_whole_window THEN NULL
            WHEN before."end" IS DISTINCT FROM window_start THEN [window_start, since]
            WHEN before.state = 'bootstrapping' AND before.reason = 'first_commit' THEN [before.since, before.since]
            END AS first FROM followed
    ), judged AS (
        SELECT * EXCLUDE first, EXISTS (
            SELECT 1 FROM lost WHERE lost.cluster = begun.cluster AND lost."group" = begun."group"
                AND lost.topic = begun.topic AND lost.partition = begun.partition
                AND first_at BETWEEN first[1] AND first[2]) AS doubtful FROM begun
    )
    SELECT * EXCLUDE doubtful REPLACE (
        CASE WHEN NOT doubtful THEN steady_whole_window END AS steady_whole_window,
        CASE WHEN doubtful THEN $reason ELSE reason END AS reason)
    FROM judged ORDER BY sla, cluster, "group", topic, partition, window_start
"""
