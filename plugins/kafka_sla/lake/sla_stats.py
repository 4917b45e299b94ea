"""What all partitions of an SLA did per span of time, summed up by DuckDB while it reads the published files: no row of
a partition ever becomes a Python value. Knows no verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from kafka_sla.lake.duckdb_reader import opened, shown
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.publications import Slice
from kafka_sla.model.entities import MOST, Interval, Sla
from kafka_sla.model.tables import CONSUMER_LATENCY
from kafka_sla.parquet_files import verify
from kafka_sla.sla.rollups import PartitionKey, RecordStats
from kafka_sla.sla.wanted_rows import groups_of, latency_sql, pair_table, wanted_pairs
from kafka_sla.sql import Sql
from kafka_sla.text.name_patterns import plain_names


@dataclass(frozen=True, slots=True)
class _Rows:
    histogram: list[dict[str, Any]]
    cells: list[dict[str, Any]]
    rates: list[dict[str, Any]]


def measured_spans(
    lake: Lake, ledger: Ledger, sla: Sla, interval: Interval, width_ms: int, window_ms: int
) -> dict[datetime, RecordStats]:
    """What was published of the SLA, by the start of each span that holds a row."""
    # The window before tells how much was produced in the first one.
    before = Interval(interval.start - timedelta(milliseconds=window_ms), interval.end)
    rows = _rows(lake, sla, interval, width_ms, ledger.publications.slices([sla.cluster], before))
    histograms: dict[datetime, dict[int, int]] = defaultdict(dict)
    cells: dict[datetime, dict[PartitionKey, float]] = defaultdict(dict)
    for row in rows.histogram:
        histograms[row["start"]][row["bucket"]] = row["records"]
    for row in rows.cells:
        cells[row["start"]][row["group"], row["topic"], row["partition"]] = row["worst"]
    return {
        row["start"].astimezone(UTC): RecordStats(
            row["consumed"], row["produced"], histograms[row["start"]], cells[row["start"]]
        )
        for row in rows.rates
    }


def _rows(lake: Lake, sla: Sla, interval: Interval, width_ms: int, slices: Sequence[Slice]) -> _Rows:
    files = lake.published_files(CONSUMER_LATENCY, slices)
    if not files:
        return _Rows([], [], [])
    with opened(CONSUMER_LATENCY, files, slices) as db:
        groups = groups_of([sla])
        verify(files, _COLUMNS, None if groups is None else db.row_groups(files, "group", groups))
        add_pairs(db, sla)
        values = {"start_at": interval.start, "end_at": interval.end, "width": width_ms}
        db.run(f"CREATE TEMP TABLE ours AS SELECT {_FIGURES} {_OF_SLA}")
        return _Rows(*(db.rows(query, **values) for query in (_HISTOGRAM, _CELLS, _RATES)))


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
    "latency_histogram",
)
OF_PAIRS = 'SEMI JOIN pairs ON pairs."group" = files."group" AND pairs.topic = files.topic'
_OF_SLA = f"FROM files {shown('window_start')} {OF_PAIRS}"
# Histograms are read apart: kept in a table they would take most of its time, and gigabytes.
_FIGURES = f"""
    files."group", files.topic, partition, window_start, window_end, records_consumed, log_end_offset,
    {latency_sql()} AS worst
"""
_INSIDE = "window_start >= $start_at AND window_start < $end_at"
_START = "make_timestamptz((epoch_ms(window_start) // $width * $width * 1000)::BIGINT)"
_HISTOGRAM = f"""
    SELECT start, bucket, coalesce(TRY_CAST(sum(records) AS BIGINT), {MOST}) AS records
    FROM (
        SELECT {_START} AS start, unnest(map_keys(latency_histogram)) AS bucket,
            unnest(map_values(latency_histogram)) AS records
        {_OF_SLA} WHERE {_INSIDE}
    )
    GROUP BY ALL
"""
_CELLS = f"""
    SELECT {_START} AS start, "group", topic, partition, max(worst) AS worst
    FROM ours WHERE {_INSIDE} AND worst IS NOT NULL GROUP BY ALL
"""
# Several groups see one log: its end counts once. A log end that falls belongs to a recreated topic and tells no rate;
# neither does a step over windows that were not published, for what was produced in them is not of the window after.
_RATES = f"""
    WITH ends AS (
        SELECT topic, partition, window_start, max(window_end) AS window_end, max(log_end_offset) AS log_end
        FROM ours GROUP BY ALL
    ), steps AS (
        SELECT window_start,
            CASE WHEN lag(window_end) OVER w = window_start THEN log_end - lag(log_end) OVER w END AS produced
        FROM ends
        WINDOW w AS (PARTITION BY topic, partition ORDER BY window_start)
    ), produced AS (
        SELECT {_START} AS start, TRY_CAST(sum(produced) FILTER (produced >= 0) AS BIGINT) AS produced
        FROM steps WHERE {_INSIDE} GROUP BY ALL
    ), consumed AS (
        SELECT {_START} AS start, TRY_CAST(sum(records_consumed) AS BIGINT) AS consumed
        FROM ours WHERE {_INSIDE} GROUP BY ALL
    )
    SELECT start, consumed, produced FROM consumed LEFT JOIN produced USING (start) ORDER BY start
"""
