"""Peers at the address of `bootstrap.servers` that are no brokers, and brokers whose answers make no sense."""

from __future__ import annotations

import resource
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from demo.broker import Cluster as Broker
from demo.degraded_broker import LIST_OFFSETS, DegradedBroker
from kafka_sla.errors import KafkaUnreachable
from kafka_sla.model.entities import Cluster, Connection, Interval, OffsetLookups, Patterns
from kafka_sla.sources.kafka.probes.permissions import probe
from kafka_sla.sources.kafka.protocol.client import Client
from kafka_sla.sources.kafka.samples.sampler import Sampler
from kafka_sla.sources.kafka.snapshot import Snapshot, snapshot
from tests.kafka_sla.sources.kafka.traffic import produce, topic

Serve = Callable[[socket.socket], None]


def endless(part: bytes, first: bytes = b"") -> Serve:
    def serve(peer: socket.socket) -> None:
        peer.sendall(first)
        while True:
            peer.sendall(part)

    return serve


def answer(body: bytes) -> Serve:
    """Answers the first request, whose correlation id it repeats, with this body, and says nothing more."""

    def serve(peer: socket.socket) -> None:
        request = peer.recv(65_536)
        peer.sendall(struct.pack(">i", 4 + len(body)) + request[8:12] + body)
        peer.recv(65_536)

    return serve


NULL_LIST = struct.pack(">hi", 0, -1)
NO_BROKERS: dict[str, Serve] = {
    "zeros without end": endless(bytes(2**20)),
    "ones without end": endless(b"\xff" * 2**20),
    "text without end": endless(b"HTTP/1.1 200 OK\r\n" * 50_000),
    "a frame of 90 MB without end": endless(bytes(2**20), struct.pack(">i", 90_000_000)),
    "a null for the list of versions": answer(NULL_LIST),
    "a list of 2,147,483,647 versions": answer(struct.pack(">hi", 0, 2**31 - 1)),
    "an answer without a body": answer(b""),
    "a frame of a negative size": endless(bytes(2**20), struct.pack(">i", -5)),
    "noise": answer(bytes(range(256)) * 4),
}


@contextmanager
def peer(serve: Serve) -> Iterator[Connection]:
    """A connection to a peer that serves each caller so."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=50)

    def handle(opened: socket.socket) -> None:
        with opened:
            try:
                serve(opened)
            except OSError:
                return  # the client has left

    def accept() -> None:
        while True:
            try:
                opened, _ = listening.accept()
            except OSError:
                return  # the test is over
            threading.Thread(target=handle, args=(opened,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        yield Connection("kafka_prod", extra={"bootstrap.servers": address})
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


@pytest.mark.parametrize("serve", NO_BROKERS.values(), ids=NO_BROKERS)
def test_a_peer_that_is_no_broker_is_an_unreachable_cluster_and_costs_no_memory(serve: Serve) -> None:
    with peer(serve) as connection:
        before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        with (
            pytest.raises(KafkaUnreachable, match=r"cluster 'prod' \(connection 'kafka_prod'\): ") as caught,
            Client(Cluster("prod", "kafka_prod"), connection),
        ):
            pass
        (finding,) = probe(Cluster("prod", "kafka_prod"), connection)

        assert "127.0.0.1" in str(caught.value)
        assert not finding.ok
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 100_000


def test_the_sampler_survives_a_peer_that_is_no_broker() -> None:
    with peer(NO_BROKERS["a null for the list of versions"]) as connection:
        sampler = Sampler(Cluster("prod", "kafka_prod"), connection, 60_000)
        for _ in range(2):
            with pytest.raises(KafkaUnreachable):
                sampler.sample()


def negative_ends(name: str) -> Callable[[Any], None]:
    """Changes what is answered of one topic."""

    def change(answer: Any) -> None:
        for of_topic in answer.topics:
            for partition in of_topic.partitions if of_topic.name == name else ():
                partition.offset = -1_099_511_627_776

    return change


def pass_over(degraded: DegradedBroker, name: str) -> Snapshot:
    now = datetime.now(UTC)
    interval = Interval(now - timedelta(minutes=5), now)
    cluster = Cluster("prod", "kafka_prod", Patterns(), Patterns((name,)))
    lookups = OffsetLookups(250, 1_000, 60_000)
    return snapshot(
        cluster,
        Connection("kafka_prod", extra=dict(degraded.client())),
        interval,
        window_ms=60_000,
        groups=cluster.groups,
        topics=cluster.topics,
        live=True,
        offset_lookups=lookups,
    )


def test_an_offset_below_zero_is_no_fact(kafka: Broker) -> None:
    name = topic(kafka)
    produce(kafka, name, range(1_700_000_000_000, 1_700_000_000_010))

    with DegradedBroker(kafka.bootstrap, changes={LIST_OFFSETS: negative_ends(name)}) as degraded:
        found = pass_over(degraded, name)

    assert found.log_offsets.num_rows == 0
    assert any("an answer holds an offset below 0, which no log has" in note for note in found.notes)
