"""What all partitions of an SLA did per span of time, summed up by DuckDB while it reads the published files: no row of
a partition ever becomes a Python value, and a span of a million of them fits into memory. Knows no verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafka_sla.lake.duckdb_reader import opened, shown
from kafka_sla.lake.histogram_sums import histogram_sums
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Sla
from kafka_sla.model.tables import CONSUMER_LATENCY
from kafka_sla.parquet_files import verify
from kafka_sla.sla.rollups import RecordStats
from kafka_sla.sla.windows.cells import NO_CELLS, Cells, cells_of
from kafka_sla.sla.windows.wanted_rows import groups_of, latency_sql, pair_table, wanted_pairs
from kafka_sla.sql import Sql
from kafka_sla.text.name_patterns import plain_names

_ROWS_AT_ONCE = 2_500_000
"""So many rows are kept without their histograms: some 50 bytes each, and as much again to sort them."""
Pair = tuple[str, str]
"""Group and topic."""


def measured_spans(
    lake: Lake, ledger: Ledger, sla: Sla, interval: Interval, width_ms: int, window_ms: int
) -> dict[datetime, RecordStats]:
    """What was published of the SLA, by the start of each span that holds a row."""
    # The window before tells how much was produced in the first one.
    before = Interval(interval.start - timedelta(milliseconds=window_ms), interval.end)
    slices = ledger.publications.slices([sla.cluster], before)
    files = lake.published_files(CONSUMER_LATENCY, slices)
    if not files:
        return {}
    found: dict[datetime, RecordStats] = {}
    with opened(CONSUMER_LATENCY, files, slices) as db:
        groups = groups_of([sla])
        row_groups = {} if groups is None else db.row_groups(files, "group", groups)
        verify(files, _COLUMNS, row_groups)
        add_pairs(db, sla)
        db.run(_NUMBERED)
        pairs = [(row["group"], row["topic"]) for row in db.rows("SELECT * FROM numbered ORDER BY pair")]
        histograms = histogram_sums(files, slices, set(pairs), interval, width_ms, row_groups)
        for piece in lake.in_pieces(CONSUMER_LATENCY, interval, sla.cluster, width_ms, _ROWS_AT_ONCE):
            if any(piece.overlaps(one.interval) for one in slices):
                found |= _of_piece(db, pairs, piece, histograms, width_ms, window_ms)
    return found


def _of_piece(
    db: Sql,
    pairs: Sequence[Pair],
    piece: Interval,
    histograms: dict[datetime, dict[int, int]],
    width_ms: int,
    window_ms: int,
) -> dict[datetime, RecordStats]:
    db.set(start_at=piece.start, end_at=piece.end, before=piece.start - timedelta(milliseconds=window_ms))
    db.run(_OURS)
    cells = dict(_cells(db.arrow(_CELLS, width=width_ms), pairs))
    rates = [row | {"start": row["start"].astimezone(UTC)} for row in db.rows(_RATES, width=width_ms)]
    return {
        row["start"]: RecordStats(
            row["consumed"],
            row["produced"],
            histograms.get(row["start"], {}),
            cells.get(row["start"], NO_CELLS),
        )
        for row in rates
    }


def _cells(rows: pa.Table, pairs: Sequence[Pair]) -> Iterator[tuple[datetime, Cells]]:
    """Of each span; a place is the number of a pair and that of a partition."""
    starts, place, worst = rows["start_ms"].to_numpy(), rows["place"].to_numpy(), rows["worst"].to_numpy()
    for start_ms in np.unique(starts).tolist():
        mine = starts == start_ms
        yield datetime.fromtimestamp(start_ms / 1000, UTC), _cells_of_span(place[mine], worst[mine], pairs)


def _cells_of_span(place: NDArray[np.int64], worst: NDArray[np.float32], pairs: Sequence[Pair]) -> Cells:
    order = np.argsort(place)
    place, worst = place[order], worst[order]
    first = np.flatnonzero(np.diff(place, prepend=-1))
    place, worst = place[first], np.maximum.reduceat(worst, first)
    pair, number = place >> 32, place & 0xFFFFFFFF
    bounds = [*np.flatnonzero(np.diff(pair, prepend=-1)).tolist(), len(pair)]
    return cells_of((*pairs[pair[at]], number[at:end], worst[at:end]) for at, end in pairwise(bounds))


def add_pairs(db: Sql, sla: Sla) -> None:
    """Groups and topics of the SLA, for `OF_PAIRS`: those that it names, else those that are seen in `files`."""
    groups, topics = plain_names(sla.groups), plain_names(sla.topics)
    if sla.chain:
        pairs = [(stage.group, stage.topic) for stage in sla.chain]
    elif groups is not None and topics is not None:
        pairs = [(group, topic) for group in groups for topic in topics]
    else:
        seen = db.rows('SELECT DISTINCT "group", topic FROM files WHERE cluster = $cluster', cluster=sla.cluster)
        pairs = sorted(wanted_pairs(sla, [(row["group"], row["topic"]) for row in seen]))
    db.add(pairs=pair_table(pairs))


_COLUMNS = (
    "cluster",
    "group",
    "topic",
    "partition",
    "window_start",
    "window_end",
    "load_id",
    "records_consumed",
    "log_end_offset",
    "records_latency_max_ms",
    "backlog_age_max_ms",
)
OF_PAIRS = 'SEMI JOIN pairs ON pairs."group" = files."group" AND pairs.topic = files.topic'
_NUMBERED = """
    CREATE TEMP TABLE numbered AS
    SELECT *, row_number() OVER (ORDER BY "group", topic) - 1 AS pair,
        dense_rank() OVER (ORDER BY topic) AS topic_number
    FROM (SELECT DISTINCT "group", topic FROM pairs)
"""
_OURS = f"""
    CREATE OR REPLACE TEMP TABLE ours AS
    SELECT pair << 32 | partition AS place, topic_number << 32 | partition AS log, window_start, window_end,
        records_consumed, log_end_offset, {latency_sql()}::FLOAT AS worst
    FROM files {shown("window_start")}
    JOIN numbered ON numbered."group" = files."group" AND numbered.topic = files.topic
    WHERE window_start >= getvariable('before') AND window_start < getvariable('end_at')
"""
_INSIDE = "window_start >= getvariable('start_at')"
_START_MS = "(epoch_ms(window_start) // $width * $width)::BIGINT"
_START = f"make_timestamptz({_START_MS} * 1000)"
_CELLS = f"SELECT {_START_MS} AS start_ms, place, worst FROM ours WHERE {_INSIDE} AND worst IS NOT NULL"
# Several groups see one log: its end counts once. A log end that falls belongs to a recreated topic and tells no rate;
# neither does a step over windows that were not published, for what was produced in them is not of the window after.
_RATES = f"""
    WITH ends AS (
        SELECT log, window_start, max(window_end) AS window_end, max(log_end_offset) AS log_end
        FROM ours GROUP BY ALL
    ), steps AS (
        SELECT window_start,
            CASE WHEN lag(window_end) OVER w = window_start THEN log_end - lag(log_end) OVER w END AS produced
        FROM ends
        WINDOW w AS (PARTITION BY log ORDER BY window_start)
    ), produced AS (
        SELECT {_START} AS start, TRY_CAST(sum(produced) FILTER (produced >= 0) AS BIGINT) AS produced
        FROM steps WHERE {_INSIDE} GROUP BY ALL
    ), consumed AS (
        SELECT {_START} AS start, TRY_CAST(sum(records_consumed) AS BIGINT) AS consumed
        FROM ours WHERE {_INSIDE} GROUP BY ALL
    )
    SELECT start, consumed, produced FROM consumed LEFT JOIN produced USING (start) ORDER BY start
"""
