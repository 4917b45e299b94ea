"""What Spark's tasks do with the files of a job, done in this process: one task reads everything."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafka_sla.files import write_rows
from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.tables import Table
from kafka_sla.spark.job_spec import Job
from kafka_sla.spark_jobs.events.chunks import Chunk, Room, chunks
from kafka_sla.spark_jobs.events.read_files import Part, reading, shares
from kafka_sla.spark_jobs.events.sort import TaskEvents, in_order

BEFORE = "before"
"""The load that carried rows belong to."""
Row = dict[str, Any]


def files(folder: Path, told: Mapping[Table, Sequence[Row]]) -> dict[str, list[str]]:
    """A file for each table, with these rows."""
    found = {}
    for table, rows in told.items():
        path = f"{folder}/{table.name}-{uuid.uuid4().hex}.parquet"
        facts = arrow_rows(table, rows)
        own = (
            facts
            if table.kind == "fact"
            else facts.append_column("load_id", pa.array([BEFORE] * len(rows), pa.string()))
        )
        write_rows(path, own)
        found[table.name] = [path]
    return found


def events_of(job: Job, parts: list[list[Part]] | None = None) -> TaskEvents:
    parts = parts or shares(job)
    indexes = [pa.RecordBatch.from_pydict({"id": [number]}) for number in range(len(parts))]
    return in_order(reading(job, parts, 1)(indexes))


def chunks_of(job: Job) -> Iterator[Chunk]:
    yield from (chunk for chunk in chunks(events_of(job), Room()) if chunk.keys.num_rows)
