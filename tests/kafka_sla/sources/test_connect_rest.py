"""Connect's REST endpoint: a real worker with a real MirrorSourceConnector, and workers that do not help."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest
import requests
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from demo.broker import Cluster as Broker
from demo.broker import free_ports
from demo.connect import Worker
from demo.warm_up import create_topic
from kafka_sla.errors import ConnectUnreachable
from kafka_sla.model.entities import Cluster, Connection, KeptPosition, Patterns, ReplicationFlow
from kafka_sla.sources.connect_rest import read_flow
from kafka_sla.sources.kafka import mm2_offsets
from tests.kafka_sla.network.served import served

FLOW = ReplicationFlow("copies", "backup", None, "connect", "copy orders", Patterns(("connect-orders",)))
PATIENCE_S = 300
PASSWORD = "s3cret"
ANSWER = {
    "offsets": [
        {"partition": {"cluster": "A", "partition": 3, "topic": "connect-orders"}, "offset": {"offset": 41}},
        {"partition": {"cluster": "A", "partition": 4, "topic": "connect-orders"}, "offset": None},
        {"partition": {"cluster": "A", "partition": 0, "topic": "heartbeats"}, "offset": {"offset": 7}},
    ]
}


def connector(broker: Broker) -> dict[str, str]:
    """Copies a topic of the cluster into another one of the same cluster: one broker is enough."""
    return {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": broker.bootstrap,
        "target.cluster.bootstrap.servers": broker.bootstrap,
        "topics": "connect-orders",
        "tasks.max": "1",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
    }


def asked_until(worker: Worker, records: int) -> list[KeptPosition]:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            found = read_flow(FLOW, Connection("connect", host="127.0.0.1", port=worker.port, conn_type="http"))
            if [one.offset for one in found] == [records]:
                return found
        except ConnectUnreachable:
            pass  # a worker is starting, or takes the connector in
        assert time.monotonic() < deadline, worker.log[-3_000:]
        time.sleep(0.3)


def started(worker: Worker, broker: Broker) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            address = f"{worker.url}/connectors/copy%20orders/config"
            if requests.put(address, json=connector(broker), timeout=30).status_code in (200, 201):
                return
        except requests.ConnectionError:
            pass  # it is starting
        assert time.monotonic() < deadline, worker.log[-3_000:]
        time.sleep(0.3)


def test_a_real_worker_tells_what_its_offsets_topic_tells(kafka: Broker) -> None:
    create_topic(AdminClient({**kafka.client(), "log_level": 0}), NewTopic("connect-orders", 1, 1))
    producer = Producer(kafka.client())
    for number in range(30):
        producer.produce("connect-orders", str(number))
    producer.flush(120)
    with Worker(kafka) as worker:
        started(worker, kafka)
        (asked,) = asked_until(worker, 30)
        topic = ReplicationFlow("copies", "backup", worker.offsets_topic, None, FLOW.connector, FLOW.topics)
        read = mm2_offsets.read_flow(
            topic, Cluster("backup", "b"), Connection("b", extra=dict(kafka.client())), 0, None
        )

    assert (asked.group, asked.topic, asked.partition, asked.source) == ("copies", "connect-orders", 0, "connect_rest")
    assert (read[-1].offset, read[-1].source) == (asked.offset, "mm2_offsets")


@pytest.fixture
def port() -> Iterator[int]:
    """An HTTP server that lets in whoever knows the password, and knows one connector."""

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers["Authorization"] == "Basic " + b64encode(f"me:{PASSWORD}".encode()).decode()
            status = 401 if not known else 404 if "/paste/" in self.path else 200
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"Welcome!" if "/web/" in self.path else json.dumps(ANSWER).encode())

    with served(Door) as port:
        yield port


def login(port: int, password: str = PASSWORD) -> Connection:
    return Connection("connect_dr", host="http://127.0.0.1", port=port, login="me", password=password)


def test_a_position_is_the_offset_after_the_last_copied_one_of_the_flow_s_topics(port: int) -> None:
    found = read_flow(FLOW, login(port))

    assert [(one.topic, one.partition, one.offset) for one in found] == [
        ("connect-orders", 3, 42),
        ("connect-orders", 4, None),
    ]


@pytest.mark.parametrize(
    ("password", "connector", "told"),
    [
        ("wr0ng", "copy orders", "the login is refused.*correct login and password of the connection"),
        (PASSWORD, "paste", "no such connector, or MirrorMaker runs in its dedicated mode.*leave connect out"),
        (PASSWORD, "web", "what answers is no Connect worker; correct the connection"),
    ],
)
def test_a_worker_that_refuses_is_told_with_its_cure_and_without_the_password(
    port: int, password: str, connector: str, told: str
) -> None:
    flow = ReplicationFlow("copies", "backup", None, "connect_dr", connector)

    with pytest.raises(ConnectUnreachable, match=f"connection 'connect_dr'.*{told}") as caught:
        read_flow(flow, login(port, password))
    assert password not in str(caught.value)


def test_a_worker_that_does_not_answer_is_told_without_the_login() -> None:
    (nobody,) = free_ports(1)

    with pytest.raises(ConnectUnreachable, match=r"no answer \(ConnectionError\); correct the connection") as caught:
        read_flow(FLOW, login(nobody))
    assert caught.value.__cause__ is None and PASSWORD not in str(caught.value)


def test_headers_of_the_extra_open_a_gateway(port: int) -> None:
    key = "Basic " + b64encode(f"me:{PASSWORD}".encode()).decode()
    connection = Connection("connect_dr", "http://127.0.0.1", port, extra={"Authorization": key})

    assert len(read_flow(FLOW, connection)) == 2


def test_an_extra_that_cannot_work_is_told(port: int) -> None:
    connection = Connection("connect_dr", "http://127.0.0.1", port, extra={"verify": "/no/such/ca.pem"})

    with pytest.raises(ConnectUnreachable, match=r"verify in its extra names '/no/such/ca.pem', and there is no such"):
        read_flow(FLOW, connection)


def test_a_redirect_takes_no_secret_header_to_another_host() -> None:
    seen = []

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.headers["Host"], self.headers["X-Api-Key"]))
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_address[1]}/")
            self.end_headers()

    with served(Door) as port:
        connection = Connection("connect_dr", "http://127.0.0.1", port, extra={"X-Api-Key": PASSWORD})
        with pytest.raises(ConnectUnreachable, match=r"it redirects \(302\), which is not followed") as caught:
            read_flow(FLOW, connection)

    assert seen == [(f"127.0.0.1:{port}", PASSWORD)]
    assert PASSWORD not in str(caught.value)


def test_an_answer_of_gigabytes_is_not_read() -> None:
    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b" " * 2**20)
            except OSError:
                return  # the client has left

    with served(Door) as port, pytest.raises(ConnectUnreachable, match="the answer has more than 16777216 bytes"):
        read_flow(FLOW, Connection("connect_dr", "http://127.0.0.1", port))
