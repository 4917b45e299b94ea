"""The door to DuckDB: SQL over Arrow tables and Parquet files, in memory and in UTC."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset

from kafka_sla.cache import own_temporary
from kafka_sla.errors import DamagedFile, SettingsError, StoreError
from kafka_sla.model.entities import Interval
from kafka_sla.object_stores import located
from kafka_sla.parquet_files import damaged

_VERIFYING = pyarrow.dataset.ParquetFileFormat(
    default_fragment_scan_options=pyarrow.dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
)


class _Sparing(pyarrow.dataset.FileSystemDataset):  # type: ignore[misc]
    """Files of which little is read ahead: Arrow holds sixteen batches of four files, which are gigabytes where rows
    have histograms."""

    def scanner(self, **wanted: Any) -> pyarrow.dataset.Scanner:
        """As DuckDB asks for it: columns, and a filter."""
        return super().scanner(batch_size=16_384, batch_readahead=2, fragment_readahead=2, **wanted)


MayHold = Callable[[str, str], bool]
"""Of the smallest and the largest value of a row group, as DuckDB writes them."""
_STATISTICS = """
    SELECT row_group_id, stats_min_value, stats_max_value FROM parquet_metadata($path) WHERE path_in_schema = $column
    ORDER BY row_group_id
"""


class Sql:
    """One database. Values are given by name, as in `$start`; those that a query does not name are left out."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._files: list[str] = []

    def add(self, **tables: pa.Table) -> None:
        """Name Arrow tables."""
        for name, rows in tables.items():
            self._connection.register(name, rows)

    def add_files(self, name: str, files: Sequence[str], schema: pa.Schema | None = None) -> None:
        """Name the rows of Parquet files: by this schema through Arrow, which verifies the checksums of pages and fills
        columns that a file lacks; else as they are, local ones by DuckDB's own reader, which is faster."""
        self._files += files
        with self._errors_as_ours():
            if schema is None and "://" not in files[0]:
                listed = ", ".join("'" + path.replace("'", "''") + "'" for path in files)
                self._connection.execute(
                    f'CREATE OR REPLACE TEMP VIEW "{name}" AS SELECT * FROM read_parquet([{listed}])'
                )
            else:
                places = [located(path) for path in files]
                inside, filesystem = [path for _, path in places], places[0][0]
                rows = pyarrow.dataset.dataset(inside, schema, format=_VERIFYING, filesystem=filesystem)
                self._connection.register(
                    name, _Sparing(list(rows.get_fragments()), rows.schema, _VERIFYING, filesystem)
                )

    def row_groups(self, files: Sequence[str], column: str, may_hold: MayHold) -> dict[str, list[int]]:
        """By file the row groups that may hold what is wanted of the column, as their statistics say; only of files
        that are local, whose paths are no globs, whose footers can be read, and that have the column. Arrow does not
        survive damaged statistics; DuckDB does."""
        found: dict[str, list[int]] = {}
        for path in (path for path in files if "://" not in path and not set("*?[") & set(path)):
            try:
                rows = self._connection.execute(_STATISTICS, {"path": path, "column": column}).fetchall()
            except duckdb.Error:
                continue
            if rows:
                found[path] = [n for n, low, high in rows if low is None or high is None or may_hold(low, high)]
        return found

    def set(self, **values: Any) -> None:
        """Set variables, for statements that take no values: `getvariable('start')`."""
        for name, value in values.items():
            self._connection.execute(f'SET VARIABLE "{name}" = $1', [value])

    def run(self, statement: str) -> None:
        """What the statement makes must be TEMP: the rest of the process sees all else."""
        with self._errors_as_ours():
            self._connection.execute(statement)

    def arrow(self, query: str, **values: Any) -> pa.Table:
        used = {name: value for name, value in values.items() if f"${name}" in query}
        with self._errors_as_ours():
            return self._connection.sql(query, params=used).to_arrow_table()

    def rows(self, query: str, **values: Any) -> list[dict[str, Any]]:
        """By way of Arrow: DuckDB's own conversion of times needs a library that nothing else here uses."""
        rows: list[dict[str, Any]] = self.arrow(query, **values).to_pylist()
        return rows

    @contextmanager
    def _errors_as_ours(self) -> Iterator[None]:
        """DamagedFile when it stumbles over one of the files, else StoreError."""
        try:
            yield
        except duckdb.Error as error:
            first_line = str(error).splitlines()[0]
            if wrong := damaged(self._files):
                raise DamagedFile(wrong, first_line) from error
            raise StoreError(
                f"DuckDB cannot read, sum up or write: {first_line}; make the warehouse reachable, or memory and disk"
                " free, and run it again"
            ) from error


def one_of(values: Collection[str]) -> MayHold:
    """May a row group hold one of these texts?"""
    return lambda low, high: any(low <= value <= high for value in values)


def inside(interval: Interval) -> MayHold:
    """May it hold a time of the interval? What DuckDB cannot write as a time in UTC tells nothing."""

    def may_hold(low: str, high: str) -> bool:
        try:
            first, last = map(datetime.fromisoformat, (low, high))
            return first < interval.end and last >= interval.start
        except (ValueError, TypeError):
            return True

    return may_hold


@contextmanager
def database(**tables: pa.Table) -> Iterator[Sql]:
    """A database of one's own that holds these Arrow tables."""
    with _engine(os.getpid()).cursor() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        sql = Sql(connection)
        sql.add(**tables)
        yield sql


@cache
def _engine(_: int) -> duckdb.DuckDBPyConnection:
    """One a process, for to start one takes 20 ms; what is named or made in a cursor of it is seen there only."""
    own = {"python_enable_replacements": "false", "enable_external_file_cache": "false"}
    return duckdb.connect(config={**own, "temp_directory": _spill_folder()})


def _spill_folder() -> str:
    """Where it puts what does not fit into memory. Its own choice, the folder that a task was started in, may be
    shared, or no place to write. Empty: nowhere, and a query for which memory does not suffice fails."""
    try:
        return str(own_temporary() / "duckdb")
    except SettingsError:
        return ""
