"""The one pass over all events: Arrow batches in, rows of latency with steady states out. No session, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from kafka_sla.model import Sla
from kafka_sla.tables import CONSUMER_LATENCY, STEADY_STATE, Table
from spark_jobs import consumer_latency, steady_state
from spark_jobs.chunks import Chunk, chunks
from spark_jobs.order import in_order
from spark_jobs.segments import segments, steps
from spark_jobs.windows import Scope, alive, ends, rows

MEASURED = f"{CONSUMER_LATENCY.ddl.replace(' NOT NULL', '')}, states {steady_state.STATES}"
"""Schema of the kernel's rows: `consumer_latency` and the states of each row."""


def kernel(scope: Scope, slas: tuple[Sla, ...]) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """A function for `DataFrame.mapInArrow`: packs of one task's events in, rows of MEASURED out."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for measured in _measured(batches, scope, slas):
            yield from measured.to_batches(max_chunksize=50_000)

    return run


def tables(
    scope: Scope, slas: tuple[Sla, ...]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[dict[Table, pa.Table]]]:
    """The same rows, as rows of the tables that they belong to."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[Table, pa.Table]]:
        for measured in _measured(batches, scope, slas):
            yield {CONSUMER_LATENCY: measured, STEADY_STATE: steady_state.rows(measured)}

    return run


def _measured(batches: Iterable[pa.RecordBatch], scope: Scope, slas: tuple[Sla, ...]) -> Iterator[pa.Table]:
    for chunk in chunks(in_order(batches)):
        if chunk.keys.num_rows:
            yield measure_chunk(chunk, scope, slas)


def measure_chunk(chunk: Chunk, scope: Scope, slas: tuple[Sla, ...]) -> pa.Table:
    """All rows of a chunk."""
    step = steps(chunk, scope.window)
    grid = rows(chunk, scope)
    parts = segments(chunk, step, np.flatnonzero(grid.of_commit >= 0))
    end = ends(chunk, step, grid)
    table = consumer_latency.measure(chunk, step, parts, grid, end)
    states = steady_state.states(chunk, step, parts, grid, slas)
    measured, living = table.append_column("states", states), alive(chunk, grid, end, scope)
    return measured if living.all() else measured.filter(pa.array(living))  # to filter is to copy every histogram
