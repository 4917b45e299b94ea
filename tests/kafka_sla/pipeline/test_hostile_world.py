"""Whatever a cluster may hold, legal or not, through the whole path: read, measured, judged, reported and mailed."""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from demo.broker import Cluster as Broker
from demo.mailbox import Mailbox, mailbox
from demo.warm_up import create_topic
from kafka_sla.cli.main import main
from kafka_sla.model.entities import Interval, epoch_ms, floor_time
from kafka_sla.text.timestamps import instant_text
from tests.kafka_sla import own_folder
from tests.kafka_sla.sources.kafka.traffic import add_partitions, admin, commit, look, produce, topic, wait_for

NASTY = "<script>alert('g')</script> & \"{{ 7*7 }}\" %s ../../etc \u202e日本\t\r\n=1+1"
"""A legal name of a consumer group, or of an SLA."""
LONGEST = "L" * 249
"""As long as a topic's name may be."""
CONFIG = """\
clusters: {odd: {connection: kafka_odd}}
window: 5s
defaults: {max_latency: 1ms, for: 5s, when_uncertain: estimate, recipients: [a@example.com]}
slas: [{name: "<img src=x onerror=alert(1)>", group: "*", topic: "*"}]
"""
STEP = timedelta(seconds=5)


@dataclass(frozen=True)
class World:
    """What one run over all of it told."""

    rows: list[dict[str, Any]]
    said: str
    report: str
    mails: list[str]
    notes: tuple[str, ...]
    """Of a snapshot of the same time."""

    def consumed(self, group: str) -> int:
        return sum(row["records_consumed"] for row in self.of(group))

    def of(self, group: str) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["group"] == group]


@pytest.fixture(scope="module")
def world(kafka_classes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("odd")
    (folder / "kafka_sla.yml").write_text(CONFIG)
    with Broker() as broker, mailbox(folder / "mail") as box, pytest.MonkeyPatch.context() as patch:
        own_folder.enter(folder, patch)
        for name, connection in connections(broker, box).items():
            patch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(connection))
        start = floor_time(datetime.now(UTC), 5_000) - 3 * STEP  # three windows in which nothing is there yet
        for happen in (
            nasty_names,
            a_topic_deleted_and_created,
            a_group_deleted_and_created,
            partitions_added,
            clocks_of_1970_and_2100,
            garbage_in_the_log,
        ):
            happen(broker)
        over = Interval(start, floor_time(datetime.now(UTC), 5_000) + STEP)
        time.sleep(max(0.0, (over.end - datetime.now(UTC)).total_seconds()) + 0.2)
        yield told(broker, over, box)


def connections(broker: Broker, box: Mailbox) -> dict[str, dict[str, Any]]:
    mail = {"from_email": "sla@example.com", "disable_ssl": True, "disable_tls": True}
    return {
        "kafka_odd": {"conn_type": "kafka", "extra": broker.client()},
        "smtp_default": {"conn_type": "smtp", "host": "127.0.0.1", "port": box.port, "extra": mail},
    }


def told(broker: Broker, over: Interval, box: Mailbox) -> World:
    span = ["--from", instant_text(over.start), "--to", instant_text(over.end)]
    said, out = io.StringIO(), Path("rows.json")
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        assert main(["run", *span, "--notify"]) == 0, said.getvalue()
        assert main(["misses"]) == 0
        assert main(["status"]) == 0
        assert main(["report", *span, "--output", "report.html"]) == 0
        assert main(["export", "consumer_latency", *span, "--output", str(out)]) == 0
    pages = [mail.get_body(("html",)) for mail in box.mails()]
    notes = look(broker, over, ".*").notes
    return World(
        json.loads(out.read_text()),
        said.getvalue(),
        Path("report.html").read_text(),
        [page.get_content() for page in pages if page],
        notes,
    )


def now_ms() -> int:
    return epoch_ms(datetime.now(UTC))


def read(broker: Broker, group: str, name: str, partition: int = 0, *, ms: int | None = None) -> None:
    """Ten records, made a second ago unless said otherwise, and a group that stood before them and has read them."""
    commit(broker, group, name, 0, partition)
    produce(broker, name, [now_ms() - 1_000 if ms is None else ms] * 10, partition)
    commit(broker, group, name, 10, partition)


def nasty_names(broker: Broker) -> None:
    create_topic(admin(broker), NewTopic(LONGEST, 1, 1))
    read(broker, NASTY, LONGEST)
    time.sleep(5.1)  # what is late in a window after the first is no bootstrapping
    produce(broker, LONGEST, [now_ms() - 1_000] * 10)
    commit(broker, NASTY, LONGEST, 20)
    read(broker, "g" * 1_000, LONGEST)


def a_topic_deleted_and_created(broker: Broker) -> None:
    name = topic(broker)
    read(broker, "of a recreated topic", name)
    admin(broker).delete_topics([name])[name].result(120)
    again = NewTopic(name, 1, 1)
    wait_for(lambda: name not in admin(broker).list_topics(timeout=60).topics)
    create_topic(admin(broker), again)
    produce(broker, name, [now_ms() - 500] * 4)
    commit(broker, "of a recreated topic", name, 4)


def a_group_deleted_and_created(broker: Broker) -> None:
    name = topic(broker)
    read(broker, "recreated", name)
    admin(broker).delete_consumer_groups(["recreated"])["recreated"].result(120)
    commit(broker, "recreated", name, 10)
    produce(broker, name, [now_ms()] * 5)
    commit(broker, "recreated", name, 15)
    other = topic(broker)
    read(broker, "deleted", other)
    admin(broker).delete_consumer_groups(["deleted"])["deleted"].result(120)


def partitions_added(broker: Broker) -> None:
    name = topic(broker)
    read(broker, "grows", name)
    add_partitions(broker, name, 3)
    read(broker, "grows", name, 2)


def clocks_of_1970_and_2100(broker: Broker) -> None:
    name = topic(
        broker, 2, message_timestamp_after_max_ms=str(2**63 - 1), message_timestamp_before_max_ms=str(2**63 - 1)
    )
    read(broker, "of 1970", name, 0, ms=1)  # 0 means now to this client
    read(broker, "of 2100", name, 1, ms=epoch_ms(datetime(2100, 1, 1, tzinfo=UTC)))


def garbage_in_the_log(broker: Broker) -> None:
    """What a broken broker or tool might leave; a client may write there only when it calls itself an admin client."""
    producer = Producer({**broker.client(), "client.id": "__admin_client", "log_level": 0})
    whole = b"\0\1\0\1g\0\1t\0\0\0\0"
    keys = [
        b"",
        b"\0",
        b"\0\1",
        b"\0\1\0\x09ab",
        b"\0\1\0\2\xff\xfe\0\1t\0\0\0\0",
        b"\0\1\xff\xff\xff\xff\0\0\0\0",
        whole + b"more",
    ]
    values = [b"", b"\0\x63" + bytes(40), b"\0\3abc"]
    newer = b"\x7f\xff" + whole  # no garbage: a kind of record that is not known yet
    for key, value in [(newer, b"x"), *((key, b"x") for key in keys), *((whole, value) for value in values)]:
        producer.produce("__consumer_offsets", key=key, value=value, partition=0)
    assert producer.flush(120) == 0


class Tags(HTMLParser):
    """The tags of a page that could do something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.active: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        source = dict(attributes).get("src") or ""
        if tag in ("script", "iframe", "object") or any(name.startswith("on") for name, _ in attributes):
            self.active.append(tag)
        if tag == "img" and not source.startswith(("cid:", "data:")):
            self.active.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_names_with_any_character_are_measured_and_come_out_as_they_went_in(world: World) -> None:
    assert [world.consumed(group) for group in (NASTY, "g" * 1_000)] == [20, 10]
    assert {row["topic"] for row in world.of(NASTY)} == {LONGEST}


def test_hostile_names_do_nothing_in_reports_and_mails(world: World) -> None:
    assert world.mails, world.said
    for page in (world.report, *world.mails):
        assert Tags(page).active == []
        assert "<img src=x onerror=alert(1)>" in Tags(page).text


def test_a_topic_that_was_deleted_and_created_starts_anew(world: World) -> None:
    rows = world.of("of a recreated topic")

    assert rows[-1]["records_lag"] == 0
    assert all(row["records_lag"] is None or row["records_lag"] >= 0 for row in rows)


def test_groups_that_were_deleted_end_or_begin_anew(world: World) -> None:
    assert 5 <= world.consumed("recreated") <= 15
    assert world.of("recreated")[-1]["records_lag"] == 0
    assert {row["window_end"] for row in world.of("deleted")} < {row["window_end"] for row in world.of("recreated")}


def test_partitions_that_were_added_are_measured(world: World) -> None:
    assert {row["partition"]: row["records_lag"] for row in world.of("grows")} == {0: 0, 1: 0, 2: 0}
    assert world.consumed("grows") == 20


def test_clocks_of_1970_and_2100_give_no_impossible_figures(world: World) -> None:
    """Neither timestamp is trusted, and no poll saw the log before the records: their latency is unknown."""
    past = [row for row in world.of("of 1970") if row["partition"] == 0]
    future = [row for row in world.of("of 2100") if row["partition"] == 1]

    for rows in (past, future):
        assert sum(row["records_consumed"] for row in rows) == sum(row["unknown_latency_records"] for row in rows) == 10
        assert {row["records_latency_max_ms"] for row in rows} == {None}
    assert {(row["committed_offset"], row["records_lag"]) for row in past} == {(10, 0)}
    # Lookups answer as if the topic had been created again after the group read it, so the log end is unknown.
    assert {(row["committed_offset"], row["records_lag"]) for row in future} == {(10, None)}


def test_garbage_in_the_commit_log_is_set_aside_and_said(world: World) -> None:
    (note,) = [note for note in world.notes if "set aside" in note]

    assert note.startswith("10 records of __consumer_offsets")
    assert "are set aside" in world.said


def test_nothing_of_it_is_a_traceback(world: World) -> None:
    assert "Traceback" not in world.said
