"""The way of events to the tasks that measure them: each task's share of some facts is packed into one value.

Spark would take rows apart and put them together again, value by value, at each of reading, shuffling and handing over
to Python; that was most of measuring. Here Arrow reads the files, and what Spark shuffles are *packs*: the Arrow
IPC stream of the events of one kind that came in one batch and belong to one task. A task gets whole topic-partitions.

Kinds of events: *points* of produced timelines, *ranges* of offsets that were read, and *commits*, among them positions
that were carried over. Times are µs. Knows the fact tables, no metric; what was packed is put in order by `order`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from kafka_sla.job import Job
from kafka_sla.model import Patterns, epoch_ms
from kafka_sla.tables import COMMITTED_OFFSETS, COMPACTED, EVERY_COMMIT, LOG_OFFSETS, RECORD_RANGES, UNCHANGED
from kafka_sla.warehouse import sizes_of
from spark_jobs.arrays import Bools, Ints

PACKS = "task INT, kind STRING, pack BINARY"
"""Schema of the packed events."""
POINTS, RANGES, COMMITS = "points", "ranges", "commits"
_NAME = pa.dictionary(pa.int32(), pa.string())
_PLACE = [("cluster", _NAME), ("topic", _NAME), ("partition", pa.int32())]
LAYOUTS = {
    POINTS: pa.schema(
        [*_PLACE, ("at", pa.int64()), ("offset", pa.int64()), ("log_start", pa.int64()), ("polled", pa.bool_())]
    ),
    RANGES: pa.schema([
        *_PLACE, ("at", pa.int64()), ("offset", pa.int64()), ("until", pa.int64()), ("records", pa.int64()),
        ("earliest", pa.int64()), ("latest", pa.int64()),
    ]),
    COMMITS: pa.schema([
        *_PLACE, ("group", _NAME), ("at", pa.int64()), ("offset", pa.int64()), ("polled", pa.bool_()),
        ("certain", pa.bool_()), ("earlier_lost", pa.bool_()), ("carried", pa.bool_()), ("log_start", pa.int64()),
        ("carry", pa.string()),
    ]),
}  # fmt: skip
"""Columns of each kind. `offset` null: the commit was deleted; `polled`: it was seen, not heard of; `certain`: no
commit after it goes unheard; `earlier_lost`: commits before it may have been compacted away; `carry`: JSON of the
steady states. A pack may lack columns that only carried positions have."""

_KINDS = {LOG_OFFSETS.name: POINTS, RECORD_RANGES.name: RANGES, COMMITTED_OFFSETS.name: COMMITS}
_NAMES = ("cluster", "topic", "group", "source")
_BATCH_ROWS = 1_000_000
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
_MIX = np.uint64(0x9E3779B97F4A7C15)
Packing = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Part:
    """Some row groups of a fact file: every `of`-th one from `nth` on."""

    table: str
    path: str
    nth: int = 0
    of: int = 1


def shares(job: Job, share_bytes: int) -> list[list[Part]]:
    """The job's fact files in shares of about so many bytes: large files are divided, small ones are read together."""
    files = [(table, path) for table in _KINDS for path in job.facts.get(table, [])]
    found: list[list[Part]] = []
    room = 0
    for (table, path), size in zip(files, sizes_of([path for _, path in files]), strict=True):
        parts = 1 + size // share_bytes
        if parts > 1:
            found += [[Part(table, path, nth, parts)] for nth in range(parts)]
            room = 0
        elif size <= room:
            found[-1].append(Part(table, path))
            room -= size
        else:
            found.append([Part(table, path)])
            room = share_bytes - size
    return found


def reading(job: Job, parts: list[list[Part]], tasks: int) -> Packing:
    """A function for `DataFrame.mapInArrow`: indexes of shares in, the packs of their events out."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for share in (number for batch in batches for number in batch.column(0).to_pylist()):
            for part in parts[share]:
                for rows in _read(part):
                    yield packed(_KINDS[part.table], _events(job, part.table, rows), tasks)

    return run


def carrying(tasks: int) -> Packing:
    """The same for carried positions: rows of the layout of commits in, their packs out."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = pa.Table.from_batches([batch]).select(LAYOUTS[COMMITS].names)
            yield packed(COMMITS, rows.cast(LAYOUTS[COMMITS]), tasks)

    return run


def packed(kind: str, events: pa.Table, tasks: int) -> pa.RecordBatch:
    """One row of PACKS for each task that any of the events, in the columns of their kind's layout, belongs to."""
    task = _task(events, tasks)
    order = np.argsort(task, kind="stable")
    events, task = events.take(pa.array(order)).combine_chunks(), task[order]
    begins = np.flatnonzero(np.diff(task, prepend=-1))
    packs = [_ipc(events.slice(a, b - a)) for a, b in pairwise([*begins.tolist(), len(task)])]
    return pa.RecordBatch.from_arrays(
        [pa.array(task[begins], pa.int32()), pa.array([kind] * len(packs), pa.string()), pa.array(packs, pa.binary())],
        ["task", "kind", "pack"],
    )


def _task(events: pa.Table, tasks: int) -> Ints:
    """The task of each event, the same for all events of a topic-partition, whoever packs them."""
    key = events.column("partition").to_numpy().astype(np.uint64)
    for name in ("cluster", "topic"):
        column = events.column(name).combine_chunks()
        hashes = [zlib.crc32(value.encode()) for value in column.dictionary.to_pylist()]
        key = key * _MIX + np.array(hashes, dtype=np.uint64)[column.indices.to_numpy()]
    key = (key ^ (key >> np.uint64(29))) * _MIX
    task: Ints = ((key ^ (key >> np.uint64(32))) % np.uint64(tasks)).astype(np.int64)
    return task


def _ipc(events: pa.Table) -> bytes:
    columns = [_compact(c.combine_chunks()) if c.type == _NAME else c for c in events.columns]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, events.schema, options=_COMPRESSED) as stream:
        stream.write_table(pa.table(columns, schema=events.schema))
    return bytes(sink.getvalue())


def _compact(names: pa.DictionaryArray) -> pa.DictionaryArray:
    """Without the names that other tasks' events have."""
    index = names.indices.to_numpy()
    used = np.flatnonzero(np.bincount(index, minlength=len(names.dictionary)))
    place = np.zeros(len(names.dictionary), dtype=np.int32)
    place[used] = np.arange(len(used))
    return pa.DictionaryArray.from_arrays(place[index], names.dictionary.take(pa.array(used)))


def _read(part: Part) -> Iterator[pa.Table]:
    """Rows of a part in batches, names as dictionaries; a file of an older version lacks what came since."""
    filesystem, inside = FileSystem.from_uri(part.path)
    with filesystem.open_input_file(inside) as source:
        metadata = pq.read_metadata(source)
        names = set(_NAMES) & set(metadata.schema.names)
        file = pq.ParquetFile(source, metadata=metadata, read_dictionary=sorted(names))
        groups = list(range(part.nth, file.num_row_groups, part.of))
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, row_groups=groups) if groups else ():
            yield pa.Table.from_batches([batch])


def _events(job: Job, table: str, rows: pa.Table) -> pa.Table:
    """What the job measures with of these facts, in the layout of their kind."""
    at: Ints = _micros(rows, "at").to_numpy()
    columns = {
        LOG_OFFSETS.name: _of_points, RECORD_RANGES.name: _of_ranges, COMMITTED_OFFSETS.name: _of_commits
    }[table](rows)  # fmt: skip
    end = epoch_ms(job.interval.end) * 1_000
    wanted = at <= end
    if table == COMMITTED_OFFSETS.name:  # what polls find at the end was committed before
        wanted = (at < end) | ((at == end) & ~columns["certain"])
    wanted &= _selected(job, rows, at)
    columns |= {name: _names(rows, name) for name in ("cluster", "topic", "group") if name in rows.column_names}
    columns |= {"partition": rows["partition"], "at": pa.array(at)}
    layout = [field for field in LAYOUTS[_KINDS[table]] if field.name in columns]
    found = pa.table([_cast(columns[field.name], field.type) for field in layout], schema=pa.schema(layout))
    return found if wanted.all() else found.filter(pa.array(wanted))


def _of_points(rows: pa.Table) -> dict[str, Any]:
    return {"offset": rows["log_end_offset"], "log_start": _column(rows, "log_start_offset"),
            "polled": ~_is(rows, "source", lambda word: word in ("list_offsets", "record"))}  # fmt: skip


def _of_ranges(rows: pa.Table) -> dict[str, Any]:
    times = {name: _micros(rows, name) for name in ("earliest", "latest")}
    return {"offset": rows["first_offset"], "until": rows["end_offset"], "records": rows["records"], **times}


def _of_commits(rows: pa.Table) -> dict[str, Any]:
    return {
        "offset": rows["committed_offset"],
        "polled": _is(rows, "source", lambda word: word not in EVERY_COMMIT),
        "certain": _is(rows, "source", lambda word: word in (*EVERY_COMMIT, UNCHANGED)),
        "earlier_lost": _is(rows, "source", lambda word: word == COMPACTED),
    }


def _selected(job: Job, rows: pa.Table, at: Ints) -> Bools:
    """Facts of the job's clusters whose topic and group that cluster's patterns select; of commits those that the job
    replays."""
    found = np.zeros(rows.num_rows, dtype=np.bool_)
    for replay in job.replays:
        one = _is(rows, "cluster", replay.cluster.name.__eq__) & _fits(rows, "topic", replay.cluster.topics)
        if "group" in rows.column_names:
            one &= _fits(rows, "group", replay.cluster.groups)
            if replay.carried:
                one &= at >= epoch_ms(replay.carried.at) * 1_000
        found |= one
    return found


def _fits(rows: pa.Table, name: str, patterns: Patterns) -> Bools:
    return _is(rows, name, patterns.matches)


def _is(rows: pa.Table, name: str, test: Callable[[str], bool]) -> Bools:
    """Which rows' names pass a test; each name is tested once a batch."""
    names = _names(rows, name)
    passed = np.array([test(value) for value in names.dictionary.to_pylist()], dtype=np.bool_)
    found: Bools = passed[names.indices.to_numpy()]
    return found


def _names(rows: pa.Table, name: str) -> pa.DictionaryArray:
    column = rows[name].combine_chunks()
    column = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    return column.cast(_NAME)


def _micros(rows: pa.Table, name: str) -> pa.ChunkedArray:
    return rows[name].cast(pa.timestamp("us", "UTC")).cast(pa.int64())


def _column(rows: pa.Table, name: str) -> pa.ChunkedArray | pa.Array:
    return rows[name] if name in rows.column_names else pa.nulls(rows.num_rows, pa.int64())


def _cast(values: Any, to: pa.DataType) -> pa.ChunkedArray | pa.Array:
    return (pa.array(values) if isinstance(values, np.ndarray) else values).cast(to)
