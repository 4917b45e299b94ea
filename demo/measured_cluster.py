"""Brokers whose replication can be looked at: a controller of their own, a JMX exporter each, links that can be slowed.

A combined broker and controller would not do: its controllers' fetches hide in the same metrics as those of replicas.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from demo.broker import Cluster, free_ports
from demo.jars import EXPORTER, fetch_jars
from demo.links import Links
from demo.node import Node

RULES = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "kafka-jmx-exporter.yml"
"""The exporter's rules that people are told to copy."""


class MeasuredCluster(Cluster):
    """Brokers 0 to n - 1 and a controller. `jmx_exporters`: addresses by broker id; `links` slows what lies between."""

    def __init__(self, brokers: int = 3) -> None:
        super().__init__(brokers)
        behind, ports, exporters = (dict(enumerate(free_ports(brokers))) for _ in range(3))
        self.links = Links(ports, behind)
        self.jmx_exporters = {broker: f"http://127.0.0.1:{port}/metrics" for broker, port in exporters.items()}
        self._exporters = exporters
        self._controller = f"{brokers}@127.0.0.1:{free_ports(1)[0]}"
        for node in self.nodes:
            node.properties.update(self._broker(node.number, behind[node.number], ports[node.number]))
        self.nodes.append(Node(brokers, self.folder, self._controlling(self.nodes[0].properties, brokers)))

    def start(self, *java_options: str) -> MeasuredCluster:
        agent = next(fetch_jars(jars=EXPORTER).glob("jmx_prometheus_javaagent-*.jar"))
        for node in self.nodes[:-1]:
            node.java_options = (f"-javaagent:{agent}=127.0.0.1:{self._exporters[node.number]}:{RULES}",)
        super().start(*java_options)
        return self

    def __enter__(self) -> MeasuredCluster:
        self.links.__enter__()
        super().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self.links.__exit__(kind, error, trace)

    def _broker(self, number: int, behind: int, port: int) -> dict[str, str]:
        clients = self.nodes[number].properties["advertised.listeners"]
        return {
            "process.roles": "broker",
            "controller.quorum.voters": self._controller,
            "listeners": f"{clients},BROKERS://127.0.0.1:{behind}",
            "advertised.listeners": f"{clients},BROKERS://127.0.0.1:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "BROKERS",
        }

    def _controlling(self, broker: dict[str, str], number: int) -> dict[str, str]:
        brokers_only = ("advertised.listeners", "inter.broker.listener.name")
        return {key: value for key, value in broker.items() if key not in brokers_only} | {
            "process.roles": "controller",
            "node.id": str(number),
            "listeners": f"CONTROLLER://{self._controller.partition('@')[2]}",
            "log.dirs": str(self.folder / f"node-{number}"),
        }
