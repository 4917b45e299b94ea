"""Topics as the cluster knows them: partitions, their leaders, ids and settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafka.errors import (
    AuthorizationError,
    BrokerResponseError,
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    NoError,
    UnknownTopicOrPartitionError,
    for_code,
)

from kafka_sla.model.entities import Patterns
from kafka_sla.sources.kafka.protocol.client import Client
from kafka_sla.sources.kafka.protocol.connection_errors import words_of
from kafka_sla.sources.kafka.protocol.kafka_python import DescribeConfigsRequest, MetadataRequest
from kafka_sla.text.formatting import plural

_TOPIC_RESOURCE = 2
_Resource = DescribeConfigsRequest.DescribeConfigsResource
_SETTINGS = ("cleanup.policy", "retention.ms", "message.timestamp.type")


class TopicPartition(NamedTuple):
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    id: str | None
    leaders: dict[int, int]
    """Node that leads each partition; -1 where there is none now."""
    offline: frozenset[int] = frozenset()
    """Partitions that nobody can take over, because every node that holds one is down."""

    @property
    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, partition) for partition in sorted(self.leaders)]


@dataclass(frozen=True, slots=True)
class TopicConfig:
    cleanup_policy: str
    retention_ms: int | None
    message_timestamp_type: str

    @property
    def compacted(self) -> bool:
        return "compact" in self.cleanup_policy


class Refused(NamedTuple):
    """Settings that were not told: of how many topics, and what can be done about it or what it costs."""

    text: str
    cure: str
    is_forbidden: bool


def read_topics(client: Client, wanted: Patterns) -> dict[str, Topic]:
    """The topics that match and may be seen; Kafka's internal ones never do."""
    answer = client.ask_one(MetadataRequest(topics=None, allow_auto_topic_creation=False))
    return {
        topic.name: _topic(topic)
        for topic in sorted(answer.topics, key=lambda topic: str(topic.name))
        if topic.error_code == 0 and not topic.is_internal and wanted.matches(topic.name)
    }


def hidden_topics(client: Client, names: Iterable[str]) -> list[str]:
    """Those of the named topics that the login may not see, whether or not there are such topics."""
    named = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    if not named:  # no name would mean all topics to old brokers
        return []
    topics = client.ask_one(MetadataRequest(topics=named, allow_auto_topic_creation=False)).topics
    return [str(topic.name) for topic in topics if issubclass(for_code(topic.error_code), AuthorizationError)]


def read_topic(client: Client, name: str) -> Topic:
    """One topic by its exact name, internal ones too; raises the broker's error when it is absent or hidden."""
    named = MetadataRequest.MetadataRequestTopic(name=name)
    (topic,) = client.ask_one(MetadataRequest(topics=[named], allow_auto_topic_creation=False)).topics
    error = for_code(topic.error_code)
    if error is not NoError:
        raise error()
    return _topic(topic)


def read_configs(client: Client, topics: Iterable[str]) -> tuple[dict[str, TopicConfig], Refused | None]:
    """The settings of each topic that may be read, and what is to say of those that may not."""
    resources = [
        _Resource(resource_type=_TOPIC_RESOURCE, resource_name=name, configuration_keys=list(_SETTINGS))
        for name in topics
    ]
    if not resources:
        return {}, None
    found, refused = {}, []
    try:
        results = client.ask_one(DescribeConfigsRequest(resources=resources)).results
    except (BrokerResponseError, IncompatibleBrokerVersion, KafkaConnectionError) as refused_all:
        first = f"{resources[0].resource_name} ({words_of(refused_all)})"
        return {}, _refused(first, len(resources), isinstance(refused_all, AuthorizationError))
    for result in results:
        error = for_code(result.error_code)
        values = {entry.name: entry.value for entry in result.configs or ()}
        if error is NoError and set(_SETTINGS) <= values.keys():
            found[result.resource_name] = _config(values)
        elif error is NoError:
            missing = ", ".join(name for name in _SETTINGS if name not in values)
            refused.append(f"{result.resource_name} (answered without {missing})")
        elif error is not UnknownTopicOrPartitionError:
            refused.append(f"{result.resource_name} ({words_of(error())})")
    forbidden = any(issubclass(for_code(result.error_code), AuthorizationError) for result in results)
    return found, _refused(refused[0], len(refused), forbidden) if refused else None


def _topic(topic: Any) -> Topic:
    leaders = {p.partition_index: p.leader_id for p in topic.partitions}
    offline = {
        p.partition_index
        for p in topic.partitions
        if p.leader_id < 0 and set(p.replica_nodes) <= set(p.offline_replicas)
    }
    topic_id = topic.topic_id
    return Topic(str(topic.name), str(topic_id) if topic_id else None, leaders, frozenset(offline))


def _config(values: dict[str, str]) -> TopicConfig:
    retention_ms = int(values["retention.ms"])
    return TopicConfig(
        cleanup_policy=values["cleanup.policy"],
        retention_ms=None if retention_ms < 0 else retention_ms,
        message_timestamp_type=values["message.timestamp.type"],
    )


def _refused(first: str, count: int, forbidden: bool) -> Refused:
    text = f"the settings of {plural(count, 'topic')} cannot be read, so they have no topic_configs row: {first}"
    if forbidden:
        return Refused(text, "grant DESCRIBE_CONFIGS on the topics", forbidden)
    return Refused(text, "these brokers do not answer it, so retention and cleanup stay unknown", forbidden)
