"""The events of one Spark task, unpacked and sorted. Knows the kinds of events, not what is measured with them.

Names become numbers first, and facts come from files that are sorted: merging sorted runs is most of what is left to
do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.spark_jobs.events.carry_over import carried_commits
from kafka_sla.spark_jobs.events.layouts import (
    COMMITS,
    CONFIGURATIONS,
    LATENCY,
    LAYOUTS,
    PLACE,
    POINTS,
    RANGES,
    STATES,
    STATUS,
    UNREAD,
)
from kafka_sla.spark_jobs.numeric.arrays import NONE, Ints
from kafka_sla.spark_jobs.numeric.scans import time_order

_PLACE = list(PLACE)


@dataclass(frozen=True, slots=True)
class Sorted:
    """Events of one kind: their rows, and for each the index of its topic-partition among the task's."""

    rows: pa.Table
    place: Ints

    def between(self, first: int, last: int) -> Sorted:
        """The events of topic-partitions first … last - 1, counted from `first` on."""
        a, b = np.searchsorted(self.place, [first, last])
        return Sorted(self.rows.slice(a, b - a), self.place[a:b] - first)


@dataclass(frozen=True, slots=True)
class TaskEvents:
    """All events of a task; points and ranges sorted by (topic-partition, time, offset), commits by (topic-partition,
    group, time, offset), status and unread records by (topic-partition, group, time)."""

    places: pa.Table
    """cluster, topic, partition: one row per topic-partition, sorted."""
    groups: pa.Array
    """Names of groups, sorted; the column `group` of what follows holds indexes of it."""
    points: Sorted
    ranges: Sorted
    commits: Sorted
    """Those of the replayed facts and those carried over."""
    status: Sorted
    unread: Sorted
    configurations: pa.Table


def in_order(batches: Iterable[pa.RecordBatch]) -> TaskEvents:
    """Unpack the batches (shuffle.BLOCKS) of one task."""
    blocks: dict[str, list[pa.Table]] = {kind: [layout.empty_table()] for kind, layout in LAYOUTS.items()}
    for batch in batches:
        for kind, block in zip(batch.column("kind").to_pylist(), batch.column("block"), strict=True):
            blocks[kind].append(pa.ipc.open_stream(block.as_buffer()).read_all())
    found = {kind: _joined(blocks.pop(kind)) for kind in LAYOUTS if kind != COMMITS}
    carried = carried_commits(found[LATENCY], found[STATES], found[STATUS])
    return _sorted(found | {COMMITS: _joined([*blocks.pop(COMMITS), carried])})


def _joined(blocks: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(blocks, promote_options="default").unify_dictionaries().combine_chunks()


def _sorted(events: dict[str, pa.Table]) -> TaskEvents:
    kinds = (POINTS, RANGES, COMMITS, STATUS, UNREAD)
    found = {kind: _places(events[kind]) for kind in kinds}
    every = sorted({place for places, _ in found.values() for place in places})
    index = {place: number for number, place in enumerate(every)}
    place = {kind: np.array([index[p] for p in places], dtype=np.int64)[of] for kind, (places, of) in found.items()}
    groups = pa.array(sorted({g for kind in kinds[2:] for g in _dictionary(events[kind]).to_pylist()}), pa.string())
    columns = [pa.array(column) for column in zip(*every, strict=True)] or [pa.nulls(0)] * len(_PLACE)
    points, ranges, commits, status, unread = (_in_place(events[kind], place[kind], groups) for kind in kinds)
    return TaskEvents(
        pa.table(columns, names=_PLACE), groups, points, ranges, commits, status, unread, events[CONFIGURATIONS]
    )


def _places(rows: pa.Table) -> tuple[list[tuple[str, str, int]], Ints]:
    """The different topic-partitions of these events, and which one each event is of."""
    cluster, topic = (rows.column(name).combine_chunks() for name in ("cluster", "topic"))
    partition = rows.column("partition").to_numpy().astype(np.int64)
    shape = max(1, len(cluster.dictionary)), max(1, len(topic.dictionary)), int(partition.max(initial=0)) + 1
    key = (cluster.indices.to_numpy() * np.int64(shape[1]) + topic.indices.to_numpy()) * shape[2] + partition
    of = pa.array(key).dictionary_encode()
    clusters, topics, partitions = np.unravel_index(of.dictionary.to_numpy(), shape)
    names = (
        array.take(pa.array(at)).to_pylist()
        for array, at in ((cluster.dictionary, clusters), (topic.dictionary, topics))
    )
    return list(zip(*names, partitions.tolist(), strict=True)), of.indices.to_numpy().astype(np.int64)


def _dictionary(rows: pa.Table) -> pa.Array:
    return rows.column("group").combine_chunks().dictionary


def _in_place(rows: pa.Table, place: Ints, groups: pa.Array) -> Sorted:
    """The rows by place, group, time and offset; groups as indexes of their names."""
    key, rows = place, rows.drop_columns(_PLACE)
    if "group" in rows.column_names:
        rank = pc.index_in(_dictionary(rows), groups).to_numpy().astype(np.int64)
        group = rank[rows.column("group").combine_chunks().indices.to_numpy()]
        rows = rows.set_column(rows.column_names.index("group"), "group", pa.array(group))
        key = place * len(groups) + group
    order = time_order(key, ints(rows, "at"), ints(rows, "offset") if "offset" in rows.column_names else None)
    return Sorted(rows.take(pa.array(order)).combine_chunks(), place[order])


def ints(rows: pa.Table, name: str) -> Ints:
    """A column of numbers with NONE for null."""
    values: Ints = filled(rows.column(name), NONE).to_numpy()
    return values


def filled(column: pa.ChunkedArray, value: Any) -> pa.ChunkedArray:
    """With the value for null."""
    return pc.fill_null(column, value) if column.null_count else column
