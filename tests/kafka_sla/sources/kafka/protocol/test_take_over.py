"""Brokers that hang, and brokers that take over what another one had."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError, KafkaError
from kafka.protocol.admin import ListGroupsResponse

from demo.broker import Cluster as Broker
from kafka_sla.model.entities import Cluster, Connection, Patterns
from kafka_sla.sources.kafka.probes.permissions import probe
from kafka_sla.sources.kafka.protocol.client import Ask
from kafka_sla.sources.kafka.protocol.groups import list_groups

LOADING, NO_RIGHTS = 14, 29


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a broker that hangs: it accepts connections, and never says anything. Nobody waits for it long."""
    monkeypatch.setattr("kafka_sla.sources.kafka.protocol.client._ANSWER_MS", 1_000)
    monkeypatch.setattr("kafka_sla.sources.kafka.protocol.client._KNOCK_S", 0)
    monkeypatch.setattr("kafka_sla.sources.kafka.protocol.connection_errors._SECONDS", 1.0)
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
        yield f"127.0.0.1:{listening.getsockname()[1]}"


class Wire:
    """What the brokers 1 and 2 answer, one round after the other; stands for the network."""

    brokers = (1, 2)

    def __init__(self, *rounds: tuple[Any, Any]) -> None:
        self.rounds = list(rounds)
        self.pauses = 0

    def ask(self, asks: Sequence[Ask]) -> list[Any]:
        answers = dict(zip(self.brokers, self.rounds.pop(0), strict=True))
        return [answers[ask.node or 0] for ask in asks]

    def pause(self, seconds: float) -> None:
        self.pauses += 1


def listed(*groups: str, error: int = 0) -> ListGroupsResponse:
    found = [
        ListGroupsResponse.ListedGroup(
            group_id=name, protocol_type="consumer", group_state="Stable", group_type="classic"
        )
        for name in groups
    ]
    return ListGroupsResponse(error_code=error, groups=found)


def names(wire: Any) -> list[tuple[str, int]]:
    return [(group.name, group.coordinator) for group in list_groups(wire, Patterns())]


def test_a_list_is_asked_for_again_while_a_broker_is_taking_over() -> None:
    wire = Wire((listed("a"), listed(error=LOADING)), (listed("a"), listed("b")))

    assert names(wire) == [("a", 1), ("b", 2)]
    assert wire.pauses == 1


def test_a_group_that_moves_meanwhile_is_listed_once_where_it_went() -> None:
    wire = Wire((listed("a", "b"), KafkaConnectionError("gone")), (listed("a"), listed("b")))

    assert names(wire) == [("a", 1), ("b", 2)]


def test_a_list_that_never_becomes_whole_is_an_error_and_no_shorter_list() -> None:
    wire = Wire(*[(listed("a"), listed(error=LOADING))] * 20)

    with pytest.raises(KafkaError, match="LoadInProgress"):
        names(wire)


def test_what_waiting_does_not_cure_is_not_waited_for() -> None:
    wire = Wire((listed("a"), listed(error=NO_RIGHTS)))

    with pytest.raises(KafkaError):
        names(wire)
    assert wire.pauses == 0


def test_a_broker_that_hangs_is_passed_over(kafka: Broker, silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka.cluster.random.shuffle", lambda _: None)  # the one that hangs is asked first
    extra = kafka.client() | {"bootstrap.servers": f"{silent},{kafka.bootstrap}"}
    began = time.monotonic()

    findings = probe(Cluster("real", "kafka_real"), Connection("kafka_real", extra=extra))

    assert findings[0].text.startswith("reached 1 broker")
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT"])
def test_a_broker_that_hangs_is_told_from_one_that_speaks_otherwise(silent: str, protocol: str) -> None:
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"} if "SASL" in protocol else {}
    extra = {"bootstrap.servers": silent, "security.protocol": protocol, **login}

    (finding,) = probe(Cluster("hung", "kafka_hung"), Connection("kafka_hung", extra=extra))

    assert f"{silent} accepts connections and then says nothing within 1 s" in finding.text
