"""A real Kafka Connect worker in distributed mode, for tests of its REST endpoint."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

from demo.broker import Cluster, free_ports
from demo.jars import MIRROR, fetch_jars, java

_LOGGING = Path(__file__).with_name("log4j2.yaml")
_OPTIONS = ("-Xms192m", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class Worker:
    """Running inside the `with` block, gone after it; it answers after some seconds."""

    def __init__(self, cluster: Cluster, name: str = "connect") -> None:
        self._cluster, self._name = cluster, name
        self._folder = Path(tempfile.mkdtemp(prefix="connect-"))
        (self.port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def offsets_topic(self) -> str:
        return f"{self._name}-offsets"

    @property
    def log(self) -> str:
        """What it has said so far."""
        return (self._folder / "connect.log").read_text(errors="replace")

    def __enter__(self) -> Worker:
        settings = self._folder / "connect.properties"
        settings.write_text("".join(f"{key}={value}\n" for key, value in self._properties().items()))
        classes = f"{fetch_jars()}/*:{fetch_jars(jars=MIRROR)}/*"
        command = [
            java(),
            *_OPTIONS,
            f"-Dlog4j2.configurationFile={_LOGGING}",
            "-cp",
            classes,
            "org.apache.kafka.connect.cli.ConnectDistributed",
            str(settings),
        ]
        with (self._folder / "connect.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder)

    def _properties(self) -> dict[str, str]:
        bytes_as_they_are = "org.apache.kafka.connect.converters.ByteArrayConverter"
        kept = {
            key: value
            for kind in ("offset", "status", "config")
            for key, value in (
                (f"{kind}.storage.topic", self.offsets_topic if kind == "offset" else f"{self._name}-{kind}s"),
                (f"{kind}.storage.replication.factor", "1"),
            )
        }
        return kept | {
            "bootstrap.servers": self._cluster.bootstrap,
            "group.id": self._name,
            "listeners": self.url,
            "key.converter": bytes_as_they_are,
            "value.converter": bytes_as_they_are,
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            "offset.flush.interval.ms": "1000",
            "plugin.discovery": "service_load",
        }
