"""A topic of a real broker, deleted and created again between two snapshots, while a group commits all the time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.cimpl import NewTopic

from demo.broker import Cluster as Broker
from demo.warm_up import create_topic
from kafka_sla.model.entities import Cluster, Connection, Interval, OffsetLookups, Patterns
from kafka_sla.model.tables import TOPIC_CONFIGS
from kafka_sla.sources.kafka.snapshot import Snapshot, snapshot
from kafka_sla.spark_jobs.consumer_latency import NO_LOG_END
from kafka_sla.spark_jobs.numeric.positions import AROUND, BEYOND, RECREATED
from tests.kafka_sla.sources.kafka.traffic import KEPT_FOR_EVER, admin, commit, topic
from tests.spark_jobs.conftest import EPOCH, Row, at
from tests.spark_jobs.numeric.test_polls import outside
from tests.spark_jobs.numeric.test_topic_incarnations import Life, World

pytestmark = pytest.mark.slow

Measure = Callable[..., list[Row]]
WINDOW = 2


def now() -> float:
    """Seconds after the tests' epoch."""
    return (datetime.now(UTC) - EPOCH).total_seconds()


def lived(broker: Broker, name: str, seconds: float, produced: list[float]) -> None:
    """A record every 0.1 s; the group commits all that is older than a second, about twice a second."""
    producer, until = Producer({**broker.client(), "linger.ms": 0}), now() + seconds
    while (moment := now()) < until:
        stamp = round(moment, 3)
        producer.produce(name, b"x", partition=0, timestamp=round((EPOCH.timestamp() + stamp) * 1_000))
        produced.append(stamp)
        assert producer.flush(120) == 0
        if len(produced) % 5 == 0:
            commit(broker, f"g-{name}", name, sum(made < moment - 1 for made in produced))
        time.sleep(0.1)


def seen(broker: Broker, name: str, start: float, end: float) -> Snapshot:
    connection = Connection("kafka_test", extra=dict(broker.client()))
    return snapshot(
        Cluster("prod", "kafka_test"),
        connection,
        Interval(at(start), at(end)),
        window_ms=WINDOW * 1_000,
        groups=Patterns((f"g-{name}",)),
        topics=Patterns((name,)),
        live=True,
        offset_lookups=OffsetLookups(),
        look_back=timedelta(seconds=10),
    )


def created_again(broker: Broker, name: str) -> None:
    admin(broker).delete_topics([name])[name].result(120)
    deadline = time.monotonic() + 120
    while True:
        try:
            create_topic(admin(broker), NewTopic(name, 1, 1, config=KEPT_FOR_EVER))
            return
        except KafkaException:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.fixture(scope="module")
def story(kafka: Broker) -> tuple[World, list[Row], list[Row], list[Row], float, float]:
    """The truth, and what three snapshots saw of it: points, commits and topic ids; begin and end.

    The topic is created again between the first two. Nothing tells when, so all windows between them are unknown.
    """
    name, first, second = topic(kafka), list[float](), list[float]()
    begin = math.ceil(now() / WINDOW) * WINDOW
    lived(kafka, name, begin + 10.5 - now(), first)
    half = begin + 10
    looks = [seen(kafka, name, begin, half)]
    lived(kafka, name, 4, first)
    dies = now()
    created_again(kafka, name)
    born = now()
    lived(kafka, name, 3, second)
    new_life_seen = math.floor(now() / WINDOW) * WINDOW
    looks.append(seen(kafka, name, half, new_life_seen))
    lived(kafka, name, 4, second)  # the log end stays below that of the first life, which proves the new one
    end = math.floor(now() / WINDOW) * WINDOW
    looks.append(seen(kafka, name, new_life_seen, end))
    rows = [row for one in looks for row in one.commits.to_pylist()]
    of_first_run = {row["at"]: row for row in reversed(rows)}
    commits = list(of_first_run.values())
    held = [
        ((r["at"] - EPOCH).total_seconds(), r["committed_offset"]) for r in commits if r["committed_offset"] is not None
    ]
    lives = [sorted(c for c in held if (c[0] < dies) == old) for old in (True, False)]
    world = World(Life(first, lives[0], begin - 99, dies), Life(second, lives[1], born, math.inf), name)
    points = [row for one in looks for row in one.log_offsets.to_pylist()]
    return world, points, commits, [row for one in looks for row in one.topic_configs.to_pylist()], begin, end


def test_what_is_told_of_both_lives_is_true_and_the_rest_is_unknown(
    story: tuple[World, list[Row], list[Row], list[Row], float, float], measure: Measure
) -> None:
    world, points, commits, configs, begin, end = story
    for ids in ({TOPIC_CONFIGS: configs}, {}):
        rows = measure(points, commits, begin, end, window=WINDOW, facts=ids)
        wrong = []
        for row in rows:
            start = (row["window_start"] - EPOCH).total_seconds()
            wrong += outside(row, world.truth(start, start + WINDOW))
        assert wrong == []
        unknown = [row["unknown_reason"] for row in rows if row["unknown_reason"]]
        assert (set(unknown) <= {AROUND, RECREATED, NO_LOG_END, BEYOND}, 1 <= len(unknown) <= 6) == (True, True), (
            unknown
        )
        assert [row["unknown_reason"] for row in (rows[1], rows[-1])] == [None, None]
