"""`kafka-sla check` against what is there and what is not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from demo.broker import Cluster, free_ports
from demo.degraded_broker import DegradedBroker
from demo.warm_up import create_topic
from kafka_sla.cli.main import main
from kafka_sla.config.settings import load_settings
from kafka_sla.model.entities import floor_time
from kafka_sla.text.timestamps import instant_text
from tests.kafka_sla.sources.kafka.traffic import commit, topic

Captured = pytest.CaptureFixture[str]
Connect = Callable[[str, dict[str, object]], None]
CONFIG = """\
clusters: {prod: {connection: kafka_prod, groups: [cli-reader], topics: [cli-orders]}}
window: 5s
slas: [{name: orders, group: cli-reader, topic: cli-orders, max_latency: 30s}]
"""


@pytest.fixture
def connect(empty_folder: None, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """An empty folder with a configuration; connect(id, fields) defines a connection."""
    Path("kafka_sla.yml").write_text(CONFIG)
    return lambda name, fields: monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(fields))


def read_and_commit(broker: Cluster, protocol: str) -> None:
    """A hundred records of now, read and committed by a real group; its first commit, at ten, only says where it is."""
    create_topic(AdminClient(broker.client()), NewTopic("cli-orders", 1, 1))
    producer = Producer(broker.client())
    for number in range(100):
        producer.produce("cli-orders", str(number).encode())
    producer.flush(120)
    own = {"group.id": "cli-reader", "auto.offset.reset": "earliest", "group.protocol": protocol}
    consumer = Consumer({**broker.client(), **own})
    consumer.subscribe(["cli-orders"])
    for count in (10, 90):
        assert len(consumer.consume(count, 30)) == count
        consumer.commit(asynchronous=False)
    consumer.close()


def a_query_reads(records: int) -> None:
    """What Spark leaves in its checkpoint folder when its first batch is done."""
    now_ms = int(time.time() * 1000)
    for name, text in (("offsets", f'{{"cli-orders":{{"0":{records}}}}}'), ("commits", "")):
        folder = Path("checkpoint") / name
        folder.mkdir(parents=True)
        (folder / "0").write_text(f'v1\n{{"batchTimestampMs":{now_ms}}}\n{text}')


def test_a_checkpoint_that_is_not_there_is_told_with_its_cure(
    kafka: Cluster, connect: Connect, capsys: Captured, tmp_path: Path
) -> None:
    there = f"topics: [cli-orders], checkpoints: [{{group: query, path: {tmp_path}/gone}}]}}"
    Path("kafka_sla.yml").write_text(CONFIG.replace("topics: [cli-orders]}", there))
    connect("kafka_prod", {"conn_type": "kafka", "extra": kafka.client()})

    assert main(["check"]) == 1
    assert (
        f"FAIL cluster prod: checkpoint {tmp_path}/gone of group 'query': there is no offsets folder"
        in capsys.readouterr().out
    )


TWO_CLUSTERS = """\
clusters:
  prod: {connection: kafka_prod, groups: [cli-reader], topics: [cli-orders],
         checkpoints: [{group: query, path: FOLDER/checkpoint}]}
  secure: {connection: kafka_secure, groups: [cli-reader], topics: [cli-orders]}
window: 5s
defaults: {group: cli-reader, topic: cli-orders, max_latency: 30s}
slas: [{name: orders, cluster: prod}, {name: secure orders, cluster: secure}]
"""


def test_a_plain_and_a_secured_cluster_are_found_in_order_then_measured_and_judged(
    kafka: Cluster, kafka_sasl: Cluster, connect: Connect, capsys: Captured
) -> None:
    """SASL over TLS and a consumer of the new protocol (KIP-848) on one of two real clusters: the figures are the same,
    and the password stays where it was put. A Spark query reads the other one, too."""
    Path("kafka_sla.yml").write_text(TWO_CLUSTERS.replace("FOLDER", str(Path.cwd())))
    connect("kafka_prod", {"conn_type": "kafka", "extra": kafka.client()})
    connect("kafka_secure", {"conn_type": "kafka", "extra": kafka_sasl.client()})
    start = floor_time(datetime.now(UTC), 5_000)
    for broker, protocol in ((kafka, "classic"), (kafka_sasl, "consumer")):
        read_and_commit(broker, protocol)
    a_query_reads(60)

    assert main(["check"]) == 0
    lines = capsys.readouterr().out.splitlines()
    expected = ("ok   ", "note store: ", "     the first run makes it")
    assert [line for line in lines if not line.startswith(expected)] == []
    for name in ("prod", "secure"):
        assert f"ok   cluster {name}: __consumer_offsets may be read: every commit is known, also of the past" in lines
    assert "ok   cluster prod: query has positions on 1 partition" in lines

    end = floor_time(datetime.now(UTC), 5_000) + timedelta(seconds=5)
    time.sleep(max(0.0, (end - datetime.now(UTC)).total_seconds()) + 0.1)
    assert main(["run", "--from", instant_text(start), "--to", instant_text(end)]) == 0
    told = capsys.readouterr()
    assert [line.endswith("none") for line in told.out.splitlines()[-2:]] == [True, True]
    assert main(["export", "consumer_latency", "--by", "group", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    for name in ("prod", "secure"):
        mine = [row for row in rows if (row["cluster"], row["group"]) == (name, "cli-reader")]
        assert (sum(row["records_consumed"] for row in mine), mine[-1]["records_lag"]) == (90, 0)
    assert [row["records_lag"] for row in rows if row["group"] == "query"][-1] == 40
    password = kafka_sasl.client()["sasl.password"]
    assert password not in told.out + told.err
    assert [f for f in Path().rglob("*") if f.is_file() and password.encode() in f.read_bytes()] == []


def test_a_broker_that_does_not_answer_fails_with_its_cure(connect: Connect, capsys: Captured) -> None:
    (port,) = free_ports(1)
    connect("kafka_prod", {"conn_type": "kafka", "host": "127.0.0.1", "port": port})
    assert main(["check"]) == 1
    out = capsys.readouterr().out
    assert f"nothing answers at 127.0.0.1:{port}" in out and "\n     correct the connection" in out


def test_a_connection_that_is_not_defined_fails_and_the_rest_is_looked_at(connect: Connect, capsys: Captured) -> None:
    assert main(["check"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ok   configuration: 1 cluster, 1 SLA"
    assert (
        "FAIL cluster prod: the connection 'kafka_prod' is not defined here: set the environment variable" in lines[-1]
    )
    assert any(line.startswith("note store: ") for line in lines)


@pytest.mark.parametrize(
    "recipients",
    [
        lambda text: text.replace("30s}", "30s, recipients: [a@example.com]}"),
        lambda text: f"{text}digests: [{{name: weekly, every: week, recipients: [a@example.com]}}]\n",
    ],
    ids=["sla", "digest"],
)
def test_recipients_need_a_mail_server(connect: Connect, capsys: Captured, recipients: Callable[[str], str]) -> None:
    Path("kafka_sla.yml").write_text(recipients(CONFIG.replace("connection: kafka_prod, ", "")))
    (port,) = free_ports(1)
    extra = {"from_email": "sla@example.com", "disable_ssl": True, "disable_tls": True, "timeout": 2}
    connect("smtp_default", {"conn_type": "smtp", "host": "127.0.0.1", "port": port, "extra": extra})
    assert main(["check"]) == 1
    assert f"FAIL mail: mail server 127.0.0.1:{port}" in capsys.readouterr().out.splitlines()[-1]


def test_a_strange_cluster_is_checked_by_its_connection_and_gets_an_entry_that_fits(
    kafka: Cluster, connect: Connect, capsys: Captured, tmp_path: Path
) -> None:
    """No configuration names it, and its commit log is hidden."""
    Path("kafka_sla.yml").unlink()
    commit(kafka, f"billing.{(name := topic(kafka))}", name, 0)
    with DegradedBroker(kafka.bootstrap, hidden=frozenset({"__consumer_offsets"})) as broker:
        connect("kafka_eu", {"conn_type": "kafka", "extra": {**broker.client(), "session.timeout.ms": "45000"}})
        assert main(["check", "--connection", "kafka_eu"]) == 1
        out = capsys.readouterr().out
        assert main(["check", "--connection", "kafka_eu", "--json"]) == 1

    *others, last = json.loads(capsys.readouterr().out)
    assert "ok   keys of the connection that mean nothing here are ignored: session.timeout.ms" in out
    assert "FAIL __consumer_offsets may not be read" in out
    entry = out.partition("a cluster entry that fits:")[2]
    assert last["entry"] == entry.strip("\n") + "\n" and not any(other["entry"] for other in others)
    assert "    sample_every: 5s\n" in entry
    slas = "slas: [{name: orders, group: cli-reader, topic: cli-orders, max_latency: 30s}]\n"
    (tmp_path / "fits.yml").write_text(f"{entry}{slas}")
    assert load_settings(tmp_path / "fits.yml").cluster("eu").connection == "kafka_eu"


def test_a_notifier_that_is_none_is_named_with_its_line_and_not_run(connect: Connect, capsys: Captured) -> None:
    Path("kafka_sla.yml").write_text("clusters: {prod: {}}\nslas: []\n")
    Path("slas.d").mkdir()
    Path("slas.d/payments.yml").write_text(
        "slas:\n"
        "  - name: payments\n"
        "    group: payments\n"
        "    max_latency: 30s\n"
        "    notifiers:\n"
        "      - path: airflow.providers.smtp.notifications.smtp.SmtpNotifier\n"
        "      - path: subprocess.Popen\n"
        "        kwargs: {args: [touch, RAN]}\n"
    )

    assert main(["check"]) == 1

    out = capsys.readouterr().out
    assert (
        "FAIL notifier of the SLA 'payments': subprocess.Popen is not an Airflow notifier; allowed: a subclass of"
        " airflow.sdk.BaseNotifier" in out
    )
    assert "correct it in slas.d/payments.yml, line 7" in out
    assert "ok   notifier: airflow.providers.smtp.notifications.smtp.SmtpNotifier; it was not called" in out
    assert not Path("RAN").exists()


def test_checking_makes_no_store_at_a_mistyped_path(connect: Connect, capsys: Captured) -> None:
    Path("kafka_sla.yml").write_text("clusters: {prod: {}}\nslas: []\n")
    before = sorted(Path().rglob("*"))

    assert main(["check", "--store", "mistyped/strore"]) == 0

    assert sorted(Path().rglob("*")) == before
    assert f"store: there is none yet in {Path().absolute()}/mistyped/strore/warehouse" in capsys.readouterr().out
