"""A Spark that stands by on a loopback port, as `kafka-sla spark-server` starts it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from demo.broker import free_ports
from kafka_sla.spark.processes import end

_PATIENCE_S = 180
_SOON = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a server that ends before it pays to optimise its code."""


@dataclass(frozen=True)
class StandingSpark:
    """One that was started, whether or not it answers yet."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        """What `SPARK_REMOTE` is set to."""
        return f"sc://localhost:{self.port}"

    @property
    def connection(self) -> dict[str, object]:
        """What Airflow's `spark_default` is set to."""
        return {"conn_type": "spark_connect", "host": "localhost", "port": self.port}

    def wait(self) -> None:
        """Until it answers; TimeoutError with what it said when it does not."""
        deadline = time.monotonic() + _PATIENCE_S
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection(("localhost", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError(f"Spark does not stand by: {self.log.read_text()[-3_000:]}")


@contextmanager
def standing_spark(
    folder: Path, *, port: int | None = None, memory: str = "1g", python: Path | None = None
) -> Iterator[StandingSpark]:
    """One that is starting; it ends with the `with` block. `python`: of its tasks, else this one."""
    port = port or free_ports(1)[0]
    words = ["spark-server", "--port", str(port), "--master", "local[2]", "--driver-memory", memory]
    command = [sys.executable, "-c", "import sys; from kafka_sla.cli.main import main; sys.exit(main())", *words]
    own = {"PYSPARK_PYTHON": str(python or sys.executable), "JDK_JAVA_OPTIONS": _SOON}
    log = folder / f"spark-{port}.log"
    with (
        log.open("w") as said,
        subprocess.Popen(command, env=os.environ | own, stdout=said, stderr=said) as server,
    ):
        try:
            yield StandingSpark(port, server, log)
        finally:
            if server.poll() is None:
                end(psutil.Process(server.pid))
