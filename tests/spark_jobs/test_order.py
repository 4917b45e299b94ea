from __future__ import annotations

from typing import Any

import pyarrow as pa

from spark_jobs.order import in_order

Event = tuple[str, str, int, str | None, int, int | None]
NAMES = ("cluster", "topic", "partition", "group", "at", "offset")
SCHEMA = pa.schema([
    ("cluster", pa.string()), ("topic", pa.string()), ("partition", pa.int32()), ("group", pa.string()),
    ("at", pa.int64()), ("offset", pa.int64()),
])  # fmt: skip


def _batch(*events: Event) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(NAMES, event, strict=True)) for event in events], SCHEMA)


def _ordered(*batches: pa.RecordBatch) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in in_order(batches) for row in batch.to_pylist()]


def test_points_come_before_the_commits_of_their_partition_and_all_by_time_and_offset() -> None:
    point, later = ("prod", "orders", 0, None, 5, 10), ("prod", "orders", 0, None, 9, 20)
    first, second, deleted = (("prod", "orders", 0, "billing", *end) for end in ((1, 3), (2, 1), (2, None)))

    assert [point, later, first, deleted, second] == _ordered(_batch(second, later, first), _batch(deleted, point))


def test_partitions_and_groups_stay_together_whatever_they_are_called() -> None:
    events = [
        ("b", "orders", 1, "x", 1, 1), ("a", "orders", 10, "x", 1, 1), ("a", "orders", 2, "y", 1, 1),
        ("a", "orders", 2, "x", 2, 2), ("a", "Orders", 7, "x", 1, 1), ("a", "orders", 2, "y", 0, 0),
    ]  # fmt: skip

    assert sorted(events) == _ordered(*[_batch(event) for event in events])


def test_a_task_without_events_has_nothing_to_sort() -> None:
    assert [] == _ordered()
    assert [] == _ordered(_batch())
