"""Names which of kafka-python's undocumented parts a new version of it changed."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from kafka.cluster import ClusterMetadata

from kafka_sla.sources.kafka.protocol import kafka_python
from kafka_sla.sources.kafka.protocol.kafka_python import KafkaConnectionManager, MetadataRequest, NetworkSelector

METHODS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "manager.run": (KafkaConnectionManager.run, (None, None, None), {}),
    "manager.bootstrap": (KafkaConnectionManager.bootstrap, (None, 1), {}),
    "manager.call_soon": (KafkaConnectionManager.call_soon, (None, None, None), {}),
    "manager.get_connection": (
        KafkaConnectionManager.get_connection,
        (None, 1, 1),
        {"pop_on_close": True, "refresh_metadata_on_err": False},
    ),
    "manager.wait_for": (KafkaConnectionManager.wait_for, (None, None, 1), {}),
    "manager.send": (KafkaConnectionManager.send, (None, None), {"node_id": 1}),
    "manager.close": (KafkaConnectionManager.close, (None, 1), {}),
    "net.sleep": (NetworkSelector.sleep, (None, 1), {}),
    "net.close": (NetworkSelector.close, (None,), {}),
    "cluster.brokers": (ClusterMetadata.brokers, (None,), {}),
    "cluster.bootstrap_brokers": (ClusterMetadata.bootstrap_brokers, (None,), {}),
    "cluster.refresh_metadata": (ClusterMetadata.refresh_metadata, (None,), {}),
    "message.with_header": (MetadataRequest.with_header, (None,), {"correlation_id": 1, "client_id": "x"}),
    "message.encode": (MetadataRequest.encode, (None,), {"framed": True, "header": True}),
    "message.decode": (MetadataRequest.decode, (b"",), {"version": 1, "header": True}),
}
"""What is called, and how."""


@pytest.mark.parametrize("name", METHODS)
def test_a_method_that_is_called_takes_what_it_is_given(name: str) -> None:
    method, given, named = METHODS[name]

    inspect.signature(method).bind(*given, **named)


def test_a_manager_knows_its_cluster_and_the_version_of_its_brokers() -> None:
    net = NetworkSelector()
    manager = KafkaConnectionManager(net, bootstrap_servers=["127.0.0.1:1"])

    assert isinstance(manager.cluster, ClusterMetadata)
    assert manager.broker_version is None
    manager.close()
    net.close()


@pytest.mark.parametrize("setting", ["request_timeout_ms", "max_in_flight_requests_per_connection", "client_id"])
def test_a_setting_of_the_connection_is_known(setting: str) -> None:
    assert setting in KafkaConnectionManager.DEFAULT_CONFIG


@pytest.mark.parametrize("name", [name for name in kafka_python.__all__ if name.endswith("Request")])
def test_a_message_is_made_and_encoded(name: str) -> None:
    message = getattr(kafka_python, name)

    assert message(version=message.max_version).encode()
