"""A world: partitions with their records, readers with their commits, and what follows from them. Makes no world. Times
are epoch ms."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
BASE = 1_793_491_200_000
"""Where every world begins: 2026-11-01 00:00 UTC."""
NEVER = 2**61
CLUSTER = "prod"


@dataclass(frozen=True, slots=True)
class Life:
    """One life of a partition, from its topic's creation to its deletion: one entry per offset from 0 on."""

    born: int
    died: int
    topic_id: str
    appended: Ints
    """When the broker wrote it; never decreasing."""
    stamp: Ints
    """The timestamp that it bears: of its producer's clock or of the broker's."""
    visible: Ints
    """From when on a reader of committed records may pass it; never decreasing."""
    record: Bools
    """False: the marker of a transaction, or what an aborted one wrote."""
    marker: Bools
    """It ends a transaction."""
    removed: Ints
    """When compaction removed it; NEVER where it did not."""
    moved_at: Ints
    """When retention or DeleteRecords moved the log start, and where to; never decreasing."""
    moved_to: Ints

    @property
    def compacts(self) -> bool:
        return bool((self.removed < NEVER).any())

    def log_end(self, at: int) -> int:
        return int(self.appended.searchsorted(at, side="right"))

    def readable_end(self, at: int) -> int:
        return int(self.visible.searchsorted(at, side="right"))

    def log_start(self, at: int) -> int:
        moves = int(self.moved_at.searchsorted(at, side="right"))
        return int(self.moved_to[moves - 1]) if moves else 0

    def waiting(self, position: int, at: int) -> int | None:
        """The offset of the first record not before `position` that was written by then and is still there."""
        first, end = max(position, self.log_start(at)), self.log_end(at)
        there = np.flatnonzero(self.record[first:end] & (self.removed[first:end] > at))
        return first + int(there[0]) if len(there) else None


@dataclass(frozen=True, slots=True)
class Partition:
    topic: str
    number: int
    lives: tuple[Life, ...]

    def life_at(self, at: int) -> int | None:
        """Index of the life at that time; None while there is none."""
        return next((n for n, life in enumerate(self.lives) if life.born <= at < life.died), None)


@dataclass(frozen=True, slots=True)
class Commit:
    at: int
    offset: int | None
    """Next offset to read; None: the position was deleted."""
    life: int
    """Which life of the partition it is of."""
    lost: tuple[int, ...] = ()
    """Offsets since the commit before that were removed before they were read."""


def _time(commit: Commit) -> int:
    return commit.at


@dataclass(frozen=True, slots=True)
class Reader:
    """A group on a partition."""

    group: str
    partition: Partition
    commits: tuple[Commit, ...]

    @property
    def name(self) -> str:
        return f"{self.group} in {self.partition.topic}-{self.partition.number}"

    def standing(self, at: int) -> Commit | None:
        """The last commit before `at`."""
        index = bisect_left(self.commits, at, key=_time)
        return self.commits[index - 1] if index else None


@dataclass(frozen=True, slots=True)
class TopicConfig:
    topic: str
    cleanup_policy: str
    retention_ms: int | None
    log_append_time: bool
    transactional: bool


@dataclass(frozen=True, slots=True)
class World:
    seed: int
    start: int
    end: int
    window_ms: int
    configs: tuple[TopicConfig, ...]
    partitions: tuple[Partition, ...]
    readers: tuple[Reader, ...]
    features: tuple[str, ...]
    """What is in it, for the table of what was generated."""

    def config(self, topic: str) -> TopicConfig:
        return next(config for config in self.configs if config.topic == topic)
