"""Is a data file of a table as it was written? Asks the file and what its table knows of it, and nobody else."""

from __future__ import annotations

from pyiceberg.manifest import DataFile

from kafka_sla.errors import DamagedFile, StoreError
from kafka_sla.files import has_rows
from kafka_sla.model.arrow_schemas import OF_LOAD
from kafka_sla.model.tables import Table
from kafka_sla.parquet_files import batches, parquet_file


def problem_of(table: Table, file: DataFile) -> str | None:
    """What is wrong with a data file of the table; None when every page is as it was written."""
    path, rows = file.file_path, 0
    try:
        with parquet_file(path) as opened:
            if renamed := _renamed(table, opened.schema_arrow.names):
                return renamed
            for batch in batches(opened):
                rows += batch.num_rows
    except DamagedFile as error:
        return f"cannot be read ({error.reason})"
    except StoreError as error:
        return "is missing" if "is not there" in str(error) else str(error)
    return None if rows == file.record_count else f"holds {rows} rows, and its table knows {file.record_count}"


def _renamed(table: Table, names: list[str]) -> str | None:
    """Footers have no checksum, and whoever reads a column that a file lacks finds nulls: older files lack some. A file
    that lacks one and has another that the table never had was damaged."""
    strangers = set(names) - {*table.names, *OF_LOAD}
    lacking = [name for name in table.names if name not in names]
    if strangers and lacking:
        return f"holds a column {min(strangers)!r}, which its table never had, and lacks {lacking[0]!r}"
    return None


def holds_rows(path: str) -> bool:
    """Is there anything in this file, or was there, as far as one can tell?"""
    try:
        return has_rows(path)
    except DamagedFile:
        return True
