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

from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.files import write_text
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.arrow_schemas import arrow_rows, arrow_schema
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import (
    CONSUMER_LATENCY,
    CONSUMER_STATUS,
    FETCH_LATENCY,
    GROUP_MEMBERS,
    GROUP_STATES,
    LATENCY_BUCKET_GAMMA,
    NON_CONSUMED,
    REPLICATION_LAG,
    STEADY_STATE,
    TOPIC_CONFIGS,
    Table,
)
from kafka_sla.pipeline import steps
from kafka_sla.reporting.archive import archive_path
from kafka_sla.reporting.digest_schedule import period_of

HOSTILE = "<script>alert('x')</script>"
CONFIGURATION = f"""
clusters:
  prod: {{}}
  dr: {{}}
defaults: {{objective: 99.9%, period: month, cluster: prod}}
slas:
  - {{name: payments within 30 seconds, group: payments-service, topic: payments, max_latency: 30s, for: 2m,
     team: Payments,
     description: Card payments are booked while the customer waits.}}
  - {{name: orders within 5 minutes, group: orders, topic: orders, max_latency: 5m, for: 5m, team: Orders,
     objective: 99%, burn_alerts: workbook}}
  - {{name: billing by night, group: billing.alerts-authorised-v2, topic: payments, max_latency: 10m,
     period: quarter, team: Payments,
     maintenance: [{{from: 2020-01-01, to: 2040-01-01, reason: migration of the ledger}}]}}
  - {{name: search index, cluster: dr, group: 'search-index.*', topic: clicks, max_latency: 1m, team: Search}}
  - {{name: clicks in Berlin, cluster: dr, group: clicks.sessionizer, topic: clicks, max_latency: 20s, for: 1m,
     team: Search,
     time_zone: Europe/Berlin, period: week}}
  - {{name: "{HOSTILE}", cluster: dr, group: "{HOSTILE}", topic: clicks, max_latency: 1m, team: "{HOSTILE}",
     objective: 99%, objective_of: records, period: 28d}}
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
    Flow("prod", "payments-service", "payments", 6, 2_500, 40),
    Flow("prod", "orders", "orders", 12, 25_000, 8),
    Flow("prod", "billing.alerts-authorised-v2", "payments", 6, 60_000, 40),
    Flow("dr", "clicks.sessionizer", "clicks", 8, 1_500, 200),
    Flow("dr", HOSTILE, "clicks", 8, 4_000, 200),
)
WAVES: Wave = {
    ("payments-service", "payments"): [(3_200, 3_150, 300.0), (700, 660, 400.0), (110, 100, 60.0)],
    ("orders", "orders"): [(40, -10, 60.0)],
    ("clicks.sessionizer", "clicks"): [(500, 480, 40.0), (300, 296, 60.0)],
}
SPREAD = ((0.5, 0.2), (0.44, 0.5), (0.05, 0.8), (0.01, 0.99))
"""Share of a window's records, and how late they are of its worst latency."""
UNPUBLISHED = (150, 130)
"""Minutes before the end in which nothing of the cluster dr was published."""


def build(folder: Path, end: datetime, length: timedelta) -> tuple[Path, Store]:
    """The configuration file and the store, published for `length` until `end`, a whole minute."""
    config, store = folder / "kafka_sla.yml", Store.embedded(folder / "store")
    folder.mkdir(parents=True, exist_ok=True)
    config.write_text(CONFIGURATION)
    settings, lake, ledger = load_settings(config), Lake(store), Ledger(store)
    ledger.open(writing=True)
    start = end - length
    for number, (cluster, interval) in enumerate(_loads(start, end)):
        _publish(lake, ledger, f"load{number:04}", cluster, interval, end)
    _snapshots(lake, max(start, end - timedelta(hours=12)), end)
    for sla in settings.slas:
        steps.evaluate(settings, store, sla.name, Interval(start, end))
    _validation(ledger, Interval(end - timedelta(minutes=5), end))
    return config, store


def _loads(start: datetime, end: datetime) -> Iterable[tuple[str, Interval]]:
    yield "prod", Interval(start, end)
    gap, after = (end - minutes * MINUTE for minutes in UNPUBLISHED)
    if start < gap:
        yield "dr", Interval(start, gap)
    yield "dr", Interval(max(start, after), end)


BESIDE = 180
"""Minutes of the newest time with brokers, replication, unread records and consumer status."""


def _beside(lake: Lake, load_id: str, cluster: str, interval: Interval, end: datetime) -> dict[str, list[str]]:
    """Rows of the other metrics: broker 2 is slow, one topic is not copied any more, clicks are about to expire."""
    recent = Interval(max(interval.start, end - BESIDE * MINUTE), interval.end)
    windows = list(recent.windows(60_000))
    pairs = [(leader, follower) for leader in (1, 2, 3) for follower in ("1", "2", "3", "consumers")]
    prod = cluster == "prod"
    made: dict[Table, list[dict[str, Any]]] = {
        FETCH_LATENCY: [_pair(cluster, *p, w) for w in windows for p in pairs if prod and p[1] != str(p[0])],
        REPLICATION_LAG: [_copy(cluster, topic, w) for w in windows for topic in ("payments", "orders") if prod],
        NON_CONSUMED: [_left(f, w) for w in windows for f in FLOWS if f.cluster == cluster],
        CONSUMER_STATUS: [
            _status(f, p, w, end) for w in windows for f in FLOWS if f.cluster == cluster for p in range(f.partitions)
        ],
    }
    return {
        table.name: [write(lake, load_id, interval, table, arrow_rows(table, found))]
        for table, found in made.items()
        if found
    }


def _pair(cluster: str, leader: int, follower: str, window: Interval) -> dict[str, Any]:
    slow = 2 in (leader, int(follower) if follower.isdigit() else 0)
    latency = 104.0 if slow else 3.2
    return _timed(
        window,
        cluster=cluster,
        leader=leader,
        follower=follower,
        fetches=600,
        fetch_latency_ms=latency,
        fetch_latency_low_ms=latency * 0.9,
        fetch_latency_high_ms=latency * 1.1,
        total_local_ms=0.4,
        slow=slow,
        verdict="slow_broker",
        verdict_broker=2,
        verdict_reason="Broker 2 is slow: 104 ms with every other, 3.2 ms among the others",
    )


def _copy(cluster: str, topic: str, window: Interval) -> dict[str, Any]:
    lag = 0 if topic == "payments" else 12_400
    return _timed(
        window,
        cluster=cluster,
        flow="prod to dr",
        topic=topic,
        partition=0,
        target="dr",
        target_topic=f"prod.{topic}",
        replication_record_lag=lag,
        replication_record_lag_max=lag + 300,
        replication_record_lag_min=lag,
        replication_record_lag_avg=float(lag),
        refreshes=4,
        stale_refreshes=0,
        last_replicated_at=window.start,
        replication_latency_ms=800.0,
        replication_latency_max_ms=1_900.0,
    )


def _left(flow: Flow, window: Interval) -> dict[str, Any]:
    lost = flow.group == "orders"
    hours = 5 if flow.group == "clicks.sessionizer" else 100
    return _timed(
        window,
        cluster=flow.cluster,
        group=flow.group,
        topic=flow.topic,
        partition=0,
        non_consumed_low=3 if lost else 0,
        non_consumed_high=5 if lost else 0,
        unread_records=1_200,
        unread_expires_at=window.end + timedelta(hours=hours),
        unread_expires_in_ms=hours * 3.6e6,
        cleanup_policy="delete",
    )


def _status(flow: Flow, partition: int, window: Interval, end: datetime) -> dict[str, Any]:
    late = flow.group == "orders" and end - window.start < 35 * MINUTE
    status = ("STOPPED" if partition == 0 else "WARNING") if late else "OK"
    return _timed(
        window,
        cluster=flow.cluster,
        group=flow.group,
        topic=flow.topic,
        partition=partition,
        status=status,
        complete=1.0,
        group_status="ERROR" if late else "OK",
        group_complete=1.0,
        reason="by the rules",
        lag=0,
        last_commit_at=window.start,
        last_seen_at=window.end,
        polled_only=False,
        commit_times=[],
        commit_offsets=[],
        commit_lags=[],
    )


def _timed(window: Interval, **values: Any) -> dict[str, Any]:
    return {"window_start": window.start, "window_end": window.end, **values}


def _publish(lake: Lake, ledger: Ledger, load_id: str, cluster: str, interval: Interval, end: datetime) -> None:
    files: dict[str, list[str]] = {}
    for table in (CONSUMER_LATENCY, STEADY_STATE):
        parts = [rows(table, flow, interval, end) for flow in FLOWS if flow.cluster == cluster]
        files[table.name] = [write(lake, load_id, interval, table, pa.concat_tables(parts))]
    lake.add_load(load_id, interval, files | _beside(lake, load_id, cluster, interval, end))
    ledger.publications.publish([cluster], interval, load_id, ledger.ingestions.readable_seq(cluster))


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
        "cluster": [flow.cluster] * count,
        "group": [flow.group] * count,
        "topic": [flow.topic] * count,
        "partition": np.repeat(np.arange(flow.partitions, dtype=np.int32), minutes),
        "window_start": _times(np.tile(starts, flow.partitions)),
        "window_end": _times(np.tile(starts + np.timedelta64(60, "s"), flow.partitions)),
    }
    columns |= _latency(flow, before_end) if table is CONSUMER_LATENCY else _steady(flow, starts, before_end)
    columns = _unset(table, count) | columns
    schema = arrow_schema(table)
    return pa.table(
        {f.name: pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(count, f.type) for f in schema},
        schema=pa.schema([f.with_nullable(True) for f in schema]),
    ).cast(schema)


def _unset(table: Table, count: int) -> dict[str, Any]:
    """Flags that every row must have."""
    return {c.name: [False] * count for c in table.columns if c.type == "BOOLEAN" and not c.nullable}


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
    lags = np.where(late, records * 5, records // 30)
    committed = np.maximum.accumulate(np.maximum(ends - lags, 0), axis=1)  # no commit goes back
    worst = worst.ravel()
    backlog = worst * 0.8
    return {
        "records_consumed": consumed,
        "latency_histogram": _histograms(worst, consumed),
        "records_latency_max_ms": worst,
        "records_latency_max_low_ms": worst * 0.93,
        "records_latency_max_high_ms": worst * 1.06,
        "records_latency_ms": worst * 0.7,
        "records_latency_avg_ms": worst * 0.5,
        "backlog_age_ms": backlog,
        "backlog_age_low_ms": backlog * 0.9,
        "backlog_age_high_ms": backlog,
        "backlog_age_max_ms": backlog,
        "backlog_age_max_low_ms": backlog * 0.9,
        "backlog_age_max_high_ms": backlog,
        "negative_latency_records": np.zeros_like(consumed),
        "unknown_latency_records": np.zeros_like(consumed),
        "committed_offset": committed.ravel(),
        "records_lag": (ends - committed).ravel(),
        "log_end_offset": ends.ravel(),
        "method": ["bracketed"] * len(worst),
    }


def _histograms(worst: Any, consumed: Any) -> pa.Array:
    shares, depths = np.array(SPREAD).T
    buckets = np.ceil(np.log(worst[:, None] * depths) / np.log(LATENCY_BUCKET_GAMMA)).astype(np.int32)
    counts = np.maximum(1, consumed[:, None] * shares).astype(np.int64)
    offsets = np.arange(0, 4 * len(worst) + 1, 4, dtype=np.int32)
    return pa.MapArray.from_arrays(offsets, pa.array(buckets.ravel()), pa.array(counts.ravel()))


def _steady(flow: Flow, starts: Any, before_end: Any) -> dict[str, Any]:
    promised = {
        "payments-service": ("payments within 30 seconds", 30_000),
        "orders": ("orders within 5 minutes", 300_000),
        "billing.alerts-authorised-v2": ("billing by night", 600_000),
        "clicks.sessionizer": ("clicks in Berlin", 20_000),
        HOSTILE: (HOSTILE, 60_000),
    }
    name, within_ms = promised[flow.group]
    latency = _latency(flow, before_end)
    worst, consumed = latency["records_latency_max_ms"], latency["records_consumed"]
    count = len(worst)
    late = sum((consumed * s * (worst * d > within_ms) for s, d in SPREAD)).astype(np.int64)
    return {
        "sla": [name] * count,
        "state": ["steady"] * count,
        "since": _times(np.repeat(starts[:1], count)),
        "reason": ["caught_up"] * count,
        "steady_whole_window": [True] * count,
        "records_due": consumed,
        "records_late": late,
        "records_late_low": late,
        "records_late_high": np.minimum(late + consumed // 1000, consumed),
    }


def _times(values: Any) -> pa.Array:
    return pa.array(values).cast(pa.timestamp("us", "UTC"))


MEMBERS = (
    ("payments-service", "payments", "payments-1", "10.0.4.11", [0, 1]),
    ("payments-service", "payments", "payments-2", "10.0.4.12", [2, 3]),
    ("payments-service", "payments", "payments-3", "10.0.4.13", [4, 5]),
    ("orders", "orders", "orders-1", "10.0.5.21", [0, 1, 2, 3, 4, 5]),
    ("orders", "orders", "orders-2", "10.0.5.22", [6, 7, 8, 9, 10]),
    ("orders", "orders", HOSTILE, HOSTILE, []),
)
"""Who reads which partitions from where; nobody reads orders-11."""


def _snapshots(lake: Lake, start: datetime, end: datetime) -> None:
    ticks = range(1, int((end - start) / (5 * MINUTE)) + 1)
    seen = [
        {
            "cluster": "prod",
            "group": "payments-service",
            "at": start + 5 * i * MINUTE,
            "type": "classic",
            "state": "Stable",
            "members": 3,
        }
        for i in ticks
    ]
    members = [
        {
            "cluster": "prod",
            "group": group,
            "member": f"{client}-8f0c",
            "topic": topic if read else "",
            "at": at["at"],
            "client": client,
            "host": host,
            "partitions": read,
        }
        for at in seen
        for group, topic, client, host, read in MEMBERS
    ]
    configs = [
        {
            "cluster": "prod",
            "topic": topic,
            "at": at["at"],
            "topic_id": topic,
            "partitions": count,
            "cleanup_policy": "delete",
            "message_timestamp_type": "CreateTime",
            "leaders": [1 + partition % 3 for partition in range(count)],
        }
        for at in seen
        for topic, count in (("payments", 6), ("orders", 12))
    ]
    lake.land(
        {
            GROUP_STATES.name: arrow_rows(GROUP_STATES, seen),
            GROUP_MEMBERS.name: arrow_rows(GROUP_MEMBERS, members),
            TOPIC_CONFIGS.name: arrow_rows(TOPIC_CONFIGS, configs),
        }
    )


def _validation(ledger: Ledger, interval: Interval) -> None:
    about = {"load_id": "load0000", "interval_start": interval.start, "interval_end": interval.end}
    results = [
        {
            **about,
            "table_name": table,
            "expectation_id": f"{table}-{i}",
            "expectation": words,
            "severity": severity,
            "success": ok,
            "observed": None if ok else "3 of 17,280 rows",
            "unexpected_rows": None if ok else 3,
        }
        for table in ("consumer_latency", "steady_state")
        for i, (words, severity, ok) in enumerate(
            [
                ("Every row is of the load's interval", "critical", True),
                ("Low bounds are not above high bounds", "warning", table == "steady_state"),
                ("Every group of an SLA is there", "info", True),
            ]
        )
    ]
    broken = {**about, "table_name": "consumer_latency", "expectation_id": "consumer_latency-1", "severity": "warning"}
    quarantine = [{**broken, "row": f'{{"group": "{HOSTILE}", "partition": {i}}}'} for i in range(3)]
    ledger.validations.store(results, quarantine)


DIGESTS = f"""
digests:
  - {{name: "Payments, weekly", every: week, time_zone: Europe/Berlin, team: Payments, recipients: [lead@example.com]}}
  - {{name: "{HOSTILE}", every: day}}
"""
EVIL = "<!DOCTYPE html><title>Evil</title><script>document.title = 'ran'; parent.document.title = 'ran'</script><p>Evil"


def archive(config: Path, store: Store) -> None:
    """Two digests, with pages of two periods; and a page of one that is configured no more, made by somebody bad."""
    config.write_text(config.read_text() + DIGESTS)
    for digest in load_settings(config).digests:
        for day in (datetime(2026, 3, 4, tzinfo=UTC), datetime(2026, 3, 11, tzinfo=UTC)):
            told = f"<!DOCTYPE html><title>Digest</title><p>A digest of {period_of(digest, day)}."
            write_text(archive_path(store, digest, period_of(digest, day)), told)
    write_text(f"{store.archive}/Gone/month-20260201T0000Z.html", EVIL)
    write_text(f"{store.archive}/Gone/notes.txt", "no digest wrote this")


def whole_minute() -> datetime:
    """Now, so that what was built is news."""
    return datetime.now(UTC).replace(second=0, microsecond=0)
