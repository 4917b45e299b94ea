"""The log of commits, `__consumer_offsets`, read from its brokers. Joins no group, knows no commit's layout.

A commit made in a transaction counts from the moment on at which the transaction was committed, as it does for the
coordinator; an aborted one's never counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from kafka.errors import KafkaError, NoError, OffsetOutOfRangeError, for_code

from kafka_sla.model.entities import Patterns
from kafka_sla.sources.kafka.commit_records import CommitRecords, Commits
from kafka_sla.sources.kafka.committed_positions import ReaderNumbers
from kafka_sla.sources.kafka.protocol.client import TAKE_OVER_S, Client
from kafka_sla.sources.kafka.protocol.fetch import FetchPosition, fetched
from kafka_sla.sources.kafka.protocol.list_offsets import Offsets
from kafka_sla.sources.kafka.protocol.record_batches import (
    Batch,
    Transactions,
    read_batches,
    read_columns,
)
from kafka_sla.sources.kafka.protocol.topics import Topic, TopicPartition, read_topic

TOPIC = "__consumer_offsets"
_BYTES_PER_FETCH = 4 * 1024**2


class LookupsRefused(KafkaError):  # type: ignore[misc]
    """The brokers do not say where in the log a time begins."""


def read_commits(
    client: Client,
    numbers: ReaderNumbers,
    groups: Patterns,
    topics: Patterns,
    start: int,
    end: int,
    *,
    to_now: bool,
) -> Commits:
    """All commits with `start` ≤ time < `end` (ms). `to_now` also looks at who committed later, without keeping it.

    Raises the broker's AuthorizationError when the log may not be read, and its UnknownTopicOrPartitionError where it
    is hidden, or where nobody has ever committed.
    """
    log = read_topic(client, TOPIC)
    offsets = Offsets(client, {TOPIC: log})
    spans = _spans(offsets, start, end, to_now)
    starts = offsets.starts()
    parts = {tp: _Part(begin, 0 if begin == starts.get(tp) else begin) for tp, (begin, _) in spans.items()}
    records = CommitRecords(numbers, groups, topics)
    pauses = list(TAKE_OVER_S)
    while spans:
        places = [FetchPosition(log.leaders[tp.partition], tp, at) for tp, (at, _) in spans.items()]
        left, moving = {}, None
        answers = fetched(client, places, _BYTES_PER_FETCH)
        for (tp, (at, stop)), answer in zip(spans.items(), answers, strict=True):
            if failed := _error(answer):
                left[tp], moving = (at, stop), failed
                continue
            going_on = _take(answer, start, records, parts[tp])
            if going_on is not None and going_on < stop:
                left[tp] = (going_on, stop)
        if moving:
            log = _moved(client, pauses, moving)
        spans = left
    return records.decoded(client.cluster.name, end)


def _error(answer: Any) -> KafkaError | None:
    """What keeps a partition from being read, if it heals by itself; anything else is raised."""
    failed = answer if isinstance(answer, KafkaError) else for_code(answer.error_code)()
    if isinstance(failed, NoError | OffsetOutOfRangeError):
        return None
    if not failed.retriable:
        raise failed
    return failed


def _moved(client: Client, pauses: list[float], failed: KafkaError) -> Topic:
    """The log with the leaders that it has after a pause; raises the error when patience is at its end."""
    if not pauses:
        raise failed
    client.pause(pauses.pop(0))
    return read_topic(client, TOPIC)


def _spans(offsets: Offsets, start: int, end: int, to_now: bool) -> dict[TopicPartition, tuple[int, int]]:
    """First and last offset (exclusive) of each partition of the log that hold the time from start to end. The record
    before the first is read too, where it is there: if it is not, it was removed."""
    ends, starts = offsets.ends(), offsets.starts()
    answers = offsets.at(dict.fromkeys(ends, (start, end)))
    if offsets.without_times or offsets.find_without_times(ends):
        raise LookupsRefused("; ".join(offsets.notes()) or "its brokers answer that no record has a time")
    if missing := offsets.notes():
        raise KafkaError("; ".join(missing))
    spans = {}
    for tp, last in ends.items():
        first, beyond = answers[tp][start].offset, answers[tp][end].offset
        stop = last if to_now or beyond < 0 else beyond
        if 0 <= first < stop:
            spans[tp] = (max(first - 1, starts.get(tp, 0)), stop)
    return spans


@dataclass(slots=True)
class _Part:
    """What was read of one partition of the log, and whether compaction removed records: a log has no gaps of its
    own."""

    begin: int
    """Offset from which on it is read."""
    expected: int
    """Offset of the next record, if none is missing."""
    first: int | None = None
    """Offset behind the first gap."""
    transactions: Transactions = field(default_factory=Transactions)

    def told(self, batch: Batch) -> list[Batch]:
        """The batches that count, now that this one is read."""
        holds_all = batch.count == batch.last_offset - batch.base_offset + 1
        if self.first is None and (batch.base_offset > self.expected or not holds_all):
            self.first = batch.base_offset
        self.expected = batch.last_offset + 1
        return self.transactions.told(batch)


def _take(partition: Any, start: int, records: CommitRecords, part: _Part) -> int | None:
    """Adds what one answer holds; returns the offset to go on from, None at the end of what may be read."""
    told, going_on = list[Batch](), None
    for batch in read_batches(partition.records or b""):
        told += part.told(batch)
        going_on = batch.last_offset + 1
    found = read_columns(told)
    transactional, counts = np.array([(one.transactional, one.count) for one in told], np.int64).reshape(-1, 2).T
    kept = (found.offset >= part.begin) & (found.timestamp >= start)
    found, in_transaction = found.only(kept), np.repeat(transactional, counts)[kept] == 1
    behind_gap = np.zeros(len(found.offset), np.bool_) if part.first is None else found.offset >= part.first
    records.add(found, behind_gap, in_transaction)
    return going_on
