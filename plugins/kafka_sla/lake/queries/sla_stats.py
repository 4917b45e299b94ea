"""What all partitions of an SLA did per span of time, summed up by DuckDB while it reads the published files: no row of
a partition ever becomes a Python value, and a span of a million of them fits into memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafka_sla.lake.duckdb_reader import opened, shown
from kafka_sla.lake.histogram_sums import Pair, histogram_sums
from kafka_sla.lake.iceberg import FileRows
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.publications import clipped
from kafka_sla.model.entities import Interval, Sla
from kafka_sla.model.tables import CONSUMER_LATENCY
from kafka_sla.parquet_files import verify
from kafka_sla.sla.rollups import RecordStats
from kafka_sla.sla.windows.cells import NO_CELLS, Cells, cells_of
from kafka_sla.sla.windows.wanted_rows import groups_of, latency_sql, pair_table, wanted_pairs
from kafka_sla.sql import Sql, inside, one_of
from kafka_sla.text.name_patterns import plain_names

_ROWS_AT_ONCE = 2_500_000
"""So many rows are kept without their histograms: some 50 bytes each, and as much again to sort them."""


def measured_spans(
    lake: Lake, ledger: Ledger, sla: Sla, interval: Interval, width_ms: int, window_ms: int
) -> dict[datetime, RecordStats]:
    """What was published of the SLA, by the start of each span that holds a row."""
    return spans_of_slas(lake, ledger, [sla], interval, width_ms, window_ms)[0]


def spans_of_slas(
    lake: Lake, ledger: Ledger, slas: Sequence[Sla], interval: Interval, width_ms: int, window_ms: int
) -> list[dict[datetime, RecordStats]]:
    """The same for each of these SLAs of one cluster, in little more time than one takes."""
    # The window before tells how much was produced in the first one.
    before = Interval(interval.start - timedelta(milliseconds=window_ms), interval.end)
    slices = ledger.publications.slices([slas[0].cluster], before)
    counted = lake.counted_published_files(CONSUMER_LATENCY, slices)
    files = list(counted)
    found: list[dict[datetime, RecordStats]] = [{} for _ in slas]
    if not files:
        return found
    with opened(CONSUMER_LATENCY, files, slices) as db:
        row_groups = _row_groups(db, counted, before, groups_of(slas))
        verify(files, _COLUMNS, row_groups)
        of_slas = _pairs(db, slas)
        pairs = sorted({pair for mine in of_slas for pair in mine})
        db.add(wanted=_numbered(of_slas, pairs))
        of_interval = lake.published_files(CONSUMER_LATENCY, clipped(slices, interval))
        histograms = histogram_sums(of_interval, slices, of_slas, interval, width_ms, row_groups)
        at_once = max(1, _ROWS_AT_ONCE // len(slas))
        for piece in lake.in_pieces(CONSUMER_LATENCY, interval, slas[0].cluster, width_ms, at_once):
            if any(piece.overlaps(one.interval) for one in slices):
                _add_piece(found, db, pairs, piece, histograms, width_ms, window_ms)
    return found


def _row_groups(
    db: Sql, files: Mapping[str, FileRows], span: Interval, groups: Collection[str] | None
) -> dict[str, list[int]]:
    """By file the row groups that may have rows of this time and of these groups; None: of all. Of files that have no
    others nobody asks."""
    longer = [path for path, rows in files.items() if rows.inside < rows.all]
    of_time = db.row_groups(longer, CONSUMER_LATENCY.time, inside(span))
    if groups is None:
        return of_time
    of_groups = db.row_groups(list(files), "group", one_of(groups))
    return of_groups | {
        path: [number for number in of_groups.get(path, here) if number in here] for path, here in of_time.items()
    }


def _add_piece(
    found: list[dict[datetime, RecordStats]],
    db: Sql,
    pairs: Sequence[Pair],
    piece: Interval,
    histograms: Sequence[dict[datetime, dict[int, int]]],
    width_ms: int,
    window_ms: int,
) -> None:
    db.set(start_at=piece.start, end_at=piece.end, before=piece.start - timedelta(milliseconds=window_ms))
    db.run(_OURS)
    cells = dict(_cells(db.arrow(_CELLS, width=width_ms), pairs))
    for row in db.rows(_RATES, width=width_ms):
        sla, start = row["sla"], row["start"].astimezone(UTC)
        found[sla][start] = RecordStats(
            row["consumed"], row["produced"], histograms[sla].get(start, {}), cells.get((sla, start), NO_CELLS)
        )


def _cells(rows: pa.Table, pairs: Sequence[Pair]) -> Iterator[tuple[tuple[int, datetime], Cells]]:
    """Of each SLA and span; a place is the number of a pair and that of a partition."""
    sla, start_ms, place, worst = (rows[name].to_numpy() for name in ("sla", "start_ms", "place", "worst"))
    order = np.lexsort((place, start_ms, sla))
    sla, start_ms, place, worst = sla[order], start_ms[order], place[order], worst[order]
    first = np.flatnonzero(np.diff(sla, prepend=-1) | np.diff(start_ms, prepend=-1)).tolist()
    for at, end in pairwise([*first, len(sla)]):
        start = datetime.fromtimestamp(int(start_ms[at]) / 1000, UTC)
        yield (int(sla[at]), start), _cells_of_span(place[at:end], worst[at:end], pairs)


def _cells_of_span(place: NDArray[np.int64], worst: NDArray[np.float32], pairs: Sequence[Pair]) -> Cells:
    """Of places in order."""
    first = np.flatnonzero(np.diff(place, prepend=-1))
    place, worst = place[first], np.maximum.reduceat(worst, first)
    pair, number = place >> 32, place & 0xFFFFFFFF
    bounds = [*np.flatnonzero(np.diff(pair, prepend=-1)).tolist(), len(pair)]
    return cells_of((*pairs[pair[at]], number[at:end], worst[at:end]) for at, end in pairwise(bounds))


def add_pairs(db: Sql, sla: Sla) -> None:
    """Groups and topics of the SLA, for `OF_PAIRS`."""
    db.add(pairs=pair_table(_pairs(db, [sla])[0]))


def _pairs(db: Sql, slas: Sequence[Sla]) -> list[list[Pair]]:
    """Groups and topics of each SLA: those that it names, else those that are seen in `files`."""
    named = [_named(sla) for sla in slas]
    if None not in named:
        return [pairs or [] for pairs in named]
    rows = db.rows('SELECT DISTINCT "group", topic FROM files WHERE cluster = $cluster', cluster=slas[0].cluster)
    seen = [(row["group"], row["topic"]) for row in rows]
    return [wanted_pairs(sla, seen) if pairs is None else pairs for sla, pairs in zip(slas, named, strict=True)]


def _named(sla: Sla) -> list[Pair] | None:
    if sla.chain:
        return [(stage.group, stage.topic) for stage in sla.chain]
    groups, topics = plain_names(sla.groups), plain_names(sla.topics)
    return None if groups is None or topics is None else [(group, topic) for group in groups for topic in topics]


def _numbered(of_slas: Sequence[Sequence[Pair]], pairs: Sequence[Pair]) -> pa.Table:
    """The pairs of each SLA, with the place of the SLA, of the pair in `pairs`, and of its topic."""
    number = {pair: n for n, pair in enumerate(pairs)}
    of_topic = {topic: n for n, topic in enumerate(sorted({topic for _, topic in pairs}))}
    rows = [(sla, *pair, number[pair], of_topic[pair[1]]) for sla, mine in enumerate(of_slas) for pair in set(mine)]
    return (
        pa.table([pa.array(column) for column in zip(*rows, strict=True)], _WANTED) if rows else _WANTED.empty_table()
    )


_WANTED = pa.schema(
    [
        ("sla", pa.int64()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("pair", pa.int64()),
        ("topic_number", pa.int64()),
    ]
)
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
_OURS = f"""
    CREATE OR REPLACE TEMP TABLE ours AS
    SELECT sla, pair << 32 | partition AS place, topic_number << 32 | partition AS log, window_start, window_end,
        records_consumed, log_end_offset, {latency_sql()}::FLOAT AS worst
    FROM files {shown("window_start")}
    JOIN wanted ON wanted."group" = files."group" AND wanted.topic = files.topic
    WHERE window_start >= getvariable('before') AND window_start < getvariable('end_at')
"""
_INSIDE = "window_start >= getvariable('start_at')"
_START_MS = "(epoch_ms(window_start) // $width * $width)::BIGINT"
_START = f"make_timestamptz({_START_MS} * 1000)"
_CELLS = f"SELECT sla, {_START_MS} AS start_ms, place, worst FROM ours WHERE {_INSIDE} AND worst IS NOT NULL"
# Several groups see one log: its end counts once. A log end that falls belongs to a recreated topic and tells no rate;
# neither does a step over windows that were not published, for what was produced in them is not of the window after.
_RATES = f"""
    WITH ends AS (
        SELECT sla, log, window_start, max(window_end) AS window_end, max(log_end_offset) AS log_end
        FROM ours GROUP BY ALL
    ), steps AS (
        SELECT sla, window_start,
            CASE WHEN lag(window_end) OVER w = window_start THEN log_end - lag(log_end) OVER w END AS produced
        FROM ends
        WINDOW w AS (PARTITION BY sla, log ORDER BY window_start)
    ), produced AS (
        SELECT sla, {_START} AS start, TRY_CAST(sum(produced) FILTER (produced >= 0) AS BIGINT) AS produced
        FROM steps WHERE {_INSIDE} GROUP BY ALL
    ), consumed AS (
        SELECT sla, {_START} AS start, TRY_CAST(sum(records_consumed) AS BIGINT) AS consumed
        FROM ours WHERE {_INSIDE} GROUP BY ALL
    )
    SELECT sla, start, consumed, produced FROM consumed LEFT JOIN produced USING (sla, start) ORDER BY start
"""
