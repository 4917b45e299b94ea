"""Rows of brokers, replication and unread records added up by key and span, in a form that adds up further: sums of a
window, a slot and a day have the same columns. Knows neither store nor publication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from kafka_sla.lake.duckdb_reader import opened, quoted
from kafka_sla.ledger.load_sums import Piece
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import FETCH_LATENCY, NON_CONSUMED, REPLICATION_LAG, TABLES, Table
from kafka_sla.parquet_files import verify
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS, SLOT_MS, whole_spans
from kafka_sla.sql import Sql

WIDTHS = (DAY_MS, HOUR_MS, SLOT_MS)
"""Widest first, each a multiple of the next."""


@dataclass(frozen=True, slots=True)
class Summed:
    """How a table adds up by key: `window` over the rows of one window, `further` over such sums. In both, the struct
    `newest` is what the newest window said."""

    keys: tuple[str, ...]
    reads: tuple[str, ...]
    window: str
    further: str

    def of_windows(self, tail: str = "") -> str:
        """SQL: the sums of each key and window of the view `files`."""
        keys = quoted(self.keys, "files.")
        return (
            f"SELECT {keys}, window_start AS newest_at, {self.window} FROM files {tail} GROUP BY {keys}, window_start"
        )

    def of_spans(self, source: str, width_ms: int | None = None) -> str:
        """SQL: sums added up by key; also by spans of a width, in order, whose starts are in `start_ms`."""
        keys = quoted(self.keys)
        by = f"epoch_ms(newest_at) // {width_ms} * {width_ms} AS start_ms, " if width_ms else ""
        further = f"arg_max(newest, newest_at) AS newest, {self.further}, max(newest_at) AS newest_at"
        return f"SELECT {by}{keys}, {further} FROM {source} GROUP BY ALL" + (" ORDER BY 1" if by else "")


def sums_of_load(load_id: str, interval: Interval, files: Mapping[str, Sequence[str]]) -> dict[str, dict[Piece, bytes]]:
    """What these files of a load add up to, by table, in each slot, hour and day that lies in its interval."""
    return {name: _sums_of_table(load_id, TABLES[name], files.get(name, ()), interval) for name in SUMMED}


def _sums_of_table(load_id: str, table: Table, files: Sequence[str], interval: Interval) -> dict[Piece, bytes]:
    found = {
        Piece(load_id, width, span.start): b""
        for width in WIDTHS
        if (whole := whole_spans(interval, width))
        for span in whole.windows(width)
    }
    if files and found:
        summed = SUMMED[table.name]
        verify(files, (*summed.keys, *summed.reads, table.time))
        with opened(table, files, []) as db:
            for width, sums in _by_width(db, summed, {piece.width_ms for piece in found}):
                spans = {Piece(load_id, width, start): rows for start, rows in _by_start(sums)}
                found |= {piece: _packed(rows) for piece, rows in spans.items() if piece in found}
    return found


def sums_of_rows(
    table: Table, files: Sequence[str], slices: Sequence[tuple[str, Interval, str]], tail: str
) -> pa.Table:
    """What the rows of these slices add up to."""
    summed = SUMMED[table.name]
    with opened(table, files, slices) as db:
        return db.arrow(summed.of_spans(f"({summed.of_windows(tail)})"))


def unpacked(packed: bytes) -> pa.Table | None:
    """One of `sums_of_load`; None where there was no row."""
    return pa.ipc.open_stream(packed).read_all() if packed else None


def _packed(sums: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, sums.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(sums.combine_chunks())
    return bytes(sink.getvalue())


def _by_width(db: Sql, summed: Summed, widths: set[int]) -> Iterator[tuple[int, pa.Table]]:
    """The narrowest first: wider ones are added up from them."""
    source = f"({summed.of_windows()})"
    for width in reversed(WIDTHS):
        if width in widths:
            sums = db.arrow(summed.of_spans(source, width))
            yield width, sums
            db.add(**{f"sums_{width}": sums})
            source = f"sums_{width}"


def _by_start(sums: pa.Table) -> Iterator[tuple[datetime, pa.Table]]:
    """The sums of each span; they are in the order of their starts."""
    counts = sums["start_ms"].value_counts().to_pylist()
    rows, at = sums.drop_columns("start_ms"), 0
    for each in counts:
        yield datetime.fromtimestamp(each["values"] / 1000, UTC), rows.slice(at, each["counts"])
        at += each["counts"]


def _sum(name: str) -> str:
    """Without an end: a BIGINT would overflow."""
    return f"CAST(sum({name}) AS DECIMAL(38, 0)) AS {name}"


SUMMED = {
    FETCH_LATENCY.name: Summed(
        ("cluster", "leader", "follower"),
        (
            "fetches",
            "fetch_latency_ms",
            "fetch_latency_low_ms",
            "fetch_latency_high_ms",
            "total_local_ms",
            "slow",
            "verdict",
            "verdict_reason",
        ),
        f"""
        any_value({{'low_ms': fetch_latency_low_ms, 'high_ms': fetch_latency_high_ms, 'verdict': verdict,
            'verdict_reason': verdict_reason}}) AS newest,
        {_sum("fetches")}, max(fetch_latency_ms) AS worst_latency_ms,
        sum(fetch_latency_ms * fetches) AS latency_sum,
        sum(fetches) FILTER (fetch_latency_ms IS NOT NULL)::DOUBLE AS latency_fetches,
        sum(total_local_ms * fetches) AS local_sum,
        sum(fetches) FILTER (total_local_ms IS NOT NULL)::DOUBLE AS local_fetches,
        count(*) FILTER (slow) AS slow_windows, count(*) AS windows
        """,
        f"""
        {_sum("fetches")}, max(worst_latency_ms) AS worst_latency_ms, sum(latency_sum) AS latency_sum,
        sum(latency_fetches) AS latency_fetches, sum(local_sum) AS local_sum, sum(local_fetches) AS local_fetches,
        sum(slow_windows)::BIGINT AS slow_windows, sum(windows)::BIGINT AS windows
        """,
    ),
    REPLICATION_LAG.name: Summed(
        ("cluster", "flow", "target", "topic"),
        (
            "target_topic",
            "partition",
            "replication_record_lag",
            "replication_record_lag_max",
            "replication_latency_ms",
            "replication_latency_max_ms",
            "last_replicated_at",
            "unknown_reason",
        ),
        """
        {'lag': CASE WHEN count(replication_record_lag) = count(*)
                THEN TRY_CAST(sum(replication_record_lag) AS BIGINT) END,
            'latency_ms': max(replication_latency_ms), 'unknown_reason': min(unknown_reason)} AS newest,
        max(target_topic) AS target_topic, list(partition) AS partitions,
        max(replication_record_lag_max) AS worst_lag, max(replication_latency_max_ms) AS worst_latency_ms,
        max(last_replicated_at) AS last_replicated_at
        """,
        """
        max(target_topic) AS target_topic, list_sort(list_distinct(flatten(list(partitions)))) AS partitions,
        max(worst_lag) AS worst_lag, max(worst_latency_ms) AS worst_latency_ms,
        max(last_replicated_at) AS last_replicated_at
        """,
    ),
    NON_CONSUMED.name: Summed(
        ("cluster", "group", "topic"),
        (
            "non_consumed_low",
            "non_consumed_high",
            "unread_records",
            "unread_expires_at",
            "unread_expires_in_ms",
            "unknown_reason",
        ),
        f"""
        {{'unread': TRY_CAST(sum(unread_records) AS BIGINT), 'expires_at': min(unread_expires_at),
            'expires_in_ms': min(unread_expires_in_ms), 'unknown_reason': min(unknown_reason)}} AS newest,
        {_sum("non_consumed_low")}, {_sum("non_consumed_high")}
        """,
        f"{_sum('non_consumed_low')}, {_sum('non_consumed_high')}",
    ),
}
"""The tables whose loads are added up."""
