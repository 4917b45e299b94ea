"""The one pass over all events: blocks of a task in, rows of the tables made of them out. No session, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from kafka_sla.model.entities import MeasuredSla, epoch_ms
from kafka_sla.model.tables import CONSUMER_LATENCY, NON_CONSUMED, STEADY_STATE, Table
from kafka_sla.spark.job_spec import Job, longest_expiry
from kafka_sla.spark_jobs import consumer_latency, consumer_status, group_status, non_consumed, steady_state
from kafka_sla.spark_jobs.events.chunks import Chunk, Room, chunks
from kafka_sla.spark_jobs.events.sort import TaskEvents, in_order
from kafka_sla.spark_jobs.numeric.arrays import Ints
from kafka_sla.spark_jobs.windows.assumed_positions import assume_positions
from kafka_sla.spark_jobs.windows.contradicted import without_contradicted
from kafka_sla.spark_jobs.windows.segments import segments, steps
from kafka_sla.spark_jobs.windows.window_grid import JobSpan, alive, ends, rows


@dataclass(frozen=True, slots=True)
class MeasuredChunk:
    """Rows of `consumer_latency` with `states` (type `steady_state.STATES`), and the group-partition of each."""

    rows: pa.Table
    gp: Ints


def scope_of(job: Job) -> JobSpan:
    """What the job measures."""
    start, end = (epoch_ms(at) * 1_000 for at in (job.interval.start, job.interval.end))
    return JobSpan(start, end, job.window_ms * 1_000, longest_expiry(job.slas) * 1_000)


def tables(job: Job) -> Callable[[Iterable[pa.RecordBatch]], Iterator[dict[Table, pa.Table]]]:
    """A function of the blocks of one task's events: rows of tables, some topic-partitions at a time.

    `consumer_status` comes in two parts, because a group's partitions may belong to several tasks.
    """
    scope = scope_of(job)
    most = max((rules.commits for rules in job.status_rules.values()), default=0)
    room = Room(scope.end, (scope.end - scope.start) // scope.window, most)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[Table, pa.Table]]:
        sums: list[pa.Table] = []
        events = in_order(batches)
        for unread in _without_position(events, job, scope, room):
            yield {CONSUMER_LATENCY: unread, STEADY_STATE: steady_state.rows(unread)}
        for chunk in chunks(events, room):
            if chunk.keys.num_rows:
                made = _rows_of(chunk, job, scope)
                sums.append(group_status.sums(made[consumer_status.OF_PARTITIONS]))
                yield made
        if sums:
            yield {group_status.SUMS: group_status.together(pa.concat_tables(sums))}

    return run


def _without_position(events: TaskEvents, job: Job, scope: JobSpan, room: Room) -> Iterator[pa.Table]:
    """Rows of latency with states where a group has to read a partition, and has no committed offset there."""
    slas = tuple(sla for sla in job.slas if sla.partitions == "all" and not sla.chain)
    replays = {replay.cluster.name: replay for replay in job.replays}

    def applies(cluster: str, group: str, topic: str) -> bool:
        flows = replays[cluster].cluster.replication
        return group not in {flow.name for flow in flows} and any(
            sla.cluster == cluster and sla.groups.matches(group) and sla.topics.matches(topic) for sla in slas
        )

    def carried_at(cluster: str, topic: str) -> int | None:
        carried = replays[cluster].carried_of(topic)
        return epoch_ms(carried.at) * 1_000 if carried else None

    assumed = assume_positions(events, applies, carried_at, scope.end) if slas else None
    if assumed is None:
        return
    done = 0
    for chunk in chunks(assumed.events, room):
        measured = measure_chunk(replace(chunk, assumed=True), scope, slas)
        until = assumed.until[done : done + chunk.keys.num_rows] // scope.window * scope.window
        done += chunk.keys.num_rows
        start = measured.rows["window_start"].cast(pa.int64()).to_numpy()
        rows = measured.rows.filter(pa.array(start < until[measured.gp]))
        if len(rows):
            yield _as_assumed(rows)


def _as_assumed(rows: pa.Table) -> pa.Table:
    """Rows whose committed offset is an assumed one."""
    number = rows.column_names.index("committed_offset")
    rows = rows.set_column(rows.column_names.index("assumed_offset"), "assumed_offset", rows["committed_offset"])
    return rows.set_column(number, "committed_offset", pa.nulls(len(rows), pa.int64()))


def _rows_of(chunk: Chunk, job: Job, scope: JobSpan) -> dict[Table, pa.Table]:
    """All rows of a chunk, those of groups left out."""
    measured = measure_chunk(chunk, scope, job.slas)
    made = {
        CONSUMER_LATENCY: measured.rows,
        STEADY_STATE: steady_state.rows(measured.rows),
        consumer_status.OF_PARTITIONS: consumer_status.measure(chunk, scope, job.status_rules),
    }
    if non_consumed.wanted(job):
        made[NON_CONSUMED] = non_consumed.measure(chunk, measured.rows, measured.gp, scope, job)
    return made


def measure_chunk(chunk: Chunk, scope: JobSpan, slas: tuple[MeasuredSla, ...]) -> MeasuredChunk:
    """All rows of latency and steady states of a chunk."""
    chunk = without_contradicted(chunk, scope.window)
    step = steps(chunk, scope.window)
    grid = rows(chunk, scope)
    parts = segments(chunk, step, np.flatnonzero(grid.of_commit >= 0))
    end = ends(chunk, step, grid)
    table = consumer_latency.measure(chunk, step, parts, grid, end)
    states = steady_state.states(chunk, step, grid, slas)
    measured, living = table.append_column("states", states), alive(chunk, grid, end, scope)
    if living.all():  # to filter is to copy every histogram
        return MeasuredChunk(measured, grid.gp)
    return MeasuredChunk(measured.filter(pa.array(living)), grid.gp[living])
