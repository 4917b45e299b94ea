from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafka_sla.spark_jobs.events import run_lengths
from kafka_sla.spark_jobs.events.layouts import CERTAIN, COMMITS, LAYOUTS, LOOKED_UP, POINTS, POLLED
from kafka_sla.spark_jobs.numeric.arrays import NONE

HOUR_US = 3_600_000_000
LARGEST = 2**63 - 1


def _commit(at: int, offset: int | None, group: str = "billing", **other: Any) -> dict[str, Any]:
    key = {"cluster": "prod", "topic": "orders.v2-eu", "partition": 3, "group": group}
    return {**key, "at": at, "offset": offset, "flags": CERTAIN, "invalid": 0, **other}


def _again(kind: str, rows: list[dict[str, Any]]) -> tuple[list[int], list[dict[str, Any]]]:
    """How many events each run has, and what is told of all of them but their keys."""
    packed = run_lengths.packed(pa.Table.from_pylist(rows, LAYOUTS[kind]))
    return run_lengths.count(packed).tolist(), run_lengths.unpacked(packed).to_pylist()


def _told(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{name: NONE if row[name] is None else row[name] for name in names} for row in rows]


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ([], []),
        ([_commit(1, 5)], [1]),
        ([_commit(1, 5), _commit(2, 9), _commit(HOUR_US // 2, 9, flags=POLLED)], [3]),
        ([_commit(9, 5), _commit(2, 9), _commit(2, 3, invalid=2)], [3]),
        ([_commit(1, 5), _commit(1, 5, "audit"), _commit(2, 6)], [1, 1, 1]),
        ([_commit(1, 5), _commit(HOUR_US, 6), _commit(HOUR_US + 1, 7)], [1, 2]),
        ([_commit(1, 7), _commit(2, None), _commit(3, 0)], [3]),
        ([_commit(1, 2**40), _commit(2, None), _commit(3, 2**40), _commit(4, 2**40 + 1)], [1, 1, 2]),
        ([_commit(1, 2**31 - 1), _commit(2, 0), _commit(3, 2**31)], [2, 1]),
        ([_commit(-HOUR_US, LARGEST), _commit(1, None), _commit(2, LARGEST)], [1, 1, 1]),
    ],
)
def test_commits_come_out_of_their_runs_as_they_went_in(rows: list[dict[str, Any]], count: list[int]) -> None:
    assert (count, _told(rows, "at", "offset", "flags", "invalid")) == _again(COMMITS, rows)


def test_a_run_has_no_events_of_another_partition_and_every_column_of_its_own() -> None:
    rows = [
        {"cluster": "prod", "topic": topic, "partition": partition, "at": at, "offset": 2 * at, "log_start": start}
        | {"flags": LOOKED_UP if start is None else POLLED}
        for topic, partition in (("orders", 0), ("orders", 1), ("clicks", 1))
        for at, start in ((1, 0), (2, None), (3, 1))
    ]

    packed = run_lengths.packed(pa.Table.from_pylist(rows, LAYOUTS[POINTS]))

    assert [("orders", 0), ("orders", 1), ("clicks", 1)] == [
        (row["topic"], row["partition"]) for row in packed.select(["topic", "partition"]).to_pylist()
    ]
    assert _told(rows, "at", "offset", "log_start", "flags") == run_lengths.unpacked(packed).to_pylist()
    assert (
        _told(rows[3:6], "at", "offset", "log_start", "flags") == run_lengths.unpacked(packed.slice(1, 1)).to_pylist()
    )
