"""Single Parquet files of the warehouse: how they are written, and reading that notices damage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileType

from kafka_sla.errors import DamagedFile, StoreError
from kafka_sla.object_stores import located

_ALWAYS: dict[str, Any] = {"compression": "zstd", "coerce_timestamps": "us", "write_page_checksum": True}


def write_options(schema: pa.Schema) -> dict[str, Any]:
    """Options of a file of these columns: what Spark, DuckDB and Iceberg read alike, each page with its checksum.
    Offsets and times hardly repeat but grow evenly, also in lists, so that their differences are stored; of the rest a
    dictionary."""
    growing = {_leaf(field) for field in schema if _grows(field.type)}
    others = [leaf for field in schema for leaf in _leaves(field) if leaf not in growing]
    return _ALWAYS | {"use_dictionary": others, "column_encoding": dict.fromkeys(growing, "DELTA_BINARY_PACKED")}


def _grows(of: pa.DataType) -> bool:
    values = of.value_type if pa.types.is_list(of) else of
    return bool(pa.types.is_integer(values) or pa.types.is_timestamp(values))


def _leaves(field: pa.Field) -> list[str]:
    """The column's names in Parquet."""
    if pa.types.is_map(field.type):
        return [f"{field.name}.key_value.{part}" for part in ("key", "value")]
    return [_leaf(field)]


def _leaf(field: pa.Field) -> str:
    return f"{field.name}.list.element" if pa.types.is_list(field.type) else str(field.name)


@contextmanager
def parquet_file(path: str, dictionaries: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """The file, pages verified while they are read, those of the columns that are texts as dictionaries."""
    filesystem, inside = located(path)
    try:
        if filesystem.get_file_info(inside).type != FileType.File:
            raise DamagedFile([path], "it is not there any more")
        with filesystem.open_input_file(inside) as source:
            metadata = pq.read_metadata(source)
            schema = metadata.schema.to_arrow_schema()
            texts = [n for n in dictionaries if n in schema.names and pa.types.is_string(schema.field(n).type)]
            yield pq.ParquetFile(source, metadata=metadata, read_dictionary=texts, page_checksum_verification=True)
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and (error.errno or "AWS Error" in str(error)):
            raise StoreError(f"{path} cannot be read: {error}; make the warehouse available again") from error
        raise DamagedFile([path], " ".join(str(error).split())) from error


def batches(
    file: pq.ParquetFile,
    columns: Sequence[str] | None = None,
    size: int = 65_536,
    groups: Sequence[int] | None = None,
    *,
    use_threads: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Rows of the file, or of some row groups; all of them: the header of a page, which has no checksum, can hide some.
    To be used up inside `parquet_file`, which says what is damaged. Not `use_threads`: where others use each processor.
    """
    groups = list(range(file.num_row_groups)) if groups is None else groups
    missing = sum(file.metadata.row_group(group).num_rows for group in groups)
    if not missing:
        return
    for batch in file.iter_batches(size, row_groups=groups, columns=columns, use_threads=use_threads):
        missing -= batch.num_rows
        yield batch
    if missing:
        raise pa.ArrowInvalid(f"{missing} rows are missing")


def verify(
    files: Sequence[str],
    columns: Sequence[str] | None = None,
    row_groups: Mapping[str, Sequence[int]] | None = None,
) -> None:
    """DamagedFile when a page of these columns is not as it was written. DuckDB's own reader, which is several times
    as fast as Arrow's, does not look at checksums. `row_groups`: by file those that are read; of others all are."""
    for path in files:
        with parquet_file(path) as file:
            there = None if columns is None else [name for name in columns if name in file.schema_arrow.names]
            for _ in batches(file, there, groups=(row_groups or {}).get(path)):
                pass


def damaged(files: Sequence[str]) -> list[str]:
    """Those of the files that cannot be read whole."""
    found = []
    for path in files:
        try:
            verify([path])
        except DamagedFile:
            found.append(path)
    return found
