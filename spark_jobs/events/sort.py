"""The events of one Spark task, unpacked and sorted. Knows the kinds of events, not what is measured with them.

Names become numbers first, and facts come from files that are sorted, as run lengths: to put these in order is most of
what is left to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.spark_jobs.events import run_lengths
from kafka_sla.spark_jobs.events.carry_over import carried_assumptions, carried_commits
from kafka_sla.spark_jobs.events.columns import ints
from kafka_sla.spark_jobs.events.layouts import (
    COMMITS,
    CONFIGURATIONS,
    IN_RUNS,
    LATENCY,
    LAYOUTS,
    PLACE,
    POINTS,
    RANGES,
    SIGHTINGS,
    STATES,
    STATUS,
    UNREAD,
)
from kafka_sla.spark_jobs.events.shuffle import events_in
from kafka_sla.spark_jobs.numeric.arrays import Bools, Ints
from kafka_sla.spark_jobs.numeric.scans import time_order

_PLACE = list(PLACE)
_CARRIED, _ASSUMED = "carried", "assumed"


@dataclass(frozen=True, slots=True)
class Sorted:
    """Events of one kind: their rows, and for each the index of its topic-partition among the task's."""

    rows: pa.Table
    place: Ints

    def between(self, first: int, last: int) -> Sorted:
        """The events of topic-partitions first … last - 1, counted from `first` on."""
        a, b = np.searchsorted(self.place, [first, last])
        return Sorted(self.rows.slice(a, b - a), self.place[a:b] - first)

    def only(self, kept: Bools) -> Sorted:
        """Some of these events."""
        return Sorted(self.rows.filter(pa.array(kept)), self.place[kept])


@dataclass(frozen=True, slots=True)
class TaskEvents:
    """All events of a task; points and ranges sorted by (topic-partition, time, offset), commits by (topic-partition,
    group, time, offset), the others by (topic-partition, group, time)."""

    places: pa.Table
    """cluster, topic, partition: one row per topic-partition, sorted."""
    groups: pa.Array
    """Names of groups, sorted; the column `group` of what follows holds indexes of it."""
    points: Sorted
    ranges: Sorted
    commits: Sorted
    """Those of the replayed facts and those carried over."""
    carried: Sorted
    """Those that were carried over, once more, with `log_start`, `log_end` and `carry`."""
    status: Sorted
    unread: Sorted
    configurations: pa.Table
    assumed: Sorted
    """Positions that were carried over and assumed: as `carried`."""
    sightings: pa.Table
    """When groups were seen on topics, whichever task their partitions belong to."""


def in_order(batches: Iterable[pa.RecordBatch]) -> TaskEvents:
    """Unpack the batches (shuffle.BLOCKS) of one task."""
    blocks: dict[str, list[pa.Table]] = {kind: [_nothing(kind)] for kind in LAYOUTS}
    for batch in batches:
        for kind, block in zip(batch.column("kind").to_pylist(), batch.column("block"), strict=True):
            blocks[kind].append(events_in(block))
    found = {kind: _joined(blocks.pop(kind)) for kind in LAYOUTS if kind != COMMITS}
    carried = carried_commits(found[LATENCY], found[STATES], found[STATUS])
    packed = run_lengths.packed(carried.select(LAYOUTS[COMMITS].names))
    assumed = carried_assumptions(found[LATENCY], found[STATES])
    commits = _joined([*blocks.pop(COMMITS), packed])
    return _sorted(found | {COMMITS: commits, _CARRIED: carried, _ASSUMED: assumed})


def _nothing(kind: str) -> pa.Table:
    nothing = LAYOUTS[kind].empty_table()
    return run_lengths.packed(nothing) if kind in IN_RUNS else nothing


def _joined(blocks: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(blocks, promote_options="default").unify_dictionaries().combine_chunks()


def _sorted(events: dict[str, pa.Table]) -> TaskEvents:
    kinds = (POINTS, RANGES, COMMITS, _CARRIED, STATUS, UNREAD, _ASSUMED)
    found = {kind: _places(events[kind]) for kind in kinds}
    every = sorted({place for places, _ in found.values() for place in places})
    index = {place: number for number, place in enumerate(every)}
    place = {kind: np.array([index[p] for p in places], dtype=np.int64)[of] for kind, (places, of) in found.items()}
    with_groups = (*kinds[2:], SIGHTINGS)
    names = {name for kind in with_groups for name in _groups(events[kind]).dictionary.to_pylist()}
    groups = pa.array(sorted(names), pa.string())
    columns = [pa.array(column) for column in zip(*every, strict=True)] or [pa.nulls(0)] * len(_PLACE)
    places = pa.table(columns, names=_PLACE)
    points, ranges, commits, carried, status, unread, assumed = (
        _in_place(kind, events[kind], place[kind], groups) for kind in kinds
    )
    configurations, sightings = events[CONFIGURATIONS], events[SIGHTINGS]
    return TaskEvents(
        places, groups, points, ranges, commits, carried, status, unread, configurations, assumed, sightings
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


def _groups(rows: pa.Table) -> pa.DictionaryArray:
    return rows.column("group").combine_chunks()


def _in_place(kind: str, rows: pa.Table, place: Ints, groups: pa.Array) -> Sorted:
    """The rows by place, group, time and offset; groups as indexes of their names."""
    rows = rows.drop_columns(_PLACE)
    if "group" in rows.column_names:
        of = _groups(rows)
        group = pc.index_in(of.dictionary, groups).to_numpy().astype(np.int64)[of.indices.to_numpy()]
        rows = rows.set_column(rows.column_names.index("group"), "group", pa.array(group))
    found = _by_time(Sorted(rows, place))
    return _by_time(_unpacked(found)) if kind in IN_RUNS else found


def _unpacked(packed: Sorted) -> Sorted:
    """The events of runs that are in their place: so are they, unless two runs overlap, or one is in no order. Of equal
    ones those come first whose run begins first."""
    rows, count = run_lengths.unpacked(packed.rows), run_lengths.count(packed.rows)
    if "group" in packed.rows.column_names:
        rows = rows.append_column("group", pa.array(np.repeat(ints(packed.rows, "group"), count)))
    return Sorted(rows, np.repeat(packed.place, count))


def _by_time(events: Sorted) -> Sorted:
    """The same by place, group, time and offset; no copy of what is."""
    rows, key = events.rows, events.place
    if "group" in rows.column_names:
        group = ints(rows, "group")
        key = key * (int(group.max(initial=0)) + 1) + group
    order = time_order(key, ints(rows, "at"), ints(rows, "offset") if "offset" in rows.column_names else None)
    if (np.diff(order) == 1).all():
        return events
    return Sorted(rows.take(pa.array(order)).combine_chunks(), events.place[order])
