"""The way of events to the tasks that measure them: each task's share of some facts is packed into one value.

Spark would take rows apart and put them together again, value by value, at each of reading, shuffling and handing over
to Python; that was most of measuring. What Spark shuffles are *blocks* instead: the Arrow IPC stream of the events of
one kind that came in one batch and belong to one task, facts by `run_lengths`. A task gets whole topic-partitions, and
what belongs to none of them in particular. `reading` makes the events, `in_order` unpacks them.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from kafka_sla.spark_jobs.events import run_lengths
from kafka_sla.spark_jobs.events.layouts import IN_RUNS, NAME
from kafka_sla.spark_jobs.numeric.arrays import Ints

BLOCKS = "task INT, kind STRING, block BINARY"
"""Schema of the packed events."""
_WRITTEN = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ = pa.ipc.IpcReadOptions(use_threads=False)
"""Every processor has a task; a thread for each column would only wait for another one's."""
_FEW_NAMES = 100
"""So many are sent sooner than it takes to tell which of them are needed."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


def blocks_of(kind: str, events: pa.Table, tasks: int) -> pa.RecordBatch:
    """One row of BLOCKS for each task that any of the events, in the columns of their kind's layout, belongs to."""
    if "partition" not in events.column_names:
        return _batch(kind, range(tasks), [_ipc(events)] * tasks)
    events = run_lengths.packed(events) if kind in IN_RUNS else events
    task = _task(events, tasks)
    order = np.argsort(task, kind="stable")
    events, task = events.take(pa.array(order)).combine_chunks(), task[order]
    begins = np.flatnonzero(np.diff(task, prepend=-1))
    blocks = [_ipc(events.slice(a, b - a)) for a, b in pairwise([*begins.tolist(), len(task)])]
    return _batch(kind, task[begins].tolist(), blocks)


def events_in(block: pa.BinaryScalar) -> pa.Table:
    """What `blocks_of` packed: of facts, their run lengths."""
    return pa.ipc.open_stream(block.as_buffer(), options=_READ).read_all()


def _batch(kind: str, tasks: Sequence[int], blocks: Sequence[bytes]) -> pa.RecordBatch:
    columns = [pa.array(tasks, pa.int32()), pa.array([kind] * len(blocks), pa.string()), pa.array(blocks, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["task", "kind", "block"])


def _task(events: pa.Table, tasks: int) -> Ints:
    """The task of each event, the same for all events of a topic-partition, whoever reads them."""
    key = events.column("partition").to_numpy().astype(np.uint64)
    for name in ("cluster", "topic"):
        column = events.column(name).combine_chunks()
        hashes = [zlib.crc32(value.encode()) for value in column.dictionary.to_pylist()]
        key = key * _MIX + np.array(hashes, dtype=np.uint64)[column.indices.to_numpy()]
    key = (key ^ (key >> np.uint64(29))) * _MIX
    task: Ints = ((key ^ (key >> np.uint64(32))) % np.uint64(tasks)).astype(np.int64)
    return task


def _ipc(events: pa.Table) -> bytes:
    columns = [_compact(c.combine_chunks()) if c.type == NAME else c for c in events.columns]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, events.schema, options=_WRITTEN) as stream:
        stream.write_table(pa.table(columns, schema=events.schema))
    return bytes(sink.getvalue())


def _compact(names: pa.DictionaryArray) -> pa.DictionaryArray:
    """Without the names that other tasks' events have, if there are many; whole where some are null, as topic ids
    are."""
    if names.null_count or len(names.dictionary) <= _FEW_NAMES:
        return names
    index = names.indices.to_numpy()
    used = np.flatnonzero(np.bincount(index, minlength=len(names.dictionary)))
    place = np.zeros(len(names.dictionary), dtype=np.int32)
    place[used] = np.arange(len(used))
    return pa.DictionaryArray.from_arrays(place[index], names.dictionary.take(pa.array(used)))
