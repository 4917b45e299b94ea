"""What is too much to hold is judged, explained and added up piece by piece: the figures are those of the whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.lake import histogram_sums
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.queries import sla_stats
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import EVERYTHING, MOST, Interval
from kafka_sla.model.tables import CONSUMER_LATENCY, FACTS, STEADY_STATE
from kafka_sla.pipeline import evidence_reader, steps, verdicts
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS, SLOT_MS, unpacked_histogram
from kafka_sla.sla.windows.cells import places, unpacked_cells
from tests.kafka_sla.loads import DAY, MINUTE, metric_row, span, write

CONFIGURATION = """
clusters: {a: {}, b: {}}
slas:
- {name: payments, cluster: a, groups: [payments, refunds], topics: ["*"], max_latency: 30s, for: 2m}
- {name: others, cluster: a, group: billing, topic: invoices, max_latency: 30s}
"""
LOADS = (span("09:50", "10:00"), span("10:00", "10:07"))
FLOWS = [("payments", "orders"), ("payments", "returns"), ("refunds", "orders"), ("billing", "invoices")]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two loads of two clusters: two partitions of different flows are equally late, others are unknown or begin."""
    store = Store.embedded(tmp_path)
    lake, ledger = Lake(store), Ledger(store)
    ledger.open(writing=True)
    lake.make_tables()
    for table in FACTS:
        lake.fact_files(table, None, LOADS[-1].end)  # makes it, as preparing a job does
    for number, interval in enumerate(LOADS):
        files = {
            table.name: [write(lake, f"load{number}", interval, table, list(rows))]
            for table, rows in (
                (CONSUMER_LATENCY, latencies(interval)),
                (STEADY_STATE, (row | {"sla": sla} for sla in ("payments", "others") for row in states(interval))),
            )
        }
        lake.add_load(f"load{number}", interval, files)
        ledger.publications.publish(["a", "b"], interval, f"load{number}", {"a": 0, "b": 0})
    return store


def latencies(interval: Interval) -> Iterator[dict[str, Any]]:
    for window, minute, group, topic, partition in places_in(interval):
        late = minute >= 8 and (topic, partition) in (("orders", 1), ("returns", 0))
        age = 40_000.0 if late else 1_000.0 * (partition + 1)
        yield metric_row(CONSUMER_LATENCY, "a", partition, window) | {
            "group": group,
            "topic": topic,
            "log_end_offset": 1_000 * minute + 7 * partition,
            "latency_histogram": None if minute % 4 == 1 else [(10 + partition, MOST // 3), (400, minute + 1)],
            "records_latency_max_ms": None if minute % 3 == 0 else age - 1,
            "backlog_age_max_ms": age,
            "backlog_age_max_low_ms": age - 500,
            "backlog_age_max_high_ms": None if partition == 2 and minute > 12 else age + 500,
            "unknown_reason": "no log end" if (minute, group, partition) == (3, "refunds", 2) else None,
            "method": "bracketed",
            "polled_only": False,
        }
        yield metric_row(CONSUMER_LATENCY, "b", partition, window) | {"topic": topic, "polled_only": False}


def states(interval: Interval) -> Iterator[dict[str, Any]]:
    for window, minute, group, topic, partition in places_in(interval):
        row = metric_row(STEADY_STATE, "a", partition, window) | {"group": group, "topic": topic}
        begins = group == "refunds" and minute < 2
        yield row | ({"state": "bootstrapping", "reason": "rewind", "steady_whole_window": False} if begins else {})


def places_in(interval: Interval) -> Iterator[tuple[Interval, int, str, str, int]]:
    for window in interval.windows(60_000):
        for group, topic in FLOWS:
            for partition in range(2 if topic == "returns" else 3):
                yield window, (window.start - LOADS[0].start) // MINUTE, group, topic, partition


def evaluated(store: Store, folder: Path) -> list[Any]:
    """All that the SLAs say then, as it is stored."""
    (folder / "kafka_sla.yml").write_text(CONFIGURATION)
    settings, ledger = load_settings(folder / "kafka_sla.yml"), Ledger(store)
    for interval in LOADS:
        for sla, outcome in steps.evaluate_all(settings, store, ["payments", "others"], interval):
            assert not isinstance(outcome, Exception), (sla, outcome)
    return [
        [ledger.verdicts.windows(sla, EVERYTHING) for sla in settings.slas],
        [ledger.verdicts.misses(sla, EVERYTHING) for sla in settings.slas],
        [
            ledger.rollups.read(sla.name, width_ms, Interval(DAY, DAY + 1_440 * MINUTE))
            for sla in settings.slas
            for width_ms in (60_000, SLOT_MS, HOUR_MS, DAY_MS)
        ],
    ]


def test_pieces_say_what_the_whole_says(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluated(store, tmp_path)
    for module, name in (
        (verdicts, "ROWS_AT_ONCE"),
        (evidence_reader, "ROWS_AT_ONCE"),
        (evidence_reader, "_MANY_ROWS"),
        (sla_stats, "_ROWS_AT_ONCE"),
        (histogram_sums, "_ROWS_AT_ONCE"),
    ):
        monkeypatch.setattr(module, name, 7)

    assert evaluated(store, tmp_path) == whole

    (windows, _), (misses, _), rollups = whole
    assert {"good", "unknown", "bad"} == {w.verdict for w in windows}
    assert (windows[8].worst_group, windows[8].worst_topic, windows[8].worst_partition) == ("payments", "orders", 1)
    (miss,) = misses
    assert (miss.evidence["late_partitions"], miss.evidence["partitions"][1]) == (3, "payments returns-0")
    (day,) = rollups[3]
    buckets, counts = unpacked_histogram(day.histogram)
    assert buckets.tolist() == [10, 11, 12, 400]
    assert counts.tolist()[0] == MOST, "a count that no store keeps is cut off"
    assert counts.tolist()[3] == 8 * sum(minute + 1 for minute in range(17) if minute % 4 != 1)
    cells = unpacked_cells(day.cells)
    assert dict(zip(places(cells.head), cells.worst.tolist(), strict=True))["payments", "returns", 0] == 40_000.0
