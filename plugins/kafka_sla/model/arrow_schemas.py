"""The table contracts as Arrow schemas, and rows made to fit them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from kafka_sla.model.tables import Table

_TYPES: dict[str, pa.DataType] = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "BINARY": pa.binary(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "MAP<INT, BIGINT>": pa.map_(pa.int32(), pa.int64()),
    "ARRAY<BIGINT>": pa.list_(pa.int64()),
    "ARRAY<TIMESTAMP>": pa.list_(pa.timestamp("us", "UTC")),
}


def arrow_schema(table: Table) -> pa.Schema:
    """The Arrow schema of a table contract, columns in contract order."""
    return pa.schema([pa.field(c.name, _TYPES[c.type], c.nullable) for c in table.columns])


def arrow_columns(table: Table, columns: Mapping[str, Any]) -> pa.Table:
    """Arrow arrays by name as a table that fits the contract; whole µs become times."""
    schema = arrow_schema(table)
    return pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)


def arrow_rows(table: Table, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows (one mapping each, missing nullable columns are null) as an Arrow table that fits the contract."""
    return pa.Table.from_pylist([dict(row) for row in rows], arrow_schema(table))


OF_LOAD = ("interval_start", "load_id")
"""What files of metrics hold besides the columns of their contract."""


def of_load(table: Table, rows: pa.Table, load_id: str, interval_start: datetime) -> pa.Table:
    """The rows of a metric in the contract's columns, and the load that they belong to."""
    start = pa.scalar(interval_start, pa.timestamp("us", "UTC"))
    rows = rows.select(list(table.names)).cast(arrow_schema(table))
    rows = rows.append_column(OF_LOAD[0], pa.repeat(start, rows.num_rows))
    return rows.append_column(OF_LOAD[1], pa.repeat(pa.scalar(load_id), rows.num_rows))
