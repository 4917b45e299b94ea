"""The door to checkpoint folders of Spark Structured Streaming queries: which Kafka offsets each batch ended at.

A query writes `offsets/N` before batch N, with the offsets that it ends at, and `commits/N` when it is done. So the
batch is committed when `commits/N` appears.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from pyarrow.fs import FileSelector, FileSystem, FileType

from kafka_sla.errors import CheckpointUnreadable
from kafka_sla.model.entities import Checkpoint, KeptPosition, epoch_ms
from kafka_sla.model.position_values import MAX_OFFSET, whole_number
from kafka_sla.object_stores import located

SOURCE = "spark_checkpoint"
_VERSION = "v1"
_NO_OFFSET = "-"
_FAR = 2**62
_MAX_BYTES = 16 * 1024**2
"""Size of a batch's file; that of a query over 100,000 partitions has 2 MB."""


class _Batch(NamedTuple):
    number: int
    started_ms: int
    ends: dict[tuple[str, int], int]


def read_checkpoint(checkpoint: Checkpoint, start: int, end: int | None) -> list[KeptPosition]:
    """The query's positions from `start` to `end` (ms; None: now) and the last ones before, as far as Spark keeps them.

    Raises CheckpointUnreadable with cause and cure.
    """
    try:
        files, folder = located(checkpoint.path.rstrip("/"))
        written = _written(files, f"{folder}/commits")
        planned = _written(files, f"{folder}/offsets")
    except (OSError, ValueError) as error:
        raise _unreadable(checkpoint, f"it cannot be read ({error}); correct its path or grant reading it") from error
    if not planned:
        raise _unreadable(checkpoint, "there is no offsets folder with batches; name the query's checkpointLocation")
    done = [number for number in sorted(written) if number in planned and (end is None or written[number] < end)]
    wanted = [number for number in done if written[number] >= start]
    first = done.index(wanted[0]) if wanted else len(done)
    numbers = [*done[max(0, first - 1) : first], *wanted]
    after = [number + 1 for number in numbers[-1:] if number + 1 in planned]
    batches = [_batch(checkpoint, files, folder, number) for number in [*numbers, *after]]
    return list(_positions(checkpoint, batches[: len(numbers)], batches, written))


def _positions(
    checkpoint: Checkpoint, committed: Sequence[_Batch], batches: Sequence[_Batch], written: dict[int, int]
) -> Iterator[KeptPosition]:
    """A batch ends after it starts and before the next one starts: a copied folder's file times change nothing."""
    next_start = {one.number: other.started_ms for one, other in pairwise(batches)}
    for batch in committed:
        at = min(max(written[batch.number], batch.started_ms), next_start.get(batch.number, _FAR))
        for (topic, partition), offset in batch.ends.items():
            yield KeptPosition(checkpoint.group, topic, partition, at, offset, SOURCE)


def _written(files: FileSystem, folder: str) -> dict[int, int]:
    """Batch number → when its file was written (ms). Checksums and files in the making have other names."""
    found = files.get_file_info(FileSelector(folder, allow_not_found=True))
    return {
        int(info.base_name): epoch_ms(info.mtime)
        for info in found
        if info.type == FileType.File and info.base_name.isdigit()
    }


def _batch(checkpoint: Checkpoint, files: FileSystem, folder: str, number: int) -> _Batch:
    path = f"{folder}/offsets/{number}"
    try:
        with files.open_input_stream(path) as stream:
            text = stream.read(_MAX_BYTES)
        if len(text) == _MAX_BYTES:
            raise ValueError(f"its file has {_MAX_BYTES} bytes or more")
        version, about, *sources = text.decode().splitlines()
        if version != _VERSION:
            raise ValueError(f"the log's version is {version!r}, not {_VERSION!r}")
        return _Batch(number, whole_number(json.loads(about)["batchTimestampMs"], _FAR), _ends(sources))
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise _unreadable(checkpoint, f"batch {number} cannot be read ({error}); is it a Spark query's?") from error


def _ends(sources: Sequence[str]) -> dict[tuple[str, int], int]:
    """Of all sources of the query that are Kafka; where two read one partition, the slower one counts."""
    ends: dict[tuple[str, int], int] = {}
    for line in sources:
        for topic, offsets in _topics(line).items():
            for partition, offset in offsets.items():
                key = (topic, int(partition))
                ends[key] = min(ends.get(key, _FAR), whole_number(offset, MAX_OFFSET))
    return ends


def _topics(line: str) -> dict[str, dict[str, int]]:
    """The offsets of a Kafka source by topic and partition; other sources write other things."""
    told: Any = None if line == _NO_OFFSET else json.loads(line)
    if isinstance(told, dict) and all(isinstance(inner, dict) for inner in told.values()):
        return told
    return {}


def _unreadable(checkpoint: Checkpoint, cause: str) -> CheckpointUnreadable:
    return CheckpointUnreadable(f"checkpoint {checkpoint.path} of group {checkpoint.group!r}: {cause}")
