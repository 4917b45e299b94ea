"""Rows of Parquet files as Arrow tables, through DuckDB. Knows no catalog and no publication."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset

from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import Table

_SLICES = pa.schema(
    [
        ("cluster", pa.string()),
        ("load_id", pa.string()),
        ("start_at", pa.timestamp("us", "UTC")),
        ("end_at", pa.timestamp("us", "UTC")),
    ]
)


def fact_rows(
    table: Table, files: Sequence[str], interval: Interval, clusters: Sequence[str] | None, names: Sequence[str]
) -> pa.Table:
    """Rows of the interval (None: of all clusters), by key."""
    time = quoted_name(table.time)
    wanted = f"{time} >= $start_at AND {time} < $end_at"
    values: dict[str, Any] = {"start_at": interval.start, "end_at": interval.end}
    if clusters is not None:
        wanted += " AND list_contains($clusters, cluster)"
        values["clusters"] = list(clusters)
    return _rows(table, files, names, f"WHERE {wanted} ORDER BY {quoted(table.key)}", values)


def distinct_rows(table: Table, files: Sequence[str]) -> pa.Table:
    """All rows, one a key, by key."""
    key = quoted(table.key)
    return _rows(table, files, table.names, f"ORDER BY {key}", {}, distinct=f"DISTINCT ON ({key})")


def distinct_values(files: Sequence[str], names: Sequence[str]) -> pa.Table:
    """The different values that these columns have together."""
    with opened(files, []) as connection:
        return connection.sql(f"SELECT DISTINCT {quoted(names)} FROM files").to_arrow_table()


def slice_rows(
    table: Table, files: Sequence[str], slices: Sequence[tuple[str, Interval, str]], names: Sequence[str]
) -> pa.Table:
    """The rows of each slice (cluster, interval, load id), by key."""
    tail = f"""
        JOIN slices ON slices.cluster = files.cluster AND slices.load_id = files.load_id
         AND files.{table.time} >= slices.start_at AND files.{table.time} < slices.end_at
        ORDER BY {quoted(table.key, "files.")}"""
    return _rows(table, files, names, tail, {}, slices=_slice_table(slices))


def new_rows(table: Table, rows: pa.Table, files: Sequence[str]) -> pa.Table:
    """Those of `rows` whose key is not in the files, one a key, by key."""
    key = quoted(table.key)
    with connected() as connection:
        connection.register("rows", rows)
        found = f"SELECT DISTINCT ON ({key}) {quoted(table.names)} FROM rows"
        if files:
            _register(connection, files)
            same = " AND ".join(f"files.{k} IS NOT DISTINCT FROM rows.{k}" for k in map(quoted_name, table.key))
            found += f" ANTI JOIN files ON {same}"
        return _arrow(table, table.names, connection.sql(f"{found} ORDER BY {key}").to_arrow_table())


def quoted(names: Sequence[str], prefix: str = "") -> str:
    return ", ".join(prefix + quoted_name(name) for name in names)


def quoted_name(name: str) -> str:
    return f'"{name}"'


@contextmanager
def opened(files: Sequence[str], slices: Sequence[tuple[str, Interval, str]]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB with the views `files` and `slices`, for who sums up rows instead of reading them."""
    with connected() as connection:
        _register(connection, files)
        connection.register("slices", _slice_table(slices))
        yield connection


def connected() -> duckdb.DuckDBPyConnection:
    """A DuckDB in memory that tells times in UTC; closed by `with`."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def view(connection: duckdb.DuckDBPyConnection, table: Table, files: Sequence[str]) -> None:
    """The rows of these files as a view of the table's name, in the place of an earlier one."""
    if files:
        _register(connection, files, table.name)
    else:
        connection.register(table.name, arrow_schema(table).empty_table())


def _slice_table(slices: Sequence[tuple[str, Interval, str]]) -> pa.Table:
    spans = [{"cluster": s[0], "start_at": s[1].start, "end_at": s[1].end, "load_id": s[2]} for s in slices]
    return pa.Table.from_pylist(spans, _SLICES)


def _rows(
    table: Table, files: Sequence[str], names: Sequence[str], tail: str, values: dict[str, Any], *,
    distinct: str = "", slices: pa.Table | None = None,
) -> pa.Table:  # fmt: skip
    if not files:
        return empty(table, names)
    with connected() as connection:
        if slices is not None:
            connection.register("slices", slices)
        _register(connection, files)
        query = f"SELECT {distinct} {{}} FROM files {tail}"
        try:
            found = connection.sql(query.format(quoted(names, "files.")), params=values)
            return _arrow(table, names, found.to_arrow_table())
        except (duckdb.BinderException, duckdb.InvalidInputException):  # files of an older version lack a column
            here = _register_mixed(connection, table, files)
            found = connection.sql(query.format(quoted([n for n in names if n in here], "files.")), params=values)
            return _arrow(table, names, found.to_arrow_table())


def empty(table: Table, names: Sequence[str]) -> pa.Table:
    return arrow_schema(table).empty_table().select(list(names))


def _register(connection: duckdb.DuckDBPyConnection, files: Sequence[str], name: str = "files") -> None:
    """The files as a view: local ones by DuckDB's own reader, others through Arrow's filesystems."""
    if "://" in files[0]:
        connection.register(name, pyarrow.dataset.dataset(list(files), format="parquet"))
    else:
        connection.read_parquet(list(files)).create_view(name)


def _register_mixed(connection: duckdb.DuckDBPyConnection, table: Table, files: Sequence[str]) -> Sequence[str]:
    """The same where some files lack columns, which takes a look into each; answers the columns that there are."""
    if "://" in files[0]:
        schema = pa.unify_schemas([pyarrow.dataset.dataset(path, format="parquet").schema for path in files])
        connection.register("files", pyarrow.dataset.dataset(list(files), schema, format="parquet"))
        return list(schema.names)
    found = connection.read_parquet(list(files), union_by_name=True)
    found.create_view("files")
    return list(found.columns)


def _arrow(table: Table, names: Sequence[str], found: pa.Table) -> pa.Table:
    """The contract's types; a column that nobody wrote yet is unknown, also where newer rows must have it."""
    declared = arrow_schema(table)
    columns = [
        found[name].cast(declared.field(name).type) if name in found.column_names
        else pa.chunked_array([pa.nulls(found.num_rows, declared.field(name).type)])
        for name in names
    ]  # fmt: skip
    fields = [
        declared.field(name).with_nullable(declared.field(name).nullable or column.null_count > 0)
        for name, column in zip(names, columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
