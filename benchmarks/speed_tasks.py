"""What one task of Spark costs besides its work: many that do nothing, as Spark runs them and as ours are run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame

from benchmarks.speed_spark import spark
from benchmarks.speed_table import say, table
from kafka_sla.spark_jobs.events.python_workers import map_batches
from kafka_sla.spark_jobs.events.task_ranges import indexes

_TASKS, _TIMES = 96, 3
_ROWS = "id BIGINT"


def compare() -> str:
    """Each in a Spark of its own: what a worker is spared once, it is spared until it ends."""
    ways: dict[str, Callable[[DataFrame], DataFrame]] = {
        "`DataFrame.mapInArrow`": lambda frame: frame.mapInArrow(_same, _ROWS),
        "kafka_sla: `map_batches`": lambda frame: map_batches(frame, _same, _ROWS),
    }
    found = {name: _best(name, way) for name, way in ways.items()}
    slowest = max(found.values())
    cells = [
        (name, f"{1_000 * took / _TASKS:.0f} ms", f"{slowest / took:.1f} times as fast") for name, took in found.items()
    ]
    python = ".".join(map(str, sys.version_info[:3]))
    return (
        f"{_TASKS} tasks of one row each, Spark {pyspark.__version__}, Python {python}; the best of {_TIMES}.\n\n"
        + table(["who hands tasks to Python", "time of a task", ""], cells)
    )


def _best(name: str, way: Callable[[DataFrame], DataFrame]) -> float:
    with spark() as session:
        way(indexes(session, _TASKS)).collect()  # workers start, and import what they need
        took = []
        for _ in range(_TIMES):
            began = time.monotonic()
            way(indexes(session, _TASKS)).collect()
            took.append(time.monotonic() - began)
    say(f"{name}: {', '.join(f'{seconds:.1f}' for seconds in took)} s")
    return min(took)


def _same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
