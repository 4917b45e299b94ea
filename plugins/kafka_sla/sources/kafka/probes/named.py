"""Whether a login may see what a configuration names. Lists nothing."""

from __future__ import annotations

from collections.abc import Sequence

from kafka.errors import KafkaError

from kafka_sla.model.entities import Cluster, Connection
from kafka_sla.sources.kafka.protocol.client import Client
from kafka_sla.sources.kafka.protocol.connection_errors import what_to_do, words_of
from kafka_sla.sources.kafka.protocol.groups import hidden_groups
from kafka_sla.sources.kafka.protocol.topics import hidden_topics


def check_visible(cluster: Cluster, connection: Connection, topics: Sequence[str], groups: Sequence[str]) -> None:
    """KafkaUnreachable where the login may not see one of these; for clusters that show no topic. A list leaves
    out what may not be seen, as if it were not there. Who asks for a name is refused, whether or not it is there."""
    with Client(cluster, connection) as client:
        try:
            hidden = [("topic", name) for name in hidden_topics(client, topics)]
            hidden += [("group", name) for name in hidden_groups(client, groups)]
        except KafkaError as error:
            raise client.unreachable(f"{words_of(error)}; {what_to_do(error, 'run it again')}") from error
        if hidden:
            kind, name = hidden[0]
            raise client.unreachable(
                f"no topic is seen, and the login may not see the {kind} {name!r} of the configuration; grant it"
                f" DESCRIBE on the {kind}s, then run it again"
            )
