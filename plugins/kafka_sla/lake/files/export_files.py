"""Rows as CSV, JSON or Parquet files, written whole or not at all. Rows come as Arrow tables."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_sla.files import reached
from kafka_sla.parquet_files import write_options
from kafka_sla.sql import database

Format = Literal["csv", "json", "parquet"]


def write_file(rows: pa.Table, form: Format, target: Path) -> None:
    """Write a file beside the target, then put it in its place: a reader never sees half of it."""
    with reached(str(target)), _scratch(target.parent, f".{target.name}.") as folder:
        part = folder / "rows"
        _write(rows, form, part)
        part.replace(target)


def write_stream(rows: pa.Table, form: Format, stream: IO[bytes]) -> None:
    """Write rows to a binary stream; nothing at all when a row cannot be written."""
    with _scratch(None, "kafka_sla.") as folder:
        part = folder / "rows"
        _write(rows, form, part)
        with part.open("rb") as written:
            shutil.copyfileobj(written, stream)


@contextmanager
def _scratch(parent: Path | None, prefix: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as folder:
        yield Path(folder)


def _write(rows: pa.Table, form: Format, path: Path) -> None:
    if form == "parquet":
        pq.write_table(rows, path, **write_options(rows.schema))
        return
    options = {"csv": "FORMAT csv, HEADER", "json": "FORMAT json, ARRAY"}[form]
    if form == "csv":
        rows = _without_formulas(rows)
    columns = ", ".join(_column(field, form) for field in rows.schema)
    with database(rows=rows) as db:
        db.run(f"COPY (SELECT {columns} FROM rows) TO '{str(path).replace(chr(39), chr(39) * 2)}' ({options})")


def _without_formulas(rows: pa.Table) -> pa.Table:
    """Text that a spreadsheet would compute begins with an apostrophe: anyone can give a consumer group such a name."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_string(field.type):
            quoted = pc.binary_join_element_wise("'", rows[at], "")
            computed = pc.match_substring_regex(rows[at], r"^[=+@\t\r-]")
            rows = rows.set_column(at, field.name, pc.if_else(computed, quoted, rows[at]))
    return rows


def _column(field: pa.Field, form: Format) -> str:
    """A column as text files show it: times as ISO-8601 UTC with milliseconds, maps as JSON objects."""
    name = f'"{field.name}"'
    if pa.types.is_timestamp(field.type):
        return f"strftime({name}, '%Y-%m-%dT%H:%M:%S.%gZ') AS {name}"
    if pa.types.is_map(field.type) and form == "csv":
        return f"to_json({name})::VARCHAR AS {name}"
    return name
