from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kafka_sla.spark_jobs.prechecks import histogram_sums
from kafka_sla.spark_jobs.prechecks.histogram_sums import Histograms, histograms_add_up

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


def _asked(folder: Path, *files: Sequence[dict[str, Any]], schema: pa.Schema = SCHEMA) -> Histograms:
    paths = [str(folder / f"{number}.parquet") for number in range(len(files))]
    for path, rows in zip(paths, files, strict=True):
        pq.write_table(pa.Table.from_pylist(list(rows), schema), path)
    return Histograms(paths, "histogram", ["negative", "unknown"], "consumed")


def test_rows_that_add_up_surely_do_in_batches_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histogram_sums, "_BATCH_ROWS", 3)

    assert histograms_add_up(spark, _asked(tmp_path, GOOD, GOOD[::-1] * 5, []))
    assert histograms_add_up(spark, _asked(tmp_path))


@pytest.mark.parametrize(
    "broken",
    [
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
    ],
    ids=str,
)
def test_a_row_that_does_not_or_may_not_is_not_sure(
    spark: SparkSession, tmp_path: Path, broken: dict[str, Any]
) -> None:
    rows = [*GOOD, GOOD[0] | broken, *GOOD]

    assert not histograms_add_up(spark, _asked(tmp_path, GOOD, rows))


def test_a_file_of_an_older_version_is_not_sure(spark: SparkSession, tmp_path: Path) -> None:
    older = SCHEMA.remove(SCHEMA.get_field_index("unknown"))

    assert not histograms_add_up(spark, _asked(tmp_path, GOOD, schema=older))
