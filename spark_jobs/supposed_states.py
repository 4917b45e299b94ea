"""Steady states by rules that no SLA of the configuration has: the kernel of `steady_state` over the files of a job, in
this process. Starts no Spark, writes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import pyarrow as pa

from kafka_sla.model.entities import SteadyState, epoch_ms
from kafka_sla.spark.job_spec import Job
from kafka_sla.spark_jobs.events.chunks import Room, chunks
from kafka_sla.spark_jobs.events.read_files import reading, shares, tasks_of
from kafka_sla.spark_jobs.events.sort import in_order
from kafka_sla.spark_jobs.steady_state import StateSpans, supposed
from kafka_sla.spark_jobs.windows.contradicted import without_contradicted
from kafka_sla.spark_jobs.windows.segments import steps


def supposed_states(job: Job, rules: Sequence[SteadyState]) -> Iterator[tuple[pa.Table, list[StateSpans]]]:
    """Some group-partitions (cluster, group, topic, partition) at a time, and their spans by each of the rules."""
    room = Room(until=epoch_ms(job.interval.end) * 1_000)
    for blocks in _tasks(job):
        for chunk in chunks(in_order(blocks), room):
            if chunk.keys.num_rows:
                believed = without_contradicted(chunk, job.window_ms * 1_000)
                yield chunk.keys, supposed(believed, steps(believed, job.window_ms * 1_000), rules)


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
