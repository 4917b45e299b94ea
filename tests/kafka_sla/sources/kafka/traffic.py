"""Topics, records and commits for the tests of this room, made with another client than the one that is tested."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from demo.broker import Cluster as Broker
from demo.warm_up import create_topic
from kafka_sla.model.entities import Cluster, Connection, Interval, OffsetLookups, Patterns, epoch_ms, floor_time
from kafka_sla.sources.kafka.snapshot import Snapshot, snapshot

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
WINDOW_MS = 60_000
KEPT_FOR_EVER = {"retention.ms": "-1"}

Point = tuple[int, int]
"""Time in ms and offset."""


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def interval(start: float, end: float) -> Interval:
    """From so many minutes after NOON to so many."""
    return Interval(NOON + minutes(start), NOON + minutes(end))


def ms(after_noon: float) -> int:
    """Milliseconds since the epoch of so many seconds after NOON."""
    return epoch_ms(NOON) + round(after_noon * 1000)


def this_minute() -> Interval:
    """Five minutes that begin with the current one: whatever a test does now lies inside."""
    start = floor_time(datetime.now(UTC), WINDOW_MS)
    return Interval(start, start + minutes(5))


@cache
def _admin(settings: tuple[tuple[str, str], ...]) -> AdminClient:
    return AdminClient({**dict(settings), "log_level": 0})


def admin(broker: Broker) -> AdminClient:
    """An admin client that lives as long as the tests: its answers die with it."""
    return _admin(tuple(broker.client().items()))


def topic(broker: Broker, partitions: int = 1, **config: str) -> str:
    """A new topic whose records live for ever unless its settings say otherwise; underscores stand for dots."""
    name = f"t-{uuid.uuid4().hex[:12]}"
    settings = KEPT_FOR_EVER | {key.replace("_", "."): value for key, value in config.items()}
    create_topic(admin(broker), NewTopic(name, partitions, 1, config=settings))
    return name


def add_partitions(broker: Broker, name: str, partitions: int) -> None:
    """The topic has so many in the end, and the broker knows it."""
    admin(broker).create_partitions([NewPartitions(name, partitions)])[name].result(120)
    wait_for(lambda: len(admin(broker).list_topics(name, timeout=60).topics[name].partitions) == partitions)


def wait_for(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def produce(broker: Broker, name: str, times_ms: Iterable[int], partition: int = 0, **settings: Any) -> None:
    """One record per timestamp."""
    producer = Producer({**broker.client(), "linger.ms": 5, **settings})
    refused: list[KafkaError] = []
    for index, time_ms in enumerate(times_ms):
        producer.produce(
            name,
            value=b"x" * 20,
            key=str(index),
            partition=partition,
            timestamp=time_ms,
            on_delivery=lambda error, _: refused.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(120) == 0
    assert refused == []


def in_transactions(broker: Broker, name: str) -> Producer:
    """Who writes in transactions of this id, and has begun none."""
    producer = Producer({**broker.client(), "transactional.id": name})
    producer.init_transactions(120)
    return producer


def commit(broker: Broker, group: str, name: str, offset: int, partition: int = 0) -> None:
    """Commit as clients do: again where the coordinator, another broker than the one that leads, does not know a new
    topic yet."""
    request = ConsumerGroupTopicPartitions(group, [TopicPartition(name, partition, offset)])
    deadline = time.monotonic() + 120
    while True:
        (answer,) = admin(broker).alter_consumer_group_offsets([request]).values()
        (committed,) = answer.result(120).topic_partitions
        if not _unknown_yet(committed.error) or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert committed.error is None, committed.error


def _unknown_yet(error: KafkaError | None) -> bool:
    return error is not None and error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def joined(broker: Broker, group: str, name: str, **settings: str) -> Consumer:
    """A consumer that has its partitions assigned."""
    consumer = Consumer(
        {
            **broker.client(),
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            **settings,
        }
    )
    consumer.subscribe([name])
    while not consumer.assignment():
        consumer.poll(0.1)
    return consumer


def look(
    broker: Broker,
    over: Interval,
    topics: str,
    *,
    groups: str = ".*",
    live: bool = False,
    user: str = "admin",
    offset_lookups: OffsetLookups | None = None,
) -> Snapshot:
    """A snapshot of one topic."""
    connection = Connection("kafka_test", extra=dict(broker.client(user)))
    return snapshot(
        Cluster("test", "kafka_test"),
        connection,
        over,
        window_ms=WINDOW_MS,
        groups=Patterns((groups,)),
        topics=Patterns((topics,)),
        live=live,
        offset_lookups=offset_lookups or OffsetLookups(),
    )


def points(seen: Snapshot, *sources: str, partition: int = 0) -> list[Point]:
    """The points of one partition, from these sources or all, in order."""
    return sorted(
        (epoch_ms(row["at"]), row["log_end_offset"])
        for row in seen.log_offsets.to_pylist()
        if row["partition"] == partition and (not sources or row["source"] in sources)
    )


def untrue(found: Iterable[Point], times_ms: Iterable[int] | Mapping[int, int]) -> list[Point]:
    """Points that contradict the records, given as timestamps by offset."""
    known = times_ms if isinstance(times_ms, Mapping) else dict(enumerate(times_ms))
    return [
        (at, offset)
        for at, offset in found
        if any(t > at for o, t in known.items() if o < offset) or any(t < at for o, t in known.items() if o >= offset)
    ]
