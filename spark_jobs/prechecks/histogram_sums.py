"""Do the histograms of files add up? Arrow reads them in Spark's tasks. Knows no table and no rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from kafka_sla.files import batches_of
from kafka_sla.object_stores import reaching
from kafka_sla.spark_jobs.events.task_ranges import given, indexes

_BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Histograms:
    """Files with a column of maps of bucket to records, columns with records that are in no bucket, and a total."""

    files: Sequence[str]
    histogram: str
    beside: Sequence[str]
    total: str


def histograms_add_up(spark: SparkSession, asked: Histograms) -> bool:
    """Do all buckets begin at 0 and hold records, and add up to the total with what is beside?

    No proves nothing: files that lack a column and rows that lack a number are not looked at any further.
    """
    if not asked.files:
        return True
    told = indexes(spark, len(asked.files)).mapInArrow(_looking(asked), "adds_up BOOLEAN").collect()
    return all(row["adds_up"] for row in told)


def _looking(asked: Histograms) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `DataFrame.mapInArrow`: indexes of files in, whether they add up out."""
    numbers = [*asked.beside, asked.total]

    def adds_up(rows: pa.Table) -> bool:
        if not {asked.histogram, *numbers} <= set(rows.column_names) or any(rows[name].null_count for name in numbers):
            return False
        *beside, total = (rows[name].to_numpy() for name in numbers)
        counted = _counted(rows[asked.histogram].combine_chunks())
        return counted is not None and bool((sum(beside, counted) == total).all())

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for index in given(batches):
            parts = batches_of(asked.files[index], _BATCH_ROWS, [asked.histogram, *numbers])
            yield pa.RecordBatch.from_pydict({"adds_up": [all(adds_up(rows) for rows in parts)]})

    return reaching(asked.files, run)


def _counted(histograms: pa.MapArray) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """Records of each histogram; None where a bucket is not one."""
    offsets = histograms.offsets.to_numpy()
    begin, end = int(offsets[0]), int(offsets[-1])
    buckets, counts = histograms.keys.slice(begin, end - begin), histograms.items.slice(begin, end - begin)
    if buckets.null_count or counts.null_count:
        return None
    if len(counts) and (buckets.to_numpy().min() < 0 or counts.to_numpy().min() <= 0):
        return None
    passed = np.concatenate([[0], np.cumsum(counts.to_numpy())])
    return np.asarray(passed[offsets[1:] - begin] - passed[offsets[:-1] - begin], dtype=np.int64)
