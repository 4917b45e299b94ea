"""When single records were produced, exactly, by fetching the one batch that holds each. Knows no timelines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kafka.errors import KafkaError, OffsetOutOfRangeError, for_code

from kafka_sla.kafka.client import Client
from kafka_sla.kafka.diagnosis import words_of
from kafka_sla.kafka.fetching import ONE_BATCH, fetch
from kafka_sla.kafka.offsets import Found
from kafka_sla.kafka.record_batches import read_batches, read_records
from kafka_sla.kafka.topics import Topic, TopicPartition

BYTES_PER_PASS = 256 * 1024**2
"""A batch may be as large as 1 MB and more; this bounds what one pass reads when all are."""
_CHUNK = 200

Position = tuple[TopicPartition, int]


class RecordTimes:
    """Looks up the first record not before each offset. Remembers answers, counts requests and what stayed open."""

    def __init__(self, client: Client, topics: Mapping[str, Topic]) -> None:
        self._client, self._topics = client, topics
        self._known: dict[Position, Found | None] = {}
        self._transactional: set[Position] = set()
        self._markers: set[Position] = set()
        self._refused: set[str] = set()
        self._bytes = 0
        self.look_ups = 0
        self.unanswered: Counter[str] = Counter()

    def at(self, positions: Iterable[Position]) -> dict[Position, Found]:
        """By position: offset and timestamp (ms) of the first record there or later. Left out where there is none."""
        wanted = list(dict.fromkeys(positions))
        unknown = [position for position in wanted if position not in self._known]
        for start in range(0, len(unknown), _CHUNK):
            self._read(unknown[start : start + _CHUNK])
        found = {position: self._known.get(position) for position in wanted}
        return {position: record for position, record in found.items() if record}

    def transactional(self, position: Position) -> bool:
        """What `at` found there was written in a transaction, or ends one."""
        return position in self._transactional

    def marker(self, position: Position) -> bool:
        """What `at` found there is no record but the marker that ends a transaction."""
        return position in self._markers

    def notes(self) -> list[str]:
        """What was not answered and why, for people."""
        return [
            f"{count} exact record times were not read: {cause}"
            + ("; grant READ on the topics for tighter bounds" if "AUTHORIZATION" in cause else "")
            for cause, count in sorted(self.unanswered.items())
        ]

    def _read(self, positions: list[Position]) -> None:
        if self._bytes > BYTES_PER_PASS:
            self.unanswered[f"batches are so large that {BYTES_PER_PASS >> 20} MB were already read"] += len(positions)
            return
        positions = [(tp, offset) for tp, offset in positions if tp.topic not in self._refused]
        asks = [fetch(self._topics[tp.topic].leaders[tp.partition], tp, offset, ONE_BATCH) for tp, offset in positions]
        self.look_ups += len(asks)
        for position, answer in zip(positions, self._client.ask(asks), strict=True):
            self._take(position, answer)

    def _take(self, position: Position, answer: Any) -> None:
        tp, offset = position
        if isinstance(answer, KafkaError):
            self.unanswered[words_of(answer)] += 1
            return
        partition = answer.responses[0].partitions[0]
        error = for_code(partition.error_code)
        if partition.error_code and error is not OffsetOutOfRangeError:
            self.unanswered[words_of(error())] += 1
            if "AUTHORIZATION" in words_of(error()):
                self._refused.add(tp.topic)
            return
        records = partition.records or b""
        self._bytes += len(records)
        self._known[position] = _first_record(records, offset)
        batch = next((batch for batch in read_batches(records) if batch.last_offset >= offset), None)
        if batch and batch.transactional:
            self._transactional.add(position)
            if batch.control and batch.base_offset <= offset:
                self._markers.add(position)


def _first_record(data: bytes | memoryview, offset: int) -> Found | None:
    for batch in read_batches(data):
        if batch.last_offset < offset:
            continue
        for record in read_records(batch):
            if record.offset >= offset:
                return Found(record.offset, record.timestamp)
    return None
