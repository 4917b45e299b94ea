"""What the pages show beside latency, for two days, made by SQL in bulk: brokers, replication, unread records, consumer
status, members and leaders. Measures nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import duckdb

from kafka_sla.config.store import Store
from kafka_sla.lake.iceberg import Iceberg
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.load_sums import sums_of_load
from kafka_sla.lake.table_layout import LOADS, MAIN
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import (
    CONSUMER_STATUS,
    FETCH_LATENCY,
    GROUP_MEMBERS,
    NON_CONSUMED,
    REPLICATION_LAG,
    TOPIC_CONFIGS,
    Table,
)

BROKERS, FLOW_TOPICS = 9, 100
"""Brokers that fetch from each other; topics that one flow copies."""
Load = tuple[str, Interval]


def metrics(store: Store, loads: Sequence[Load], slas: int, partitions: int) -> None:
    """Rows of each minute of these loads, a file a load and table, as Spark leaves them."""
    files: dict[str, dict[str, list[str]]] = {load_id: {} for load_id, _ in loads}
    lake, sizes = Lake(store), {"slas": slas, "partitions": partitions, "brokers": BROKERS, "copied": FLOW_TOPICS}
    for table, rows in _METRICS.items():
        with duckdb.connect() as db:
            db.execute("SET TimeZone = 'UTC'")
            for load_id, span in loads:
                path = Path(lake.stage_dir(load_id)) / table.name / "part-00000.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                minutes = int((span.end - span.start) / timedelta(minutes=1))
                db.execute(
                    _COPY.format(rows=rows.format(minutes=minutes, **sizes), load=load_id, path=path),
                    {"start": span.start},
                )
                files[load_id][table.name] = [str(path)]
        add(store, table, [path for mine in files.values() for path in mine[table.name]], LOADS)
    ledger = Ledger(store)
    for load_id, span in loads:
        ledger.load_sums.put(load_id, sums_of_load(load_id, span, files[load_id]))


def facts(store: Store, until: datetime, groups: int, slas: int, partitions: int) -> None:
    """What a snapshot each five minutes saw of members and leaders, a file a day, as maintenance leaves it."""
    sizes = {"groups": groups, "slas": slas, "partitions": partitions, "brokers": BROKERS}
    for table, rows in _FACTS.items():
        paths = []
        for day in range(2):
            path = Path(store.warehouse) / "facts" / table.name / f"{day}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            start = until.replace(hour=0, minute=0) - timedelta(days=day)
            with duckdb.connect() as db:
                db.execute("SET TimeZone = 'UTC'")
                made = rows.format(snapshots=int((min(until, start + timedelta(days=1)) - start) / FIVE), **sizes)
                db.execute(f"COPY ({made}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)", {"start": start})
            paths.append(str(path))
        add(store, table, paths, MAIN)


def add(store: Store, table: Table, paths: list[str], branch: str) -> None:
    """The files as rows of a table: of facts on its main branch, of metrics where loads wait to be shown."""
    Iceberg(store, Ledger(store).open).commit(
        table, lambda _, change: change.add_files(paths, check_duplicate_files=False, branch=branch)
    )


FIVE = timedelta(minutes=5)
_COPY = """
    COPY (SELECT *, $start AS interval_start, '{load}' AS load_id FROM ({rows}))
    TO '{path}' (FORMAT parquet, COMPRESSION snappy)
"""
_WINDOW = """
    $start + to_minutes(m.range::BIGINT) AS window_start, $start + to_minutes(m.range::BIGINT + 1) AS window_end
"""
_GROUP_PARTITION = """
    'prod' AS cluster, printf('group-%03d', g.range) AS "group", printf('topic-%03d', g.range) AS topic,
    p.range::INT AS partition
"""
_EACH = "FROM range({slas}) g, range({partitions}) p, range({minutes}) m ORDER BY g.range, p.range, m.range"
_METRICS = {
    FETCH_LATENCY: f"""
        SELECT 'prod' AS cluster, l.range::INT AS leader,
            CASE WHEN f.range = l.range THEN 'consumers' ELSE f.range::VARCHAR END AS follower, {_WINDOW},
            600::BIGINT AS fetches, (3 + hash(l.range, f.range, m.range) % 5)::DOUBLE AS fetch_latency_ms,
            2.5::DOUBLE AS fetch_latency_low_ms, 9.0::DOUBLE AS fetch_latency_high_ms, 0.4::DOUBLE AS total_local_ms,
            false AS slow, 'even' AS verdict, 'All pairs are alike' AS verdict_reason
        FROM range({{brokers}}) l, range({{brokers}}) f, range({{minutes}}) m ORDER BY m.range, l.range, f.range
    """,
    REPLICATION_LAG: f"""
        SELECT 'prod' AS cluster, 'prod->dr' AS flow, printf('topic-%03d', g.range) AS topic,
            p.range::INT AS partition, {_WINDOW}, 'dr' AS target, printf('prod.topic-%03d', g.range) AS target_topic,
            (hash(g.range, m.range) % 300)::BIGINT AS replication_record_lag,
            400::BIGINT AS replication_record_lag_max, 4::INT AS refreshes, 0::INT AS stale_refreshes,
            $start + to_minutes(m.range::BIGINT) AS last_replicated_at, 800.0::DOUBLE AS replication_latency_ms,
            1900.0::DOUBLE AS replication_latency_max_ms, NULL::VARCHAR AS unknown_reason
        FROM range({{copied}}) g, range({{partitions}}) p, range({{minutes}}) m ORDER BY g.range, p.range, m.range
    """,
    NON_CONSUMED: f"""
        SELECT {_GROUP_PARTITION}, {_WINDOW}, 0::BIGINT AS non_consumed_low, 0::BIGINT AS non_consumed_high,
            (hash(g.range, p.range, m.range) % 2000)::BIGINT AS unread_records,
            $start + to_hours(100) AS unread_expires_at, 3.6e8::DOUBLE AS unread_expires_in_ms,
            'delete' AS cleanup_policy, NULL::VARCHAR AS unknown_reason
        {_EACH}
    """,
    CONSUMER_STATUS: f"""
        SELECT {_GROUP_PARTITION}, {_WINDOW}, 'OK' AS status, 1.0::DOUBLE AS complete, 'OK' AS group_status,
            1.0::DOUBLE AS group_complete, 'by the rules' AS reason, 20::BIGINT AS lag,
            $start + to_minutes(m.range::BIGINT) AS last_commit_at, false AS polled_only
        {_EACH}
    """,
}
_AT = '$start + to_minutes(5 * t.range::BIGINT) AS "at"'
_FACTS = {
    GROUP_MEMBERS: f"""
        SELECT 'prod' AS cluster, printf('group-%03d', g.range) AS "group",
            printf('group-%03d-%d-8f0c', g.range, c.range) AS member, printf('topic-%03d', g.range) AS topic, {_AT},
            printf('group-%03d-%d', g.range, c.range) AS client, printf('10.0.%d.%d', g.range % 250, c.range) AS host,
            range(c.range * {{partitions}} // 3, (c.range + 1) * {{partitions}} // 3) AS partitions
        FROM range({{snapshots}}) t, range({{groups}}) g, range(3) c ORDER BY t.range, g.range
    """,
    TOPIC_CONFIGS: f"""
        SELECT 'prod' AS cluster, printf('topic-%03d', g.range) AS topic, {_AT}, {{partitions}}::INT AS partitions,
            'delete' AS cleanup_policy, 'CreateTime' AS message_timestamp_type,
            [p % {{brokers}} FOR p IN range({{partitions}})] AS leaders
        FROM range({{snapshots}}) t, range({{slas}}) g ORDER BY t.range, g.range
    """,
}
