"""The largest latency of each partition of an SLA in one span, as arrays: there may be a million of them. Pure; knows
no store and no page."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

PartitionKey = tuple[str, str, int]
"""Group, topic, partition."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Partitions by group, topic and number, and the largest latency or backlog age of each, in milliseconds."""

    head: bytes
    """The partitions as they are stored, to be read by `places`."""
    worst: Floats

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cells) and self.head == other.head and np.array_equal(self.worst, other.worst)


NO_CELLS = Cells(b"[]", np.array([], dtype=np.float32))


def cells_of(pairs: Iterable[tuple[str, str, ArrayLike, ArrayLike]]) -> Cells:
    """Of each group and topic the numbers of its partitions, in order, and what each of them has."""
    of_pairs = sorted(((group, topic, np.asarray(n), w) for group, topic, n, w in pairs), key=lambda pair: pair[:2])
    if not of_pairs:
        return NO_CELLS
    head = json.dumps([[group, topic, numbers.tolist()] for group, topic, numbers, _ in of_pairs]).encode()
    return Cells(head, np.concatenate([np.asarray(worst, dtype=np.float32) for *_, worst in of_pairs]))


def worst_cells(parts: Sequence[Cells]) -> Cells:
    """What was worst in any of these spans; mostly all have the same partitions."""
    known = [part for part in parts if len(part.worst)]
    if not known:
        return NO_CELLS
    if all(part.head == known[0].head for part in known):
        return Cells(known[0].head, np.maximum.reduce([part.worst for part in known]))
    by_pair: dict[tuple[str, str], list[tuple[NDArray[np.int64], Floats]]] = defaultdict(list)
    for part in known:
        at = 0
        for group, topic, numbers in json.loads(part.head):
            by_pair[group, topic].append((np.array(numbers), part.worst[at : at + len(numbers)]))
            at += len(numbers)
    return cells_of((group, topic, *_worst_of_pair(found)) for (group, topic), found in by_pair.items())


def _worst_of_pair(found: Sequence[tuple[NDArray[np.int64], Floats]]) -> tuple[NDArray[np.int64], Floats]:
    numbers, index = np.unique(np.concatenate([mine for mine, _ in found]), return_inverse=True)
    worst = np.full(len(numbers), -np.inf, dtype=np.float32)
    np.maximum.at(worst, index, np.concatenate([mine for _, mine in found]))
    return numbers, worst


def packed_cells(cells: Cells) -> bytes:
    """Compressed; the inverse of `unpacked_cells`."""
    values = cells.worst.astype("<f4", copy=False).tobytes()
    return zlib.compress(len(cells.head).to_bytes(4, "little") + cells.head + values, zlib.Z_BEST_SPEED)


def unpacked_cells(packed: bytes) -> Cells:
    """As they were packed."""
    raw = zlib.decompress(packed)
    end = 4 + int.from_bytes(raw[:4], "little")
    return Cells(raw[4:end], np.frombuffer(raw, "<f4", offset=end))


@lru_cache(maxsize=1024)
def places(head: bytes) -> tuple[PartitionKey, ...]:
    """The partitions of cells; the hours of an SLA mostly have the same, so they are read once."""
    return tuple((group, topic, number) for group, topic, numbers in json.loads(head) for number in numbers)
