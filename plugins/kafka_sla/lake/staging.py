"""What lies in the warehouse beside the tables: the files that Spark wrote, and what was set aside. No catalog."""

from __future__ import annotations

import pyarrow as pa

from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.files import files_below, write_rows
from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import Interval, epoch_ms
from kafka_sla.model.tables import TABLES, Table
from kafka_sla.parquet_files import batches, parquet_file


def folder_of(store: Store, load_id: str, table: Table | None = None) -> str:
    """Where Spark writes a load, or its rows of one table."""
    folder = f"{store.warehouse}/staging/{load_id}"
    return f"{folder}/{table.name}" if table else folder


def load_of(path: str) -> str:
    """The load of a file that lies in such a folder."""
    return path.rsplit("/", 3)[1]


def table_of(path: str) -> Table | None:
    """The table of a file that lies in such a folder; None where that is none."""
    return TABLES.get(path.rsplit("/", 2)[1])


def parquet_below(folder: str) -> list[str]:
    """The Parquet files below a folder that are whole, by name."""
    return sorted(path for path in files_below(folder) if path.endswith(".parquet"))


def staged_files(folder: str, table: Table) -> list[str]:
    """The Parquet files that Spark wrote for a table below a load's folder, by name."""
    found = parquet_below(f"{folder}/{table.name}")
    if not found and not files_below(folder):
        raise StoreError(f"{folder} is not there: make the warehouse available again, or measure its interval again")
    return found


def staged(folder: str, table: Table) -> pa.Table:
    """The rows that Spark wrote for a table, in the contract's columns."""
    schema = arrow_schema(table)
    parts = []
    for path in staged_files(folder, table):
        with parquet_file(path) as file:
            parts += [pa.Table.from_batches([batch]).cast(schema) for batch in batches(file, table.names)]
    return pa.concat_tables(parts) if parts else schema.empty_table()


def keep_unreadable(store: Store, cluster: str, interval: Interval, records: pa.Table) -> None:
    """Write the commit records that a snapshot could not read; a repeated snapshot replaces its file."""
    if records.num_rows:
        span = f"{epoch_ms(interval.start)}-{epoch_ms(interval.end)}"
        write_rows(f"{store.warehouse}/unreadable_commit_records/{cluster}/{span}.parquet", records)
