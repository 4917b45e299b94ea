"""A broker at one moment: it answers for the partitions of a world as Kafka does.

It stands in for the client of `kafka_sla.sources.kafka`, so that the product's own code decides what is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.simulation.world import Ints, Life, World
from kafka_sla.sources.kafka.protocol.list_offsets import Found
from kafka_sla.sources.kafka.protocol.topics import TopicPartition

_HEADER = Struct(">qiibIhiqqqhii")
_VALUE = bytes(12)
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_PRODUCER = 7


class Broker:
    """The partitions that live at `now`."""

    def __init__(self, world: World, now: int) -> None:
        self.now = now
        self.lives: dict[TopicPartition, Life] = {}
        for partition in world.partitions:
            number = partition.life_at(now)
            if number is not None:
                self.lives[TopicPartition(partition.topic, partition.number)] = partition.lives[number]
        self.transactional_topics = {config.topic for config in world.configs if config.transactional}

    def end(self, tp: TopicPartition) -> int:
        return self.lives[tp].log_end(self.now)

    def start(self, tp: TopicPartition) -> int:
        return self.lives[tp].log_start(self.now)

    def kept(self, tp: TopicPartition) -> Ints:
        """Offsets that are still there."""
        life = self.lives[tp]
        offsets = np.arange(self.start(tp), self.end(tp))
        return offsets[life.removed[offsets] > self.now]


class Offsets:
    """Answers ListOffsets, in the place of `kafka_sla.sources.kafka.protocol.list_offsets.Offsets`."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self.offset_lookups = broker, 0
        self._by_time: dict[TopicPartition, tuple[Ints, Ints]] = {}

    @property
    def partitions(self) -> list[TopicPartition]:
        return sorted(self._broker.lives)

    def ends(self) -> dict[TopicPartition, int]:
        return {tp: self._broker.end(tp) for tp in self.partitions}

    def answering(self, ends: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        return ends

    def starts(self) -> dict[TopicPartition, int]:
        return {tp: self._broker.start(tp) for tp in self.partitions}

    def at(self, times: Mapping[TopicPartition, Sequence[int]]) -> dict[TopicPartition, dict[int, Found]]:
        self.offset_lookups += sum(len(asked) for asked in times.values())
        return {tp: {at: self._first(tp, at) for at in asked} for tp, asked in times.items()}

    def _first(self, tp: TopicPartition, at: int) -> Found:
        """The first record with a timestamp not before `at`: the index of times knows the largest one so far."""
        if tp not in self._by_time:
            kept = self._broker.kept(tp)
            self._by_time[tp] = kept, np.maximum.accumulate(self._broker.lives[tp].stamp[kept])
        kept, largest = self._by_time[tp]
        index = int(np.searchsorted(largest, at, side="left"))
        if index == len(kept):
            return Found(-1, -1)
        return Found(int(kept[index]), int(self._broker.lives[tp].stamp[kept[index]]))


class RecordTimes:
    """Answers for single records, in the place of `kafka_sla.sources.kafka.protocol.record_timestamps.RecordTimes`."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self.offset_lookups = broker, 0

    def at(self, positions: Iterable[tuple[TopicPartition, int]]) -> dict[tuple[TopicPartition, int], Found]:
        found = {}
        for tp, offset in dict.fromkeys(positions):
            self.offset_lookups += 1
            index = self._index(tp, offset)
            if index is not None:
                found[tp, offset] = Found(index, int(self._broker.lives[tp].stamp[index]))
        return found

    def transactional(self, position: tuple[TopicPartition, int]) -> bool:
        return position[0].topic in self._broker.transactional_topics and self._index(*position) is not None

    def marker(self, position: tuple[TopicPartition, int]) -> bool:
        tp, offset = position
        return self._index(tp, offset) == offset and bool(self._broker.lives[tp].marker[offset])

    def _index(self, tp: TopicPartition, offset: int) -> int | None:
        kept = self._broker.kept(tp)
        index = int(np.searchsorted(kept, offset))
        return int(kept[index]) if offset >= 0 and index < len(kept) else None


class Client:
    """Answers Fetch requests with real record batches, as `kafka_sla.sources.kafka.protocol.client.Client` does."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def ask(self, asks: Sequence[Any]) -> list[Any]:
        return [self._answer(ask.request) for ask in asks]

    def _answer(self, request: Any) -> Any:
        topics = [
            SimpleNamespace(
                topic=topic.topic, partitions=[self._partition(topic.topic, one) for one in topic.partitions]
            )
            for topic in request.topics
        ]
        return SimpleNamespace(responses=topics, throttle_time_ms=0)

    def _partition(self, topic: str, asked: Any) -> Any:
        tp = TopicPartition(topic, asked.partition)
        life, end = self._broker.lives[tp], self._broker.end(tp)
        stable = life.readable_end(self._broker.now)
        kept = self._broker.kept(tp)
        first = int(np.searchsorted(kept, asked.fetch_offset))
        data, transactional = bytearray(), topic in self._broker.transactional_topics
        aborted: dict[int, None] = {}
        begun = None
        for offset in kept[first:].tolist():
            if offset >= stable or len(data) >= asked.partition_max_bytes:
                break
            if life.marker[offset]:
                begun = None
            elif not life.record[offset]:
                begun = begun if begun is not None else offset
                aborted.setdefault(begun)
            data += _batch(offset, int(life.stamp[offset]), transactional, bool(life.marker[offset]))
        return SimpleNamespace(
            partition_index=asked.partition,
            error_code=0,
            high_watermark=end,
            last_stable_offset=stable,
            aborted_transactions=[SimpleNamespace(first_offset=at, producer_id=_PRODUCER) for at in aborted],
            records=bytes(data),
        )


def _batch(offset: int, stamp: int, transactional: bool, control: bool) -> bytes:
    """A batch of one record."""
    attributes = (_TRANSACTIONAL if transactional else 0) | (_CONTROL if control else 0)
    length = _HEADER.size - 12 + len(_VALUE)
    return _HEADER.pack(offset, length, 0, 2, 0, attributes, 0, stamp, stamp, _PRODUCER, 0, 0, 1) + _VALUE
