"""Are the rows of files unique? Arrow reads them in Spark's tasks, their hashes tell."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from kafka_sla.files import sizes_of
from kafka_sla.object_stores import reaching
from kafka_sla.parquet_files import batches, parquet_file
from kafka_sla.spark_jobs.events.python_workers import BatchFunction, map_batches
from kafka_sla.spark_jobs.events.spark_versions import by_task
from kafka_sla.spark_jobs.events.task_ranges import given, indexes

Hashes = npt.NDArray[np.uint64]
_TASK_BYTES = 32_000_000
_BATCH_ROWS = 1_000_000
_MIX = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x5851F42D4C957F2D)
_SHARES = "task INT, key INT, hashes BINARY"


@dataclass(frozen=True, slots=True)
class UniqueColumns:
    """Columns of files that no two rows should share."""

    files: Sequence[str]
    columns: Sequence[str]


def rows_are_unique(spark: SparkSession, asked: Sequence[UniqueColumns]) -> list[bool]:
    """Of each: do all rows of its files differ in the columns, going by 64 bits of a hash?

    Equal hashes prove nothing: what is said not to differ may be unique all the same. A column that a file lacks counts
    as null, and null equals null.
    """
    parts = [(number, path) for number, rows in enumerate(asked) for path in rows.files]
    if not parts:
        return [True for _ in asked]
    tasks = 1 + sum(sizes_of([path for _, path in parts])) // _TASK_BYTES
    shares = [parts[n::tasks] for n in range(min(tasks, len(parts)))]
    columns = [rows.columns for rows in asked]
    hashed = map_batches(indexes(spark, len(shares)), _hashing(shares, columns, tasks), _SHARES)
    repeated = {row["key"] for row in map_batches(by_task(hashed, tasks, "task"), _repeated, "key INT").collect()}
    return [number not in repeated for number in range(len(asked))]


def _hashing(
    shares: Sequence[Sequence[tuple[int, str]]], columns: Sequence[Sequence[str]], tasks: int
) -> BatchFunction:
    """A function for `map_batches`: indexes of shares in, the hashes of their rows by task out."""
    borders = np.array([(n << 64) // tasks for n in range(1, tasks)], dtype=np.uint64)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for share in given(batches):
            for key, path in shares[share]:
                for rows in _read(path, columns[key]):
                    hashes = np.sort(_hashes(rows, columns[key]))
                    ends = [0, *np.searchsorted(hashes, borders).tolist(), len(hashes)]
                    blocks = [hashes[a:b].tobytes() for a, b in pairwise(ends)]
                    values = [range(tasks), [key] * tasks, blocks]
                    types = [pa.int32(), pa.int32(), pa.binary()]
                    arrays = [pa.array(value, to) for value, to in zip(values, types, strict=True)]
                    yield pa.RecordBatch.from_arrays(arrays, ["task", "key", "hashes"])

    return reaching([path for share in shares for _, path in share], run)


def _read(path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Those of the columns that the file has, texts as dictionaries."""
    with parquet_file(path, columns) as file:
        there = [n for n in columns if n in file.schema_arrow.names]
        yield from batches(file, there, _BATCH_ROWS, use_threads=False)


def _hashes(rows: pa.RecordBatch, columns: Sequence[str]) -> Hashes:
    found = np.zeros(rows.num_rows, dtype=np.uint64)
    for name in columns:
        found = (found ^ (found >> np.uint64(29))) * _MIX
        found += _values(rows[name]) if name in rows.schema.names else _NULL
    found = (found ^ (found >> np.uint64(32))) * _MIX
    return np.asarray(found ^ (found >> np.uint64(29)))


def _values(column: Any) -> Hashes:
    """64 bits for each value of a column of texts, whole numbers or times; the values of any other count as equal."""
    if pa.types.is_dictionary(column.type):
        digests = [_digest(value) for value in column.dictionary.to_pylist()]
        values = np.array([*digests, _NULL], dtype=np.uint64)
        return np.asarray(values[pc.fill_null(column.indices.cast(pa.int64()), -1).to_numpy()])
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    if not pa.types.is_integer(column.type):
        return np.zeros(len(column), dtype=np.uint64)
    values = pc.fill_null(column.cast(pa.int64()), 0).to_numpy().astype(np.uint64)
    return np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, values) if column.null_count else values


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _repeated(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The keys of which a task has a hash more than once."""
    blocks: dict[int, list[Hashes]] = {}
    for batch in batches:
        for key, hashes in zip(batch["key"].to_pylist(), batch["hashes"], strict=True):
            blocks.setdefault(key, []).append(np.frombuffer(hashes.as_buffer(), dtype=np.uint64))
    yield pa.RecordBatch.from_pydict({"key": pa.array([k for k, of in blocks.items() if _repeats(of)], pa.int32())})


def _repeats(blocks: Sequence[Hashes]) -> bool:
    hashes = np.sort(np.concatenate(blocks))
    return bool((hashes[1:] == hashes[:-1]).any())
