"""Work that Spark hands to its tasks as indexes of a list, of files or of shares of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def indexes(spark: SparkSession, count: int) -> DataFrame:
    """0 … count - 1, each for a task of its own."""
    return spark.range(0, count, 1, max(1, count))


def given(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    """The indexes that a task got."""
    for batch in batches:
        yield from batch.column(0).to_pylist()
