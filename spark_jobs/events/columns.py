"""Columns of Arrow tables as arrays, null told as the kernel tells it. Knows the flags of events, no kind of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.spark_jobs.numeric.arrays import NONE, Bools, Ints


def ints(rows: pa.Table, name: str) -> Ints:
    """A column of numbers with NONE for null."""
    column = rows.column(name)
    values: Ints = (pc.fill_null(column, NONE) if column.null_count else column).to_numpy()
    return values


def flagged(rows: pa.Table, flag: int) -> Bools:
    """The events of these that have one of `layouts`' flags."""
    values: Bools = rows.column("flags").to_numpy() & flag != 0
    return values


def distinct(rows: pa.Table, name: str) -> Ints:
    """A number for each name, or number, of a column; the same for equal ones."""
    column = rows.column(name).combine_chunks()
    values: Ints = (column.indices if pa.types.is_dictionary(column.type) else column).to_numpy()
    return values
