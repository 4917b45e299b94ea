"""Records of `__consumer_offsets` as committed offsets, and the positions they tell. Pure: knows no requests.

Keys repeat and are decoded once each; values are decoded all together, when all are there.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.model.arrow_schemas import arrow_columns, arrow_schema
from kafka_sla.model.entities import Patterns
from kafka_sla.model.tables import BEYOND_LOG_END, COMMITTED_OFFSETS, COMPACTED, Column, Table
from kafka_sla.sources.kafka.committed_positions import DELETED, Reader, Track, tracks_of
from kafka_sla.sources.kafka.protocol.offset_commit_format import commit_key, commit_values
from kafka_sla.sources.kafka.protocol.record_batches import Record
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


@dataclass(frozen=True, slots=True)
class Commits:
    """The commits of an interval, and what they tell of their readers."""

    offsets: pa.Table = field(default_factory=arrow_schema(COMMITTED_OFFSETS).empty_table)
    """Rows of `committed_offsets`, in the order of the log."""
    unreadable: pa.Table = field(default_factory=arrow_schema(UNREADABLE).empty_table)
    """Records that are laid out like no commit that is known."""
    tracks: dict[Reader, Track] = field(default_factory=dict)
    later: frozenset[Reader] = frozenset()
    """Readers that committed after the interval too."""
    groups: frozenset[str] = frozenset()
    """Who has a position, as far as the log tells, also after the interval."""
    lost: int = 0
    """Readers whose first commit here may not be their first: compaction removed records before it."""
    held_back: int = 0
    """Partitions of the log whose end is held back by a transaction that is still open."""

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


class CommitRecords:
    """Collects the records of wanted groups and topics; a key that cannot be read is wanted, to be set aside."""

    def __init__(self, groups: Patterns, topics: Patterns) -> None:
        self._group_wanted, self._topic_wanted = cache(groups.matches), cache(topics.matches)
        self._known: dict[bytes, tuple[int, bytes]] = {}
        """Number of the reader of each raw key, and the key in the one copy that is kept."""
        self._readers: dict[Reader, int] = {}
        self._of, self._times, self._behind_gap = array("q"), array("q"), array("b")
        self._keys: list[bytes] = []
        self._values: list[bytes | None] = []

    def add(self, record: Record, *, behind_gap: bool = False) -> None:
        """Keep a record that has a key; `behind_gap`: compaction removed records of this log before it."""
        if record.key is None:
            return
        number, key = self._known.get(record.key) or self._learn(record.key)
        if number != _NOT_WANTED:
            self._of.append(number)
            self._keys.append(key)
            self._values.append(record.value)
            self._times.append(record.timestamp)
            self._behind_gap.append(behind_gap)

    def _learn(self, key: bytes) -> tuple[int, bytes]:
        self._known[key] = self._number(key), key
        return self._known[key]

    def _number(self, key: bytes) -> int:
        try:
            named = commit_key(key)
        except ValueError:
            return _UNREADABLE
        if named is None or not (self._group_wanted(named[0]) and self._topic_wanted(named[1])):
            return _NOT_WANTED
        return self._readers.setdefault(Reader(named[0], TopicPartition(*named[1:])), len(self._readers))

    def decoded(self, cluster: str, end: int, held_back: int = 0) -> Commits:
        """All that was collected; what was appended at `end` (ms) or later tells of readers only."""
        readers, of, times = list(self._readers), np.array(self._of, np.int64), np.array(self._times, np.int64)
        values = pa.array(self._values, pa.binary())
        deleted = values.is_null().to_numpy(zero_copy_only=False)
        told = commit_values(values)
        readable, inside = (of >= 0) & (deleted | told.fits), times < end
        kept, strange = np.flatnonzero(readable & inside), np.flatnonzero(~readable & inside)
        standing = _last(of, np.flatnonzero(readable))
        first = _last(of, kept[::-1])
        lost = first[np.array(self._behind_gap, np.bool_)[first]]
        rows = {
            **_names(readers, of[kept]),
            "cluster": pa.repeat(cluster, len(kept)),
            "at": pa.array(np.where(deleted, times, told.at_ms)[kept] * 1_000),
            "committed_offset": pa.array(told.offset[kept], mask=deleted[kept]),
            "source": pa.array(["commit_log", COMPACTED]).take(pa.array(np.isin(kept, lost).astype(np.int8))),
        }
        set_aside = {
            "cluster": pa.repeat(cluster, len(strange)),
            "key": pa.array([self._keys[n] for n in strange], pa.binary()),
            "value": values.take(pa.array(strange)),
            "appended_at": pa.array(times[strange] * 1_000),
        }
        return Commits(
            arrow_columns(COMMITTED_OFFSETS, rows),
            arrow_columns(UNREADABLE, set_aside),
            tracks_of(readers, of[kept], times[kept], np.where(deleted, DELETED, told.offset)[kept]),
            frozenset(readers[n] for n in np.unique(of[~inside & (of >= 0)])),
            frozenset(readers[n].group for n in of[standing[~deleted[standing]]]),
            len(lost),
            held_back,
        )


def _last(of: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Of these places, the last one of each reader."""
    _, last = np.unique(of[places][::-1], return_index=True)
    return places[::-1][last]


def _names(readers: list[Reader], of: npt.NDArray[np.int64]) -> dict[str, Any]:
    named = pa.array(of)
    columns = zip(*((reader.group, *reader.tp) for reader in readers), strict=True) if readers else ((), (), ())
    kinds = (pa.string(), pa.string(), pa.int32())
    return {
        name: pa.array(column, kind).take(named)
        for name, column, kind in zip(("group", "topic", "partition"), columns, kinds, strict=True)
    }
