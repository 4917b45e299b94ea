"""Parquet files of an object store as frames of Spark: Arrow reads them in Spark's tasks, so that Spark needs no jars
and no credentials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kafka_sla.files import files_below
from kafka_sla.object_stores import reaching
from kafka_sla.parquet_files import batches, parquet_file
from kafka_sla.spark_jobs.events.python_workers import BatchFunction, map_batches
from kafka_sla.spark_jobs.events.task_ranges import given, indexes

_PARQUET = ".parquet"


def read_by_arrow(spark: SparkSession, places: Sequence[str], ddl: str, schema: pa.Schema) -> DataFrame:
    """Rows of these files, and of those below folders, in the columns of the schema (for Spark: `ddl`); null where a
    file lacks one."""
    files = [path for place in places for path in _files(place)]
    return map_batches(indexes(spark, len(files)), _reading(files, schema), ddl)


def _files(place: str) -> list[str]:
    return [place] if place.endswith(_PARQUET) else sorted(p for p in files_below(place) if p.endswith(_PARQUET))


def _reading(files: Sequence[str], schema: pa.Schema) -> BatchFunction:
    """A function for `map_batches`: indexes of files in, their rows out."""

    def run(indexes_of_task: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for index in given(indexes_of_task):
            with parquet_file(files[index]) as file:
                there = [name for name in schema.names if name in file.schema_arrow.names]
                for batch in batches(file, there, use_threads=False):
                    yield _fitting(batch, schema)

    return reaching(files, run)


def _fitting(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    known = set(batch.schema.names)
    columns = [
        batch[field.name].cast(field.type) if field.name in known else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema.names)
