"""What the demonstration shows beside its consumers: a mirrored topic, and a broker whose links are slow. Real, small.

The slow broker takes four more processes, so a machine with little memory does without it.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from demo.broker import Cluster
from demo.measured_cluster import MeasuredCluster
from demo.mirror import Flow, Mirror
from demo.trickle import Trickle
from demo.warm_up import create_topic

SLOW_BROKER, SLOW_SECONDS = 0, 0.08
_NEEDED_BYTES = 6 * 1024**3
"""Memory that must be free at the start for the cluster of the slow broker: Airflow and Spark come on top of it."""
_TOPIC = "telemetry"


@dataclass(slots=True)
class Neighbours:
    """Clusters by the names that demo/kafka_sla.yml gives them."""

    source: Cluster
    backup: Cluster
    roomy: bool
    """The machine has room for the brokers."""
    brokers: MeasuredCluster | None = None
    """Once they run."""

    def start_mirror(self, stack: ExitStack) -> None:
        """Until the stack ends, run the cluster that is copied to and what copies from the source, which must run."""
        stack.enter_context(self.backup)
        stack.enter_context(Mirror({"demo": self.source, "backup": self.backup}, [Flow("demo", "backup", "orders")]))

    def start_brokers(self, stack: ExitStack) -> dict[str, dict[str, Any]]:
        """Start the cluster of the slow broker until the stack ends; returns the Airflow connection to it.

        Its ports are chosen here: another process may take a port that is chosen and not listened on.
        """
        self.brokers = stack.enter_context(MeasuredCluster())
        self.brokers.links.slow(SLOW_BROKER, frozenset(), SLOW_SECONDS)
        create_topic(AdminClient({**self.brokers.client()}), NewTopic(_TOPIC, 3, 3))
        stack.enter_context(Trickle(self.brokers.client(), _TOPIC, 3, records_per_second=50))
        return {"kafka_brokers": _connection(self.brokers)}

    def connections(self) -> dict[str, dict[str, Any]]:
        """Airflow connections to those whose address is known before they run."""
        return {"kafka_backup": _connection(self.backup)}

    def configuration(self, template: Path, path: Path) -> Path:
        """The demonstration's configuration with what only a running cluster knows, written to `path`."""
        values = yaml.safe_load(template.read_text())
        if self.brokers:
            values["clusters"]["brokers"]["jmx_exporters"] = self.brokers.jmx_exporters
        else:
            del values["clusters"]["brokers"]
        path.write_text(yaml.safe_dump(values, sort_keys=False))
        return path


def neighbours_of(source: Cluster) -> Neighbours:
    """The address of the one that is copied to is known; nothing runs yet."""
    return Neighbours(source, Cluster(), psutil.virtual_memory().available >= _NEEDED_BYTES)


def _connection(cluster: Cluster) -> dict[str, Any]:
    return {"conn_type": "kafka", "extra": cluster.client()}
