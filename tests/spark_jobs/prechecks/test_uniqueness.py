from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kafka_sla.spark_jobs.prechecks import uniqueness
from kafka_sla.spark_jobs.prechecks.uniqueness import UniqueColumns, rows_are_unique

COLUMNS = ("group", "topic", "partition", "at", "offset")
SCHEMA = pa.schema(
    [
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
        ("offset", pa.int64()),
    ]
)
ROW = {"group": "billing", "topic": "orders", "partition": 0, "at": datetime(2026, 9, 1, tzinfo=UTC), "offset": 5}


def _files(folder: Path, *files: Sequence[dict[str, Any]], schema: pa.Schema = SCHEMA) -> list[str]:
    paths = [str(folder / f"{len(list(folder.iterdir()))}-{n}.parquet") for n in range(len(files))]
    for path, rows in zip(paths, files, strict=True):
        pq.write_table(pa.Table.from_pylist([ROW | row for row in rows], schema), path)
    return paths


@pytest.mark.parametrize(
    "other",
    [
        {"group": "Billing"},
        {"topic": "order", "group": "sbilling"},
        {"partition": 1},
        {"at": datetime(2026, 9, 1, 0, 0, 0, 1, tzinfo=UTC)},
        {"at": datetime(1969, 12, 31, tzinfo=UTC)},
        {"offset": -5},
        {"offset": 0},
        {"offset": None},
        {"topic": None},
    ],
    ids=str,
)
def test_rows_that_differ_in_a_column_are_unique(spark: SparkSession, tmp_path: Path, other: dict[str, Any]) -> None:
    assert rows_are_unique(spark, [UniqueColumns(_files(tmp_path, [{}, other]), COLUMNS)]) == [True]
    assert rows_are_unique(spark, [UniqueColumns(_files(tmp_path, [{}], [other]), COLUMNS)]) == [True]


@pytest.mark.parametrize("row", [{}, {"offset": None}, {"topic": None, "at": None}], ids=str)
def test_a_row_that_comes_again_is_found_wherever_it_is(
    spark: SparkSession, tmp_path: Path, row: dict[str, Any]
) -> None:
    before, after = ([{"partition": n} for n in range(begin, begin + 5)] for begin in (10, 20))

    assert rows_are_unique(spark, [UniqueColumns(_files(tmp_path, [row, *before, row]), COLUMNS)]) == [False]
    assert rows_are_unique(spark, [UniqueColumns(_files(tmp_path, [row, *before], [*after, row]), COLUMNS)]) == [False]


def test_columns_that_are_not_asked_for_do_not_make_rows_differ(spark: SparkSession, tmp_path: Path) -> None:
    files = _files(tmp_path, [{"offset": 5}, {"offset": 6}])

    assert rows_are_unique(spark, [UniqueColumns(files, COLUMNS), UniqueColumns(files, COLUMNS[:4])]) == [True, False]


def test_a_column_that_an_older_file_lacks_is_null(spark: SparkSession, tmp_path: Path) -> None:
    older = _files(tmp_path, [{}], schema=SCHEMA.remove(SCHEMA.get_field_index("offset")))

    assert rows_are_unique(spark, [UniqueColumns(older + _files(tmp_path, [{"offset": 5}]), COLUMNS)]) == [True]
    assert rows_are_unique(spark, [UniqueColumns(older + _files(tmp_path, [{"offset": None}]), COLUMNS)]) == [False]


@pytest.mark.parametrize("values", [[0.25, 0.5], [[1], [2]], [True, False]], ids=str)
def test_values_that_are_not_hashed_prove_nothing(spark: SparkSession, tmp_path: Path, values: list[Any]) -> None:
    pq.write_table(pa.table({"value": values, "offset": [1, 2]}), tmp_path / "other.parquet")
    files = [str(tmp_path / "other.parquet")]

    assert rows_are_unique(spark, [UniqueColumns(files, ["value"]), UniqueColumns(files, ["value", "offset"])]) == [
        False,
        True,
    ]


@pytest.mark.parametrize("twice", [False, True])
def test_many_tasks_and_batches_say_the_same_as_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, twice: bool
) -> None:
    monkeypatch.setattr(uniqueness, "_TASK_BYTES", 2_000)
    monkeypatch.setattr(uniqueness, "_BATCH_ROWS", 100)
    rows = [{"partition": n % 7, "offset": n} for n in range(1_000)]
    files = _files(tmp_path, rows[:900], rows[900:] + rows[:1] * twice)

    assert rows_are_unique(spark, [UniqueColumns(_files(tmp_path, rows), COLUMNS), UniqueColumns(files, COLUMNS)]) == [
        True,
        not twice,
    ]


def test_no_rows_are_unique(spark: SparkSession, tmp_path: Path) -> None:
    empty, nothing = UniqueColumns(_files(tmp_path, []), COLUMNS), UniqueColumns([], COLUMNS)

    assert rows_are_unique(spark, [empty, nothing]) == [True, True]
    assert rows_are_unique(spark, [nothing]) == [True]
    assert rows_are_unique(spark, []) == []
