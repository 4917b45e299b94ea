"""The layout of offset commits in `__consumer_offsets`: keys one by one, values many at once. Knows no requests.

Big-endian; kafka/group/metadata/OffsetCommitKey and OffsetCommitValue, versions 0-4:
key    i16 version (0, 1: an offset commit), STRING group, STRING topic, i32 partition
value  i16 version, i64 offset, [v3+: i32 leader epoch], metadata, i64 commit time, [v1: i64 expire time], [v4: tags]
STRING is an i16 length (-1: null) and UTF-8 bytes; metadata is a STRING, in v4 a COMPACT_STRING (unsigned varint of
length + 1).
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct, error
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_Ints = npt.NDArray[np.int64]
_SHORT, _INT = Struct(">h"), Struct(">i")
_COMMIT_KEYS = (0, 1)
_EPOCH_SINCE, _FLEXIBLE = 3, 4
"""Versions of a value: the first with the leader's epoch, and the one of flexible length."""
_LONGEST = 24
"""Bytes that may be looked at behind the end of a value that is cut short."""
_YEAR_10000_MS = 253_402_300_800_000
"""No calendar here knows it, and no clock is as wrong as that."""


class CommitValues(NamedTuple):
    """What values hold. One does not fit whose version is not known, or whose length does not fit its version."""

    offset: _Ints
    at_ms: _Ints
    fits: npt.NDArray[np.bool_]


def commit_key(key: bytes) -> tuple[str, str, int] | None:
    """Group, topic and partition of a commit; None for another kind of record. ValueError where it cannot be read."""
    try:
        if _SHORT.unpack_from(key)[0] not in _COMMIT_KEYS:
            return None
        group, topic = _group_and_topic(key[: -_INT.size])
        (partition,) = _INT.unpack_from(key, len(key) - _INT.size)
    except error as broken:
        raise ValueError(f"the key of {len(key)} bytes is laid out like that of no commit") from broken
    return group, topic, partition


@lru_cache(10_000)
def _group_and_topic(data: bytes) -> tuple[str, str]:
    """What a key holds before the partition: the same for all partitions that a group reads of a topic."""
    group, at = _text(data, 2)
    topic, at = _text(data, at)
    if at != len(data):
        raise error("names of another length")
    return group, topic


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _SHORT.unpack_from(data, at)
    if length < 0:
        raise error("a name that is null")
    end = at + 2 + length
    return data[at + 2 : end].decode(), end


def commit_values(values: pa.Array) -> CommitValues:
    """Decode an array of BINARY; what is said of a null has no meaning."""
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
    return CommitValues(offset, at_ms, fits & (offset >= 0) & (at_ms >= 0) & (at_ms < _YEAR_10000_MS))


def _numbers(data: npt.NDArray[np.uint8], starts: _Ints, width: int) -> _Ints:
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
