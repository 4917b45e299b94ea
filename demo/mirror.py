"""A real MirrorMaker 2 between two clusters of this demonstration, for demonstration and tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from demo.broker import Cluster, free_ports
from demo.jars import MIRROR, fetch_jars, java

_LOGGING = Path(__file__).with_name("log4j2.yaml")
_IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
_OPTIONS = ("-Xms192m", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True, slots=True)
class Flow:
    """Topics of one cluster that are copied to another, by the clusters' names."""

    source: str
    target: str
    topics: str
    """As MirrorMaker takes them: names or regexes with commas."""
    renamed: bool = True
    """True: the copies are called <source>.<topic>; False: they keep their names."""


class Mirror:
    """MirrorMaker 2 in its dedicated mode: running inside the `with` block, gone after it."""

    def __init__(
        self,
        clusters: dict[str, Cluster],
        flows: Sequence[Flow],
        flush_ms: int = 1_000,
        *,
        exactly_once: bool = False,
    ) -> None:
        self._clusters, self._flows, self._flush_ms, self._exactly_once = clusters, flows, flush_ms, exactly_once
        self._folder = Path(tempfile.mkdtemp(prefix="mirror-"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What it has said so far."""
        return (self._folder / "mirror.log").read_text(errors="replace")

    def __enter__(self) -> Mirror:
        self.launch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self._folder)

    def launch(self) -> None:
        """Start the process and return at once; it copies after some seconds."""
        settings = self._folder / "mirror.properties"
        settings.touch(mode=0o600)
        settings.write_text("".join(f"{key} = {value}\n" for key, value in self._properties().items()))
        classes = f"{fetch_jars()}/*:{fetch_jars(jars=MIRROR)}/*"
        command = [
            java(),
            *_OPTIONS,
            f"-Dlog4j2.configurationFile={_LOGGING}",
            "-cp",
            classes,
            "org.apache.kafka.connect.mirror.MirrorMaker",
            str(settings),
        ]
        with (self._folder / "mirror.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def pause(self) -> None:
        """Let it hang: it copies nothing and says nothing until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it as a crash does; the next `launch` goes on where its offsets say."""
        if self._process:
            self._process.kill()
            self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process, "MirrorMaker was not launched"
        os.kill(self._process.pid, number)

    def _properties(self) -> dict[str, str]:
        return {
            "clusters": ", ".join(self._clusters),
            **{key: value for alias, cluster in self._clusters.items() for key, value in self._of(alias, cluster)},
            **{key: value for flow in self._flows for key, value in _of_flow(flow)},
            "tasks.max": "1",
            "replication.factor": "1",
            "emit.heartbeats.enabled": "false",
            "emit.checkpoints.enabled": "true",
            "sync.topic.acls.enabled": "false",
            "refresh.topics.interval.seconds": "5",
            **(self._rest() if self._exactly_once else {}),
            **dict.fromkeys(
                (f"{kind}.topic.replication.factor" for kind in ("checkpoints", "heartbeats", "offset-syncs")), "1"
            ),
            **dict.fromkeys((f"{kind}.storage.replication.factor" for kind in ("offset", "status", "config")), "1"),
        }

    def _rest(self) -> dict[str, str]:
        """Workers agree on who may begin a transaction by asking each other."""
        (port,) = free_ports(1)
        return {"dedicated.mode.enable.internal.rest": "true", "listeners": f"http://127.0.0.1:{port}"}

    def _of(self, alias: str, cluster: Cluster) -> list[tuple[str, str]]:
        """Settings of Connect's workers are taken by the name of their target cluster only."""
        own = {
            "bootstrap.servers": cluster.bootstrap,
            "offset.flush.interval.ms": str(self._flush_ms),
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            # else every class of the class path is looked at, which takes many seconds and much memory
            "plugin.discovery": "service_load",
            **({"exactly.once.source.support": "enabled"} if self._exactly_once else {}),
        }
        return [(f"{alias}.{key}", value) for key, value in own.items()]


def _of_flow(flow: Flow) -> list[tuple[str, str]]:
    name = f"{flow.source}->{flow.target}"
    policy = [] if flow.renamed else [(f"{name}.replication.policy.class", _IDENTITY)]
    return [(f"{name}.enabled", "true"), (f"{name}.topics", flow.topics), *policy]
