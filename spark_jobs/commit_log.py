"""The decoding of `__consumer_offsets` records into committed offsets. Arrow tables only; knows no Kafka client.

Layout (big-endian; kafka/group/metadata/OffsetCommitKey and OffsetCommitValue, versions 0-4):
key    i16 version (0, 1: an offset commit), STRING group, STRING topic, i32 partition
value  i16 version, i64 offset, [v3+: i32 leader epoch], metadata, i64 commit time, [v1: i64 expire time], [v4: tags]
STRING is an i16 length (-1: null) and UTF-8 bytes; metadata is a STRING, in v4 a COMPACT_STRING (unsigned varint of
length + 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

import pyarrow as pa

from kafka_sla.arrow import arrow_schema
from kafka_sla.tables import COMMITTED_OFFSETS, COMPACTED, Column, Table
from spark_jobs.arrays import NEVER_MS

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
_SHORT, _INT, _LONG = Struct(">h"), Struct(">i"), Struct(">q")


class _Key(NamedTuple):
    group: str
    topic: str
    partition: int


class _Value(NamedTuple):
    offset: int
    at_ms: int


def committed_offsets(records: pa.Table, cluster: str) -> tuple[pa.Table, pa.Table]:
    """Decode raw records (COLUMNS) of one cluster: rows of `tables.COMMITTED_OFFSETS`, and of UNREADABLE.

    Group metadata records are in neither. A tombstone becomes a null committed offset at the time it was appended.
    """
    found, strange = [], []
    columns = (records[name].to_pylist() for name in ("key", "value"))
    appended = records["appended_at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    lost = records["earlier_lost"].to_pylist()
    for nth, (raw, value) in enumerate(zip(*columns, strict=True)):
        if raw is None or not is_commit(raw):
            continue
        key, told = _key(raw), None if value is None else _value(value)
        if key is None or (told is None and value is not None):
            strange.append((cluster, raw, value, appended[nth]))
            continue
        offset, at = (told.offset, told.at_ms * 1_000) if told else (None, appended[nth])
        found.append((cluster, *key, at, offset, COMPACTED if lost[nth] else "commit_log"))
    return _rows(COMMITTED_OFFSETS, found), _rows(UNREADABLE, strange)


def is_commit(key: bytes) -> bool:
    """The key of an offset commit, not of a group's metadata."""
    return len(key) >= 2 and _SHORT.unpack_from(key)[0] in (0, 1)


@lru_cache(100_000)
def _key(key: bytes) -> _Key | None:
    """Whom a commit is of; None where the lengths do not fit. The same few keys come again and again."""
    group_ends = 4 + _length(key, 2)
    topic_ends = group_ends + 2 + _length(key, group_ends)
    if group_ends < 4 or topic_ends < group_ends + 2 or len(key) != topic_ends + 4:
        return None
    group, topic = (key[a:b].decode("utf-8", "replace") for a, b in ((4, group_ends), (group_ends + 2, topic_ends)))
    return _Key(group, topic, _INT.unpack_from(key, topic_ends)[0])


def _length(data: bytes, at: int) -> int:
    """The length that a STRING begins with; beyond all data where it is cut off."""
    return int(_SHORT.unpack_from(data, at)[0]) if len(data) >= at + 2 else len(data)


def _value(value: bytes) -> _Value | None:
    """Offset and commit time; None for a version that is not known, or a length that does not fit it."""
    version = _SHORT.unpack_from(value)[0] if len(value) >= 2 else -1
    if not 0 <= version <= 4:
        return None
    metadata = 14 if version >= 3 else 10
    length, begins = _compact(value, metadata) if version == 4 else (max(_length(value, metadata), 0), metadata + 2)
    at = begins + length
    ends = at + 8 + (8 if version == 1 else 0)
    if len(value) < ends or (len(value) > ends and version < 4):
        return None
    told = _Value(_LONG.unpack_from(value, 2)[0], _LONG.unpack_from(value, at)[0])
    return told if told.offset >= 0 and 0 <= told.at_ms < NEVER_MS else None


def _compact(value: bytes, at: int) -> tuple[int, int]:
    """Length of the COMPACT_STRING at a place, and where its bytes begin."""
    length = shift = 0
    for place in range(at, min(at + 5, len(value))):
        length += (value[place] & 0x7F) << shift
        shift += 7
        if value[place] < 0x80:
            return max(length - 1, 0), place + 1
    return len(value), at


def _rows(table: Table, rows: Sequence[tuple[object, ...]]) -> pa.Table:
    schema = arrow_schema(table)
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)
