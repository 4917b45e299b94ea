"""The sorting of one Spark task's events, by NumPy. Knows the columns that order events, not what they mean.

Spark would compare names row by row. Here names become numbers first, and facts come from files that are sorted:
merging sorted runs is most of what is left to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.arrays import NONE, Ints


def in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All events, whole topic-partitions together, points (no group) before commits, by time and offset."""
    gathered = list(batches)
    if not gathered:
        return
    events = pa.Table.from_batches(gathered)
    gathered.clear()
    events = events.take(pa.array(_order(events)))
    yield from events.to_batches()


def _order(events: pa.Table) -> Ints:
    """Where each event of the sorted stream stands now."""
    place = np.zeros(events.num_rows, dtype=np.int64)
    for name in ("cluster", "topic"):
        rank, count = _ranks(events.column(name))
        place = place * count + rank
    partition = events.column("partition").to_numpy().astype(np.int64)
    place = place * (int(partition.max(initial=0)) + 1) + partition
    group, _ = _ranks(events.column("group"))
    order: Ints = np.lexsort((_ints(events, "offset"), _ints(events, "at"), group, place))
    return order


def _ranks(names: pa.ChunkedArray) -> tuple[Ints, int]:
    """The rank of each name among the different ones, and how many there are; null is before all."""
    encoded = pc.dictionary_encode(names).combine_chunks()
    order = np.empty(len(encoded.dictionary) + 1, dtype=np.int64)
    order[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
    order[-1] = NONE
    return order[pc.fill_null(encoded.indices, NONE).to_numpy()], len(order)


def _ints(events: pa.Table, name: str) -> Ints:
    values: Ints = pc.fill_null(events.column(name), NONE).to_numpy()
    return values
