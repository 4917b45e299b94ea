"""What keeps us from reading a cluster, each finding with its cure. Reads nothing that a snapshot would not."""

from __future__ import annotations

from collections.abc import Iterator

from kafka.errors import AuthorizationError, KafkaError, UnknownTopicOrPartitionError, for_code

from kafka_sla.errors import KafkaUnreachable
from kafka_sla.model.entities import Cluster, Connection, Patterns
from kafka_sla.sources.kafka.consumer_offsets import TOPIC
from kafka_sla.sources.kafka.login.client_config import ignored_keys
from kafka_sla.sources.kafka.probes.capabilities import Finding, committed_offsets, lookups_by_time, missing_requests
from kafka_sla.sources.kafka.probes.left_topics import left_topics
from kafka_sla.sources.kafka.protocol.client import Client
from kafka_sla.sources.kafka.protocol.connection_errors import what_to_do, words_of
from kafka_sla.sources.kafka.protocol.fetch import ONE_BATCH, FetchPosition, fetched
from kafka_sla.sources.kafka.protocol.groups import Committed, Group, see_groups
from kafka_sla.sources.kafka.protocol.topics import (
    Topic,
    TopicPartition,
    read_configs,
    read_topic,
    read_topics,
)
from kafka_sla.text.formatting import plural

_TRIED = 100
"""Topics of which a record is read, so that thousands take no longer."""


def probe(cluster: Cluster, connection: Connection) -> list[Finding]:
    """Whether the cluster answers, is new enough, and lets us read what a snapshot reads. Never raises for these."""
    try:
        with Client(cluster, connection) as client:
            return list(_findings(client, cluster))
    except KafkaUnreachable as error:
        return [Finding(False, str(error), "correct the connection, or make the cluster reachable from here")]
    except KafkaError as error:
        advice = what_to_do(error, "check the brokers' logs")
        return [Finding(False, f"the cluster stopped answering: {words_of(error)}", advice)]


def _findings(client: Client, cluster: Cluster) -> Iterator[Finding]:
    yield Finding(True, f"reached {plural(len(client.brokers), 'broker')} with connection {client.connection.id!r}")
    if ignored := ignored_keys(client.connection):
        yield Finding(True, f"keys of the connection that mean nothing here are ignored: {', '.join(ignored)}")
    yield Finding(True, f"brokers speak the protocol of Kafka {'.'.join(map(str, client.broker_version))}")
    yield from missing_requests(client)
    topics = read_topics(client, cluster.topics)
    yield _topics(topics)
    yield _settings(client, topics)
    if topics:
        yield _records(client, topics)
        yield lookups_by_time(client, topics)
    groups, seen = see_groups(client, cluster.groups, Patterns())
    yield committed_offsets(client, [group for group in groups if group.commits])
    yield _groups(groups, seen)
    yield from left_topics(client, groups, seen, topics)
    yield _commit_log(client, seen)


def _topics(topics: dict[str, Topic]) -> Finding:
    if topics:
        return Finding(
            True,
            f"{plural(len(topics), 'topic')} with {plural(sum(len(t.leaders) for t in topics.values()), 'partition')}"
            " are seen",
        )
    return Finding(
        False,
        "no topic matches, or none may be seen",
        "correct the topics of the configuration, or grant DESCRIBE on the topics",
    )


def _settings(client: Client, topics: dict[str, Topic]) -> Finding:
    if not topics:
        return Finding(
            True,
            "the settings of the topics were not tried: no topic is visible",
            "check again once one is; they take DESCRIBE_CONFIGS on the topics",
        )
    _, refused = read_configs(client, topics)
    if refused:
        return Finding(not refused.is_forbidden, refused.text, refused.cure)
    return Finding(True, "the settings of the topics can be read")


def _groups(groups: list[Group], committed: Committed) -> Finding:
    if not groups:
        return Finding(
            False,
            "no consumer group matches, or none may be seen",
            "correct the groups of the configuration, or grant DESCRIBE on the groups",
        )
    if committed.notes:
        return Finding(False, committed.notes[0], "grant DESCRIBE on the groups")
    offsets = sum(len(partitions) for _, _, partitions, _ in committed.by_topic())
    matching = "1 consumer group matches" if len(groups) == 1 else f"{len(groups)} consumer groups match"
    return Finding(True, f"{matching}, with {plural(offsets, 'committed offset')}")


def _records(client: Client, topics: dict[str, Topic]) -> Finding:
    tried = list(topics.values())[:_TRIED]
    refused = [topic.name for topic in tried if isinstance(_fetch_error(client, topic), AuthorizationError)]
    if not refused:
        return Finding(True, "records of the topics may be read")
    return Finding(
        False,
        f"records of {len(refused)} topics may not be read, such as {refused[0]}:"
        " the age of backlogs is then less exact, and compacted topics have few points",
        "grant READ on the topics",
    )


def _commit_log(client: Client, committed: Committed) -> Finding:
    """The history of commits is the best of all evidence, so its absence is worth more words."""
    try:
        error = _fetch_error(client, read_topic(client, TOPIC))
    except (UnknownTopicOrPartitionError, AuthorizationError) as refusal:
        error = refusal
    if isinstance(error, UnknownTopicOrPartitionError) and not any(committed.offsets.values()):
        return Finding(True, f"{TOPIC} does not exist yet: nobody has committed")
    if not isinstance(error, AuthorizationError | UnknownTopicOrPartitionError):
        return Finding(True, f"{TOPIC} may be read: every commit is known, also of the past")
    return Finding(
        False,
        f"{TOPIC} may not be read: commits are known at snapshots only, and not of the past",
        f"grant READ and DESCRIBE on topic {TOPIC}, or give the cluster sample_every",
        True,
    )


def _fetch_error(client: Client, topic: Topic) -> KafkaError | None:
    """The error that a Fetch at the beginning of the topic answers, if any."""
    partition, leader = next(iter(topic.leaders.items()))
    (answer,) = fetched(client, [FetchPosition(leader, TopicPartition(topic.name, partition), 0)], ONE_BATCH)
    if isinstance(answer, KafkaError):
        return answer
    return for_code(answer.error_code)() if answer.error_code else None
