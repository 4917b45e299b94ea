"""A miss that goes on for days: a run reads how it began and how it came to its worst, and nothing in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Miss
from kafka_sla.model.tables import CONSUMER_LATENCY, FACTS, STEADY_STATE
from kafka_sla.pipeline import steps
from kafka_sla.sla.root_cause.evidence import evidence_rows
from tests.kafka_sla.loads import DAY, MINUTE, load, metric_row, write

pytestmark = pytest.mark.slow

CONFIGURATION = """
clusters: {a: {}}
slas:
- {name: payments, cluster: a, groups: [payments, refunds], topic: orders, max_latency: 30s, for: 2m}
"""
HOUR = timedelta(hours=1)
DAYS = [Interval(DAY + n * 24 * HOUR, DAY + (n + 1) * 24 * HOUR) for n in range(3)]


def prepared(lake: Lake, folder: Path) -> Settings:
    (folder / "kafka_sla.yml").write_text(CONFIGURATION)
    lake.make_tables()
    for table in FACTS:
        lake.fact_files(table, None, DAYS[-1].end)  # makes it, as preparing a job does
    return load_settings(folder / "kafka_sla.yml")


def late(lake: Lake, ledger: Ledger, load_id: str, interval: Interval, age_ms: float) -> None:
    age = {"backlog_age_max_ms": age_ms, "backlog_age_max_low_ms": age_ms, "records_lag": 7}
    load(lake, ledger, load_id, interval, records_consumed=0, **age)


def test_a_run_reads_how_it_began_and_how_it_came_to_its_worst_and_nothing_in_between(
    lake: Lake, ledger: Ledger, store: Store, tmp_path: Path
) -> None:
    settings = prepared(lake, tmp_path)
    for n, day in enumerate(DAYS[:2]):
        late(lake, ledger, f"load{n}", day, 40_000.0)
        steps.evaluate(settings, store, "payments", day)
    evening = DAYS[2].start + 18 * HOUR
    late(lake, ledger, "load2", Interval(DAYS[2].start, evening), 40_000.0)
    late(lake, ledger, "load3", Interval(evening, DAYS[2].end), 50_000.0)
    for path in Path(lake.stage_dir("load1")).rglob("*.parquet"):
        path.write_bytes(b"damaged")

    steps.evaluate(settings, store, "payments", DAYS[2])

    (miss,) = ledger.verdicts.misses("payments")
    assert (miss.state, miss.bad_windows, miss.worst_at) == ("open", 3 * 24 * 60, evening)
    assert (miss.evidence["cause"], miss.evidence["late_partitions"]) == ("stopped", 1)
    assert miss.evidence["covers"] == [
        ["2026-03-02T00:00:00.000Z", "2026-03-02T02:00:00.000Z"],
        ["2026-03-04T14:00:00.000Z", "2026-03-04T18:00:00.000Z"],
    ]
    assert "damaged_files" not in miss.evidence
    assert ("Looked at", "", "its first 2 h and worst 4 h") in evidence_rows(miss.evidence)


def test_runs_that_continue_a_miss_say_of_it_what_one_run_over_all_of_it_says(tmp_path: Path) -> None:
    """Two groups are late by turns for nine hours, now and then neither is."""
    whole, lots = Interval(DAY, DAY + 9 * HOUR), random.Random(0)
    rows = list(flows(whole, lots))
    by_runs, at_once = (filled(tmp_path / name, whole, rows) for name in ("runs", "once"))
    start, longest = whole.start, timedelta(0)
    while start < whole.end:
        until = min(start + lots.choice((20, 30, 40)) * MINUTE, whole.end)
        judged = misses_after(*by_runs, Interval(start, until))
        if lots.random() < 0.4:
            assert judged == misses_after(*at_once, Interval(whole.start, until))
        longest = max([longest, *(until - miss.start for miss in judged if miss.end is None)])
        start = until
    assert longest > 7 * HOUR


def misses_after(settings: Settings, store: Store, interval: Interval) -> list[Miss]:
    steps.evaluate(settings, store, "payments", interval)
    return Ledger(store).verdicts.misses("payments")


def filled(folder: Path, span: Interval, rows: list[dict[str, Any]]) -> tuple[Settings, Store]:
    folder.mkdir()
    store = Store.embedded(folder)
    lake, ledger = Lake(store), Ledger(store)
    ledger.open(writing=True)
    settings = prepared(lake, folder)
    states = [
        metric_row(STEADY_STATE, "a", 0, Interval(row["window_start"], row["window_end"])) | {"group": row["group"]}
        for row in rows
    ]
    tables = {CONSUMER_LATENCY: rows, STEADY_STATE: states}
    lake.add_load("load", span, {table.name: [write(lake, "load", span, table, of)] for table, of in tables.items()})
    ledger.publications.publish(["a"], span, "load", {"a": 0})
    return settings, store


def flows(span: Interval, lots: random.Random) -> Iterator[dict[str, Any]]:
    """Rows of two groups that are late for half an hour or so, more and more, and rarely not; both are in the end."""
    for group in ("payments", "refunds"):
        left, age, end = 0, 0.0, 1_000
        for window in span.windows(60_000):
            if left == 0:
                good = lots.random() < 0.2 and window.start < span.start + HOUR
                grown = 35_000.0 + 100 * ((window.start - span.start) / MINUTE)
                left, age = lots.randint(10, 50), 0.0 if good else grown
            left, end, age = left - 1, end + 60, age and age + lots.uniform(-500, 900)
            yield metric_row(CONSUMER_LATENCY, "a", 0, window) | {
                "group": group,
                "records_consumed": lots.choice((0, 50, 60)),
                "records_lag": int(age / 1_000),
                "log_end_offset": end,
                "committed_offset": end - int(age / 1_000),
                "backlog_age_max_ms": age,
                "backlog_age_max_low_ms": age,
                "backlog_age_max_high_ms": age,
            }
