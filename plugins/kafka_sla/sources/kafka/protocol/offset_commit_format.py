"""The layout of offset commits in `__consumer_offsets`, many at once.

Big-endian; kafka/group/metadata/OffsetCommitKey and OffsetCommitValue, versions 0-4:
key    i16 version (0, 1: an offset commit), STRING group, STRING topic, i32 partition
value  i16 version, i64 offset, [v3+: i32 leader epoch], metadata, i64 commit time, [v1: i64 expire time], [v4: tags]
STRING is an i16 length (-1: null) and UTF-8 bytes; metadata is a STRING, in v4 a COMPACT_STRING (unsigned varint of
length + 1).
"""

from __future__ import annotations

from struct import Struct, error
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_sla.sources.kafka.protocol.record_batches import Ints, read_varints

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

    offset: Ints
    at_ms: Ints
    fits: npt.NDArray[np.bool_]


def commit_names(head: bytes) -> tuple[str, str]:
    """Group and topic of a commit, from its key before the partition. ValueError where they cannot be read."""
    try:
        group, at = _text(head, _SHORT.size)
        topic, at = _text(head, at)
    except error as broken:
        raise ValueError(f"the key of {len(head) + _INT.size} bytes is laid out like that of no commit") from broken
    if at != len(head):
        raise ValueError("names of another length than the key's")
    return group, topic


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _SHORT.unpack_from(data, at)
    if length < 0:
        raise error("a name that is null")
    end = at + 2 + length
    return data[at + 2 : end].decode(), end


def commit_keys(data: npt.NDArray[np.uint8], at: Ints, size: Ints) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Whether each key may be a commit's, where another kind of record has a number of its own; and the partition at
    its end."""
    if not len(at):
        return np.empty(0, np.bool_), at
    padded = np.concatenate([data, np.zeros(_LONGEST, np.uint8)])
    version = _numbers(padded, at, _SHORT.size)
    may_be = (size < _SHORT.size) | np.isin(version, _COMMIT_KEYS)
    return may_be, _numbers(padded, np.maximum(at + size - _INT.size, 0), _INT.size)


def commit_values(data: npt.NDArray[np.uint8], at: Ints, size: Ints) -> CommitValues:
    """Decode the values at those places; what is said of a null has no meaning."""
    data = np.concatenate([data, np.zeros(_LONGEST, np.uint8)])
    version = _numbers(data, at, 2)
    metadata = at + np.where(version >= _EPOCH_SINCE, 14, 10)
    behind = metadata + 2 + np.maximum(_numbers(data, metadata, 2), 0)
    flexible = np.flatnonzero((version == _FLEXIBLE) & (size > 14))
    behind[flexible] = _behind_compact(data, metadata[flexible])
    ends = behind - at + np.where(version == 1, 16, 8)
    fits = (size >= 2) & (version >= 0) & (version <= _FLEXIBLE)
    fits &= (size == ends) | ((version == _FLEXIBLE) & (size > ends))
    offset, at_ms = _numbers(data, at + 2, 8), _numbers(data, behind, 8)
    return CommitValues(offset, at_ms, fits & (offset >= 0) & (at_ms >= 0) & (at_ms < _YEAR_10000_MS))


def _numbers(data: npt.NDArray[np.uint8], starts: Ints, width: int) -> Ints:
    """The big-endian numbers of so many bytes that begin there; of places behind the end what is before it."""
    starts = np.clip(starts, 0, len(data) - width)
    bytes_of = np.ascontiguousarray(data[starts[:, None] + np.arange(width)])
    return bytes_of.view(f">i{width}").ravel().astype(np.int64)


def _behind_compact(data: npt.NDArray[np.uint8], at: Ints) -> Ints:
    """Where each COMPACT_STRING ends; far away where its length is nonsense."""
    size, behind = read_varints(data, at, zigzag=False)
    return np.where((behind - at > _INT.size + 1) | (size < 0), len(data), behind + np.maximum(size - 1, 0))
