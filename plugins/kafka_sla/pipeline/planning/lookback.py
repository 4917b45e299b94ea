"""How far back the produced timeline must be read so that every record read in an interval lies between its points.

Rows that are carried over tell where each group stood, but it may read what lay before: it begins with an old topic,
or goes back. Then the points before those records decide their latency, however long ago they are. Starts no Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from kafka_sla.lake.lake import Lake
from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import EVERYTHING, Interval
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_LATENCY, LOG_OFFSETS, Table
from kafka_sla.spark.job_spec import Carried
from kafka_sla.sql import Sql, database

_FURTHER = (timedelta(hours=6), timedelta(days=2), timedelta(days=30), None)
_CARRIED = ("group", "topic", "partition", "committed_offset", "assumed_offset", "records_lag")


def read_since(
    lake: Lake, cluster: str, carried: Carried, interval: Interval, window_ms: int, since: datetime
) -> datetime | None:
    """The time from which on points must be read, `since` at the latest; None: from the beginning."""
    window = Interval(carried.at - timedelta(milliseconds=window_ms), carried.at)
    until = interval.end + timedelta(microseconds=1)  # a poll at the end tells of before
    with database(carried=lake.published(CONSUMER_LATENCY.name, window, [cluster], _CARRIED)) as db:
        _view(db, COMMITTED_OFFSETS, lake.fact_files(COMMITTED_OFFSETS, carried.at, until))
        db.set(cluster=cluster, carried_at=carried.at, until=until, window_ms=window_ms)
        db.run(_POSITIONS)
        start: datetime | None = since
        for further in _FURTHER:
            _view(db, LOG_OFFSETS, lake.fact_files(LOG_OFFSETS, start, until))
            db.set(since=start or EVERYTHING.start)
            if not _unmet(db):
                return start
            start = since - further if further else None
    return None


def _view(db: Sql, table: Table, files: Sequence[str]) -> None:
    """The rows of these files as a view of the table's name, in the place of an earlier one."""
    if files:
        db.add_files(table.name, files)
    else:
        db.add(**{table.name: arrow_schema(table).empty_table()})


def _unmet(db: Sql) -> bool:
    """Is there a partition whose lowest position the points do not reach below far enough?"""
    db.run(_FEW)
    few = db.rows("SELECT lowest FROM few")
    return any(row["lowest"] is None for row in few) or bool(few and db.rows(_AHEAD))


_COMMITS = """
    FROM committed_offsets WHERE cluster = getvariable('cluster')
    AND "at" >= getvariable('carried_at') AND "at" < getvariable('until')
"""
_POINTS = """
    FROM log_offsets WHERE cluster = getvariable('cluster')
    AND "at" >= getvariable('since') AND "at" < getvariable('until')
"""

# A position that did not move, of a group that had read all, is no question.
_POSITIONS = f"""
    CREATE TEMP TABLE positions AS
    WITH seen AS (
        SELECT "group", topic, partition, coalesce(committed_offset, assumed_offset) AS lowest, lowest AS highest,
            true AS old, coalesce(records_lag, 1) > 0 AS open
        FROM carried
        UNION ALL
        SELECT "group", topic, partition, min(committed_offset), max(committed_offset), false, false {_COMMITS}
        GROUP BY ALL
    ), of_groups AS (
        SELECT topic, partition, min(lowest) AS position FROM seen
        GROUP BY "group", topic, partition HAVING bool_or(open) OR NOT bool_or(old) OR min(lowest) < max(highest)
    )
    SELECT topic, partition, min(position) AS position FROM of_groups WHERE position IS NOT NULL GROUP BY ALL
"""

# Below the lowest position there must be a point: partitions without one, and those with points of one offset only.
_FEW = f"""
    CREATE OR REPLACE TEMP TABLE few AS
    WITH starts AS (
        SELECT topic, partition, coalesce(min(log_start_offset), 0) AS log_start {_POINTS} GROUP BY ALL
    ), points AS (
        SELECT topic, partition, log_end_offset {_POINTS}
    ), below AS (
        SELECT n.topic, n.partition, min(p.log_end_offset) AS lowest, max(p.log_end_offset) AS highest
        FROM positions n LEFT JOIN starts s USING (topic, partition) LEFT JOIN points p
            ON n.topic = p.topic AND n.partition = p.partition
            AND p.log_end_offset <= greatest(n.position, coalesce(s.log_start, 0))
        GROUP BY ALL
    )
    SELECT topic, partition, lowest FROM below WHERE lowest IS NULL OR lowest = highest
"""

# One offset is too few where a commit was ahead of all that was known when its window ended: then the slope between two
# is prolonged.
_AHEAD = f"""
    WITH commits AS (
        SELECT topic, partition, (epoch_ms("at") // getvariable('window_ms') + 1) * getvariable('window_ms') AS horizon,
            max(committed_offset) AS committed_offset
        FROM (SELECT * {_COMMITS}) SEMI JOIN few USING (topic, partition) GROUP BY ALL
    ), points AS (
        SELECT topic, partition, epoch_ms("at") AS known_at, log_end_offset
        FROM (SELECT * {_POINTS}) SEMI JOIN few USING (topic, partition)
    )
    SELECT 1 FROM commits c ASOF JOIN points p
        ON c.topic = p.topic AND c.partition = p.partition AND c.horizon >= p.known_at
    WHERE c.committed_offset > p.log_end_offset LIMIT 1
"""
