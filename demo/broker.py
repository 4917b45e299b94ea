"""A real Apache Kafka in KRaft mode on free loopback ports, for demonstration and tests."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from demo.node import Node, class_archive, kafka_uuid
from demo.security import Security
from demo.warm_up import warm_up
from kafka_sla.cache import forget_unused


class Cluster:
    """`nodes` Kafka nodes, each broker and controller: up and taking commits inside the `with` block, gone after it."""

    def __init__(
        self,
        nodes: int = 1,
        *,
        folder: Path | None = None,
        properties: Mapping[str, str] | None = None,
        secure: bool = False,
        advertised_host: str | None = None,
    ) -> None:
        """`advertised_host`: a further listener of each node, at `outside_bootstrap`, advertises this host name."""
        self._keep = folder is not None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="kafka-"))
        self.security = Security(self.folder / "tls") if secure else None
        ports = free_ports(4 * nodes)
        self._ports, self._controller_ports, self._ssl_ports = (
            ports[:nodes],
            ports[nodes : 2 * nodes],
            ports[2 * nodes : 3 * nodes],
        )
        self._outside_ports, self._advertised_host = ports[3 * nodes :], advertised_host
        self.nodes = [Node(i, self.folder, self._properties(i) | dict(properties or {})) for i in range(nodes)]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._ports)

    @property
    def outside_bootstrap(self) -> str:
        """Addresses of the listeners that advertise `advertised_host`."""
        return ",".join(f"127.0.0.1:{port}" for port in self._outside_ports)

    def client(self, user: str = "admin", mechanism: str = "PLAIN") -> dict[str, str]:
        """Settings by confluent-kafka's names, also an Airflow connection's extra; a plain cluster ignores the user."""
        login = self.security.client(user, mechanism) if self.security else {}
        return {"bootstrap.servers": self.bootstrap, **login}

    def certified_client(self, user: str = "admin") -> dict[str, str]:
        """Settings for a user of a secure cluster who shows a client certificate."""
        assert self.security is not None
        servers = ",".join(f"127.0.0.1:{port}" for port in self._ssl_ports)
        return {"bootstrap.servers": servers, **self.security.certified_client(user)}

    def start(self, *java_options: str) -> Cluster:
        if self.security:
            self.security.issue()
        cluster_id = kafka_uuid()
        for node in self.nodes:
            node.format(cluster_id)
            node.launch(*java_options)
        for node in self.nodes:
            node.wait()
        warm_up(self.client())
        return self

    def stop(self) -> None:
        """Kill all nodes, whose data nobody needs any more, and remove their folder unless the caller named it."""
        for node in self.nodes:
            node.kill()
        if not self._keep:
            shutil.rmtree(self.folder)

    def __enter__(self) -> Cluster:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _properties(self, number: int) -> dict[str, str]:
        protocol, copies = "SASL_SSL" if self.security else "PLAINTEXT", str(min(3, len(self._ports)))
        clients = f"{protocol}://127.0.0.1:{self._ports[number]}"
        if self.security:
            clients += f",SSL://127.0.0.1:{self._ssl_ports[number]}"
        listened, advertised, port = clients, clients, self._outside_ports[number]
        if self._advertised_host:
            listened += f",OUTSIDE://127.0.0.1:{port}"
            advertised += f",OUTSIDE://{self._advertised_host}:{port}"
        return {
            "process.roles": "broker,controller",
            "node.id": str(number),
            "controller.quorum.voters": ",".join(
                f"{i}@127.0.0.1:{port}" for i, port in enumerate(self._controller_ports)
            ),
            "listeners": f"{listened},CONTROLLER://127.0.0.1:{self._controller_ports[number]}",
            "advertised.listeners": advertised,
            "listener.security.protocol.map": f"{protocol}:{protocol},SSL:SSL,OUTSIDE:{protocol},CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": protocol,
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.folder / f"node-{number}"),
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            # the defaults preallocate 20 MB per partition and 128 MB for the cleaner
            "log.index.size.max.bytes": "65536",
            "log.cleaner.dedupe.buffer.size": "8388608",
            "num.network.threads": "2",
            "num.io.threads": "4",
            **(self.security.broker_properties() if self.security else {}),
        }


def archive_classes() -> None:
    """Write the archive of loaded classes, once: a node then starts in about one second instead of three."""
    archive = class_archive()
    if archive.exists():
        return
    fresh = archive.with_suffix(f".{os.getpid()}")
    cluster = Cluster()
    try:
        cluster.start(f"-XX:ArchiveClassesAtExit={fresh}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
        cluster.nodes[0].stop()
    finally:
        cluster.stop()
    fresh.replace(archive)
    forget_unused("kafka")


def free_ports(count: int) -> list[int]:
    """Different ports of 127.0.0.1 that nobody listens on at this moment."""
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in held]
    finally:
        for one in held:
            one.close()
