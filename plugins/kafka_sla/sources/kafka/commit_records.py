"""Records of `__consumer_offsets` as committed offsets, and the positions they tell. Pure.

The names in keys repeat and are decoded once each; all else is decoded for many records at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.model.arrow_schemas import arrow_columns, arrow_schema
from kafka_sla.model.entities import Patterns
from kafka_sla.model.tables import BEYOND_LOG_END, COMMITTED_OFFSETS, COMPACTED, Column, Table
from kafka_sla.sources.kafka.committed_positions import DELETED, ReaderNumbers, Tracks, numbered
from kafka_sla.sources.kafka.protocol.offset_commit_format import commit_keys, commit_names, commit_values
from kafka_sla.sources.kafka.protocol.record_batches import Ints, Records
from kafka_sla.sources.kafka.protocol.topics import TopicPartition

UNREADABLE = Table(
    "unreadable_commit_records",
    "fact",
    ("cluster", "key", "value", "appended_at"),
    "appended_at",
    "Records of an unknown version, or whose length does not fit their version.",
    (
        Column("cluster", "STRING", False, "cluster name of the configuration"),
        Column("key", "BINARY", False, "as it was read"),
        Column("value", "BINARY", True, "as it was read"),
        Column("appended_at", "TIMESTAMP", False, "the record's timestamp"),
    ),
)
_NOT_WANTED, _UNREADABLE = -2, -1
_PARTITION_BYTES = 4
_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Commits:
    """The commits of an interval, and what they tell of their readers."""

    tracks: Tracks
    offsets: pa.Table = field(default_factory=arrow_schema(COMMITTED_OFFSETS).empty_table)
    """Rows of `committed_offsets`, in the order of the log."""
    unreadable: pa.Table = field(default_factory=arrow_schema(UNREADABLE).empty_table)
    """Records that are laid out like no commit that is known."""
    later: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Numbers of the readers that committed after the interval too."""
    groups: frozenset[str] = frozenset()
    """Who has a position, as far as the log tells, also after the interval."""
    lost: int = 0
    """Readers whose first commit here may not be their first: compaction removed records before it."""

    def marked(self, ends: Mapping[TopicPartition, int]) -> Commits:
        """The same; a commit beyond the end of its log says that it is no position."""
        rows = self.offsets
        for tp, end in ends.items():
            of_log = pc.and_(pc.equal(rows["topic"], tp.topic), pc.equal(rows["partition"], tp.partition))
            beyond = pc.fill_null(pc.and_(of_log, pc.greater(rows["committed_offset"], end)), False)
            place = rows.schema.get_field_index("source")
            source = pc.if_else(beyond, BEYOND_LOG_END, rows["source"])
            rows = rows.set_column(place, rows.schema.field(place), source)
        return replace(self, offsets=rows)


class _Decoded(NamedTuple):
    """Commits as columns."""

    of: Ints
    """Number of the reader; negative where the key cannot be read."""
    appended: Ints
    at: Ints
    offset: Ints
    place: Ints
    """Offset of the record in the log of commits."""
    deleted: _Flags
    fits: _Flags
    """The value, if there is one, is one that is known, with an offset of 0 or more."""
    behind_gap: _Flags
    in_transaction: _Flags


class CommitRecords:
    """Collects the records of wanted groups and topics; a key that cannot be read is wanted, to be set aside."""

    def __init__(self, numbers: ReaderNumbers, groups: Patterns, topics: Patterns) -> None:
        self._numbers, self._groups, self._topics = numbers, groups, topics
        self._known: dict[bytes, int] = {}
        """Number of group and topic of each raw key without its partition."""
        self._decoded = [_Decoded(*np.empty((5, 0), np.int64), *np.empty((4, 0), np.bool_))]
        self._strange: list[tuple[bytes, bytes | None, int]] = []

    def add(self, records: Records, behind_gap: _Flags, in_transaction: _Flags) -> None:
        """Keep the records that have a key; `behind_gap`: compaction removed records of this log before one.

        A commit is as old as it says; one made `in_transaction` as its record, which bears the time at which the
        transaction was committed: before, nobody could see it, and it could still be aborted. Records come in the order
        in which they came to count.
        """
        has_key = records.key_size >= 0
        records, behind_gap, in_transaction = records.only(has_key), behind_gap[has_key], in_transaction[has_key]
        of = self._readers(records)
        wanted = of != _NOT_WANTED
        records, of, behind_gap = records.only(wanted), of[wanted], behind_gap[wanted]
        in_transaction = in_transaction[wanted]
        deleted = records.value_size < 0
        told = commit_values(np.frombuffer(records.data, np.uint8), records.value_at, records.value_size)
        at = np.where(deleted | in_transaction, records.timestamp, told.at_ms)
        ints = of, records.timestamp, at, told.offset, records.offset
        decoded = _Decoded(*ints, deleted, deleted | (told.fits & (told.offset >= 0)), behind_gap, in_transaction)
        self._decoded.append(decoded)
        for place in np.flatnonzero((of < 0) | ~decoded.fits).tolist():
            key, value = _bytes(records, place)
            self._strange.append((key, value, int(records.timestamp[place])))

    def _readers(self, records: Records) -> Ints:
        """The number of each record's reader."""
        data = records.data
        may_be, partition = commit_keys(np.frombuffer(data, np.uint8), records.key_at, records.key_size)
        heads = zip(
            records.key_at.tolist(), (records.key_at + records.key_size - _PARTITION_BYTES).tolist(), strict=True
        )
        known = self._known
        pairs = np.array(
            [
                _NOT_WANTED
                if not named
                else pair
                if (pair := known.get(data[at:end])) is not None
                else self._learn(data[at:end])
                for named, (at, end) in zip(may_be.tolist(), heads, strict=True)
            ],
            np.int64,
        )
        return np.where(pairs < 0, pairs, numbered(pairs, partition))

    def _learn(self, head: bytes) -> int:
        self._known[head] = self._pair(head)
        return self._known[head]

    def _pair(self, head: bytes) -> int:
        try:
            group, topic = commit_names(head)
        except ValueError:
            return _UNREADABLE
        wanted = self._groups.matches(group) and self._topics.matches(topic)
        return self._numbers.pair(group, topic) if wanted else _NOT_WANTED

    def decoded(self, cluster: str, end: int) -> Commits:
        """All that was collected; what was appended at `end` (ms) or later tells of readers only."""
        all_of = _Decoded(*map(np.concatenate, zip(*self._decoded, strict=True)))
        readable, inside = (all_of.of >= 0) & all_of.fits & ~_overtaken(all_of), all_of.appended < end
        kept = np.flatnonzero(readable & inside)
        of, deleted, offset = all_of.of[kept], all_of.deleted[kept], all_of.offset[kept]
        standing = _last(all_of.of, np.flatnonzero(readable))
        first = _last(all_of.of, kept[::-1])
        lost = first[all_of.behind_gap[first]]
        rows = {
            **self._numbers.columns(of),
            "cluster": pa.repeat(cluster, len(kept)),
            "at": pa.array(all_of.at[kept] * 1_000),
            "committed_offset": pa.array(offset, mask=deleted),
            "source": pa.array(["commit_log", COMPACTED]).take(pa.array(np.isin(kept, lost).astype(np.int8))),
        }
        return Commits(
            Tracks.of_commits(self._numbers, of, all_of.appended[kept], np.where(deleted, DELETED, offset)),
            arrow_columns(COMMITTED_OFFSETS, rows),
            _set_aside(cluster, [one for one in self._strange if one[2] < end]),
            np.unique(all_of.of[~inside & (all_of.of >= 0)]),
            self._numbers.groups(all_of.of[standing[~all_of.deleted[standing]]]),
            len(lost),
        )


def _overtaken(all_of: _Decoded) -> _Flags:
    """Commits of a transaction behind which the same reader committed, or its offset was deleted, without one before
    the transaction's end: for the coordinator, what lies later in the log stands."""
    found = np.zeros(len(all_of.of), np.bool_)
    if not all_of.in_transaction.any():
        return found
    order = np.argsort(all_of.of, kind="stable")
    run = np.cumsum(np.diff(all_of.of[order], prepend=all_of.of[order[0]]) != 0)
    _, rank = np.unique(all_of.place[order], return_inverse=True)
    furthest = np.maximum.accumulate(run * len(order) + rank) - run * len(order)
    found[order] = rank < furthest
    return found & all_of.in_transaction


def _bytes(records: Records, place: int) -> tuple[bytes, bytes | None]:
    """Key and value of one record."""
    key_at, key_size, value_at, value_size = (int(column[place]) for column in records[3:])
    value = None if value_size < 0 else records.data[value_at : value_at + value_size]
    return records.data[key_at : key_at + key_size], value


def _set_aside(cluster: str, strange: list[tuple[bytes, bytes | None, int]]) -> pa.Table:
    keys, values, times = zip(*strange, strict=True) if strange else ((), (), ())
    columns = {
        "cluster": pa.repeat(cluster, len(strange)),
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "appended_at": pa.array([time_ms * 1_000 for time_ms in times], pa.int64()),
    }
    return arrow_columns(UNREADABLE, columns)


def _last(of: Ints, places: Ints) -> Ints:
    """Of these places, the last one of each reader."""
    _, last = np.unique(of[places][::-1], return_index=True)
    return places[::-1][last]
