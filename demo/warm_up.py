"""Waiting until a fresh broker takes commits and a fresh topic is known. Knows only Kafka's admin client."""

from __future__ import annotations

import time

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

_NAME = "warm-up"
_ATTEMPT_S = 5
"""A request that a starting broker never answers is asked again, and does not take all the time there is."""


def warm_up(client: dict[str, str], seconds: float = 90) -> None:
    """Commit until no partition answers with an error: the first commits on a fresh broker fail, with or without
    raising, and one of three on a busy machine may not answer at all."""
    admin = AdminClient({**client, "log_level": 0})  # silent when the broker goes away later
    create_topic(admin, NewTopic(_NAME, 1, 1), seconds)
    deadline = time.monotonic() + seconds
    while error := _commit_error(admin):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the broker still refuses commits after {seconds:.0f} s: {error}")
        time.sleep(0.05)
    admin.delete_consumer_groups([_NAME])[_NAME].result(seconds)
    admin.delete_topics([_NAME])[_NAME].result(seconds)


def create_topic(admin: AdminClient, topic: NewTopic, seconds: float = 30) -> None:
    """Create a topic and wait until brokers tell its leaders: for a moment after its creation they do not know it."""
    admin.create_topics([topic])[topic.topic].result(seconds)
    deadline = time.monotonic() + seconds
    while not _has_leaders(admin, topic):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the topic {topic.topic} has no leaders after {seconds:.0f} s")
        time.sleep(0.02)


def _has_leaders(admin: AdminClient, topic: NewTopic) -> bool:
    known = admin.list_topics(topic.topic, timeout=10).topics[topic.topic]
    return len(known.partitions) == topic.num_partitions and all(p.leader >= 0 for p in known.partitions.values())


def _commit_error(admin: AdminClient) -> object:
    request = ConsumerGroupTopicPartitions(_NAME, [TopicPartition(_NAME, 0, 0)])
    (answer,) = admin.alter_consumer_group_offsets([request], request_timeout=_ATTEMPT_S).values()
    try:
        told = answer.result(2 * _ATTEMPT_S)
    except (TimeoutError, KafkaException) as error:
        return repr(error)
    return next((p.error for p in told.topic_partitions if p.error), None)
