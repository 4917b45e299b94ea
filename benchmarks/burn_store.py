"""How long a run takes to judge the burn rates of many SLAs, over a real store of four days. Knows no rule."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Sla
from kafka_sla.pipeline.burn_alerts import judge_burns

END = datetime(2026, 11, 23, 10, 35, tzinfo=UTC)
_DAYS = 4
_WINDOWS = """
    INSERT INTO sla_windows (sla, cluster, window_start, window_end, verdict, is_certain, max_latency_ms,
        steady_partitions, bootstrapping_partitions, unknown_partitions, records_consumed, records_over_threshold)
    WITH RECURSIVE names(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM names WHERE n < :slas - 1),
        minutes(m) AS (SELECT 0 UNION ALL SELECT m + 1 FROM minutes WHERE m < :minutes - 1)
    SELECT printf('payments within 30 s, %04d', n), 'prod',
        strftime('%Y-%m-%d %H:%M:%S.000000', :start + 60 * m, 'unixepoch'),
        strftime('%Y-%m-%d %H:%M:%S.000000', :start + 60 * m + 60, 'unixepoch'),
        CASE WHEN (n * 7919 + m) % 3001 = 0 THEN 'bad' ELSE 'good' END, 1, 30000, 12, 0, 0, 60000, 0
    FROM names CROSS JOIN minutes
"""
_ROLLUPS = """
    INSERT INTO sla_rollups (sla, width_ms, start_at, good_ms, bad_ms, excluded_ms, unknown_ms, records_consumed,
        records_over_threshold)
    SELECT sla, :width, strftime('%Y-%m-%d %H:%M:%S.000000', unixepoch(window_start) / :s * :s, 'unixepoch') AS start,
        sum(60000 * (verdict = 'good')), sum(60000 * (verdict = 'bad')), 0, 0, sum(records_consumed), 0
    FROM sla_windows GROUP BY sla, start
"""
_ALL_BAD = "UPDATE sla_windows SET verdict = 'bad' WHERE window_start >= :since"


def seconds_of_a_run(folder: Path, slas: int, like: Sla) -> list[str]:
    """The median of five runs over the newest five minutes, on the clock and of the processor: as most runs are, and
    with a burn of every SLA that begins in the run."""
    store = Store.embedded(folder)
    ledger = Ledger(store)
    ledger.open(writing=True)
    database = str(store.url.database)
    _fill(database, slas)
    named = [replace(like, name=f"payments within 30 s, {n:04}") for n in range(slas)]
    windows = slas * _DAYS * 1_440
    found = [f"{_median(database, ledger, named)} ({windows:,} windows in the store)"]
    _do(database, _ALL_BAD, {"since": f"{END - timedelta(minutes=5):%F %T}.000000"})
    return [*found, f"{_median(database, ledger, named)} when each of them begins to burn"]


def _median(database: str, ledger: Ledger, named: list[Sla]) -> str:
    took = []
    for _ in range(5):
        _do(database, "DELETE FROM sla_burns", {})
        began, used = time.perf_counter(), time.process_time()
        judge_burns(ledger, named, Interval(END - timedelta(minutes=5), END), 60_000)
        took.append((time.perf_counter() - began, time.process_time() - used))
    clock, processor = (median(column) for column in zip(*took, strict=True))
    worst = max(used for _, used in took)
    return f"{clock:.2f} s, {processor:.2f} s of the processor (at most {worst:.2f} s)"


def _do(database: str, statement: str, values: dict[str, str]) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute(statement, values)
    connection.close()


def _fill(database: str, slas: int) -> None:
    start = int((END - timedelta(days=_DAYS)).timestamp())
    with sqlite3.connect(database) as connection:
        connection.execute(_WINDOWS, {"slas": slas, "minutes": _DAYS * 1_440, "start": start})
        for width in (300, 3_600, 86_400):
            connection.execute(_ROLLUPS, {"width": width * 1_000, "s": width})
    connection.close()
