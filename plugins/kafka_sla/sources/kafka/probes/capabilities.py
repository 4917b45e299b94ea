"""What brokers can and cannot do of what snapshots need, and what it costs. Reads nothing that a snapshot would not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafka.errors import KafkaError

from kafka_sla.sources.kafka.protocol.client import Ask, Client
from kafka_sla.sources.kafka.protocol.groups import ALL_TOPICS, Group
from kafka_sla.sources.kafka.protocol.kafka_python import OffsetFetchRequest
from kafka_sla.sources.kafka.protocol.list_offsets import Offsets
from kafka_sla.sources.kafka.protocol.partition_messages import MANY_GROUPS, offset_fetch
from kafka_sla.sources.kafka.protocol.topics import Topic

_SAMPLE = "give the cluster sample_every: bounds are then about as wide as one poll"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found out. `cure` says what to do when it is not ok, or what a missing capability costs."""

    ok: bool
    text: str
    cure: str | None = None
    wants_samples: bool = False
    """Positions or log ends are known from polls only."""


def committed_offsets(client: Client, groups: Sequence[Group]) -> Finding:
    """How committed offsets can be had: for many groups at once, or for each group."""
    newest = client.versions(OffsetFetchRequest)[1]
    if newest < ALL_TOPICS:
        return Finding(
            False,
            f"brokers answer OffsetFetch up to version {newest}",
            "Kafka 0.10.2 or newer is needed, or a service that speaks its protocol",
        )
    cost = "a snapshot then takes one request for each group instead of one for 500: nothing is less exact"
    if newest < MANY_GROUPS:
        return Finding(True, f"committed offsets are answered for one group at a time (OffsetFetch {newest})", cost)
    if groups:
        (answer,) = client.ask([Ask(groups[0].coordinator, offset_fetch([groups[0].name]))])
        if isinstance(answer, KafkaError) or any(group.error_code == 35 for group in answer.groups):
            return Finding(True, f"brokers announce OffsetFetch {newest} and do not answer it", cost)
    return Finding(True, "committed offsets are answered for many groups at once")


def lookups_by_time(client: Client, topics: dict[str, Topic]) -> Finding:
    """Whether offsets can be looked up by time in what holds records."""
    offsets = Offsets(client, topics)
    ends = offsets.ends()
    filled = sum(end > 0 for end in ends.values())
    without = offsets.find_without_times(ends, of_each=True)
    if not filled:
        return Finding(True, "offsets by time: no topic holds a record yet, so this was not tried")
    if not without:
        return Finding(True, f"offsets can be looked up by time in {filled} partitions")
    reasons = "; ".join(sorted(offsets.unanswered)) or "brokers answer that no record has a timestamp"
    return Finding(
        True,
        f"offsets cannot be looked up by time in {len(without)} of {filled} partitions ({reasons})",
        f"log ends are then known from polls only, and not of the past; {_SAMPLE}",
        True,
    )


def missing_requests(client: Client) -> Iterator[Finding]:
    """Requests that brokers do not know at all, with what is then missing."""
    from kafka_sla.sources.kafka.protocol import kafka_python as messages

    for request, cost in (
        (messages.DescribeGroupsRequest, "the number of members of groups is unknown"),
        (
            messages.DescribeConfigsRequest,
            "retention and cleanup policies are unknown: topics count as compacted, and nothing is forecast to expire",
        ),
        (messages.ListGroupsRequest, "no consumer group is found: nothing can be measured"),
        (messages.FetchRequest, "no record is read: the commit log is unknown, and backlog ages are less exact"),
    ):
        if client.versions(request)[1] < 0:
            yield Finding(request is not messages.ListGroupsRequest, f"brokers do not answer {request.__name__}", cost)
