"""Offset commits as `__consumer_offsets` keeps them, and the positions they tell. Joins no group, decodes no value.

Only committed records are read: an aborted transaction's commits never counted. Keys and the offset inside a value are
looked at (both lie at fixed places in all versions), the rest is decoded by the Spark job.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from struct import Struct, error
from typing import Any

import pyarrow as pa
from kafka.errors import KafkaError, NoError, OffsetOutOfRangeError, UnknownTopicOrPartitionError, for_code

from kafka_sla.model.entities import Patterns
from kafka_sla.sources.kafka.committed_positions import Reader, Track
from kafka_sla.sources.kafka.protocol.client import TAKE_OVER_S, Client
from kafka_sla.sources.kafka.protocol.fetch import Place, fetched
from kafka_sla.sources.kafka.protocol.list_offsets import Offsets
from kafka_sla.sources.kafka.protocol.record_batches import Batch, Record, read_batches, read_records, told_batches
from kafka_sla.sources.kafka.protocol.topics import Topic, TopicPartition, read_topic

TOPIC = "__consumer_offsets"
SCHEMA = pa.schema([
    pa.field("key", pa.binary(), nullable=False),
    pa.field("value", pa.binary()),
    pa.field("appended_at", pa.timestamp("us", "UTC"), nullable=False),
    pa.field("earlier_lost", pa.bool_(), nullable=False),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("position", pa.int64()),
])  # fmt: skip
_BYTES_PER_FETCH = 4 * 1024**2
_SHORT = Struct(">h")
_INT = Struct(">i")
_OFFSET = Struct(">q")
_VALUE_OFFSET_AT = 2
_COMMIT_KEYS = (0, 1)
_COMMIT_VALUES = range(5)


@dataclass(slots=True)
class Commits:
    """The commits that were read: raw rows for Spark, and what each reader's position was when."""

    tracks: dict[Reader, Track] = field(default_factory=dict)
    later: set[Reader] = field(default_factory=set)
    """Readers that committed after the interval too."""
    standing: dict[Reader, bool] = field(default_factory=dict)
    """Did the newest commit of each reader, also after the interval, leave it a position? False: it was deleted."""
    unreadable: int = 0
    """Records that are laid out like no commit that is known."""
    held_back: int = 0
    """Partitions of the log whose end is held back by a transaction that is still open."""
    lost: int = 0
    """Readers whose first commit here may not be their first: compaction removed records before it."""
    _keys: list[bytes] = field(default_factory=list)
    _values: list[bytes | None] = field(default_factory=list)
    _times: list[int] = field(default_factory=list)
    _lost: list[bool] = field(default_factory=list)
    _topics: list[str | None] = field(default_factory=list)
    _partitions: list[int | None] = field(default_factory=list)
    _positions: list[int | None] = field(default_factory=list)

    def add(self, reader: Reader | None, key: bytes, record: Record, *, compacted: bool) -> None:
        """Keep a record; `compacted`: records before it were removed. What cannot be read is kept too, for Spark to set
        aside, and tells no position."""
        track = self.tracks.get(reader) if reader else None
        lost = compacted and reader is not None and track is None
        readable = _readable(record.value)
        position = _position(record.value) if readable else None
        self.lost += lost
        self._lost.append(lost)
        self._topics.append(reader.tp.topic if reader else None)
        self._partitions.append(reader.tp.partition if reader else None)
        self._positions.append(position)
        self._keys.append(key)
        self._values.append(record.value)
        self._times.append(record.timestamp * 1000)
        if reader is None or not readable:
            self.unreadable += 1
            return
        if track is None:
            track = self.tracks[reader] = Track()
        track.add(record.timestamp, position)

    def groups(self) -> set[str]:
        """Who has a position, as far as the log tells."""
        return {reader.group for reader, stands in self.standing.items() if stands}

    def table(self) -> pa.Table:
        columns = (
            self._keys, self._values, self._times, self._lost, self._topics, self._partitions, self._positions
        )  # fmt: skip
        return pa.Table.from_arrays(
            [pa.array(column, kind.type) for column, kind in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
        )


def read_commits(client: Client, groups: Patterns, topics: Patterns, start: int, end: int, *, to_now: bool) -> Commits:
    """All commits with `start` ≤ time < `end` (ms). `to_now` also looks at who committed later, without keeping it.

    Raises the broker's AuthorizationError when the log may not be read. Where nobody has ever committed there is none.
    """
    try:
        log = read_topic(client, TOPIC)
    except UnknownTopicOrPartitionError:
        return Commits()
    offsets = Offsets(client, {TOPIC: log})
    spans = _spans(offsets, start, end, to_now)
    starts = offsets.starts()
    gaps = {tp: _Gaps(0 if begin == starts.get(tp) else begin) for tp, (begin, _) in spans.items()}
    readers = _Readers(groups, topics)
    commits = Commits()
    pauses = list(TAKE_OVER_S)
    while spans:
        places = [Place(log.leaders[tp.partition], tp, at) for tp, (at, _) in spans.items()]
        left, moving = {}, None
        answers = fetched(client, places, _BYTES_PER_FETCH, committed=True)
        for (tp, (at, stop)), answer in zip(spans.items(), answers, strict=True):
            if failed := _error(answer):
                left[tp], moving = (at, stop), failed
                continue
            going_on = _take(answer, at, readers, commits, start, end, gaps[tp])
            if going_on is not None and going_on < stop:
                left[tp] = (going_on, stop)
        if moving:
            log = _moved(client, pauses, moving)
        spans = left
    return commits


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
class _Gaps:
    """Whether compaction removed records of one partition of the log: a log has no gaps of its own."""

    expected: int
    """Offset of the next record, if none is missing."""
    first: int | None = None
    """Offset behind the first gap."""

    def look(self, batch: Batch) -> None:
        holds_all = batch.count == batch.last_offset - batch.base_offset + 1
        if self.first is None and (batch.base_offset > self.expected or not holds_all):
            self.first = batch.base_offset
        self.expected = batch.last_offset + 1


def _take(
    partition: Any, at: int, readers: _Readers, commits: Commits, start: int, end: int, gaps: _Gaps
) -> int | None:
    """Adds what one answer holds; returns the offset to go on from, None at the end of what may be read."""
    data = partition.records or b""
    going_on = None
    for batch in read_batches(data):
        gaps.look(batch)
        going_on = batch.last_offset + 1
    for record in committed_records(data, partition.aborted_transactions or []):
        if record.offset < at or record.timestamp < start or record.key is None:
            continue
        found = readers.of(record.key)
        if found is None:
            continue
        reader, key = found
        if reader and _readable(record.value):
            commits.standing[reader] = record.value is not None
        if record.timestamp < end:
            commits.add(reader, key, record, compacted=gaps.first is not None and record.offset >= gaps.first)
        elif reader:
            commits.later.add(reader)
    if going_on is None and partition.last_stable_offset < partition.high_watermark:
        commits.held_back += 1
    return going_on


def committed_records(data: bytes, aborted: list[Any]) -> Iterator[Record]:
    """The records of all batches but those of aborted transactions and the markers that end transactions."""
    for batch, counts in told_batches(data, [(entry.first_offset, entry.producer_id) for entry in aborted]):
        if counts:
            yield from read_records(batch)


class _Readers:
    """Which reader a raw key names, None where it cannot be told; each key is decoded once."""

    def __init__(self, groups: Patterns, topics: Patterns) -> None:
        self._group_wanted, self._topic_wanted = cache(groups.matches), cache(topics.matches)
        self._known: dict[bytes, tuple[Reader | None, bytes] | None] = {}

    def of(self, key: bytes) -> tuple[Reader | None, bytes] | None:
        """The reader, and the key in the one copy that is kept; None for what was not asked for or is no commit."""
        if key not in self._known:
            self._known[key] = self._wanted(key)
        return self._known[key]

    def _wanted(self, key: bytes) -> tuple[Reader | None, bytes] | None:
        try:
            if _SHORT.unpack_from(key)[0] not in _COMMIT_KEYS:
                return None
            reader = _reader(key)
        except (error, UnicodeDecodeError):
            return None, key
        wanted = self._group_wanted(reader.group) and self._topic_wanted(reader.tp.topic)
        return (reader, key) if wanted else None


def _reader(key: bytes) -> Reader:
    """Raises struct.error or UnicodeDecodeError where the key is laid out otherwise."""
    group, at = _text(key, 2)
    topic, at = _text(key, at)
    if len(key) != at + _INT.size:
        raise error(f"a key of {len(key)} bytes, where {at + _INT.size} were expected")
    return Reader(group, TopicPartition(topic, _INT.unpack_from(key, at)[0]))


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _SHORT.unpack_from(data, at)
    if length < 0:
        raise error("a text that is null")
    return data[at + 2 : at + 2 + length].decode(), at + 2 + length


def _readable(value: bytes | None) -> bool:
    if value is None:
        return True
    return len(value) >= _VALUE_OFFSET_AT + _OFFSET.size and _SHORT.unpack_from(value)[0] in _COMMIT_VALUES


def _position(value: bytes | None) -> int | None:
    return None if value is None else int(_OFFSET.unpack_from(value, _VALUE_OFFSET_AT)[0])
