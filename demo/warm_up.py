"""Waiting until a fresh broker takes commits and a fresh topic is known. Knows only Kafka's own clients."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

_NAME = "warm-up"
_ONE_TRY_SECONDS = 15
_COMMITTING = {"group.id": _NAME, "enable.auto.commit": "false", "socket.timeout.ms": "5000", "log_level": 0}
"""A request that a starting broker never answers is asked again, and does not take all the time there is. The admin
client can commit, too, but ends the process now and then when such an answer comes late."""


def warm_up(client: dict[str, str], seconds: float = 90) -> None:
    """Commit until no partition answers with an error: the first commits on a fresh broker fail, with or without
    raising, and one of three on a busy machine may not answer at all."""
    admin = AdminClient({**client, "log_level": 0})  # silent when the broker goes away later
    create_topic(admin, NewTopic(_NAME, 1, 1), seconds)
    deadline = time.monotonic() + seconds
    consumer = Consumer({**client, **_COMMITTING})
    try:
        while error := _commit_error(consumer):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the broker still refuses commits after {seconds:.0f} s: {error}")
            time.sleep(0.05)
    finally:
        consumer.close()
    admin.delete_consumer_groups([_NAME])[_NAME].result(seconds)
    admin.delete_topics([_NAME])[_NAME].result(seconds)


def create_topic(admin: AdminClient, topic: NewTopic, seconds: float = 30) -> None:
    """Create a topic and wait until brokers tell its leaders: for a moment after its creation they do not know it."""
    deadline = time.monotonic() + seconds
    while not _is_created(admin, topic) and time.monotonic() < deadline:
        continue
    while not _has_leaders(admin, topic):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the topic {topic.topic} has no leaders after {seconds:.0f} s")
        time.sleep(0.02)


def _is_created(admin: AdminClient, topic: NewTopic) -> bool:
    """A client that asked before there was a controller may wait in vain, and is told at once when it asks again."""
    try:
        admin.create_topics([topic], request_timeout=_ONE_TRY_SECONDS)[topic.topic].result()
    except KafkaException as error:
        code = error.args[0].code()
        if code not in (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError._TIMED_OUT):
            raise
        return bool(code == KafkaError.TOPIC_ALREADY_EXISTS)
    return True


def _has_leaders(admin: AdminClient, topic: NewTopic) -> bool:
    known = admin.list_topics(topic.topic, timeout=60).topics[topic.topic]
    return len(known.partitions) == topic.num_partitions and all(p.leader >= 0 for p in known.partitions.values())


def _commit_error(consumer: Consumer) -> object:
    try:
        told = consumer.commit(offsets=[TopicPartition(_NAME, 0, 0)], asynchronous=False)
    except KafkaException as error:
        return repr(error)
    return next((p.error for p in told or [] if p.error), None)
