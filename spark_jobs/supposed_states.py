"""Steady states by rules that no SLA of the configuration has: the kernel of `steady_state` over the files of a job, in
this process. Starts no Spark, writes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from kafka_sla.spark.job_spec import Job
from kafka_sla.spark_jobs.events.chunks import Chunk, Room, chunks
from kafka_sla.spark_jobs.events.read_files import reading, shares, tasks_of
from kafka_sla.spark_jobs.events.sort import TaskEvents, in_order
from kafka_sla.spark_jobs.numeric.arrays import FAR, Ints
from kafka_sla.spark_jobs.numeric.scans import begins
from kafka_sla.spark_jobs.single_pass import scope_of
from kafka_sla.spark_jobs.steady_state import SteadyRules, WindowStates, supposed
from kafka_sla.spark_jobs.windows.assumed_positions import assume_positions
from kafka_sla.spark_jobs.windows.contradicted import without_contradicted
from kafka_sla.spark_jobs.windows.segments import steps
from kafka_sla.spark_jobs.windows.window_grid import JobSpan, rows


@dataclass(frozen=True, slots=True)
class StateRuns:
    """Windows that follow each other in one state by some rules, one entry for each such run, sorted by
    (group-partition, start)."""

    gp: Ints
    """Index into the keys of the chunk."""
    start: Ints
    """Of the first window; µs."""
    states: WindowStates


@dataclass(frozen=True, slots=True)
class SupposedStates:
    """Some group-partitions and their states by each of the rules."""

    keys: pa.Table
    """cluster, group, topic, partition: one row per group-partition, several of one key in the order of time."""
    assumed: bool
    """The groups have no committed offset there. The states are those of assumed positions."""
    runs: list[StateRuns]


def supposed_states(job: Job, every: Sequence[SteadyRules]) -> Iterator[SupposedStates]:
    """The states of all windows of the job's interval, some group-partitions at a time."""
    scope = scope_of(job)
    room = Room(scope.end, (scope.end - scope.start) // scope.window)
    flows = {flow.name for replay in job.replays for flow in replay.cluster.replication}
    for blocks in _tasks(job):
        events = in_order(blocks)
        yield from _of_events(events, scope, room, every)
        assumed = assume_positions(events, lambda _, group, __: group not in flows, lambda *_: None, scope.end)
        if assumed is not None:
            yield from _of_events(assumed.events, scope, room, every, assumed.until)


def _of_events(
    events: TaskEvents, scope: JobSpan, room: Room, every: Sequence[SteadyRules], assumed_until: Ints | None = None
) -> Iterator[SupposedStates]:
    """`assumed_until`: until when the assumed position of each group-partition of these events holds, in µs."""
    done = 0
    for chunk in chunks(events, room):
        count = chunk.keys.num_rows
        if not count:
            continue
        is_assumed = assumed_until is not None
        until = assumed_until[done : done + count] if assumed_until is not None else np.full(count, FAR)
        done += count
        yield SupposedStates(
            chunk.keys, is_assumed, list(_runs(replace(chunk, assumed=is_assumed), scope, every, until))
        )


def _runs(chunk: Chunk, scope: JobSpan, every: Sequence[SteadyRules], until: Ints) -> Iterator[StateRuns]:
    chunk = without_contradicted(chunk, scope.window)
    grid = rows(chunk, scope)
    holds = grid.start < until[grid.gp] // scope.window * scope.window
    for states in supposed(chunk, steps(chunk, scope.window), grid, every):
        changes = begins(grid.gp, *(getattr(states, name) for name in WindowStates.__slots__))
        first = np.flatnonzero(holds & changes)
        yield StateRuns(grid.gp[first], grid.start[first], states.take(first))


def _tasks(job: Job) -> Iterator[list[pa.RecordBatch]]:
    """The events of the job, whole topic-partitions at a time; until then they are kept compressed."""
    parts = shares(job)
    indexes = (pa.RecordBatch.from_pydict({"id": [number]}) for number in range(len(parts)))
    blocks: dict[int, list[pa.RecordBatch]] = defaultdict(list)
    for batch in reading(job, parts, tasks_of(job))(indexes):
        for row, task in enumerate(batch.column("task").to_pylist()):
            blocks[task].append(batch.slice(row, 1))
    for task in sorted(blocks):
        yield blocks.pop(task)
