"""The decoding of `__consumer_offsets` records into committed offsets. Arrow tables only; knows no Kafka client.

Layout (big-endian; kafka/group/metadata/OffsetCommitKey and OffsetCommitValue, versions 0-4):
key    i16 version (0, 1: an offset commit), STRING group, STRING topic, i32 partition
value  i16 version, i64 offset, [v3+: i32 leader epoch], metadata, i64 commit time, [v1: i64 expire time], [v4: tags]
STRING is an i16 length (-1: null) and UTF-8 bytes; metadata is a STRING, in v4 a COMPACT_STRING (unsigned varint of
length + 1).
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.tables import COMMITTED_OFFSETS, COMPACTED, Column, Table
from kafka_sla.spark_jobs.numeric.arrays import NEVER_MS, Bools, Ints

UNREADABLE = Table(
    "unreadable_commit_records", "fact", ("cluster", "key", "value", "appended_at"), "appended_at",
    "Records of an unknown version, or whose length does not fit their version.",
    (
        Column("cluster", "STRING", False, "cluster name of the configuration"),
        Column("key", "BINARY", False, "as it was read"),
        Column("value", "BINARY", True, "as it was read"),
        Column("appended_at", "TIMESTAMP", False, "the record's timestamp"),
    ),
)  # fmt: skip
"""What is set aside beside the decoded commits of a load."""
COLUMNS = ["key", "value", "appended_at", "earlier_lost"]
"""Of the raw records: BINARY, BINARY, TIMESTAMP and BOOLEAN."""
_SHORT, _INT = Struct(">h"), Struct(">i")
_EPOCH_SINCE, _FLEXIBLE = 3, 4
"""Versions of a value: the first with the leader's epoch, and the one of flexible length."""
_LONGEST = 24
"""Bytes that may be looked at behind the end of a value that is cut short."""


class _Key(NamedTuple):
    group: str
    topic: str
    partition: int


_NO_COMMIT = _Key("", "", -1)
"""The key of something else."""


class _Values(NamedTuple):
    offset: Ints
    at_ms: Ints
    fits: Bools


def committed_offsets(records: pa.Table, cluster: str) -> tuple[pa.Table, pa.Table]:
    """Decode raw records (COLUMNS) of one cluster: rows of `tables.COMMITTED_OFFSETS`, and of UNREADABLE.

    Group metadata records are in neither. A tombstone becomes a null committed offset at the time it was appended.
    """
    raw = records["key"].combine_chunks().dictionary_encode()
    values = records["value"].combine_chunks()
    appended = records["appended_at"].cast(pa.timestamp("us", "UTC")).combine_chunks()
    names = [_key(key) if is_commit(key) else _NO_COMMIT for key in raw.dictionary.to_pylist()] + [_NO_COMMIT]
    of_key = raw.indices.fill_null(len(names) - 1).to_numpy()
    deleted = values.is_null().to_numpy(zero_copy_only=False)
    told = _values(values)
    commit = np.array([name is not _NO_COMMIT for name in names])[of_key]
    readable = commit & np.array([name is not None for name in names])[of_key] & (deleted | told.fits)
    kept = np.flatnonzero(readable)
    keys = pa.array(of_key[kept])
    rows = [
        pa.repeat(cluster, len(kept)),
        *(pa.array([name[part] if name else None for name in names]).take(keys) for part in range(3)),
        pa.array(np.where(deleted, appended.cast(pa.int64()), told.at_ms * 1_000)[kept]).cast(appended.type),
        pa.array(told.offset[kept], mask=deleted[kept]),
        pa.array(["commit_log", COMPACTED]).take(records["earlier_lost"].cast(pa.int8()).combine_chunks().take(kept)),
    ]
    strange = records.select(UNREADABLE.names[1:]).filter(pa.array(commit & ~readable))
    strange = strange.add_column(0, "cluster", pa.repeat(cluster, len(strange)))
    found = pa.Table.from_arrays(rows, names=list(COMMITTED_OFFSETS.names))
    return found.cast(arrow_schema(COMMITTED_OFFSETS)), strange.cast(arrow_schema(UNREADABLE))


def is_commit(key: bytes) -> bool:
    """The key of an offset commit, not of a group's metadata."""
    return len(key) >= 2 and _SHORT.unpack_from(key)[0] in (0, 1)


def _key(key: bytes) -> _Key | None:
    """Whom a commit is of; None where the lengths do not fit."""
    group_ends = 4 + _length(key, 2)
    topic_ends = group_ends + 2 + _length(key, group_ends)
    if group_ends < 4 or topic_ends < group_ends + 2 or len(key) != topic_ends + 4:
        return None
    group, topic = (key[a:b].decode("utf-8", "replace") for a, b in ((4, group_ends), (group_ends + 2, topic_ends)))
    return _Key(group, topic, _INT.unpack_from(key, topic_ends)[0])


def _length(data: bytes, at: int) -> int:
    """The length that a STRING begins with; beyond all data where it is cut off."""
    return int(_SHORT.unpack_from(data, at)[0]) if len(data) >= at + 2 else len(data)


def _values(values: pa.Array) -> _Values:
    """What values hold, many at once. One does not fit whose version is not known, or whose length does not fit it."""
    data = np.concatenate([np.frombuffer(values.buffers()[2] or b"", np.uint8), np.zeros(_LONGEST, np.uint8)])
    edges = np.frombuffer(values.buffers()[1] or bytes(4), np.int32)[values.offset :][: len(values) + 1]
    starts, lengths = edges[:-1].astype(np.int64), np.diff(edges)
    version = _numbers(data, starts, 2)
    metadata = starts + np.where(version >= _EPOCH_SINCE, 14, 10)
    at = metadata + 2 + np.maximum(_numbers(data, metadata, 2), 0)
    flexible = np.flatnonzero((version == _FLEXIBLE) & (lengths > 14))
    at[flexible] = [_behind_compact(data, place) for place in metadata[flexible]]
    ends = at - starts + np.where(version == 1, 16, 8)
    fits = (lengths >= 2) & (version >= 0) & (version <= _FLEXIBLE)
    fits &= (lengths == ends) | ((version == _FLEXIBLE) & (lengths > ends))
    offset, at_ms = _numbers(data, starts + 2, 8), _numbers(data, np.minimum(at, len(data) - 8), 8)
    return _Values(offset, at_ms, fits & (offset >= 0) & (at_ms >= 0) & (at_ms < NEVER_MS))


def _numbers(data: npt.NDArray[np.uint8], starts: Ints, width: int) -> Ints:
    """The big-endian numbers of so many bytes that begin there."""
    bytes_of = np.ascontiguousarray(data[starts[:, None] + np.arange(width)])
    return bytes_of.view(f">i{width}").ravel().astype(np.int64)


def _behind_compact(data: npt.NDArray[np.uint8], at: int) -> int:
    """Where the COMPACT_STRING at a place ends."""
    length = shift = 0
    for place in range(at, min(at + 5, len(data))):
        length += (int(data[place]) & 0x7F) << shift
        shift += 7
        if data[place] < 0x80:
            return place + 1 + max(length - 1, 0)
    return len(data)
