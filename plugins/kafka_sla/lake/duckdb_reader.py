"""Rows of Parquet files as Arrow tables, through DuckDB."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import Interval, hull
from kafka_sla.model.tables import Table
from kafka_sla.sql import Sql, database

_SLICES = pa.schema(
    [
        ("cluster", pa.string()),
        ("load_id", pa.string()),
        ("start_at", pa.timestamp("us", "UTC")),
        ("end_at", pa.timestamp("us", "UTC")),
    ]
)

_OF_LOADS = (pa.field("interval_start", pa.timestamp("us", "UTC")), pa.field("load_id", pa.string()))


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


def distinct_rows(table: Table, files: Sequence[str], interval: Interval) -> pa.Table:
    """All rows of the interval, one a key, by key."""
    key, time = quoted(table.key), quoted_name(table.time)
    tail = f"WHERE files.{time} >= $start_at AND files.{time} < $end_at ORDER BY {key}"
    values = {"start_at": interval.start, "end_at": interval.end}
    return _rows(table, files, table.names, tail, values, distinct=f"DISTINCT ON ({key})")


def distinct_values(table: Table, files: Sequence[str], names: Sequence[str]) -> pa.Table:
    """The different values that these columns have together."""
    with opened(table, files, []) as db:
        return db.arrow(f"SELECT DISTINCT {quoted(names)} FROM files")


def slice_rows(
    table: Table,
    files: Sequence[str],
    slices: Sequence[tuple[str, Interval, str]],
    names: Sequence[str],
    groups: Collection[str] | None = None,
    *,
    in_order: bool = True,
) -> pa.Table:
    """The rows of each slice (cluster, interval, load id), by key or in no order; of these consumer groups, or of
    all."""
    if groups is not None and not groups:
        return empty(table, names)
    if not slices:
        return empty(table, names)
    values: dict[str, Any] = {f"group_{number}": name for number, name in enumerate(sorted(groups or ()))}
    of_groups = "" if groups is None else f'AND files."group" IN ({", ".join(f"${name}" for name in values)})'
    of_time, span = _within(table, slices)
    order = f"ORDER BY {quoted(table.key, 'files.')}" if in_order else ""
    tail = f"{shown(table.time)} {of_time} {of_groups} {order}"
    return _rows(table, files, names, tail, values | span, slices=_slice_table(slices))


def slice_count(table: Table, files: Sequence[str], slices: Sequence[tuple[str, Interval, str]]) -> int:
    """How many rows these slices have."""
    where, span = _within(table, slices)
    with opened(table, files, slices) as db:
        (found,) = db.rows(f"SELECT count(*) AS rows FROM files {shown(table.time)} {where}", **span)
    return int(found["rows"])


def _within(table: Table, slices: Sequence[tuple[str, Interval, str]]) -> tuple[str, dict[str, Any]]:
    """The time that slices span, said where files are read: else all rows of a load that is longer come out of them."""
    span, time = hull(interval for _, interval, _ in slices), quoted_name(table.time)
    where = f"WHERE files.{time} >= $start_at AND files.{time} < $end_at"
    return where, {"start_at": span.start, "end_at": span.end}


def shown(time: str) -> str:
    """The join of `files` with the `slices` of the loads that are visible."""
    return f"""
        JOIN slices ON slices.cluster = files.cluster AND slices.load_id = files.load_id
         AND files.{time} >= slices.start_at AND files.{time} < slices.end_at
    """


def new_rows(table: Table, rows: pa.Table, files: Sequence[str]) -> pa.Table:
    """Those of `rows` whose key is not in the files, one a key, by key."""
    key = quoted(table.key)
    with database(rows=rows) as db:
        found = f"SELECT DISTINCT ON ({key}) {quoted(table.names)} FROM rows"
        if files:
            _add(db, table, files, verified=True)
            same = " AND ".join(f"files.{k} IS NOT DISTINCT FROM rows.{k}" for k in map(quoted_name, table.key))
            found += f" ANTI JOIN files ON {same}"
        return _arrow(table, table.names, db.arrow(f"{found} ORDER BY {key}"))


def quoted(names: Sequence[str], prefix: str = "") -> str:
    return ", ".join(prefix + quoted_name(name) for name in names)


def quoted_name(name: str) -> str:
    return f'"{name}"'


@contextmanager
def opened(
    table: Table, files: Sequence[str], slices: Sequence[tuple[str, Interval, str]], *, verified: bool = False
) -> Iterator[Sql]:
    """A database with the views `files` and `slices`, for who sums up rows instead of reading them. `verified`:
    checksums of pages are looked at."""
    with database(slices=_slice_table(slices)) as db:
        _add(db, table, files, verified=verified)
        yield db


def _slice_table(slices: Sequence[tuple[str, Interval, str]]) -> pa.Table:
    spans = [{"cluster": s[0], "start_at": s[1].start, "end_at": s[1].end, "load_id": s[2]} for s in slices]
    return pa.Table.from_pylist(spans, _SLICES)


def _rows(
    table: Table,
    files: Sequence[str],
    names: Sequence[str],
    tail: str,
    values: dict[str, Any],
    *,
    distinct: str = "",
    slices: pa.Table | None = None,
) -> pa.Table:
    if not files:
        return empty(table, names)
    with database(slices=slices or _slice_table([])) as db:
        _add(db, table, files, verified=True)
        query = f"SELECT {distinct} {quoted(names, 'files.')} FROM files {tail}"
        return _arrow(table, names, db.arrow(query, **values))


def empty(table: Table, names: Sequence[str]) -> pa.Table:
    return arrow_schema(table).empty_table().select(list(names))


def _add(db: Sql, table: Table, files: Sequence[str], *, verified: bool = False) -> None:
    """Add the files as the view `files`. `verified`: verify the checksums of pages while reading."""
    db.add_files("files", files, _schema(table) if verified else None)


def _schema(table: Table) -> pa.Schema:
    """The contract's columns and those of loads, all nullable: a file may be older than a column."""
    return pa.schema([field.with_nullable(True) for field in (*arrow_schema(table), *_OF_LOADS)])


def _arrow(table: Table, names: Sequence[str], found: pa.Table) -> pa.Table:
    """The contract's types; a column that nobody wrote yet is unknown, also where newer rows must have it."""
    declared = arrow_schema(table)
    columns = [found[name].cast(declared.field(name).type) for name in names]
    fields = [
        declared.field(name).with_nullable(declared.field(name).nullable or column.null_count > 0)
        for name, column in zip(names, columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
