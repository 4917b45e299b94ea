"""A small world for the pages: days of published rows of two clusters, judged by the real pipeline, with a promise in
every state that a page must tell apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafka_sla import pipeline
from kafka_sla.arrow import arrow_rows, arrow_schema
from kafka_sla.lake import Lake
from kafka_sla.ledger import Ledger
from kafka_sla.model import Interval
from kafka_sla.settings import load_settings
from kafka_sla.store import Store
from kafka_sla.tables import CONSUMER_LATENCY, GROUP_STATES, LATENCY_BUCKET_GAMMA, STEADY_STATE, Table

HOSTILE = "<script>alert('x')</script>"
CONFIGURATION = f"""
clusters:
  prod: {{}}
  dr: {{}}
defaults: {{objective: 99.9%, period: month, cluster: prod}}
slas:
  - {{name: payments within 30 seconds, group: payments, topic: payments, max_latency: 30s, for: 2m, team: Payments,
     description: Card payments are booked while the customer waits.}}
  - {{name: orders within 5 minutes, group: orders, topic: orders, max_latency: 5m, for: 5m, team: Orders,
     objective: 99%}}
  - {{name: billing by night, group: billing, topic: payments, max_latency: 10m, period: quarter, team: Payments,
     maintenance: [{{from: 2020-01-01, to: 2040-01-01, reason: migration of the ledger}}]}}
  - {{name: search index, cluster: dr, group: search, topic: clicks, max_latency: 1m, team: Search}}
  - {{name: clicks in Berlin, cluster: dr, group: clicks, topic: clicks, max_latency: 20s, for: 1m, team: Search,
     time_zone: Europe/Berlin, period: week}}
  - {{name: "{HOSTILE}", cluster: dr, group: "{HOSTILE}", topic: clicks, max_latency: 1m, team: "{HOSTILE}"}}
"""
MINUTE = timedelta(minutes=1)
Wave = Mapping[tuple[str, str], list[tuple[int, int, float]]]
"""Group and topic: minutes before the end from and to, and how many times as late as usual at the peak."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A group that reads a topic: partitions, usual latency, records per second and partition."""

    cluster: str
    group: str
    topic: str
    partitions: int
    usual_ms: float
    per_second: float


FLOWS = (
    Flow("prod", "payments", "payments", 6, 2_500, 40),
    Flow("prod", "orders", "orders", 12, 25_000, 8),
    Flow("prod", "billing", "payments", 6, 60_000, 40),
    Flow("dr", "clicks", "clicks", 8, 1_500, 200),
    Flow("dr", HOSTILE, "clicks", 8, 4_000, 200),
)
WAVES: Wave = {
    ("payments", "payments"): [(3_200, 3_150, 300.0), (700, 660, 400.0), (110, 100, 60.0)],
    ("orders", "orders"): [(40, -10, 60.0)],
    ("clicks", "clicks"): [(500, 480, 40.0), (300, 296, 60.0)],
}
UNPUBLISHED = (150, 130)
"""Minutes before the end in which nothing of the cluster dr was published."""


def build(folder: Path, end: datetime, length: timedelta) -> tuple[Path, Store]:
    """The configuration file and the store, published for `length` until `end`, a whole minute."""
    config, store = folder / "kafka_sla.yml", Store.embedded(folder / "store")
    folder.mkdir(parents=True, exist_ok=True)
    config.write_text(CONFIGURATION)
    settings, lake, ledger = load_settings(config), Lake(store), Ledger(store)
    start = end - length
    for number, (cluster, interval) in enumerate(_loads(start, end)):
        _publish(lake, ledger, f"load{number:04}", cluster, interval, end)
    _snapshots(lake, max(start, end - timedelta(hours=12)), end)
    for sla in settings.slas:
        pipeline.evaluate(settings, store, sla.name, Interval(start, end))
    _validation(ledger, Interval(end - timedelta(minutes=5), end))
    return config, store


def _loads(start: datetime, end: datetime) -> Iterable[tuple[str, Interval]]:
    yield "prod", Interval(start, end)
    gap, after = (end - minutes * MINUTE for minutes in UNPUBLISHED)
    if start < gap:
        yield "dr", Interval(start, gap)
    yield "dr", Interval(max(start, after), end)


def _publish(lake: Lake, ledger: Ledger, load_id: str, cluster: str, interval: Interval, end: datetime) -> None:
    files = {}
    for table in (CONSUMER_LATENCY, STEADY_STATE):
        parts = [rows(table, flow, interval, end) for flow in FLOWS if flow.cluster == cluster]
        files[table.name] = [write(lake, load_id, interval, table, pa.concat_tables(parts))]
    lake.add_load(load_id, interval, files)
    ledger.publish([cluster], interval, load_id, ledger.facts_seq(cluster))


def write(lake: Lake, load_id: str, interval: Interval, table: Table, found: pa.Table) -> str:
    """A file of a load, as Spark would write it."""
    start = pa.array([interval.start] * len(found), pa.timestamp("us", "UTC"))
    found = found.append_column("interval_start", start).append_column("load_id", pa.array([load_id] * len(found)))
    path = Path(lake.stage_dir(load_id)) / table.name / "part-00000.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(found, path)
    return str(path)


def rows(table: Table, flow: Flow, interval: Interval, end: datetime) -> pa.Table:
    """Rows of one flow, by partition and minute."""
    minutes = int((interval.end - interval.start) / MINUTE)
    starts = np.array([interval.start.replace(tzinfo=None) + i * MINUTE for i in range(minutes)], "datetime64[us]")
    before_end = np.array([int((end - interval.start) / MINUTE) - i for i in range(minutes)])
    count = minutes * flow.partitions
    columns: dict[str, Any] = {
        "cluster": [flow.cluster] * count, "group": [flow.group] * count, "topic": [flow.topic] * count,
        "partition": np.repeat(np.arange(flow.partitions, dtype=np.int32), minutes),
        "window_start": _times(np.tile(starts, flow.partitions)),
        "window_end": _times(np.tile(starts + np.timedelta64(60, "s"), flow.partitions)),
    }  # fmt: skip
    columns |= _latency(flow, before_end) if table is CONSUMER_LATENCY else _steady(flow, starts, count)
    schema = arrow_schema(table)
    return pa.table(
        {f.name: pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(count, f.type) for f in schema},
        schema=pa.schema([f.with_nullable(True) for f in schema]),
    ).cast(schema)


def _latency(flow: Flow, before_end: Any) -> dict[str, Any]:
    dice = np.random.default_rng(len(flow.group) * 1_000 + len(before_end))
    shape = (flow.partitions, len(before_end))
    day = 1 + 0.5 * np.sin(before_end / 1_440 * 2 * np.pi)
    worst = flow.usual_ms * day * dice.lognormal(0, 0.25, shape)
    for first, last, times in WAVES.get((flow.group, flow.topic), []):
        middle, half = (first + last) / 2, (first - last) / 2
        hump = np.clip(1 - ((before_end - middle) / half) ** 2, 0, None)
        worst *= 1 + (times - 1) * hump * np.linspace(1, 0.2, flow.partitions)[:, None]
    records = np.round(flow.per_second * 60 * day * dice.lognormal(0, 0.1, shape)).astype(np.int64)
    late = worst > 20 * flow.usual_ms
    consumed = np.where(late, records // 20, records).ravel()
    ends = np.cumsum(records, axis=1)
    worst = worst.ravel()
    backlog = worst * 0.8
    return {
        "records_consumed": consumed, "latency_histogram": _histograms(worst, consumed),
        "records_latency_max_ms": worst, "records_latency_max_low_ms": worst * 0.93,
        "records_latency_max_high_ms": worst * 1.06,
        "records_latency_ms": worst * 0.7, "records_latency_avg_ms": worst * 0.5,
        "backlog_age_ms": backlog, "backlog_age_low_ms": backlog * 0.9, "backlog_age_high_ms": backlog,
        "backlog_age_max_ms": backlog, "backlog_age_max_low_ms": backlog * 0.9, "backlog_age_max_high_ms": backlog,
        "negative_latency_records": np.zeros_like(consumed), "unknown_latency_records": np.zeros_like(consumed),
        "records_lag": np.where(late.ravel(), records.ravel() * 5, records.ravel() // 30),
        "log_end_offset": ends.ravel(), "method": ["bracketed"] * len(worst),
    }  # fmt: skip


def _histograms(worst: Any, consumed: Any) -> pa.Array:
    """Half of the records at a fifth of the worst latency, most of the rest at half of it, a few at the worst."""
    shares, depths = np.array([0.5, 0.44, 0.05, 0.01]), np.array([0.2, 0.5, 0.8, 0.99])
    buckets = np.ceil(np.log(worst[:, None] * depths) / np.log(LATENCY_BUCKET_GAMMA)).astype(np.int32)
    counts = np.maximum(1, consumed[:, None] * shares).astype(np.int64)
    offsets = np.arange(0, 4 * len(worst) + 1, 4, dtype=np.int32)
    return pa.MapArray.from_arrays(offsets, pa.array(buckets.ravel()), pa.array(counts.ravel()))


def _steady(flow: Flow, starts: Any, count: int) -> dict[str, Any]:
    names = {"payments": "payments within 30 seconds", "orders": "orders within 5 minutes",
             "billing": "billing by night", "clicks": "clicks in Berlin", HOSTILE: HOSTILE}  # fmt: skip
    return {
        "sla": [names[flow.group]] * count, "state": ["steady"] * count, "since": _times(np.repeat(starts[:1], count)),
        "reason": ["caught_up"] * count, "steady_throughout": [True] * count,
        "records_over": np.zeros(count, dtype=np.int64),
    }  # fmt: skip


def _times(values: Any) -> pa.Array:
    return pa.array(values).cast(pa.timestamp("us", "UTC"))


def _snapshots(lake: Lake, start: datetime, end: datetime) -> None:
    ticks = range(1, int((end - start) / (5 * MINUTE)) + 1)
    seen = [
        {"cluster": "prod", "group": "payments", "at": start + 5 * i * MINUTE, "type": "classic", "state": "Stable",
         "members": 3} for i in ticks
    ]  # fmt: skip
    lake.land({GROUP_STATES.name: arrow_rows(GROUP_STATES, seen)})


def _validation(ledger: Ledger, interval: Interval) -> None:
    about = {"load_id": "load0000", "interval_start": interval.start, "interval_end": interval.end}
    results = [
        {**about, "table_name": table, "expectation_id": f"{table}-{i}", "expectation": words, "severity": severity,
         "success": ok, "observed": None if ok else "3 of 17,280 rows", "unexpected_rows": None if ok else 3}
        for table in ("consumer_latency", "steady_state")
        for i, (words, severity, ok) in enumerate(
            [("Every row is of the load's interval", "critical", True),
             ("Low bounds are not above high bounds", "warning", table == "steady_state"),
             ("Every group of an SLA is there", "info", True)])
    ]  # fmt: skip
    broken = {**about, "table_name": "consumer_latency", "expectation_id": "consumer_latency-1", "severity": "warning"}
    quarantine = [{**broken, "row": f'{{"group": "{HOSTILE}", "partition": {i}}}'} for i in range(3)]
    ledger.store_validation(results, quarantine)


def whole_minute() -> datetime:
    """Now, so that what was built is news."""
    return datetime.now(UTC).replace(second=0, microsecond=0)
