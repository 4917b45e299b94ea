"""Is a data file of a table as it was written? Asks the file and what its table knows of it, and nobody else."""

from __future__ import annotations

from pyiceberg.manifest import DataFile

from kafka_sla.errors import DamagedFile, StoreError
from kafka_sla.files import has_rows
from kafka_sla.parquet_files import batches, parquet_file


def problem_of(file: DataFile) -> str | None:
    """What is wrong with a data file; None when every page is as it was written."""
    path, rows = file.file_path, 0
    try:
        with parquet_file(path) as opened:
            for batch in batches(opened):
                rows += batch.num_rows
    except DamagedFile as error:
        return f"cannot be read ({error.reason})"
    except StoreError as error:
        return "is missing" if "is not there" in str(error) else str(error)
    return None if rows == file.record_count else f"holds {rows} rows, and its table knows {file.record_count}"


def holds_rows(path: str) -> bool:
    """Is there anything in this file, or was there, as far as one can tell?"""
    try:
        return has_rows(path)
    except DamagedFile:
        return True
