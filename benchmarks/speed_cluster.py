"""One five-minute interval of very many group-partitions on a standalone Spark whose workers have little memory, over
an object store: what each step costs and holds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil

from benchmarks.process_watch import Spent, watching
from benchmarks.speed_facts import CLUSTER, START, Shape, committed_offsets, log_offsets
from benchmarks.speed_recompute import CONFIGURATION
from benchmarks.speed_table import megabytes, say, seconds, table
from demo.object_store import BUCKET, ObjectStore, object_store
from demo.spark_cluster import SparkCluster, spark_cluster
from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.config.store import Store
from kafka_sla.files import bytes_of, files_below
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Connection, Interval
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS
from kafka_sla.pipeline import steps

_INTERVAL = Interval(START, START + timedelta(minutes=5))
_WORKERS, _MEMORY, _DRIVER_MEMORY = 2, "2g", "1g"
_MEASURE = f"""
import sys
from kafka_sla.tasks.measure_operator import measure
task = measure(sys.argv[1], "kafka_sla_store")
task.conf, task.name = {{"spark.driver.memory": "{_DRIVER_MEMORY}"}}, "kafka_sla"
task.execute({{}})
"""
"""The task `measure`, without Airflow's scheduler."""
_HEAD = ["step", "time", "processor time", "of it the object store", "memory", "written", "read"]
_MOVED = re.compile(r"^SeaweedFS_s3_bucket_traffic_(received|sent)_bytes_total\{.*\} (\S+)$", re.MULTILINE)
_OPEN = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


@dataclass
class _World:
    """One size's store and cluster, and the rows of its table so far."""

    settings: Settings
    store: Store
    objects: ObjectStore
    spark: SparkCluster
    environment: Mapping[str, str]
    rows: list[tuple[str, ...]]

    def step(self, name: str, run: Callable[[], Any]) -> Any:
        """What `run` answers; it costs one row."""
        before = _moved(self.objects)
        with watching(self._processes) as spent:
            answer = run()
        written, read = (now - then for now, then in zip(_moved(self.objects), before, strict=True))
        work = sum(map(spent.processor_seconds, spent.most_bytes))
        self.rows.append(
            (
                name,
                seconds(spent.wall_seconds),
                seconds(work),
                seconds(spent.processor_seconds("object store")),
                _memory(spent),
                megabytes(written),
                megabytes(read),
            )
        )
        say(" · ".join(self.rows[-1]))
        return answer

    def measure(self, job: str) -> None:
        subprocess.run(
            [sys.executable, "-c", _MEASURE, job], env=os.environ | self.environment, capture_output=True, check=True
        )

    def _processes(self) -> dict[str, list[psutil.Process]]:
        below = psutil.Process().children()
        servers = {self.objects.pid, *self.spark.workers}
        drivers = [tree for child in below if _is(child, "-c") for tree in _tree(child)]
        executors = {
            f"executor {number}": _tree(psutil.Process(pid))[1:] for number, pid in enumerate(self.spark.workers, 1)
        }
        assert servers <= {child.pid for child in below}
        return {
            "step": [psutil.Process()],
            "driver": drivers,
            **executors,
            "object store": [psutil.Process(self.objects.pid)],
        }


def interval(sizes: tuple[int, ...]) -> str:
    """A table a size."""
    said = (
        f"{_WORKERS} workers of one core and {_MEMORY} for the Java of an executor; the driver's has {_DRIVER_MEMORY}."
        " Memory is what was resident at most, in steps without Spark beyond what the process held before; an"
        " executor's is that of its Java and its Python, the larger of both executors'."
    )
    return "\n\n".join([said, *(f"**{size:,} group-partitions**: {_one(size)}" for size in sizes)])


def _one(group_partitions: int) -> str:
    with tempfile.TemporaryDirectory(prefix="kafka_sla-cluster-") as name, ExitStack() as stack:
        folder = Path(name)
        objects = stack.enter_context(object_store(folder / "objects"))
        spark = stack.enter_context(spark_cluster(folder, _WORKERS, cores=1, memory=_MEMORY, options=""))
        world = _world(folder, objects, spark)
        _run(world, Shape(group_partitions, partitions=1_000, commit_seconds=60))
        return (
            f"{_files(world.store)}; rollups take {megabytes((folder / 'kafka_sla.db').stat().st_size)} in SQL.\n\n"
            + (table(_HEAD, world.rows))
        )


def _world(folder: Path, objects: ObjectStore, spark: SparkCluster) -> _World:
    (folder / "kafka_sla.yml").write_text(CONFIGURATION)
    extra = {"warehouse": f"s3://{BUCKET}/warehouse", **objects.properties}
    connection = {"conn_type": "sqlite", "host": str(folder / "kafka_sla.db"), "extra": extra}
    sized = spark.connection["extra"] | {"spark.executor.memory": _MEMORY, "spark.executor.cores": "1"}
    environment = {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_KAFKA_SLA_STORE": json.dumps(connection),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark.connection | {"extra": sized}),
    }
    store = Store.from_connection(Connection("kafka_sla_store", **connection))
    return _World(load_settings(folder / "kafka_sla.yml"), store, objects, spark, environment, [])


def _run(world: _World, shape: Shape) -> None:
    settings, store = world.settings, world.store
    facts = {
        LOG_OFFSETS.name: log_offsets(shape, _INTERVAL),
        COMMITTED_OFFSETS.name: committed_offsets(shape, _INTERVAL),
    }
    world.step("land the facts", lambda: Lake(store).land(facts, _INTERVAL))
    facts.clear()
    job = world.step("prepare", lambda: steps.prepare(settings, store, _INTERVAL, [CLUSTER]))
    world.step("measure and validate (Spark)", lambda: world.measure(job))
    world.step("validate and publish (Python)", lambda: (steps.validate(store, job), steps.publish(store, job)))
    promise = settings.slas[0].name
    world.step("evaluate one SLA over everything", lambda: steps.evaluate(settings, store, promise, _INTERVAL))


def _memory(spent: Spent) -> str:
    executors = [held for name, held in spent.most_bytes.items() if name.startswith("executor")]
    if any(executors):
        return f"executor {_gigabytes(max(executors))}, driver {_gigabytes(spent.most_bytes['driver'])}"
    return _gigabytes(spent.most_bytes["step"] - spent.first_bytes["step"])


def _gigabytes(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"


def _files(store: Store) -> str:
    files = [path for path in files_below(store.warehouse) if path.endswith(".parquet")]
    kinds = {"facts": "/facts/", "metrics": "/staging/"}
    found = {kind: [path for path in files if folder in path] for kind, folder in kinds.items()}
    return ", ".join(f"{kind} {len(of)} files, {megabytes(bytes_of(of))}" for kind, of in found.items())


def _tree(process: psutil.Process) -> list[psutil.Process]:
    """A process and all that it started."""
    with suppress(psutil.NoSuchProcess):
        return [process, *process.children(recursive=True)]
    return []


def _is(process: psutil.Process, word: str) -> bool:
    with suppress(psutil.NoSuchProcess):
        return word in process.cmdline()
    return False


def _moved(objects: ObjectStore) -> tuple[float, float]:
    """Bytes that clients wrote to the store and read from it so far."""
    with _OPEN(objects.metrics, timeout=60) as answer:
        found = _MOVED.findall(answer.read().decode())
    received, sent = (sum(float(count) for way, count in found if way == wanted) for wanted in ("received", "sent"))
    return received, sent
