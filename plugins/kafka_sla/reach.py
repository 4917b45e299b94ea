"""How far back the produced timeline must be read so that every record read in an interval lies between its points.

Rows that are carried over tell where each group stood, but it may read what lay before: it begins with an old topic,
or goes back. Then the points before those records decide their latency, however long ago they are. Starts no Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import duckdb
import pyarrow as pa

from kafka_sla.job import Carried
from kafka_sla.lake import Lake
from kafka_sla.model import EVERYTHING, Interval
from kafka_sla.tables import COMMITTED_OFFSETS, CONSUMER_LATENCY, LOG_OFFSETS
from kafka_sla.warehouse import columns_of

_FURTHER = (timedelta(hours=6), timedelta(days=2), timedelta(days=30), None)
_COMMITS = ("group", "topic", "partition", "at", "committed_offset")
_CARRIED = ("group", "topic", "partition", "committed_offset", "records_lag")
_POINTS = ("topic", "partition", "at", "log_start_offset", "log_end_offset")
_RECORDS = pa.schema([
    ("topic", pa.string()), ("partition", pa.int32()), ("position", pa.int64()),
    ("appended_at", pa.timestamp("us", "UTC")),
])  # fmt: skip


def read_since(
    lake: Lake, cluster: str, carried: Carried, interval: Interval, window_ms: int, records: Sequence[str],
    since: datetime,
) -> datetime | None:  # fmt: skip
    """The time from which on points must be read, `since` at the latest; None: from the beginning.

    `records`: files of raw commits of the cluster that are no facts yet.
    """
    window = Interval(carried.at - timedelta(milliseconds=window_ms), carried.at)
    until = Interval(carried.at, interval.end + timedelta(microseconds=1))  # a poll at the end tells of before
    with duckdb.connect(":memory:") as db:
        db.execute("SET TimeZone = 'UTC'")
        db.register("carried", lake.published(CONSUMER_LATENCY.name, window, [cluster], _CARRIED))
        db.register("commits", lake.read_facts(COMMITTED_OFFSETS, until, [cluster], _COMMITS))
        db.register("records", columns_of(records, _RECORDS))
        db.execute(_POSITIONS, {"since": carried.at})
        start: datetime | None = since
        for further in _FURTHER:
            span = Interval(start or EVERYTHING.start, interval.end + timedelta(microseconds=1))
            db.register("points", lake.read_facts(LOG_OFFSETS, span, [cluster], _POINTS))
            if not db.execute(_UNMET, {"window_ms": window_ms}).fetchall():
                return start
            start = since - further if further else None
    return None


# A position that did not move, of a group that had read all, is no question.
_POSITIONS = """
    CREATE TABLE positions AS
    WITH told AS (
        SELECT "group", topic, partition, committed_offset AS position, true AS old,
            coalesce(records_lag, 1) > 0 AS open
        FROM carried
        UNION ALL SELECT "group", topic, partition, committed_offset, false, false FROM commits
    ), of_groups AS (
        SELECT topic, partition, min(position) AS position FROM told
        GROUP BY "group", topic, partition HAVING bool_or(open) OR NOT bool_or(old) OR min(position) < max(position)
    )
    SELECT topic, partition, min(position) AS position FROM (
        SELECT * FROM of_groups UNION ALL SELECT topic, partition, position FROM records WHERE appended_at >= $since
    ) WHERE position IS NOT NULL GROUP BY ALL
"""

# Below the lowest position there must be a point; two of different offsets where a commit was ahead of all that was
# known when its window ended, because then the slope between them is prolonged.
_UNMET = """
    WITH ahead AS (
        SELECT DISTINCT c.topic, c.partition
        FROM (SELECT topic, partition, committed_offset, (epoch_ms("at") // $window_ms + 1) * $window_ms AS horizon
              FROM commits) c
        ASOF JOIN (SELECT topic, partition, epoch_ms("at") AS known_at, log_end_offset FROM points) p
            ON c.topic = p.topic AND c.partition = p.partition AND c.horizon >= p.known_at
        WHERE c.committed_offset > p.log_end_offset
    ), starts AS (
        SELECT topic, partition, coalesce(min(log_start_offset), 0) AS log_start FROM points GROUP BY ALL
    ), below AS (
        SELECT n.topic, n.partition, count(DISTINCT p.log_end_offset) AS offsets
        FROM positions n LEFT JOIN starts s USING (topic, partition) LEFT JOIN points p
            ON n.topic = p.topic AND n.partition = p.partition
            AND p.log_end_offset <= greatest(n.position, coalesce(s.log_start, 0))
        GROUP BY ALL
    )
    SELECT topic, partition FROM below LEFT JOIN ahead USING (topic, partition)
    WHERE offsets < CASE WHEN ahead.topic IS NULL THEN 1 ELSE 2 END LIMIT 1
"""
