"""A day of facts in few files, each row once: in one file, or where it has more rows than should be in memory at once,
in several that follow each other in time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from kafka_sla.files import write_days
from kafka_sla.lake.duckdb_reader import distinct_rows
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import Table

MOST_ROWS = 4_000_000
"""Some 300 bytes each while they are sorted."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def day_of(partition: object) -> Interval | None:
    """The day of a fact file: PyIceberg keeps it as days since 1970."""
    if not isinstance(partition, int):
        return None
    start = _EPOCH + timedelta(days=partition)
    return Interval(start, start + timedelta(days=1))


def files_of_day(rows: int, most_rows: int = MOST_ROWS) -> int:
    """In how many files so many rows of a day are kept."""
    return max(1, -(-rows // most_rows))


def rewritten(
    table: Table, folder: str, pieces: Iterable[Interval], files_of: Callable[[Interval], Sequence[str]]
) -> list[str]:
    """New files below the folder with the rows of these pieces of time, without repeated ones. `files_of`: the files
    that may have rows of a piece."""
    written = []
    for piece in pieces:
        rows = distinct_rows(table, files_of(piece), piece)
        written += write_days(folder, rows, table.time)
    return written


def pieces_of(day: Interval, count: int) -> Iterator[Interval]:
    """The day in so many pieces, which have about as many rows where these are spread evenly."""
    return day.pieces(-(-((day.end - day.start) // _MICROSECOND) // count) * _MICROSECOND)
