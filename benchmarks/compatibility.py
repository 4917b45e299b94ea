"""`python -m benchmarks.compatibility [version …] [strain] [name=host:port …]`: which brokers can be measured.

Prints Markdown; a whole run puts it into docs/reference/compatibility.md. Starts a real broker of each release, and one
that plays what some services cannot do; checks it, takes a live snapshot, reads the same minutes again from the commit
log, and measures flows of real clients whose truth is known; then looks again and again at brokers that make it hard.
Exit status 1 when a broker that should do did not, or a truth lies outside its bounds. A broker that somebody else runs
is given by a name and its address.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.compatibility_flows import Held, held
from benchmarks.compatibility_strain import HEAD, strained
from benchmarks.printed import put
from demo.broker import Cluster as Broker
from demo.degraded_broker import DESCRIBE_CONFIGS, LIST_GROUPS, LIST_OFFSETS, OFFSET_FETCH, DegradedBroker
from demo.jars import KAFKA_VERSION
from demo.old_broker import VERSIONS, OldBroker
from demo.warm_up import create_topic
from kafka_sla.model.entities import Cluster, Connection, Interval, OffsetLookups, Patterns, floor_time
from kafka_sla.sources.kafka.probes.permissions import probe
from kafka_sla.sources.kafka.snapshot import snapshot

_TOPIC, _GROUPS = "payments.authorised-v2", {"billing.alerts-v2": 60, "fraud-checks": 100}
_COMMIT_LOG = frozenset({"__consumer_offsets"})
_PAGE = "compatibility.md"
_HEAD = (
    "| broker | live snapshot | rebuilt from the commit log | windows with the truth in their bounds | check took"
    " | check names |\n|---|---|---|---|---|---|"
)
_NO_WARM_UP = Patterns(exclude=("warm-up",))
_NAMED = Patterns(tuple(re.escape(group) for group in _GROUPS))
_CLUSTER = Cluster("compatibility", "kafka_compatibility", topics=Patterns((_TOPIC.replace(".", r"\."),)))


class Reachable(Protocol):
    """A broker that is up."""

    def client(self, user: str = ...) -> dict[str, str]:
        """How to reach it."""
        ...


@dataclass(frozen=True, slots=True)
class _Foreign:
    """A broker that somebody else runs."""

    address: str

    def client(self, user: str = "") -> dict[str, str]:
        return {"bootstrap.servers": self.address}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one broker let us see."""

    broker: str
    failures: tuple[str, ...]
    notes: tuple[str, ...]
    live: bool
    history: bool
    check_s: float

    def line(self, flows: Held | None) -> str:
        """A row of the table."""
        remarks = "; ".join([*self.failures, *self.notes]) or "–"
        seen = f"{_word(self.live)} | {_word(self.history)} | {flows or '–'}"
        return f"| {self.broker} | {seen} | {self.check_s:.1f} s | {remarks} |"


def main(wanted: list[str]) -> int:
    """Prints the tables; 1 when a release cannot be measured."""
    releases, is_quick = (*VERSIONS, KAFKA_VERSION), "quick" in wanted
    versions = [version for version in releases if version in wanted or not {*wanted} - {"quick"}]
    foreign = [one.split("=", 1) for one in wanted if "=" in one]
    works, lines = True, [_HEAD] if versions or foreign else []
    for name, address in foreign:
        _traffic(_Foreign(address).client())
        lines.append(_said(_outcome(name, _Foreign(address)).line(None)))
    for version in versions:
        fine, found = _release(version, is_quick)
        works = works and fine
        lines += found
    if not wanted:
        put(_PAGE, "make compatibility", "\n".join(lines))
    if not wanted or "strain" in wanted:
        strains = list(strained(_traffic, _is_seen))
        works = works and all(strain.holds for strain in strains)
        put(_PAGE, "make compatibility ONLY=strain", _said("\n".join([HEAD, *(strain.line() for strain in strains)])))
    return int(not works)


def _said(line: str) -> str:
    print(line, flush=True)
    return line


def _release(version: str, is_quick: bool) -> tuple[bool, list[str]]:
    """Whether this release can be measured, and its rows; the newest also as brokers that can do less."""
    with ExitStack() as running:
        broker: Any = running.enter_context(Broker() if version == KAFKA_VERSION else OldBroker(version))
        reached: dict[str, Reachable] = {f"Apache Kafka {version}": broker}
        if version == KAFKA_VERSION:
            reached |= {f"a broker: {n}": running.enter_context(one) for n, one in _degraded(broker.bootstrap).items()}
        _traffic(broker.client())
        outcomes = [
            _outcome(name, one, _NAMED if "named in full" in name else _NO_WARM_UP) for name, one in reached.items()
        ]
        logins = {name: one.client() for name, one in reached.items()}
        flows = {} if is_quick else held(broker.client(), logins, [one.broker for one in outcomes if not one.history])
    lines = [_said(outcome.line(flows.get(outcome.broker))) for outcome in outcomes]
    for outside in (text for one in flows.values() for text in one.outside):
        print(outside, file=sys.stderr)
    is_true = not any(one.outside or not one.windows for one in flows.values())
    return outcomes[0].live and outcomes[0].history and is_true, lines


def _is_seen(login: dict[str, str]) -> bool:
    return _positions(Connection("kafka_compatibility", extra=dict(login)), _NO_WARM_UP, live=True)


def _degraded(behind: str) -> dict[str, DegradedBroker]:
    cases: dict[str, dict[str, Any]] = {
        "OffsetFetch 1–7 only": {"newest": {OFFSET_FETCH: 7}},
        "announces OffsetFetch 8, hangs up on it": {"hangs_up_from": {OFFSET_FETCH: 8}},
        "no DescribeConfigs": {"newest": {DESCRIBE_CONFIGS: -1}},
        "commit log hidden": {"hidden": _COMMIT_LOG},
        "groups hidden": {"changes": {LIST_GROUPS: _without_groups}},
        "no offsets by time": {"changes": {LIST_OFFSETS: _without_times(35)}},
        "no timestamps": {"changes": {LIST_OFFSETS: _without_times(0)}},
        "running groups only, commit log hidden; groups named in full": {
            "changes": {LIST_GROUPS: _without_groups},
            "hidden": _COMMIT_LOG,
        },
    }
    return {name: DegradedBroker(behind, **degraded) for name, degraded in cases.items()}


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
    costs = tuple(f.text for f in found if f.ok and f.cure)
    return Outcome(
        name,
        tuple(f.text for f in found if not f.ok),
        costs,
        _positions(connection, groups, live=True),
        _positions(connection, groups, live=False),
        took,
    )


def _positions(connection: Connection, groups: Patterns, *, live: bool) -> bool:
    """Whether a snapshot sees where both groups are: now, or from the commit log."""
    start = floor_time(datetime.now(UTC), 60_000) - timedelta(minutes=5)
    seen = snapshot(
        _CLUSTER,
        connection,
        Interval(start, start + timedelta(minutes=10)),
        window_ms=60_000,
        groups=groups,
        topics=_CLUSTER.topics,
        live=live,
        offset_lookups=OffsetLookups(),
    )
    rows = seen.committed_offsets if live else seen.commits
    return {row["group"]: row["committed_offset"] for row in rows.to_pylist()} == _GROUPS


def _word(works: bool) -> str:
    return "yes" if works else "no"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
