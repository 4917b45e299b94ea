"""`python -m benchmarks.compatibility [version …] [strain]`: which brokers can be measured, as Markdown.

Starts a real broker of each release, and one that plays what some services cannot do; checks it, takes a live snapshot,
and reads the same minutes again from the commit log; then looks again and again at brokers that make it hard. Exit
status 1 when a broker that should do did not.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.compatibility_strain import HEAD, strained
from demo.broker import Cluster as Broker
from demo.degraded_broker import DESCRIBE_CONFIGS, LIST_GROUPS, LIST_OFFSETS, OFFSET_FETCH, DegradedBroker
from demo.jars import KAFKA_VERSION
from demo.old_broker import VERSIONS, OldBroker
from demo.warm_up import create_topic
from kafka_sla.model.entities import Cluster, Connection, Interval, OffsetLookups, Patterns, floor_time
from kafka_sla.sources.kafka.probes.permissions import probe
from kafka_sla.sources.kafka.snapshot import snapshot

_TOPIC, _GROUPS = "payments.authorised-v2", {"billing.alerts-v2": 60, "fraud-checks": 100}
_NO_WARM_UP = Patterns(exclude=("warm-up",))
_NAMED = Patterns(tuple(re.escape(group) for group in _GROUPS))
_CLUSTER = Cluster("compatibility", "kafka_compatibility", topics=Patterns((_TOPIC.replace(".", r"\."),)))


class Reachable(Protocol):
    """A broker that is up."""

    def client(self, user: str = ...) -> dict[str, str]:
        """How to reach it."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one broker let us see."""

    broker: str
    failures: tuple[str, ...]
    notes: tuple[str, ...]
    live: bool
    history: bool
    check_s: float

    def line(self) -> str:
        """A row of the table."""
        remarks = "; ".join([*self.failures, *self.notes]) or "–"
        return f"| {self.broker} | {_word(self.live)} | {_word(self.history)} | {self.check_s:.1f} s | {remarks} |"


def main(wanted: list[str]) -> int:
    """Prints the table; 1 when a release cannot be measured."""
    works, versions = True, [version for version in (*VERSIONS, KAFKA_VERSION) if not wanted or version in wanted]
    if versions:
        print(
            "| broker | live snapshot | rebuilt from the commit log | check took | check names |\n|---|---|---|---|---|"
        )
    for version in versions:
        brokers: AbstractContextManager[Any] = Broker() if version == KAFKA_VERSION else OldBroker(version)
        with brokers as broker:
            _traffic(broker.client())
            outcome = _outcome(f"Apache Kafka {version}", broker)
            works = works and outcome.live and outcome.history
            print(outcome.line(), flush=True)
            for degraded in _degraded(broker.bootstrap) if version == KAFKA_VERSION else ():
                print(degraded.line(), flush=True)
    if not wanted or "strain" in wanted:
        print(f"\n{HEAD}")
        for strain in strained(_traffic, _is_seen):
            works = works and strain.holds
            print(strain.line(), flush=True)
    return int(not works)


def _is_seen(login: dict[str, str]) -> bool:
    return _positions(Connection("kafka_compatibility", extra=dict(login)), _NO_WARM_UP, live=True)


def _degraded(behind: str) -> Iterator[Outcome]:
    cases: dict[str, dict[str, Any]] = {
        "OffsetFetch 1–7 only": {"newest": {OFFSET_FETCH: 7}},
        "announces OffsetFetch 8, hangs up on it": {"hangs_up_from": {OFFSET_FETCH: 8}},
        "no DescribeConfigs": {"newest": {DESCRIBE_CONFIGS: -1}},
        "commit log hidden": {"hidden": frozenset({"__consumer_offsets"})},
        "groups hidden": {"changes": {LIST_GROUPS: _without_groups}},
        "no offsets by time": {"changes": {LIST_OFFSETS: _without_times(35)}},
        "no timestamps": {"changes": {LIST_OFFSETS: _without_times(0)}},
    }
    for name, degraded in cases.items():
        with DegradedBroker(behind, **degraded) as broker:
            yield _outcome(f"a broker: {name}", broker)
    with DegradedBroker(
        behind, changes={LIST_GROUPS: _without_groups}, hidden=frozenset({"__consumer_offsets"})
    ) as broker:
        yield _outcome("a broker: running groups only, commit log hidden; groups named in full", broker, _NAMED)


def _without_groups(answer: Any) -> None:
    answer.groups = []


def _without_times(code: int) -> Callable[[Any], None]:
    def change(answer: Any) -> None:
        for one in (one for part in answer.topics for one in part.partitions):
            if one.timestamp >= 0 or one.offset < 0:
                one.error_code, one.offset, one.timestamp = code, -1, -1

    return change


def _traffic(client: dict[str, str]) -> None:
    """A hundred records, of which two groups have read some."""
    create_topic(AdminClient({**client}), NewTopic(_TOPIC, 1, 1))
    producer = Producer(client)
    for number in range(100):
        producer.produce(_TOPIC, str(number))
    producer.flush(30)
    for group, position in _GROUPS.items():
        consumer = Consumer({**client, "group.id": group})
        consumer.commit(offsets=[TopicPartition(_TOPIC, 0, position)], asynchronous=False)
        consumer.close()


def _outcome(name: str, broker: Reachable, groups: Patterns = _NO_WARM_UP) -> Outcome:
    connection = Connection("kafka_compatibility", extra=dict(broker.client()))
    began = time.monotonic()
    found = probe(replace(_CLUSTER, groups=groups), connection)
    took = time.monotonic() - began
    costs = tuple(f"{f.text}: {f.cure}" for f in found if f.ok and f.cure)
    return Outcome(
        name, tuple(f.text for f in found if not f.ok), costs,
        _positions(connection, groups, live=True), _positions(connection, groups, live=False), took,
    )  # fmt: skip


def _positions(connection: Connection, groups: Patterns, *, live: bool) -> bool:
    """Whether a snapshot sees where both groups are: now, or from the commit log."""
    start = floor_time(datetime.now(UTC), 60_000) - timedelta(minutes=5)
    seen = snapshot(
        _CLUSTER, connection, Interval(start, start + timedelta(minutes=10)), window_ms=60_000,
        groups=groups, topics=_CLUSTER.topics, live=live, offset_lookups=OffsetLookups(),
    )  # fmt: skip
    rows = seen.committed_offsets if live else seen.commits
    return {row["group"]: row["committed_offset"] for row in rows.to_pylist()} == _GROUPS


def _word(works: bool) -> str:
    return "yes" if works else "no"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
