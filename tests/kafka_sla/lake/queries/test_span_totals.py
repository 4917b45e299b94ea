"""What a span adds up to is the same from the sums that loads keep and from their rows, whatever replaced what."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.config.store import Store
from kafka_sla.errors import DamagedFile
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.queries.span_totals import totals
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import FETCH_LATENCY, NON_CONSUMED, REPLICATION_LAG, Table
from tests.kafka_sla.loads import DAY, MINUTE, span, write

LOADS = {
    "day": (("a", "b"), span("0:00", "24:00")),
    "again": (("a", "b"), span("5:00", "6:00")),
    "now": (("a",), span("5:55", "6:00")),
    "by-hand": (("b",), span("7:02", "7:09")),
}
DAYS, MANY = timedelta(days=1), 10**9
EVERYTHING = dict.fromkeys((FETCH_LATENCY, REPLICATION_LAG, NON_CONSUMED), "SELECT * FROM totals")


@pytest.fixture
def published(store: Store, lake: Lake, ledger: Ledger) -> None:
    """Loads that replaced others, of one cluster or both, and rows with all kinds of unknowns."""
    ledger.open(writing=True)
    for load_id, (clusters, interval) in LOADS.items():
        dice = random.Random(load_id)
        files = {
            table.name: [write(lake, load_id, interval, table, _rows(dice, table, clusters, interval))]
            for table in EVERYTHING
        }
        lake.add_load(load_id, interval, files)
        ledger.publications.publish(clusters, interval, load_id, 0)


def _rows(dice: random.Random, table: Table, clusters: Sequence[str], interval: Interval) -> list[dict[str, Any]]:
    windows = [(window, cluster) for window in interval.windows(60_000) for cluster in clusters]
    return [
        {"cluster": cluster, "window_start": w.start, "window_end": w.end, **row}
        for w, cluster in windows
        if 5 <= w.start.hour < 8 or dice.random() < 0.02
        for row in _KEYS[table](dice, w)
        if dice.random() < 0.9
    ]


def _maybe(dice: random.Random, value: Any) -> Any:
    return value if dice.random() < 0.8 else None


def _pairs(dice: random.Random, _: Interval) -> list[dict[str, Any]]:
    return [
        {
            "leader": leader,
            "follower": follower,
            "fetches": _maybe(dice, dice.randrange(900)),
            "fetch_latency_ms": _maybe(dice, 10 * dice.random()),
            "fetch_latency_low_ms": dice.random(),
            "fetch_latency_high_ms": _maybe(dice, 20.0),
            "total_local_ms": _maybe(dice, dice.random()),
            "slow": _maybe(dice, dice.random() < 0.5),
            "verdict": dice.choice(["even", "slow_pair"]),
            "verdict_reason": f"weighed {dice.randrange(9)}",
        }
        for leader in (1, 2)
        for follower in ("1", "2", "consumers")
    ]


def _flows(dice: random.Random, window: Interval) -> list[dict[str, Any]]:
    return [
        {
            "flow": "a to b",
            "topic": topic,
            "partition": partition,
            "target": "b",
            "target_topic": f"a.{topic}",
            "replication_record_lag": dice.choice([0, 1_200, None] if partition else [3]),
            "refreshes": 4,
            "replication_record_lag_max": _maybe(dice, dice.randrange(9_000)),
            "stale_refreshes": 0,
            "replication_latency_ms": _maybe(dice, dice.random()),
            "last_replicated_at": _maybe(dice, window.start),
            "replication_latency_max_ms": _maybe(dice, dice.random()),
            "unknown_reason": _maybe(dice, "no refresh"),
        }
        for topic in ("orders-v2", "billing.alerts")
        for partition in range(3)
    ]


def _unread(dice: random.Random, window: Interval) -> list[dict[str, Any]]:
    return [
        {
            "group": group,
            "topic": "orders-v2",
            "partition": partition,
            "unread_records": _maybe(dice, 2**47),
            "non_consumed_low": _maybe(dice, dice.randrange(9)),
            "non_consumed_high": _maybe(dice, 2**48),
            "unread_expires_at": _maybe(dice, window.end + timedelta(hours=dice.randrange(9))),
            "unread_expires_in_ms": _maybe(dice, 1000.0 * dice.randrange(9)),
            "unknown_reason": _maybe(dice, "no poll"),
        }
        for group in ("payments-service", "billing.alerts-authorised-v2")
        for partition in range(2)
    ]


_KEYS = {FETCH_LATENCY: _pairs, REPLICATION_LAG: _flows, NON_CONSUMED: _unread}


def _found(lake: Lake, ledger: Ledger, table: Table, interval: Interval) -> list[dict[str, Any]]:
    rows, start = totals(lake, ledger, table, interval, EVERYTHING[table], MANY)
    assert start == interval.start
    return [
        {name: pytest.approx(value, 1e-9) if isinstance(value, float) else value for name, value in row.items()}
        for row in sorted(rows, key=lambda row: [str(value) for value in row.values()][:5])
    ]


@pytest.mark.usefixtures("published")
def test_kept_sums_and_rows_add_up_to_the_same(lake: Lake, ledger: Ledger) -> None:
    asked = [
        (table, interval)
        for table in EVERYTHING
        for interval in (span("0:00", "24:00"), span("5:50", "6:05"), span("6:55", "7:15"), span("5:03", "6:58"))
    ]
    kept = [_found(lake, ledger, *each) for each in asked]
    assert all(kept)
    hours, slots = (NON_CONSUMED, span("0:00", "5:00")), (NON_CONSUMED, span("6:05", "6:10"))
    with _damaged(lake.metric_files(list(LOADS), NON_CONSUMED)):
        assert _found(lake, ledger, *slots)
        lake.add_load("later", Interval(DAY + 9 * DAYS, DAY + 9 * DAYS + 5 * MINUTE), {})
        assert _found(lake, ledger, *hours)
        with pytest.raises(DamagedFile):  # slots are kept for eight days
            _found(lake, ledger, *slots)

    ledger.load_sums.drop(list(LOADS))

    assert kept == [_found(lake, ledger, *each) for each in asked]


@contextmanager
def _damaged(paths: Sequence[str]) -> Iterator[None]:
    contents = {path: Path(path).read_bytes() for path in paths}
    for path in contents:
        Path(path).write_bytes(b"damaged")
    yield
    for path, content in contents.items():
        Path(path).write_bytes(content)
