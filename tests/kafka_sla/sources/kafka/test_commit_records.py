"""Decoding of `__consumer_offsets` records, all versions, from bytes laid out by hand."""

from __future__ import annotations

import random
import struct
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from kafka_sla.model.entities import Patterns, epoch_ms
from kafka_sla.sources.kafka.commit_records import CommitRecords
from kafka_sla.sources.kafka.committed_positions import ReaderNumbers
from kafka_sla.sources.kafka.protocol.record_batches import Records
from kafka_sla.sources.kafka.protocol.topics import TopicPartition

APPENDED = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
COMMITTED_MS = 1_793_534_400_123


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def _key(group: str = "billing", topic: str = "orders", partition: int = 3, version: int = 1) -> bytes:
    return struct.pack(">h", version) + _string(group) + _string(topic) + struct.pack(">i", partition)


def _varint(number: int) -> bytes:
    out = b""
    while number >= 0x80:
        out, number = out + bytes([number % 128 + 128]), number // 128
    return out + bytes([number])


def _value(version: int, offset: int = 42, metadata: str = "", tags: bytes = b"\0") -> bytes:
    head = struct.pack(">hq", version, offset) + (struct.pack(">i", 5) if version >= 3 else b"")
    text = _varint(len(metadata.encode()) + 1) + metadata.encode() if version >= 4 else _string(metadata)
    tail = struct.pack(">q", COMMITTED_MS + 86_400_000) if version == 1 else tags if version >= 4 else b""
    return head + text + struct.pack(">q", COMMITTED_MS) + tail


def _columns(records: Sequence[tuple[bytes, bytes | None]]) -> Records:
    """Records laid out behind each other, all appended at the same time."""
    data, places = b"", []
    for key, value in records:
        places.append(
            (0, epoch_ms(APPENDED), len(data), len(key), len(data + key), -1 if value is None else len(value))
        )
        data += key + (value or b"")
    return Records(data, *np.array(places, np.int64).reshape(-1, 6).T)


def _decode(
    *records: tuple[bytes, bytes | None], lost: bool = False, log_ends: Mapping[TopicPartition, int] | None = None
) -> tuple[list[dict[str, Any]], int]:
    collected = CommitRecords(ReaderNumbers(), Patterns(), Patterns())
    collected.add(_columns(records), np.full(len(records), lost), np.zeros(len(records), np.bool_))
    commits = collected.decoded("prod", epoch_ms(APPENDED) + 1).marked(log_ends or {})
    return commits.offsets.to_pylist(), commits.unreadable.num_rows


TOPIC_ID_TAG = b"\x01\x00\x10" + uuid.uuid4().bytes


@pytest.mark.parametrize(
    ("version", "tags"),
    [(0, b""), (1, b""), (2, b""), (3, b""), (4, b"\0"), (4, TOPIC_ID_TAG)],
    ids=["v0", "v1", "v2", "v3", "v4", "v4 with topic id"],
)
def test_every_value_version_is_read_whatever_its_metadata(version: int, tags: bytes) -> None:
    texts = ["", "m", "ü" * 40, "x" * 300, "y" * 20_000]
    records = [(_key(), _value(version, 2**40 + k, text, tags)) for k, text in enumerate(texts)]
    rows, strange = _decode(*records)
    committed_at = datetime.fromtimestamp(COMMITTED_MS // 1000, UTC) + timedelta(milliseconds=COMMITTED_MS % 1000)
    assert strange == 0
    assert rows == [
        {
            "cluster": "prod",
            "group": "billing",
            "topic": "orders",
            "partition": 3,
            "at": committed_at,
            "committed_offset": 2**40 + k,
            "source": "commit_log",
        }
        for k in range(len(texts))
    ]


def test_a_commit_whose_predecessors_were_compacted_away_says_so() -> None:
    rows, _ = _decode((_key(), _value(3)), lost=True)
    assert [row["source"] for row in rows] == ["compacted_commit_log"]


def test_a_tombstone_is_a_deleted_offset_at_the_time_it_was_appended() -> None:
    rows, _ = _decode((_key(), None))
    assert [(r["committed_offset"], r["at"]) for r in rows] == [(None, APPENDED)]


def test_group_metadata_records_are_passed_over() -> None:
    metadata_keys = [struct.pack(">h", version) + _string("billing") for version in (2, 3, 5, 8, 15)]
    assert _decode(*[(key, b"\0\3whatever") for key in metadata_keys]) == ([], 0)


def test_names_with_any_utf8_are_read() -> None:
    rows, _ = _decode((_key("gruppe-ü-日本", "t.x_y-1"), _value(3)))
    assert [(r["group"], r["topic"]) for r in rows] == [("gruppe-ü-日本", "t.x_y-1")]


def test_unknown_versions_and_garbage_are_set_aside_not_guessed() -> None:
    garbage = [
        (_key(), _value(3)[:-3]),
        (_key(), b"\0\x09abc"),
        (_key(), b""),
        (_key(), b"\xff" * 40),
        (_key(), _value(0) + b"x"),
    ]
    rows, strange = _decode(*garbage, (_key(), _value(3)))
    assert (len(rows), strange) == (1, len(garbage))


def test_a_key_cut_short_is_set_aside() -> None:
    rows, strange = _decode((_key()[:-2], _value(3)), (b"\0\1", _value(3)), (_key() + b"x", _value(3)))
    assert (rows, strange) == ([], 3)


@pytest.mark.parametrize(("offset", "at_ms"), [(-1, COMMITTED_MS), (42, -1), (42, 2**62), (42, 253_402_300_800_000)])
def test_offsets_and_times_that_cannot_be_are_set_aside(offset: int, at_ms: int) -> None:
    value = struct.pack(">hq", 2, offset) + _string("") + struct.pack(">q", at_ms)
    assert _decode((_key(), value)) == ([], 1)


def test_records_told_together_are_told_as_each_alone() -> None:
    """Values of all versions and lengths lie behind each other; none may be read with its neighbour's bytes."""
    lots = random.Random(7)
    whole = [_value(version, 7, "m" * length) for version in range(5) for length in (0, 1, 126, 127, 128, 300)]
    cut = [value[: lots.randrange(len(value) + 1)] for value in whole for _ in range(5)]
    values: list[bytes | None] = [*whole, *cut, *(value + b"\0" * 8 for value in whole), None]
    lots.shuffle(values)
    records = [(_key(f"group-{lots.randrange(5)}", partition=n), value) for n, value in enumerate(values)]

    alone = [_decode(record) for record in records]

    assert _decode(*records) == ([row for rows, _ in alone for row in rows], sum(strange for _, strange in alone))
    assert len(_decode(*records)[0]) > len(whole)


def test_a_commit_beyond_the_log_end_keeps_its_offset_and_says_that_it_is_no_position() -> None:
    rows, _ = _decode((_key(), _value(3, 10**15)), log_ends={TopicPartition("orders", 3): 100})
    assert [(row["committed_offset"], row["source"]) for row in rows] == [(10**15, "beyond_log_end")]
