"""When single records were produced, exactly, by fetching the one batch that holds each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kafka.errors import AuthorizationError, BrokerResponseError, KafkaError, OffsetOutOfRangeError, for_code

from kafka_sla.sources.kafka.protocol.client import TAKE_OVER_S, Client
from kafka_sla.sources.kafka.protocol.connection_errors import words_of
from kafka_sla.sources.kafka.protocol.fetch import ONE_BATCH, FetchPosition, fetched
from kafka_sla.sources.kafka.protocol.list_offsets import Found
from kafka_sla.sources.kafka.protocol.record_batches import read_batches, read_records
from kafka_sla.sources.kafka.protocol.topics import Topic, TopicPartition, read_topic

BYTES_PER_PASS = 256 * 1024**2
"""A batch may be as large as 1 MB and more; this bounds what one pass reads when all are."""
_CHUNK = 200

Position = tuple[TopicPartition, int]


class RecordTimes:
    """Looks up the first record not before each offset. Remembers answers, counts requests and what stayed open."""

    def __init__(self, client: Client, topics: Mapping[str, Topic]) -> None:
        self._client, self._topics = client, dict(topics)
        self._known: dict[Position, Found | None] = {}
        self._transactional: set[Position] = set()
        self._markers: set[Position] = set()
        self._refused: set[str] = set()
        self._lost: set[TopicPartition] = set()
        """Partitions that no leader came back for: not waited for again in this pass."""
        self._bytes = 0
        self.offset_lookups = 0
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

    def withheld(self) -> str | None:
        """Why positions were not answered that may be read, if any were not."""
        return next((cause for cause in sorted(self.unanswered) if "AUTHORIZATION" not in cause), None)

    def _read(self, positions: list[Position]) -> None:
        if self._bytes > BYTES_PER_PASS:
            self.unanswered[f"batches are so large that {BYTES_PER_PASS >> 20} MB were already read"] += len(positions)
            return
        failed = self._ask(positions)
        for pause_s in TAKE_OVER_S:
            moving = {at: error for at, error in failed.items() if error.retriable and at[0] not in self._lost}
            if not moving:
                break
            self._find_leaders({tp.topic for tp, _ in moving}, pause_s)
            failed = {at: error for at, error in failed.items() if at not in moving} | self._ask(list(moving))
        self._lost |= {tp for (tp, _), error in failed.items() if error.retriable}
        self.unanswered.update(words_of(error) for error in failed.values())

    def _ask(self, positions: list[Position]) -> dict[Position, KafkaError]:
        """Remembers what the leaders answer; returns the errors."""
        positions = [(tp, offset) for tp, offset in positions if tp.topic not in self._refused]
        places = [FetchPosition(self._topics[tp.topic].leaders[tp.partition], tp, offset) for tp, offset in positions]
        self.offset_lookups += len(places)
        answers = fetched(self._client, places, ONE_BATCH)
        errors = {at: self._take(at, answer) for at, answer in zip(positions, answers, strict=True)}
        return {at: error for at, error in errors.items() if error}

    def _find_leaders(self, topics: set[str], pause_s: float) -> None:
        self._client.pause(pause_s)
        for name in topics:
            try:
                self._topics[name] = read_topic(self._client, name)
            except BrokerResponseError:
                continue  # the old leader's own error says what is wrong, and is noted

    def _take(self, position: Position, answer: Any) -> KafkaError | None:
        tp, offset = position
        if isinstance(answer, KafkaError):
            return answer
        error = for_code(answer.error_code)
        if answer.error_code and error is not OffsetOutOfRangeError:
            if issubclass(error, AuthorizationError):
                self._refused.add(tp.topic)
            return error()
        records = answer.records or b""
        self._bytes += len(records)
        self._known[position] = _first_record(records, offset)
        batch = next((batch for batch in read_batches(records) if batch.last_offset >= offset), None)
        if batch and batch.transactional:
            self._transactional.add(position)
            if batch.control and batch.base_offset <= offset:
                self._markers.add(position)
        return None


def _first_record(data: bytes | memoryview, offset: int) -> Found | None:
    for batch in read_batches(data):
        if batch.last_offset < offset:
            continue
        for record in read_records(batch):
            if record.offset >= offset:
                return Found(record.offset, record.timestamp)
    return None
