"""Replication lag of a real MirrorMaker 2 between two real clusters: running, idle, hanging, going on, killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from demo.broker import Cluster as Broker
from demo.mirror import Flow, Mirror
from demo.warm_up import create_topic
from kafka_sla.model.entities import (
    Cluster,
    Connection,
    Interval,
    KeptPosition,
    OffsetLookups,
    Patterns,
    ReplicationFlow,
    floor_time,
)
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS, REPLICATION_LAG
from kafka_sla.sources.kafka.mm2_offsets import read_flow
from kafka_sla.sources.kafka.snapshot import snapshot
from kafka_sla.spark_jobs import replication_lag
from tests.spark_jobs.conftest import EPOCH, Row
from tests.spark_jobs.measuring import Measuring, of_expressions

pytestmark = pytest.mark.slow

WINDOW_MS, TTL_MS = 1_000, 3_000
OUT = ReplicationFlow(
    "prod->backup",
    "backup",
    "mm2-offsets.prod.internal",
    prefix="prod.",
    refresh_interval_ms=500,
    ttl_ms=TTL_MS,
    topics=Patterns(("orders",)),
)
BACK = ReplicationFlow("backup->prod", "prod", "mm2-offsets.backup.internal", prefix="", topics=Patterns(("returns",)))
PROD, BACKUP = Cluster("prod", "prod", replication=(OUT,)), Cluster("backup", "backup", replication=(BACK,))
PATIENCE_S = 300


@dataclass(frozen=True, slots=True)
class Story:
    """What happened when, and what was read of it at the end."""

    idle_from: datetime
    idle_until: datetime
    hung_from: datetime
    hung_until: datetime
    caught_up: datetime
    killed: datetime
    rows: list[Row]
    returned: list[KeptPosition]
    copies: int
    """Records of the flow back that are on its target under the same name."""


def now() -> datetime:
    return datetime.now(UTC)


def positions(flow: ReplicationFlow, target: Cluster, broker: Broker) -> list[KeptPosition]:
    return read_flow(flow, target, Connection(target.name, extra=dict(broker.client())), 0, None)


def write(broker: Broker, topic: str, records: int, seconds: float = 0) -> None:
    producer = Producer(broker.client())
    for number in range(records):
        producer.produce(topic, str(number), partition=0)
        producer.poll(seconds / records)
    assert producer.flush(120) == 0


def wait_for(happened: Callable[[], bool], mirror: Mirror) -> datetime:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, mirror.log[-3_000:]
        time.sleep(0.3)
    return now()


def end(broker: Broker, topic: str) -> int:
    consumer = Consumer({**broker.client(), "group.id": "none"})
    high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)[1]
    consumer.close()
    return int(high)


@pytest.fixture(scope="module")
def backup(kafka_classes: None) -> Iterator[Broker]:
    with Broker() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def prod(kafka_classes: None) -> Iterator[Broker]:
    with Broker() as cluster:
        yield cluster


def has_copied(flow: ReplicationFlow, target: Cluster, broker: Broker, records: int) -> bool:
    if flow.offsets_topic not in AdminClient({**broker.client(), "log_level": 0}).list_topics(timeout=60).topics:
        return False
    return [one.offset for one in positions(flow, target, broker)][-1:] == [records]


@pytest.fixture
def expressed(spark: SparkSession, tmp_path: Path) -> Measuring:
    return Measuring(REPLICATION_LAG, of_expressions(spark, replication_lag.measure), tmp_path)


@pytest.fixture
def story(prod: Broker, backup: Broker, expressed: Measuring, measure: Callable[..., list[Row]]) -> Story:
    for broker, topic in ((prod, "orders"), (backup, "returns")):
        create_topic(AdminClient({**broker.client(), "log_level": 0}), NewTopic(topic, 1, 1))
        write(broker, topic, 100)
    flows = (Flow("prod", "backup", "orders"), Flow("backup", "prod", "returns", renamed=False))
    with Mirror({"prod": prod, "backup": backup}, flows) as mirror:
        wait_for(lambda: has_copied(BACK, PROD, prod, 100), mirror)
        idle_from = wait_for(lambda: has_copied(OUT, BACKUP, backup, 100), mirror)
        time.sleep(TTL_MS / 1000 + 2)
        idle_until = now()
        mirror.pause()
        write(prod, "orders", 100, seconds=2)
        time.sleep(TTL_MS / 1000 + 2)
        hung_until = now()
        mirror.resume()
        caught_up = wait_for(lambda: has_copied(OUT, BACKUP, backup, 200), mirror)
        time.sleep(3.5)  # a second to settle, and two whole windows
        mirror.kill()
        killed = now()
        write(prod, "orders", 50)
        time.sleep(TTL_MS / 1000 + 2)
    rows = measured(
        prod, backup, Interval(floor_time(idle_from, WINDOW_MS), floor_time(now(), WINDOW_MS)), expressed, measure
    )
    back = positions(BACK, PROD, prod)
    return Story(idle_from, idle_until, idle_until, hung_until, caught_up, killed, rows, back, end(prod, "returns"))


def measured(
    prod: Broker, backup: Broker, over: Interval, expressed: Measuring, measure: Callable[..., list[Row]]
) -> list[Row]:
    """The rows of the whole story, read from both clusters after it."""
    seen = snapshot(
        PROD,
        Connection("prod", extra=dict(prod.client())),
        over,
        window_ms=WINDOW_MS,
        groups=Patterns((OUT.name,)),
        topics=Patterns(("orders",)),
        live=False,
        offset_lookups=OffsetLookups(max_gap_ms=WINDOW_MS),
        kept=positions(OUT, BACKUP, backup),
    )
    points, commits = seen.log_offsets.to_pylist(), seen.committed_offsets.to_pylist()
    start, end = ((t - EPOCH) / timedelta(seconds=1) for t in (over.start, over.end))
    latency = measure(points, commits, start, end, window=WINDOW_MS / 1000)
    facts = {LOG_OFFSETS: points, COMMITTED_OFFSETS: commits}
    own = [{name: value for name, value in row.items() if name != "states"} for row in latency]
    return expressed.whole(facts, start, end, (PROD,), latency=own)


def test_lag_follows_what_mirror_maker_does(story: Story) -> None:
    """One story, because its scenes cost minutes when each is played alone."""

    def during(start: datetime, end: datetime) -> list[Row]:
        return [row for row in story.rows if row["window_start"] >= start and row["window_end"] <= end]

    second = timedelta(seconds=1)
    idle, hung = during(story.idle_from + second, story.idle_until - second), during(story.hung_from, story.hung_until)
    assert {row["replication_record_lag"] for row in idle} == {0}, "all is replicated, however long ago"

    told = [row["replication_record_lag"] for row in hung if row["replication_record_lag"] is not None]
    assert told == sorted(told) and told[-1] > 20, "it hangs, so its lag grows"
    assert hung[-1]["unknown_reason"] == replication_lag.STALE, "and is unknown once its position is too old"
    assert hung[-1]["last_replicated_offset"] == 99

    after = during(story.caught_up + second, story.killed)
    assert {row["replication_record_lag"] for row in after} == {0}, "it went on and caught up"
    late = max(row["replication_latency_max_ms"] or 0 for row in during(story.hung_from, story.killed))
    assert late > TTL_MS, "the records that waited for it are late in time, too"

    dead = during(story.killed, story.killed + timedelta(hours=1))
    assert dead[-1]["unknown_reason"] == replication_lag.STALE
    assert (dead[-1]["last_replicated_offset"], dead[-1]["log_end_offset"]) == (199, 250)
    assert {(row["target"], row["target_topic"]) for row in story.rows} == {("backup", "prod.orders")}

    assert [(one.group, one.topic, one.offset) for one in story.returned][-1:] == [("backup->prod", "returns", 100)]
    assert story.copies == 100, "the identity policy keeps names"
