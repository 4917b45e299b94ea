"""A Spark standalone master and worker on free loopback ports."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.broker import free_ports

_DEPLOY = "org.apache.spark.deploy"
_OPEN = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


@contextmanager
def spark_cluster(folder: Path) -> Iterator[int]:
    """The port of a master that has one worker with two cores, inside the `with` block."""
    port, master_ui, worker_ui = free_ports(3)
    processes = [_start(folder, f"{_DEPLOY}.master.Master", "--port", str(port), "--webui-port", str(master_ui))]
    try:
        worker = ("--cores", "2", "--memory", "1g", "--webui-port", str(worker_ui), "--work-dir", str(folder / "work"))
        processes.append(_start(folder, f"{_DEPLOY}.worker.Worker", *worker, f"spark://127.0.0.1:{port}"))
        _wait_for_worker(f"http://127.0.0.1:{master_ui}/json/", processes)
        yield port
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(30)


def _start(folder: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.submodule_search_locations
    home = Path(spec.submodule_search_locations[0])
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    with (folder / f"{name.rpartition('.')[2]}.log").open("wb") as log:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), name, "--host", "127.0.0.1", *arguments],
            env=environment, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip


def _wait_for_worker(address: str, processes: list[subprocess.Popen[bytes]], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert all(process.poll() is None for process in processes), "a Spark process ended; its log is in the folder"
        try:
            with _OPEN(address, timeout=5) as answer:
                if json.load(answer)["aliveworkers"] == 1:
                    return
        except OSError:
            pass  # not listening yet
        time.sleep(0.3)
    raise TimeoutError(f"no worker joined the Spark master within {seconds:.0f} s")
