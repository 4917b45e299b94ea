"""Connections as people define them, turned into what the client needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_sla.errors import KafkaUnreachable
from kafka_sla.model.entities import Connection
from kafka_sla.sources.kafka.protocol.client_config import client_configuration


def test_host_and_port_are_the_bootstrap() -> None:
    assert client_configuration("c", Connection("k", host="broker", port=9093)) == {
        "bootstrap_servers": ["broker:9093"]
    }


def test_several_hosts_share_the_port_unless_they_name_their_own() -> None:
    found = client_configuration("c", Connection("k", host="one, two:9095"))

    assert found["bootstrap_servers"] == ["one:9092", "two:9095"]


def test_the_extra_speaks_confluents_names(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.touch()
    extra = {
        "bootstrap.servers": "a:9092,b:9092",
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "ssl.ca.location": str(authority),
        "ssl.endpoint.identification.algorithm": "none",
        "group.id": "what consumers need means nothing here",
    }

    assert client_configuration("c", Connection("k", login="me", password="pw", extra=extra)) == {
        "bootstrap_servers": ["a:9092", "b:9092"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "me",
        "sasl_plain_password": "pw",
        "ssl_cafile": str(authority),
        "ssl_check_hostname": False,
    }


def test_every_mistake_is_told_at_once_and_no_secret() -> None:
    extra = {
        "bootstrap.servers": "nowhere",
        "security.protocol": "TLS",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.pasword": "secret-1",
        "ssl.key.location": "/no/such/key",
    }

    with pytest.raises(KafkaUnreachable) as raised:
        client_configuration("payments", Connection("k1", password="secret-2", extra=extra))

    told = str(raised.value)
    for part in ("'payments'", "'k1'", "'nowhere' is not host:port", "'TLS' is not one of PLAINTEXT, SSL",
                 "'OAUTHBEARER' is not one of PLAIN", "sasl.pasword: not known", "no file '/no/such/key'"):  # fmt: skip
        assert part in told
    assert "secret" not in told


def test_a_connection_without_any_broker_is_refused() -> None:
    with pytest.raises(KafkaUnreachable, match=r"give host and port, or bootstrap\.servers"):
        client_configuration("c", Connection("k"))
