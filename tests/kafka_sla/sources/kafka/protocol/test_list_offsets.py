"""Where logs start and end, and whether they know times, when some partitions do not answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kafka_sla.sources.kafka.protocol.client import Ask
from kafka_sla.sources.kafka.protocol.list_offsets import Offsets
from kafka_sla.sources.kafka.protocol.partition_messages import ListedOffsets
from kafka_sla.sources.kafka.protocol.topics import Topic, TopicPartition

NO_RIGHTS, UNSUPPORTED_FORMAT = 29, 43
ROWS = [("partition", "i4"), ("error", "i2"), ("timestamp", "i8"), ("offset", "i8")]


class Wire:
    """What brokers answer, one round after the other: by topic, rows of partition, error and offset."""

    def __init__(self, *rounds: dict[str, list[tuple[int, int, int]]]) -> None:
        self.rounds = list(rounds)

    def ask(self, asks: Sequence[Ask]) -> list[Any]:
        if not asks:
            return []
        told = self.rounds.pop(0)
        rows = {name: [(number, error, 0, offset) for number, error, offset in of] for name, of in told.items()}
        return [ListedOffsets(0, [(name, np.array(of, ROWS)) for name, of in rows.items()]) for _ in asks]


def looked(wire: Any, *names: str, partitions: int = 3) -> Offsets:
    leaders = dict.fromkeys(range(partitions), 1)
    return Offsets(wire, {name: Topic(name, None, leaders) for name in names})


def test_answers_come_in_any_order_of_partitions() -> None:
    wire = Wire({"orders.v2": [(2, 0, 30), (0, 0, 10), (1, 0, 20)]})

    found = looked(wire, "orders.v2").ends()

    assert {tp.partition: end for tp, end in found.items()} == {0: 10, 1: 20, 2: 30}


def test_a_partition_that_refuses_is_noted_once_and_hides_no_other() -> None:
    wire = Wire({"orders.v2": [(2, 0, 30), (0, NO_RIGHTS, -1), (1, 0, 20)]}, {"orders.v2": [(1, 0, 1), (2, 0, 2)]})
    offsets = looked(wire, "orders.v2")

    ends, starts = offsets.ends(), offsets.starts()

    assert {tp.partition: end for tp, end in ends.items()} == {1: 20, 2: 30}
    assert {tp.partition: start for tp, start in starts.items()} == {1: 1, 2: 2}, "who refused is not asked again"
    assert list(offsets.unanswered.values()) == [1]
    assert {tp.partition for tp in offsets.answering(dict.fromkeys([*ends, TopicPartition("orders.v2", 0)], 0))} == {
        1,
        2,
    }


def test_one_partition_that_knows_a_time_speaks_for_its_topic_unless_each_is_asked() -> None:
    ends = {TopicPartition("orders.v2", number): 9 for number in range(3)}
    refusing = {"orders.v2": [(0, UNSUPPORTED_FORMAT, -1), (1, 0, 4), (2, 0, 5)]}

    brief, thorough = looked(Wire({"orders.v2": [(2, 0, 5)]}), "orders.v2"), looked(Wire(refusing), "orders.v2")

    assert brief.find_without_times(ends) == set()
    assert thorough.find_without_times(ends, of_each=True) == {TopicPartition("orders.v2", 0)}


def test_where_the_one_that_was_asked_knows_no_time_all_are_asked() -> None:
    ends = {TopicPartition(name, number): 9 for name in ("compacted", "old") for number in range(3)}
    first = {"compacted": [(2, 0, -1)], "old": [(2, 0, -1)]}
    rest = {"compacted": [(0, 0, 3), (1, 0, -1)], "old": [(0, 0, -1), (1, 0, -1)]}
    starts = {"old": [(0, 0, 0), (1, 0, 0), (2, 0, 0)]}

    found = looked(Wire(first, rest, starts), "compacted", "old").find_without_times(ends)

    assert {tp.topic for tp in found} == {"old"} and len(found) == 3
