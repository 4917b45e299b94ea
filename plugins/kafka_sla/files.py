"""Files of the warehouse, on a disk or behind a URI: write, count, list, remove."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import FileSelector, FileSystem, FileType

from kafka_sla.errors import StoreError
from kafka_sla.object_stores import located
from kafka_sla.parquet_files import batches, parquet_file, write_options

_WITH_FOLDERS = ("local", "hdfs")
"""File systems that have folders and rename files. In an object store a name leads to a whole object or to none."""
_PART = re.compile(r"\.[0-9a-f]{32}\.part")
"""How the name of a file ends that is not whole yet: errors need not tell."""
_NOT_MOVING = "abfs"
"""Azure's renames files in accounts with folders only, and there into folders only that exist."""


def write_days(folder: str, rows: pa.Table, time: str) -> list[str]:
    """One new Parquet file below `folder` for each UTC day that the rows touch."""
    days = rows[time].cast(pa.date32())  # of UTC, as the times are
    written = []
    for day in sorted(pc.unique(days).to_pylist()):
        written.append(f"{folder}/{day.isoformat()}/{uuid.uuid4().hex}.parquet")
        write_rows(written[-1], rows.filter(pc.equal(days, day)))
    return written


def write_rows(path: str, rows: pa.Table) -> None:
    """Write one Parquet file that Spark, DuckDB and Iceberg read alike. It is there as a whole or not at all: whoever
    reads the file that it replaces goes on reading that one, and a full disk leaves no half of one."""
    _write(path, lambda target: pq.write_table(rows, target, **write_options(rows.schema)))


def _write(path: str, content: Callable[[pa.NativeFile], None]) -> None:
    filesystem, inside = located(path)
    if filesystem.type_name in _WITH_FOLDERS:
        _write_beside(path, content, filesystem, inside)
        return
    whole = pa.BufferOutputStream()
    content(whole)
    with reached(path), filesystem.open_output_stream(inside) as target:
        target.write(whole.getvalue())


def _write_beside(path: str, content: Callable[[pa.NativeFile], None], filesystem: FileSystem, inside: str) -> None:
    """The file is put in its place once it is whole and safe on the disk, and removed otherwise."""
    part = f"{inside}.{uuid.uuid4().hex}.part"
    try:
        make_parent(filesystem, inside)
        with filesystem.open_output_stream(part) as target:
            content(target)
        sync(path.removesuffix(inside) + part)
        filesystem.move(part, inside)
    except BaseException as error:
        if filesystem.get_file_info(part).type == FileType.File:
            filesystem.delete_file(part)
        raise not_written(path, error) if isinstance(error, OSError) else error from error


def make_parent(filesystem: FileSystem, path: str) -> None:
    """Make the folder that a file is to lie in, where there is such a thing as a folder."""
    if filesystem.type_name in _WITH_FOLDERS:
        filesystem.create_dir(path.rsplit("/", 1)[0], recursive=True)


def sync(path: str) -> None:
    """What was written to a file of this machine, and its name, outlive a power loss from here on; object stores see
    to that themselves."""
    if "://" in path:
        return
    for written in (Path(path), Path(path).parent):
        handle = os.open(written, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def not_written(path: str, error: OSError) -> StoreError:
    """The error for a warehouse that is full, gone or not ours to write."""
    reason = " ".join(_PART.sub("", str(error.strerror or error)).split())
    return StoreError(
        f"{path} cannot be read or written: {reason}; make room or the folder available again, and"
        " run it again: nothing half-written is left or shown"
    )


def check_writable(folder: str) -> None:
    """StoreError when it is a folder of this machine that may not be written."""
    if "://" not in folder and Path(folder).exists() and not os.access(folder, os.W_OK | os.X_OK):
        raise StoreError(f"the warehouse {folder} is read-only here: what is published can be read, all else cannot be")


@contextmanager
def reached(path: str) -> Iterator[None]:
    """A warehouse that cannot be read or written becomes a StoreError; `path`: what is looked for in it."""
    try:
        yield
    except OSError as error:
        raise not_written(path, error) from error


def write_text(path: str, text: str) -> None:
    """Write one file whole: readers see the old text or the new one."""
    _write(path, lambda target: target.write(text.encode()))


def create_text(path: str, text: str) -> None:
    """Write one file whole unless it is there. Behind a URI nothing arbitrates: there the last of two writers wins."""
    filesystem, target = located(path)
    if filesystem.type_name != "local":
        if filesystem.get_file_info(target).type == FileType.NotFound:
            write_text(path, text)
        return
    part = f"{target}.{uuid.uuid4().hex}.part"
    write_text(part, text)
    with suppress(FileExistsError):
        os.link(part, target)
    filesystem.delete_file(part)
    sync(target)


def read_text(path: str) -> str:
    """The text of one file."""
    filesystem, inside = located(path)
    with filesystem.open_input_file(inside) as source:
        return bytes(source.read()).decode()


def has_rows(path: str) -> bool:
    """Does this Parquet file hold any row? Spark writes an empty file for an empty table."""
    return rows_in(path) > 0


def rows_in(path: str) -> int:
    """How many rows this Parquet file holds."""
    with parquet_file(path) as file:
        return int(file.metadata.num_rows)


def columns_of(files: Sequence[str], schema: pa.Schema) -> pa.Table:
    """These columns of all the files, whatever else they hold."""
    parts = [schema.empty_table()]
    for path in files:
        with parquet_file(path) as file:
            parts += [pa.Table.from_batches([batch]).cast(schema) for batch in batches(file, schema.names)]
    return pa.concat_tables(parts)


def batches_of(path: str, size: int, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The rows of one Parquet file, so many at a time."""
    with parquet_file(path) as file:
        for batch in batches(file, columns, size):
            yield pa.Table.from_batches([batch])


def sizes_of(files: Sequence[str]) -> list[int]:
    """The size of each file of one warehouse in bytes, 0 where there is none."""
    places = [located(path) for path in files]
    if not places:
        return []
    infos = places[0][0].get_file_info([inside for _, inside in places])  # all at once, for each is a request
    return [info.size or 0 for info in infos]


def bytes_of(files: Iterable[str]) -> int:
    """The size of all these files together."""
    return sum(sizes_of(list(files)))


def entries_of(folder: str) -> list[str]:
    """What lies directly in the folder, files and folders, by full path or URI."""
    filesystem, inside = located(folder)
    if filesystem.type_name == "gcs":  # which shows no folders but those that somebody made
        names = {path.removeprefix(f"{folder}/").partition("/")[0] for path in files_below(folder)}
        return sorted(f"{folder}/{name}" for name in names)
    with reached(folder):
        found = filesystem.get_file_info(FileSelector(inside, allow_not_found=True))
    return sorted(folder + info.path.removeprefix(inside) for info in found)


def files_below(folder: str) -> dict[str, datetime]:
    """Every file below the folder, by full path or URI, and when it was last written."""
    folder = folder.rstrip("/")
    filesystem, inside = located(folder)
    with reached(folder):
        found = filesystem.get_file_info(FileSelector(inside, allow_not_found=True, recursive=True))
    return {folder + info.path.removeprefix(inside): info.mtime for info in found if info.type == FileType.File}


def move_files(files: Iterable[str], folder: str, target: str) -> int:
    """Move files below `folder` to the same place below `target`; one that is gone already is no error. Answers how
    many there were."""
    moved = 0
    for path in files:
        filesystem, inside = located(path)
        place = located(target + path.removeprefix(folder))[1]
        with reached(path):
            make_parent(filesystem, place)
            moved += _moved(filesystem, inside, place)
    return moved


def _moved(filesystem: FileSystem, inside: str, place: str) -> bool:
    """False when the file is not there; object stores have an error of their own for that."""
    try:
        if filesystem.type_name == _NOT_MOVING:
            filesystem.copy_file(inside, place)
            filesystem.delete_file(inside)
        else:
            filesystem.move(inside, place)
    except OSError:
        if filesystem.get_file_info(inside).type == FileType.NotFound:
            return False
        raise
    return True


def remove_files(files: Iterable[str]) -> int:
    """Delete these files; one that is gone already is no error. Answers how many there were."""
    removed = 0
    for path in files:
        filesystem, inside = located(path)
        if filesystem.get_file_info(inside).type == FileType.File:
            filesystem.delete_file(inside)
            removed += 1
    return removed


def remove_empty_folder(folder: str) -> None:
    """Delete a folder that holds no file any more, with the empty folders in it."""
    filesystem, inside = located(folder)
    if filesystem.get_file_info(inside).type == FileType.Directory and not files_below(folder):
        filesystem.delete_dir(inside)
