"""How long `kafka-sla suggest` takes over one published day of many group-partitions. Knows no rule."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa

from benchmarks.speed_facts import CLUSTER, START, Shape, committed_offsets, days, log_offsets
from benchmarks.speed_table import say, seconds
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.files import write_rows as write
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Cluster
from kafka_sla.model.tables import CONSUMER_LATENCY, METRICS
from kafka_sla.pipeline import steps
from kafka_sla.spark.job_spec import read_job
from kafka_sla.spark_jobs.events.read_files import reading, shares
from kafka_sla.spark_jobs.events.write_files import Target, keep
from kafka_sla.spark_jobs.single_pass import tables

COMMIT_SECONDS = 30


def seconds_of(folder: Path, group_partitions: int, partitions: int) -> tuple[int, str, str]:
    """Groups with their topics, seconds on the clock, and seconds of processors."""
    folder.mkdir()
    _publish(Store.embedded(folder / "store"), Shape(group_partitions, partitions, COMMIT_SECONDS))
    (folder / "kafka_sla.yml").write_text(f"clusters: {{{CLUSTER}: {{}}}}\n")
    program = "import sys; from kafka_sla.cli.main import main; sys.exit(main())"
    places = ["--config", str(folder / "kafka_sla.yml"), "--store", str(folder / "store")]
    command = [sys.executable, "-c", program, "suggest", *places, "--json", "--quiet"]
    began, used = time.monotonic(), _processor_seconds()
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    took = time.monotonic() - began, _processor_seconds() - used
    assert all(len(one["proposals"]) == 3 for one in found)
    say(f"suggest for {group_partitions} group-partitions: {took[0]:.1f} s")
    return len(found), seconds(took[0]), seconds(took[1])


def _processor_seconds() -> float:
    """Of processes that ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _publish(store: Store, shape: Shape) -> None:
    """A day measured as Spark's tasks do, in this process; of its tables only the one that is needed."""
    settings = Settings((Cluster(CLUSTER, None),))
    (day,) = days(START, 1)
    Lake(store).land({"log_offsets": log_offsets(shape, day), "committed_offsets": committed_offsets(shape, day)})
    path = steps.prepare(settings, store, day, [CLUSTER])
    job = read_job(path)
    target, parts = Target(job.output, job.interval.start, job.load_id), shares(job)
    indexes = [pa.RecordBatch.from_pydict({"id": [number]}) for number in range(len(parts))]
    for table in METRICS:
        keep(target, table, [])
    for number, made in enumerate(tables(job)(reading(job, parts, 1)(indexes))):
        if CONSUMER_LATENCY in made:
            rows = made[CONSUMER_LATENCY].select(list(CONSUMER_LATENCY.names))
            write(f"{target.folder(CONSUMER_LATENCY)}/part-{number}.parquet", target.labelled(CONSUMER_LATENCY, rows))
    steps.publish(store, path)
    say(f"published {shape.group_partitions} group-partitions")
