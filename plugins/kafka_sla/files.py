"""Files of the warehouse, on a disk or behind a URI: write, count, list, remove. Knows no table format."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import FileSelector, FileSystem, FileType

from kafka_sla.errors import StoreError


def write_days(folder: str, rows: pa.Table, time: str) -> list[str]:
    """One new Parquet file below `folder` for each UTC day that the rows touch."""
    days = pc.strftime(rows[time], format="%Y-%m-%d")
    written = []
    for day in sorted(pc.unique(days).to_pylist()):
        written.append(f"{folder}/{day}/{uuid.uuid4().hex}.parquet")
        write_rows(written[-1], rows.filter(pc.equal(days, day)))
    return written


def write_rows(path: str, rows: pa.Table) -> None:
    """Write one Parquet file that Spark, DuckDB and Iceberg read alike. It is there as a whole or not at all: whoever
    reads the file that it replaces goes on reading that one, and a full disk leaves no half of one."""
    filesystem, inside = FileSystem.from_uri(path)
    part = f"{inside}.{uuid.uuid4().hex}.part"
    try:
        filesystem.create_dir(inside.rsplit("/", 1)[0], recursive=True)
        pq.write_table(rows, part, filesystem=filesystem, compression="zstd", coerce_timestamps="us")
        filesystem.move(part, inside)
    except OSError as error:
        if filesystem.get_file_info(part).type == FileType.File:
            filesystem.delete_file(part)
        raise not_written(path, error) from error


def not_written(path: str, error: OSError) -> StoreError:
    """The error for a warehouse that is full, gone or not ours to write."""
    return StoreError(
        f"{path} cannot be read or written: {error.strerror or error}; make room or the folder available again, and"
        " run it again: nothing half-written is left or shown"
    )


@contextmanager
def reached(path: str) -> Iterator[None]:
    """A warehouse that cannot be read or written becomes a StoreError; `path`: what is looked for in it."""
    try:
        yield
    except OSError as error:
        raise not_written(path, error) from error


def write_text(path: str, text: str) -> None:
    """Write one file whole: readers see the old text or the new one."""
    filesystem, inside = FileSystem.from_uri(path)
    filesystem.create_dir(inside.rsplit("/", 1)[0], recursive=True)
    part = f"{inside}.{uuid.uuid4().hex}.part"
    with filesystem.open_output_stream(part) as target:
        target.write(text.encode())
    filesystem.move(part, inside)


def read_text(path: str) -> str:
    """The text of one file."""
    filesystem, inside = FileSystem.from_uri(path)
    with filesystem.open_input_file(inside) as source:
        return bytes(source.read()).decode()


def has_rows(path: str) -> bool:
    """Does this Parquet file hold any row? Spark writes an empty file for an empty table."""
    filesystem, inside = FileSystem.from_uri(path)
    with reached(path):
        if filesystem.get_file_info(inside).type != FileType.File:
            raise StoreError(f"{path} is not there any more: measure its interval again")
        with filesystem.open_input_file(inside) as source:
            return bool(pq.read_metadata(source).num_rows)


def columns_of(files: Sequence[str], schema: pa.Schema) -> pa.Table:
    """These columns of all the files, whatever else they hold."""
    parts = [schema.empty_table()]
    for path in files:
        filesystem, inside = FileSystem.from_uri(path)
        parts.append(pq.read_table(inside, filesystem=filesystem, columns=schema.names).cast(schema))
    return pa.concat_tables(parts)


def batches_of(path: str, size: int, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The rows of one Parquet file, so many at a time."""
    filesystem, inside = FileSystem.from_uri(path)
    with filesystem.open_input_file(inside) as source:
        for batch in pq.ParquetFile(source).iter_batches(batch_size=size, columns=columns):
            yield pa.Table.from_batches([batch])


def sizes_of(files: Sequence[str]) -> list[int]:
    """The size of each file in bytes, 0 where there is none."""
    places = [FileSystem.from_uri(path) for path in files]
    return [filesystem.get_file_info(inside).size or 0 for filesystem, inside in places]


def bytes_of(files: Iterable[str]) -> int:
    """The size of all these files together."""
    return sum(sizes_of(list(files)))


def files_below(folder: str) -> dict[str, datetime]:
    """Every file below the folder, by full path or URI, and when it was last written."""
    folder = folder.rstrip("/")
    filesystem, inside = FileSystem.from_uri(folder)
    with reached(folder):
        found = filesystem.get_file_info(FileSelector(inside, allow_not_found=True, recursive=True))
    return {folder + info.path.removeprefix(inside): info.mtime for info in found if info.type == FileType.File}


def remove_files(files: Iterable[str]) -> int:
    """Delete these files; one that is gone already is no error. Answers how many there were."""
    removed = 0
    for path in files:
        filesystem, inside = FileSystem.from_uri(path)
        if filesystem.get_file_info(inside).type == FileType.File:
            filesystem.delete_file(inside)
            removed += 1
    return removed


def remove_empty_folder(folder: str) -> None:
    """Delete a folder that holds no file any more, with the empty folders in it."""
    filesystem, inside = FileSystem.from_uri(folder)
    if filesystem.get_file_info(inside).type == FileType.Directory and not files_below(folder):
        filesystem.delete_dir(inside)
