"""One Kafka node: its files, its process, its end."""

from __future__ import annotations

import base64
import hashlib
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from demo.jars import fetch_jars, java
from kafka_sla.cache import cache_folder

_LOGGING = Path(__file__).with_name("log4j2.yaml")
_READY = b"Kafka Server started"
_CHECKPOINT = base64.b64decode(
    "AAAAAAAAAAAAAABHAAAAAAKIAd91ACAAAAAAAAABof08yYoAAAGh/TzJiv//////////////////AAAAASoAAAAIAAAAAxYAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAQAAAPEAAAAAAhxqEOQAAAAAAAUAAAGh/TzJrQAAAaH9PMmt//////////////////8AAAAGOgAAAAEuAQwAEW1ldGFkYXRhLnZlcnNpb24AHgAA"
    "WgAAAgFOAQwAIWVsaWdpYmxlLmxlYWRlci5yZXBsaWNhcy52ZXJzaW9uAAEAADQAAAQBKAEMAA5ncm91cC52ZXJzaW9uAAEAADQAAAYBKAEMAA5zaGFy"
    "ZS52ZXJzaW9uAAEAADgAAAgBLAEMABBzdHJlYW1zLnZlcnNpb24AAQAAQAAACgE0AQwAFHRyYW5zYWN0aW9uLnZlcnNpb24AAgAAAAAAAAAAAAcAAAA/"
    "AAAAAAKr/Qm6ACAAAAAAAAABof08ya4AAAGh/TzJrv//////////////////AAAAARoAAAAIAAAABAYAAAAA"
)
"""What `kafka-storage format` of 4.3.1 writes (feature levels); embedded, because that tool starts a JVM of its own."""


class BrokerFailed(RuntimeError):
    """A node did not come up; the message carries the end of its log."""


@dataclass(slots=True)
class Node:
    """A broker, controller or both with id `number`, whose files live in `folder`."""

    number: int
    folder: Path
    properties: dict[str, str] = field(repr=False)
    heap_mb: int = 256
    java_options: tuple[str, ...] = ()
    """Given at every launch."""
    _process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def log(self) -> Path:
        return self.folder / f"node-{self.number}.log"

    @property
    def data(self) -> Path:
        return self.folder / f"node-{self.number}"

    def format(self, cluster_id: str) -> None:
        """Write what `kafka-storage format` would."""
        self.data.mkdir(parents=True, exist_ok=True)
        meta = f"version=1\ncluster.id={cluster_id}\nnode.id={self.number}\ndirectory.id={kafka_uuid()}\n"
        (self.data / "meta.properties").write_text(meta)
        (self.data / "bootstrap.checkpoint").write_bytes(_CHECKPOINT)

    def launch(self, *java_options: str) -> None:
        """Start the process and return at once."""
        settings = self.folder / f"node-{self.number}.properties"
        settings.touch(mode=0o600)
        settings.write_text("".join(f"{key}={value}\n" for key, value in self.properties.items()))
        memory = [f"-Xms{self.heap_mb}m", f"-Xmx{self.heap_mb}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        logging = f"-Dlog4j2.configurationFile={_LOGGING}"
        classes = ["-cp", f"{fetch_jars()}/*", "kafka.Kafka"]
        command = [
            java(),
            *memory,
            *self.java_options,
            *(java_options or _class_archive()),
            logging,
            *classes,
            str(settings),
        ]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def wait(self, seconds: float = 180) -> None:
        """Return when the node serves clients."""
        deadline = time.monotonic() + seconds
        while _READY not in (text := self.log.read_bytes()):
            if self._running().poll() is not None or time.monotonic() > deadline:
                raise BrokerFailed(f"Kafka node {self.number} did not start:\n{text[-3000:].decode(errors='replace')}")
            time.sleep(0.03)

    def stop(self) -> None:
        """Stop in good order; as a crash when that takes more than 20 s."""
        self._running().send_signal(signal.SIGTERM)
        try:
            self._running().wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Stop as a crash does; a node that never ran is left alone."""
        if self._process:
            self._process.kill()
            self._process.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise BrokerFailed(f"Kafka node {self.number} was never started")
        return self._process


def class_archive() -> Path:
    """Where the archive of loaded classes is kept: another one for each Java, and for jars that were fetched anew."""
    jars, program = fetch_jars(), Path(java()).resolve()
    key = " ".join(f"{path} {path.stat().st_mtime_ns}" for path in (jars, program))
    return cache_folder() / f"kafka-{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsa"


def _class_archive() -> list[str]:
    archive = class_archive()
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"] if archive.exists() else []


def kafka_uuid() -> str:
    """Kafka's spelling of a UUID, which must not begin with a dash."""
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return text if text[0] != "-" else kafka_uuid()
