"""A Hadoop YARN with one node on free loopback ports, which runs Spark's drivers in containers of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pyspark

from demo.broker import free_ports
from demo.jars import YARN, fetch_jars, java
from demo.joined import wait_until_joined

_JARS = Path(pyspark.__file__).parent / "jars"
_SERVER = "org.apache.hadoop.yarn.server"
_MAINS = ("resourcemanager.ResourceManager", "nodemanager.NodeManager")
_STARTS_WITHIN = 300


@dataclass(frozen=True)
class Yarn:
    """A resource manager that has a node."""

    address: str
    """Of its REST API."""
    configuration: Path
    """What HADOOP_CONF_DIR is to name."""
    folder: Path

    @property
    def connection(self) -> dict[str, Any]:
        """Of Spark in cluster mode: the jars are on every node."""
        extra = {
            "deploy-mode": "cluster",
            "spark.yarn.jars": f"local:{_JARS}/*",
            "spark.yarn.stagingDir": f"file://{self.folder}/staging",
            "spark.executor.instances": "1",
        }
        return {"conn_type": "spark", "host": "yarn", "extra": extra}


@contextmanager
def yarn_cluster(folder: Path) -> Iterator[Yarn]:
    """Ends with all that it started, drivers included."""
    resource, scheduler, tracker, admin, web, node, localizer, node_web, collector = free_ports(9)
    configuration = folder / "hadoop"
    configuration.mkdir(parents=True)
    manager = "yarn.resourcemanager"
    settings = {
        f"{manager}.hostname": "127.0.0.1",
        f"{manager}.address": f"127.0.0.1:{resource}",
        f"{manager}.scheduler.address": f"127.0.0.1:{scheduler}",
        f"{manager}.resource-tracker.address": f"127.0.0.1:{tracker}",
        f"{manager}.admin.address": f"127.0.0.1:{admin}",
        f"{manager}.webapp.address": f"127.0.0.1:{web}",
        f"{manager}.scheduler.class": f"{_SERVER}.resourcemanager.scheduler.fifo.FifoScheduler",
        "yarn.nodemanager.hostname": "127.0.0.1",
        "yarn.nodemanager.address": f"127.0.0.1:{node}",
        "yarn.nodemanager.localizer.address": f"127.0.0.1:{localizer}",
        "yarn.nodemanager.webapp.address": f"127.0.0.1:{node_web}",
        "yarn.nodemanager.collector-service.address": f"127.0.0.1:{collector}",
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "logs"),
        "yarn.nodemanager.resource.memory-mb": "8192",
        "yarn.nodemanager.resource.cpu-vcores": "8",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
        "yarn.nodemanager.delete.debug-delay-sec": "3600",
        "yarn.scheduler.minimum-allocation-mb": "256",
    }
    _write(configuration / "yarn-site.xml", settings)
    _write(configuration / "core-site.xml", {"hadoop.tmp.dir": str(folder / "tmp")})
    processes = [_start(folder, configuration, f"{_SERVER}.{name}") for name in _MAINS]
    try:
        yarn = Yarn(f"http://127.0.0.1:{web}", configuration, folder)
        wait_until_joined(f"{yarn.address}/ws/v1/cluster/metrics", "activeNodes", processes, _STARTS_WITHIN)
        yield yarn
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait()


def _write(path: Path, settings: dict[str, str]) -> None:
    """A file of Hadoop's configuration."""
    entries = [f"<property><name>{k}</name><value>{escape(v)}</value></property>" for k, v in settings.items()]
    path.write_text(f"<configuration>{''.join(entries)}</configuration>")


def _start(folder: Path, configuration: Path, name: str) -> subprocess.Popen[bytes]:
    classes = f"{configuration}:{fetch_jars(jars=YARN)}/*:{_JARS}/*"
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", f"-Dhadoop.log.dir={folder}"]
    options += ["--add-opens=java.base/java.lang=ALL-UNNAMED"]
    with (folder / f"{name}.log").open("wb") as log:
        command = [java(), *options, "-cp", classes, name]
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
