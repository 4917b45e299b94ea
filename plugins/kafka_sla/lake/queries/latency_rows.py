"""What was published of each group and topic, some of them at a time, so that the rows of a long time fit into
memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.lake.duckdb_reader import opened, quoted, shown
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.publications import Slice
from kafka_sla.model.entities import Interval, Patterns
from kafka_sla.model.tables import COMMITTED_OFFSETS, COMPACTED, CONSUMER_LATENCY
from kafka_sla.parquet_files import verify
from kafka_sla.sla.windows.wanted_rows import pair_table
from kafka_sla.sql import Sql

_COLUMNS = tuple(name for name in CONSUMER_LATENCY.names if name not in ("latency_histogram", "method"))
_ROWS_AT_ONCE = 1_500_000
Pair = tuple[str, str]
"""Group and topic."""


def latency_by_pair(
    lake: Lake, slices: Sequence[Slice], groups: Patterns, topics: Patterns
) -> Iterator[tuple[Pair, pa.Table]]:
    """The rows of these slices, of one group and topic after the other, each by partition and window."""
    files = lake.published_files(CONSUMER_LATENCY, slices) if slices else []
    if not files:
        return
    verify(files, (*_COLUMNS, "load_id"))
    with opened(CONSUMER_LATENCY, files, slices) as db:
        for pairs in _batches(db, groups, topics):
            db.add(pairs=pair_table(pairs))
            yield from _by_pair(db.arrow(_ROWS))


def compacted_commits(lake: Lake, cluster: str, interval: Interval) -> pa.Table:
    """The commits before which compaction may have removed others, and what else is known of the same instants."""
    files = lake.fact_files(COMMITTED_OFFSETS, interval.start, interval.end)
    values = {"compacted": COMPACTED, "cluster": cluster, "start_at": interval.start, "end_at": interval.end}
    if files:
        with opened(COMMITTED_OFFSETS, files, [], verified=True) as db:
            if db.rows(f"SELECT 1 {_OURS} AND source = $compacted LIMIT 1", **values):  # mostly, statistics deny it
                return db.arrow(_COMPACTED, **values)
    return pa.table({"group": pa.array([], pa.string()), "topic": pa.array([], pa.string())})


def _batches(db: Sql, groups: Patterns, topics: Patterns) -> Iterator[list[Pair]]:
    found: list[Pair] = []
    rows = 0
    for one in db.rows(_PAIRS):
        if not groups.matches(one["group"]) or not topics.matches(one["topic"]):
            continue
        if found and rows + one["rows"] > _ROWS_AT_ONCE:
            yield found
            found, rows = [], 0
        found.append((one["group"], one["topic"]))
        rows += one["rows"]
    if found:
        yield found


def _by_pair(rows: pa.Table) -> Iterator[tuple[Pair, pa.Table]]:
    names = [pc.rank(rows[name], tiebreaker="dense").to_numpy() for name in ("group", "topic")]
    changed = np.flatnonzero((np.diff(names[0]) != 0) | (np.diff(names[1]) != 0)) + 1
    for first, end in pairwise([0, *changed.tolist(), len(rows)]):
        part = rows.slice(first, end - first)
        yield (part["group"][0].as_py(), part["topic"][0].as_py()), part


_OF_SLICES = f"FROM files {shown('window_start')}"
_PAIRS = f'SELECT "group", topic, count(*) AS rows {_OF_SLICES} GROUP BY ALL ORDER BY "group", topic'
_ROWS = f"""
    SELECT {quoted(_COLUMNS, "files.")} {_OF_SLICES}
    SEMI JOIN pairs ON pairs."group" = files."group" AND pairs.topic = files.topic
    ORDER BY files."group", files.topic, partition, window_start
"""
_OURS = 'FROM files WHERE cluster = $cluster AND "at" >= $start_at AND "at" < $end_at'
_COMPACTED = f"""
    WITH ours AS (SELECT * {_OURS})
    SELECT cluster, "group", topic, partition, "at", source FROM ours
    SEMI JOIN (SELECT * FROM ours WHERE source = $compacted) AS lost USING ("group", topic, partition, "at")
    ORDER BY "group", topic
"""
