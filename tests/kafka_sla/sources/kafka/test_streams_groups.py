"""What a snapshot says of a real Kafka Streams application, by the protocol of its group."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from demo.broker import Cluster as Broker
from demo.streams_app import StreamsApp
from kafka_sla.sources.kafka.snapshot import Snapshot
from tests.kafka_sla.sources.kafka.traffic import look, ms, produce, this_minute, topic


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_threads_of_an_application_are_members_that_read_their_tasks_partitions(kafka: Broker, protocol: str) -> None:
    one, other, sink = topic(kafka, 2), topic(kafka, 2), topic(kafka, 2)
    name = f"payments-enricher.v2-{one}"
    read = {(source, partition) for source in (one, other) for partition in range(2)}
    for source, partition in read:
        produce(kafka, source, [ms(1)], partition)

    with StreamsApp(kafka, name, [one, other], sink, protocol, threads=2):
        seen = until(
            kafka, name, [one, other], lambda seen: is_stable(seen, 2) and committed(seen).keys() == reads(seen) == read
        )

    assert {row["type"] for row in seen.group_states.to_pylist()} == {protocol}
    assert committed(seen) == dict.fromkeys(read, 1)
    members = seen.group_members.to_pylist()
    assert len({row["member"] for row in members}) == 2
    assert {row["host"] for row in members} == {"127.0.0.1"}
    assert all(row["client"].startswith(name) for row in members)


def test_a_member_without_a_task_is_seen_and_one_whose_topics_are_not_looked_at_is_not(kafka: Broker) -> None:
    one, other, sink = (topic(kafka) for _ in range(3))
    with StreamsApp(kafka, f"app-{one}", [one], sink, "streams", threads=2):
        whole = until(kafka, f"app-{one}", [one], lambda seen: len(reads(seen)) == 1)
        beside = look(kafka, this_minute(), other, groups=f"app-{one}", live=True)

    assert sorted((row["topic"], row["partitions"]) for row in whole.group_members.to_pylist()) == [
        ("", []),
        (one, [0]),
    ]
    assert [(row["topic"], row["partitions"]) for row in beside.group_members.to_pylist()] == [("", [])]
    assert [row["members"] for row in beside.group_states.to_pylist()] == [2]


def test_a_task_reads_no_partition_that_its_topic_does_not_have(kafka: Broker) -> None:
    wide, narrow, sink = topic(kafka, 3), topic(kafka), topic(kafka)
    with StreamsApp(kafka, f"app-{wide}", [wide, narrow], sink, "streams"):
        seen = until(kafka, f"app-{wide}", [wide, narrow], lambda seen: len(reads(seen)) > 1)

    assert reads(seen) == {(wide, 0), (wide, 1), (wide, 2), (narrow, 0)}


def until(broker: Broker, group: str, topics: list[str], enough: Callable[[Snapshot], bool]) -> Snapshot:
    """The first snapshot of these topics that shows enough."""
    deadline = time.monotonic() + 120
    while True:
        seen = look(broker, this_minute(), "|".join(topics), groups=re.escape(group), live=True)
        if enough(seen):
            return seen
        time.sleep(0.5)
        assert time.monotonic() < deadline, (seen.group_states.to_pylist(), seen.group_members.to_pylist())


def is_stable(seen: Snapshot, members: int) -> bool:
    """Whether the group has this many members and is not rebalancing, as it does when the second thread joins late."""
    return [(row["state"], row["members"]) for row in seen.group_states.to_pylist()] == [("Stable", members)]


def committed(seen: Snapshot) -> dict[tuple[str, int], int]:
    rows = sorted(seen.committed_offsets.to_pylist(), key=lambda row: row["at"])
    return {(row["topic"], row["partition"]): row["committed_offset"] for row in rows}


def reads(seen: Snapshot) -> set[tuple[str, int]]:
    return {(row["topic"], number) for row in seen.group_members.to_pylist() for number in row["partitions"]}
