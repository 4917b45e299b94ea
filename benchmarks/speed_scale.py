"""One five-minute interval of very many group-partitions through every step but Kafka."""

from __future__ import annotations

import tempfile
import time
from contextlib import redirect_stderr
from datetime import timedelta
from io import StringIO
from pathlib import Path

from benchmarks.speed_facts import CLUSTER, START, Shape, committed_offsets, log_offsets
from benchmarks.speed_recompute import workplace
from benchmarks.speed_table import megabytes, say, seconds, table
from kafka_sla.cli.console.context import Workplace
from kafka_sla.files import files_below
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS
from kafka_sla.pipeline import steps
from kafka_sla.spark.submit import run_spark

_INTERVAL = Interval(START, START + timedelta(minutes=5))
_MILLION = 1_000_000


def interval(sizes: tuple[int, ...] = (10_000, 100_000, _MILLION), memory: str = "6g") -> str:
    """The steps of one interval by size: seconds, files and bytes."""
    found = {size: _one(size, memory) for size in sizes}
    steps = list(next(iter(found.values())))
    rows = [(step, *(found[size][step] for size in sizes)) for step in steps]
    return table(["step", *(f"{size:,}" for size in sizes)], rows)


def _one(group_partitions: int, memory: str) -> dict[str, str]:
    shape = Shape(group_partitions, partitions=1_000, commit_seconds=60)
    told: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="kafka_sla-scale-") as folder, redirect_stderr(StringIO()):
        place = workplace(Path(folder))
        store, lake = place.store, Lake(place.store)
        commits, points = committed_offsets(shape, _INTERVAL), log_offsets(shape, _INTERVAL)
        told["commits and points"] = f"{commits.num_rows + points.num_rows:,}"
        began = time.monotonic()
        lake.land({LOG_OFFSETS.name: points, COMMITTED_OFFSETS.name: commits}, _INTERVAL)
        told["land the facts"] = seconds(time.monotonic() - began)
        began = time.monotonic()
        job = steps.prepare(place.settings, store, _INTERVAL, [CLUSTER])
        told["prepare"] = seconds(time.monotonic() - began)
        began = time.monotonic()
        run_spark(job, memory=memory)
        told["measure and validate (Spark)"] = seconds(time.monotonic() - began)
        told |= _after(place, job)
        told |= _files(place)
    say(f"{group_partitions:,}: {told}")
    return told


def _after(place: Workplace, job: str) -> dict[str, str]:
    told = {}
    began = time.monotonic()
    steps.validate(place.store, job)
    steps.publish(place.store, job)
    told["validate and publish (Python)"] = seconds(time.monotonic() - began)
    began = time.monotonic()
    steps.evaluate(place.settings, place.store, place.settings.slas[0].name, _INTERVAL)
    told["evaluate one SLA over everything"] = seconds(time.monotonic() - began)
    return told


def _files(place: Workplace) -> dict[str, str]:
    files = [path for path in files_below(place.store.warehouse) if path.endswith(".parquet")]
    kinds = {"facts": "/facts/", "metrics": "/staging/"}
    return {
        f"{kind}: files, bytes": f"{len(of)}, {megabytes(sum(Path(path).stat().st_size for path in of))}"
        for kind, folder in kinds.items()
        for of in [[path for path in files if folder in path]]
    }
