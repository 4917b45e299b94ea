"""Histograms of published rows added up by span, straight from their files."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kafka_sla.errors import DamagedFile
from kafka_sla.files import write_rows
from kafka_sla.lake.histogram_sums import histogram_sums
from kafka_sla.ledger.publications import Slice
from kafka_sla.model.arrow_schemas import arrow_rows, of_load
from kafka_sla.model.entities import MOST, Interval
from kafka_sla.model.tables import CONSUMER_LATENCY

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = Interval(NOON, NOON + timedelta(hours=1))
OURS = [[("payments", "orders")]]


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


def row(number: int, histogram: dict[int, int] | None, **changes: Any) -> dict[str, Any]:
    return {
        "cluster": "prod",
        "group": "payments",
        "topic": "orders",
        "partition": 0,
        "window_start": minute(number),
        "window_end": minute(number + 1),
        "records_consumed": 0,
        "latency_histogram": None if histogram is None else list(histogram.items()),
        "negative_latency_records": 0,
        "unknown_latency_records": 0,
        "polled_only": False,
    } | changes


def written(folder: Path, rows: list[dict[str, Any]], load_id: str = "one") -> str:
    path = f"{folder}/{load_id}.parquet"
    write_rows(path, of_load(CONSUMER_LATENCY, arrow_rows(CONSUMER_LATENCY, rows), load_id, NOON))
    return path


def test_rows_add_up_by_span_and_bucket(tmp_path: Path) -> None:
    rows = [row(0, {3: 2, 900: 1}), row(4, {3: 5}, partition=1), row(5, {7: 1}), row(6, None)]
    files = [written(tmp_path, rows)]

    (sums,) = histogram_sums(files, [Slice("prod", HOUR, "one")], OURS, HOUR, 300_000, {})

    assert sums == {minute(0): {3: 7, 900: 1}, minute(5): {7: 1}}


def test_only_what_is_published_wanted_and_inside_counts(tmp_path: Path) -> None:
    strangers = [
        row(1, {3: 100}, cluster="test"),
        row(1, {3: 100}, group="billing"),
        row(1, {3: 100}, topic="refunds"),
        row(-1, {3: 100}),
        row(60, {3: 100}),
    ]
    files = [
        written(tmp_path, [row(1, {3: 1}), row(30, {3: 100}), *strangers]),
        written(tmp_path, [row(1, {3: 100}), row(30, {4: 2})], "two"),
    ]
    half = minute(30)
    slices = [
        Slice("prod", Interval(NOON - timedelta(hours=1), half), "one"),
        Slice("prod", Interval(half, HOUR.end), "two"),
    ]

    (sums,) = histogram_sums(files, slices, OURS, HOUR, 60_000, {})

    assert sums == {minute(1): {3: 1}, half: {4: 2}}


def test_each_sla_has_what_is_its_own_and_all_what_they_share(tmp_path: Path) -> None:
    rows = [row(0, {3: 1}), row(0, {3: 10}, group="billing"), row(1, {7: 100}, topic="refunds")]
    files = [written(tmp_path, rows), written(tmp_path, [row(5, {3: 1_000}, group="billing")], "two")]
    orders, billing, refunds = ("payments", "orders"), ("billing", "orders"), ("payments", "refunds")
    slices = [Slice("prod", Interval(NOON, minute(5)), "one"), Slice("prod", Interval(minute(5), HOUR.end), "two")]

    sums = histogram_sums(files, slices, [[orders], [orders, billing, refunds], [billing], []], HOUR, 300_000, {})

    assert sums == [
        {NOON: {3: 1}},
        {NOON: {3: 11, 7: 100}, minute(5): {3: 1_000}},
        {NOON: {3: 10}, minute(5): {3: 1_000}},
        {},
    ]


def test_files_side_by_side_add_up_to_the_same_in_any_order(tmp_path: Path) -> None:
    """Each has other spans and other buckets than those before it."""
    lots = random.Random(7)
    rows = [row(lots.randrange(60), {lots.randrange(n + 1): 1, 500 + n: 2}) for n in range(40)]
    files = [written(tmp_path, [one], f"load{n}") for n, one in enumerate(rows)]
    slices = [Slice("prod", HOUR, f"load{n}") for n in range(len(rows))]
    expected: dict[datetime, Counter[int]] = defaultdict(Counter)
    for one in rows:
        expected[one["window_start"]].update(dict(one["latency_histogram"]))

    for _ in range(10):
        lots.shuffle(files)
        assert histogram_sums(files, slices, OURS, HOUR, 60_000, {}) == [expected]


def test_more_records_than_any_store_keeps_are_cut_off(tmp_path: Path) -> None:
    most = row(0, {3: MOST, 4: MOST // 2, 5: 2**32 - 1})
    files = [written(tmp_path, [most, row(1, {3: MOST, 4: 1, 5: 1})])]

    (sums,) = histogram_sums(files, [Slice("prod", HOUR, "one")], OURS, HOUR, 300_000, {})

    assert sums == {NOON: {3: MOST, 4: MOST // 2 + 1, 5: 2**32}}


def test_a_damaged_histogram_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path, [row(number, {number * 7: 10**9 + number}) for number in range(60)])
    columns = pq.read_metadata(path).row_group(0).to_dict()["columns"]
    counts = next(column for column in columns if column["path_in_schema"].endswith("key_value.value"))
    content = bytearray(Path(path).read_bytes())
    content[counts["dictionary_page_offset"] + counts["total_compressed_size"] - 2] ^= 0xFF  # of its last page
    Path(path).write_bytes(content)

    with pytest.raises(DamagedFile):
        histogram_sums([path], [Slice("prod", HOUR, "one")], OURS, HOUR, 300_000, {})
