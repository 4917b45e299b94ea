"""The writing of measured rows: each Spark task writes its own Parquet files, and tells which.

Spark's own writer would make one table a pass, so the rows would have to be kept or measured again for the second one,
and histograms would travel to the JVM entry by entry.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafka_sla.files import batches_of, files_below, make_parent, remove_files
from kafka_sla.model.arrow_schemas import arrow_schema, of_load
from kafka_sla.model.tables import Table
from kafka_sla.object_stores import located, reaching
from kafka_sla.parquet_files import write_options
from kafka_sla.spark_jobs.events.python_workers import BatchFunction
from kafka_sla.spark_jobs.events.task_ranges import given
from kafka_sla.spark_jobs.numeric.scans import begins

_ROWS = 250_000
_DAY_US = 86_400_000_000
_ROWS_OF_DAYS = 10_000
"""A row group has so many on average: each has statistics of every column, which whoever opens the file reads."""
WRITTEN = "name STRING, path STRING, rows BIGINT, kept BOOLEAN"
"""What a task tells of each file that it wrote; `kept`: all rows passed what was asked of them."""
_WRITTEN = pa.schema([("name", pa.string()), ("path", pa.string()), ("rows", pa.int64()), ("kept", pa.bool_())])
TaskTables = Callable[[Iterable[pa.RecordBatch]], Iterator[Mapping[Table, pa.Table]]]
RowRules = Mapping[str, Callable[[pa.Table], bool]]
"""What is asked of rows before they are written, by name of their table."""


@dataclass(frozen=True, slots=True)
class Target:
    """The folder of a load, and what each of its rows says of it."""

    output: str
    interval_start: datetime
    load_id: str

    def folder(self, table: Table) -> str:
        return f"{self.output}/{table.name}"

    def labelled(self, table: Table, rows: pa.Table) -> pa.Table:
        """The rows in the contract's columns, and the load that they belong to."""
        return of_load(table, rows, self.load_id, self.interval_start)


def writing(target: Target, measured: TaskTables, asked: RowRules | None = None) -> BatchFunction:
    """A function for `map_batches`: what `measured` makes of a task's batches lands in one file a table."""
    rules = asked or {}

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files: dict[str, _File] = {}
        try:
            for tables in measured(batches):
                for table, rows in tables.items():
                    if table.name not in files:
                        files[table.name] = _File(target, table, rules.get(table.name))
                    files[table.name].write(rows)
        finally:
            for file in files.values():
                file.close()
        told = [{"name": name, "path": f.path, "rows": f.rows, "kept": f.kept} for name, f in files.items()]
        yield pa.RecordBatch.from_pylist(told, _WRITTEN)

    return reaching([target.output], run)


def one_table(table: Table) -> TaskTables:
    """Rows of Spark's own making, as `writing` takes them."""

    def measured(batches: Iterable[pa.RecordBatch]) -> Iterator[Mapping[Table, pa.Table]]:
        return ({table: pa.Table.from_batches([batch])} for batch in batches)

    return measured


def rewriting(
    target: Target, table: Table, paths: Sequence[str], change: Callable[[pa.Table], pa.Table]
) -> BatchFunction:
    """The same for indexes of files that tasks of this load wrote: what `change` makes of their rows lands."""

    def measured(batches: Iterable[pa.RecordBatch]) -> Iterator[Mapping[Table, pa.Table]]:
        for index in given(batches):
            for rows in batches_of(paths[index], _ROWS):
                yield {table: change(rows)}

    return writing(target, measured)


def keep(target: Target, table: Table, written: Sequence[str]) -> None:
    """Remove what earlier runs and failed tasks left in the table's folder; an empty file stands for no rows."""
    remove_strays(target, table, written)
    if not written:
        nothing = _File(target, table)
        nothing.write(arrow_schema(table).empty_table())
        nothing.close()


def remove_strays(target: Target, table: Table, written: Sequence[str]) -> None:
    """Remove all files of the table but these."""
    remove_files([path for path in files_below(target.folder(table)) if path not in written])


class _File:
    """One Parquet file in the making; its name is its own, so that a repeated task spoils nothing."""

    def __init__(self, target: Target, table: Table, rule: Callable[[pa.Table], bool] | None = None) -> None:
        self._target, self._table, self._rule = target, table, rule
        self.path = f"{target.folder(table)}/part-{uuid.uuid4().hex}.parquet"
        self.rows, self.kept = 0, True
        filesystem, inside = located(self.path)
        make_parent(filesystem, inside)
        schema = target.labelled(table, arrow_schema(table).empty_table()).schema
        self._writer = pq.ParquetWriter(inside, schema, filesystem=filesystem, **write_options(schema))

    def write(self, rows: pa.Table) -> None:
        self.kept = self.kept and (self._rule is None or self._rule(rows))
        for part in _by_days(rows, self._table.time):
            self._writer.write_table(self._target.labelled(self._table, part))
        self.rows += rows.num_rows

    def close(self) -> None:
        self._writer.close()


def _by_days(rows: pa.Table, time: str) -> Iterator[pa.Table]:
    """Rows of many days some days after the others, in their order: each part becomes a row group, and who judges a day
    of a long load reads those that may have rows of it."""
    day = rows[time].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy() // _DAY_US
    days = np.unique(day)
    parts = min(len(days), rows.num_rows // _ROWS_OF_DAYS)
    if parts <= 1:
        yield rows
        return
    borders = [days[len(days) * nth // parts] for nth in range(1, parts)]
    part = np.searchsorted(borders, day, side="right")
    runs: dict[int, list[pa.Table]] = defaultdict(list)
    for start, end in pairwise([*np.flatnonzero(begins(part)).tolist(), rows.num_rows]):
        runs[int(part[start])].append(rows.slice(start, end - start))
    for nth in range(parts):
        yield pa.concat_tables(runs[nth])
