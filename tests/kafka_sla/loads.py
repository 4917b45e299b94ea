"""Times, facts and staged loads that the store's tests are told with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import CONSUMER_LATENCY, LOG_OFFSETS, STEADY_STATE, Table

DAY = datetime(2026, 3, 2, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def at(clock: str) -> datetime:
    """A time of the day, or of the one after from 24:00 on."""
    hours, minutes = clock.split(":")
    return DAY + timedelta(hours=int(hours), minutes=int(minutes))


def span(start: str, end: str) -> Interval:
    return Interval(at(start), at(end))


def changed_since(ledger: Ledger, cluster: str, seq: int, before: datetime) -> bool:
    """Have facts older than `before` landed after number `seq`? Then not all that a publication saw may be carried
    over."""
    ledger.publications.publish([cluster], Interval(DAY, before), f"{before:%H:%M} {seq}", seq)
    carried = ledger.publications.carry(cluster, before)
    return carried is None or carried[0] < before


def points(*clocks: str, cluster: str = "a", source: str = "list_offsets", partition: int = 0) -> pa.Table:
    """One point of the produced timeline each; the offset is the minute of the day."""
    rows = [
        {
            "cluster": cluster,
            "topic": "orders",
            "partition": partition,
            "at": at(clock),
            "log_end_offset": int((at(clock) - DAY) / MINUTE),
            "source": source,
        }
        for clock in clocks
    ]
    return arrow_rows(LOG_OFFSETS, rows)


def stage(
    lake: Lake, load_id: str, interval: Interval, clusters: Sequence[str] = ("a",), partitions: int = 1, **figures: Any
) -> dict[str, list[str]]:
    """Files of both metric tables as Spark would write them; `records_consumed` is the minute of the day, unless the
    `figures` of consumer_latency say otherwise."""
    files = {}
    for table in (CONSUMER_LATENCY, STEADY_STATE):
        rows = [
            metric_row(table, cluster, partition, window) | (figures if table is CONSUMER_LATENCY else {})
            for cluster in clusters
            for window in interval.windows(60_000)
            for partition in range(partitions)
        ]
        files[table.name] = [write(lake, load_id, interval, table, rows)]
    return files


def load(
    lake: Lake,
    ledger: Ledger,
    load_id: str,
    interval: Interval,
    clusters: Sequence[str] = ("a",),
    partitions: int = 1,
    **figures: Any,
) -> None:
    """A load measured, added and published."""
    ledger.open(writing=True)
    lake.add_load(load_id, interval, stage(lake, load_id, interval, clusters, partitions, **figures))
    ledger.publications.publish(
        clusters, interval, load_id, {cluster: ledger.ingestions.readable_seq(cluster) for cluster in clusters}
    )


def metric_row(table: Table, cluster: str, partition: int, window: Interval) -> dict[str, Any]:
    minute = int((window.start - DAY) / MINUTE)
    row: dict[str, Any] = {
        "cluster": cluster,
        "group": "payments",
        "topic": "orders",
        "partition": partition,
        "window_start": window.start,
        "window_end": window.end,
    }
    if table is CONSUMER_LATENCY:
        return row | {
            "records_consumed": minute,
            "latency_histogram": [(35, 3), (70, minute)],
            "negative_latency_records": 0,
            "unknown_latency_records": 0,
        }
    return row | {
        "sla": "payments",
        "state": "steady",
        "since": window.start,
        "reason": "caught_up",
        "steady_whole_window": True,
        "records_due": 0,
        "records_late": 0,
        "records_late_low": 0,
        "records_late_high": 0,
    }


def write(lake: Lake, load_id: str, interval: Interval, table: Table, rows: list[dict[str, Any]]) -> str:
    flags = {c.name: False for c in table.columns if c.type == "BOOLEAN" and not c.nullable}
    filled = arrow_rows(table, [flags | row for row in rows])
    start = pa.array([interval.start] * len(rows), pa.timestamp("us", "UTC"))
    filled = filled.append_column("interval_start", start).append_column("load_id", pa.array([load_id] * len(rows)))
    folder = Path(lake.stage_dir(load_id)) / table.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "part-00000.parquet"
    pq.write_table(filled, path)
    return str(path)
