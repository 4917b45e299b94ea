"""Kafka's record batches (format 2, Kafka ≥ 0.11) as bytes: headers, timestamps, keys and values."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from struct import Struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]

_HEADER = Struct(">qiibIhiqqqhii")
"""base offset, length, leader epoch, magic, checksum, attributes, last offset delta, base and largest timestamp,
producer id, producer epoch, base sequence, count: 61 bytes."""
_BEFORE_LENGTH_ENDS = 12
_FORMAT = 2
_INT = Struct(">i")
_STREAM_CODECS = {1: "gzip", 3: "lz4", 4: "zstd"}
_SNAPPY = 2
_COMMITTED = b"\0\1"
"""The kind of a marker of a transaction that was committed; of an aborted one it is 0."""
_XERIAL = b"\x82SNAPPY\x00"


@dataclass(frozen=True, slots=True)
class Batch:
    base_offset: int
    last_offset: int
    base_timestamp: int
    max_timestamp: int
    attributes: int
    producer_id: int
    count: int
    payload: memoryview

    @property
    def log_append_time(self) -> bool:
        """All its records carry the largest timestamp: the time the broker appended them."""
        return bool(self.attributes & 0x08)

    @property
    def transactional(self) -> bool:
        return bool(self.attributes & 0x10)

    @property
    def control(self) -> bool:
        """It holds no data but the marker that ends a transaction."""
        return bool(self.attributes & 0x20)

    def appended(self, time_ms: int) -> Batch:
        """The same records, as if the broker had appended them at that time."""
        return replace(self, attributes=self.attributes | 0x08, max_timestamp=time_ms)


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class Records(NamedTuple):
    """Records of many batches as columns: where in `data` each key and value begins, and how long it is; -1: null."""

    data: bytes
    offset: Ints
    timestamp: Ints
    key_at: Ints
    key_size: Ints
    value_at: Ints
    value_size: Ints

    def only(self, chosen: npt.NDArray[np.bool_]) -> Records:
        return self if chosen.all() else Records(self.data, *(column[chosen] for column in self[1:]))


def read_batches(data: bytes | memoryview) -> Iterator[Batch]:
    """The whole batches of a Fetch answer; the last one may be cut off and is then left out, as are formats 0 and 1."""
    view, at = memoryview(data), 0
    while at + _HEADER.size <= len(view):
        base, length, _, magic, _, attributes, delta, base_ts, max_ts, producer, _, _, count = _HEADER.unpack_from(
            view, at
        )
        end = at + _BEFORE_LENGTH_ENDS + length
        if end > len(view):
            return
        if magic == _FORMAT:
            payload = view[at + _HEADER.size : end]
            yield Batch(base, base + delta, base_ts, max_ts, attributes, producer, count, payload)
        at = end


def told_batches(data: bytes | memoryview, aborted: Iterable[tuple[int, int]]) -> Iterator[tuple[Batch, bool]]:
    """The whole batches of a Fetch answer for committed records, and whether each holds some.

    Markers, and what aborted transactions (first offset, producer id) wrote, are for nobody.
    """
    begins, open_aborted = sorted(aborted, reverse=True), set[int]()
    for batch in read_batches(data):
        while begins and begins[-1][0] <= batch.last_offset:
            open_aborted.add(begins.pop()[1])
        if batch.control:
            open_aborted.discard(batch.producer_id)
        yield batch, not batch.control and not (batch.transactional and batch.producer_id in open_aborted)


def uncommitted_batches(data: bytes | memoryview) -> Iterator[tuple[Batch, bool | None]]:
    """The whole batches of a Fetch answer for uncommitted records, and whether each holds records: not a marker, and
    None for what a transaction wrote, since only the marker behind it says whether it was committed."""
    for batch in read_batches(data):
        yield batch, None if batch.transactional and not batch.control else not batch.control


class Transactions:
    """Tells the batches of a log that is read in order, open transactions and all, as readers come to know them."""

    def __init__(self) -> None:
        self._open: dict[int, list[Batch]] = {}
        """What each producer wrote in the transaction that it has not ended yet."""

    def told(self, batch: Batch) -> list[Batch]:
        """What counts from this batch on: what a transaction wrote counts when its marker says that it was committed,
        and from the time of the marker on."""
        if batch.control:
            written = self._open.pop(batch.producer_id, [])
            return [one.appended(batch.max_timestamp) for one in written] if is_commit_marker(batch) else []
        if batch.transactional:
            self._open.setdefault(batch.producer_id, []).append(batch)
            return []
        return [batch]


def is_commit_marker(marker: Batch) -> bool:
    """The marker ends a transaction well: its key is a version and a kind, both of 16 bits."""
    return any(record.key is not None and record.key[2:4] == _COMMITTED for record in read_records(marker))


def read_times(batch: Batch) -> list[tuple[int, int]]:
    """Offset and timestamp of each record of a batch, without looking at what it says."""
    if batch.count == 1 and batch.base_offset == batch.last_offset:
        return [(batch.base_offset, batch.max_timestamp)]
    data, at, times = _plain(batch), 0, []
    while at < len(data):
        length, at = _varint(data, at)
        timestamp_delta, after = _varint(data, at + 1)
        offset_delta, _ = _varint(data, after)
        stamp = batch.max_timestamp if batch.log_append_time else batch.base_timestamp + timestamp_delta
        times.append((batch.base_offset + offset_delta, stamp))
        at += length
    return times


def read_records(batch: Batch) -> Iterator[Record]:
    """The records of a batch in order, headers left out."""
    data, at = _plain(batch), 0
    while at < len(data):
        length, at = _varint(data, at)
        end = at + length
        timestamp_delta, at = _varint(data, at + 1)
        offset_delta, at = _varint(data, at)
        key, at = _field(data, at)
        value, _ = _field(data, at)
        timestamp = batch.max_timestamp if batch.log_append_time else batch.base_timestamp + timestamp_delta
        yield Record(batch.base_offset + offset_delta, timestamp, key, value)
        at = end


def read_columns(batches: Iterable[Batch]) -> Records:
    """The records of batches in order, headers left out: what `read_records` gives, for many at once."""
    payloads, begins, told, size = list[bytes](), array("q"), list[tuple[int, int, int, bool]](), 0
    for batch in batches:
        data, before = _plain(batch), len(begins)
        _note_begins(data, size, begins)
        stamp = batch.max_timestamp if batch.log_append_time else batch.base_timestamp
        told.append((len(begins) - before, batch.base_offset, stamp, batch.log_append_time))
        payloads.append(data)
        size += len(data)
    whole = b"".join(payloads)
    data_of = np.frombuffer(whole, np.uint8)
    counts, offsets, stamps, appended = np.array(told, np.int64).reshape(-1, 4).T
    stamp_delta, at = read_varints(data_of, np.array(begins, np.int64) + 1)
    offset_delta, at = read_varints(data_of, at)
    key_size, key_at = read_varints(data_of, at)
    value_size, value_at = read_varints(data_of, key_at + np.maximum(key_size, 0))
    return Records(
        whole,
        np.repeat(offsets, counts) + offset_delta,
        np.repeat(stamps, counts) + np.where(np.repeat(appended, counts), 0, stamp_delta),
        key_at,
        key_size,
        value_at,
        value_size,
    )


def _note_begins(data: bytes, shift: int, begins: array[int]) -> None:
    """Where each record begins, behind its length: what no other can be known without."""
    at, end = 0, len(data)
    while at < end:
        length = data[at]
        if length < 0x80:
            at += 1
            begins.append(shift + at)
            at += length >> 1
        elif (more := data[at + 1]) < 0x80:
            at += 2
            begins.append(shift + at)
            at += (length & 0x7F | more << 7) >> 1
        else:
            length, at = _varint(data, at)
            begins.append(shift + at)
            at += length


def read_varints(data: npt.NDArray[np.uint8], at: Ints, *, zigzag: bool = True) -> tuple[Ints, Ints]:
    """The variable-length integers at many places, and the places after them."""
    value, after, going_on = np.zeros(len(at), np.int64), at.copy(), np.arange(len(at))
    for shift in range(0, 64, 7):
        byte = data[after[going_on]].astype(np.int64)
        value[going_on] |= (byte & 0x7F) << shift
        after[going_on] += 1
        going_on = going_on[byte >= 0x80]
        if not len(going_on):
            break
    return (value >> 1 & 2**63 - 1) ^ -(value & 1) if zigzag else value, after


def _field(data: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = _varint(data, at)
    return (None, at) if length < 0 else (data[at : at + length], at + length)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag variable-length integer and the position after it."""
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + 1
        shift += 7


def _plain(batch: Batch) -> bytes:
    """The payload without its compression; Arrow brings all of Kafka's codecs."""
    codec = batch.attributes & 0x07
    if codec == 0:
        return bytes(batch.payload)
    if codec == _SNAPPY:
        return _unsnap(bytes(batch.payload))
    with pa.CompressedInputStream(pa.BufferReader(batch.payload), _STREAM_CODECS[codec]) as stream:
        return bytes(stream.read())


def _unsnap(data: bytes) -> bytes:
    """Raw snappy (librdkafka) or the Java client's framing of it: a 16-byte header, then blocks with their lengths."""
    if not data.startswith(_XERIAL):
        return _unsnap_block(data)
    blocks, at = [], 16
    while at < len(data):
        (length,) = _INT.unpack_from(data, at)
        blocks.append(_unsnap_block(data[at + 4 : at + 4 + length]))
        at += 4 + length
    return b"".join(blocks)


def _unsnap_block(data: bytes) -> bytes:
    size = shift = 0
    for byte in data:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return bytes(pa.decompress(data, decompressed_size=size, codec="snappy", asbytes=True))
