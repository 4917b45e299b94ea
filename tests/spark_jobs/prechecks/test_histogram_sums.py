from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafka_sla.spark_jobs.prechecks.histogram_sums import Histograms

SCHEMA = pa.schema(
    [
        ("histogram", pa.map_(pa.int32(), pa.int64())),
        ("negative", pa.int64()),
        ("unknown", pa.int64()),
        ("consumed", pa.int64()),
    ]
)
GOOD: list[dict[str, Any]] = [
    {"histogram": [(0, 4), (340, 6)], "negative": 1, "unknown": 2, "consumed": 13},
    {"histogram": None, "negative": 0, "unknown": 5, "consumed": 5},
    {"histogram": [], "negative": 0, "unknown": 0, "consumed": 0},
    {"histogram": [(2_000, 2**40)], "negative": 0, "unknown": 0, "consumed": 2**40},
]


ASKED = Histograms("histogram", ["negative", "unknown"], "consumed")


def _rows(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def test_rows_that_add_up_surely_do() -> None:
    assert ASKED.add_up(_rows(GOOD))
    assert ASKED.add_up(_rows([]))
    assert ASKED.add_up(pa.concat_tables([_rows(GOOD), _rows(GOOD[::-1] * 5)]))


BROKEN = [
    {"consumed": 14},
    {"unknown": 3},
    {"histogram": None},
    {"histogram": [(0, 4), (340, 7)]},
    {"histogram": [(0, 4), (1, 0), (340, 6)]},
    {"histogram": [(-1, 4), (340, 6)]},
    {"histogram": [(0, 11), (340, -1)]},
    {"histogram": [(0, 10), (340, None)]},
    {"negative": None},
    {"consumed": None},
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_a_row_that_does_not_or_may_not_is_not_sure(broken: dict[str, Any]) -> None:
    rows = _rows([*GOOD, GOOD[0] | broken, *GOOD])

    assert not ASKED.add_up(rows)
    assert not ASKED.add_up(pa.concat_tables([_rows(GOOD), rows]))
    assert ASKED.add_up(pa.concat_tables([rows.slice(0, len(GOOD)), rows.slice(len(GOOD) + 1)])), "only that row"


def test_rows_without_one_of_the_columns_are_not_sure() -> None:
    assert not ASKED.add_up(_rows(GOOD).drop_columns(["unknown"]))
