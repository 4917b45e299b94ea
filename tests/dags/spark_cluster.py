"""A Spark standalone master and worker on free loopback ports."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.broker import free_ports
from kafka_sla.spark.class_archive import archive_options
from tests.dags.joined import wait_until_joined

JAVA_OPTIONS = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {archive_options()}"
"""Of processes that end before it pays to optimise them: the cluster's own, and its executors."""
_DEPLOY = "org.apache.spark.deploy"
_JOINS_WITHIN = 180


@contextmanager
def spark_cluster(folder: Path) -> Iterator[dict[str, object]]:
    """The connection to a master that has one worker with two cores, inside the `with` block."""
    port, master_ui, worker_ui = free_ports(3)
    processes = [_start(folder, f"{_DEPLOY}.master.Master", "--port", str(port), "--webui-port", str(master_ui))]
    try:
        worker = ("--cores", "2", "--memory", "1g", "--webui-port", str(worker_ui), "--work-dir", str(folder / "work"))
        processes.append(_start(folder, f"{_DEPLOY}.worker.Worker", *worker, f"spark://127.0.0.1:{port}"))
        wait_until_joined(f"http://127.0.0.1:{master_ui}/json/", "aliveworkers", processes, _JOINS_WITHIN)
        extra = {"spark.executor.extraJavaOptions": JAVA_OPTIONS}
        yield {"conn_type": "spark", "host": "spark://127.0.0.1", "port": port, "extra": extra}
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait()


def _start(folder: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.submodule_search_locations
    home = Path(spec.submodule_search_locations[0])
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
        "PYSPARK_PYTHON": sys.executable,
    }
    with (folder / f"{name.rpartition('.')[2]}.log").open("wb") as log:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), name, "--host", "127.0.0.1", *arguments],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
