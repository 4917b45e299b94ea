"""A Spark standalone master and its workers on free loopback ports."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.broker import free_ports
from demo.joined import wait_until_joined
from kafka_sla.spark.class_archive import archive_options

JAVA_OPTIONS = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {archive_options()}"
"""Of processes that end before it pays to optimise them: the cluster's own, and its executors."""
_DEPLOY = "org.apache.spark.deploy"
_JOINS_WITHIN = 180


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """A cluster that runs."""

    connection: dict[str, Any]
    """Airflow's, to the master."""
    workers: tuple[int, ...]
    """Process ids."""


@contextmanager
def spark_cluster(
    folder: Path, workers: int = 1, cores: int = 2, memory: str = "1g", options: str = JAVA_OPTIONS
) -> Iterator[SparkCluster]:
    """A master that has so many workers, each with so many cores and so much memory for executors, inside the `with`
    block. `options`: of the executors' Java."""
    port, master_ui, *worker_uis = free_ports(2 + workers)
    processes = [
        _start(folder, "master", f"{_DEPLOY}.master.Master", "--port", str(port), "--webui-port", str(master_ui))
    ]
    try:
        for number, ui in enumerate(worker_uis):
            size = ("--cores", str(cores), "--memory", memory, "--webui-port", str(ui))
            place = ("--work-dir", str(folder / f"work-{number}"), f"spark://127.0.0.1:{port}")
            processes.append(_start(folder, f"worker-{number}", f"{_DEPLOY}.worker.Worker", *size, *place))
        address = f"http://127.0.0.1:{master_ui}/json/"
        wait_until_joined(address, "aliveworkers", processes, _JOINS_WITHIN, workers)
        extra = {"spark.executor.extraJavaOptions": options}
        connection = {"conn_type": "spark", "host": "spark://127.0.0.1", "port": port, "extra": extra}
        yield SparkCluster(connection, tuple(process.pid for process in processes[1:]))
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait()


def _start(folder: Path, log_name: str, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.submodule_search_locations
    home = Path(spec.submodule_search_locations[0])
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
        "PYSPARK_PYTHON": sys.executable,
    }
    with (folder / f"{log_name}.log").open("wb") as log:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), name, "--host", "127.0.0.1", *arguments],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
