"""Facts of consumers that never were, as many as asked for: offsets of partitions and of groups.

Every group reads one topic. Records come at a steady rate, with a burst every tenth minute; each partition is read and
committed at its own second, or up to `uneven_ms` later. What is stored of it is what the package itself would have
stored: all commits, a polled end every five minutes and a look-up a minute between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_sla.config.settings import Settings
from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import Cluster, Interval, Patterns, Sla, SteadyState
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS, Table

CLUSTER = "prod"
START = datetime(2026, 9, 1, tzinfo=UTC)
_BURST_EVERY_S, _BURST_S, _BURST_TIMES = 600, 20, 5
_LATE_MS = 1_500
"""How long after a record was written its commit comes, at least."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Shape:
    """How much there is of everything."""

    group_partitions: int = 1_000
    partitions: int = 50
    """A topic has so many; the last one may have fewer."""
    commit_seconds: float = 10
    point_seconds: float = 60
    records_per_second: float = 50
    """Per partition."""
    uneven_ms: int = 0
    """How much commits, and what log ends tell, are out of step, at most. Nothing is as regular as a clock, and what is
    takes less room, and time."""

    @property
    def topics(self) -> int:
        return -(-self.group_partitions // self.partitions)


def settings(slas: int = 1) -> Settings:
    """One cluster whose facts are only imported, and SLAs over all of it."""
    promises = tuple(
        Sla(f"promise-{i}", CLUSTER, Patterns(), Patterns(), 30_000, 300_000, 0.999, SteadyState(30_000))
        for i in range(slas)
    )
    return Settings((Cluster(CLUSTER, None),), promises)


def days(start: datetime, count: float) -> Iterator[Interval]:
    """The days from `start` on; the last one is shorter where `count` is no whole number."""
    end = start + timedelta(days=count)
    while start < end:
        yield Interval(start, min(start + timedelta(days=1), end))
        start += timedelta(days=1)


def log_offsets(shape: Shape, interval: Interval) -> pa.Table:
    """Points of the produced timelines in the interval, its start and end included."""
    start, end = _micros(interval)
    step = int(shape.point_seconds * 1e6)
    at = np.arange(start, end + 1, step, dtype=np.int64)
    gp = np.repeat(np.arange(shape.group_partitions), len(at))
    at = np.tile(at, shape.group_partitions)
    polled = (at // step) % max(1, round(300 / shape.point_seconds)) == 0
    source = pa.DictionaryArray.from_arrays(pa.array((~polled).astype(np.int8)), ["snapshot", "list_offsets"])
    columns = [
        *_place(shape, gp),
        _times(at),
        pa.array(np.zeros(len(at), dtype=np.int64), mask=~polled),
        pa.array(_written(shape, at - _uneven(shape, len(at), 0))),
        source,
    ]
    return _table(LOG_OFFSETS, columns)


def committed_offsets(shape: Shape, interval: Interval) -> pa.Table:
    """Commits in the interval; each covers what was written until shortly before it."""
    start, end = _micros(interval)
    step = int(shape.commit_seconds * 1e6)
    at = np.arange(start, end, step, dtype=np.int64)
    gp = np.repeat(np.arange(shape.group_partitions), len(at))
    own_second = gp * 7_919_000 % (step - shape.uneven_ms * 1_000) // 1_000 * 1_000
    at = np.tile(at, shape.group_partitions) + own_second
    late = (_LATE_MS + (at // step * 7_919 + gp * 104_729) % 2_000) * 1_000
    cluster, topic, partition = _place(shape, gp)
    group = _names("group", shape.topics, gp // shape.partitions)
    source = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(at), dtype=np.int8)), ["commit_log"])
    told_at = _times(at + _uneven(shape, len(at), 1))
    offset = pa.array(_written(shape, at - late - _uneven(shape, len(at), 2)))
    columns = [cluster, group, topic, partition, told_at, offset, source]
    return _table(COMMITTED_OFFSETS, columns)


def _uneven(shape: Shape, count: int, seed: int) -> Ints:
    """So many waits, µs."""
    return np.random.default_rng(seed).integers(0, shape.uneven_ms, count, endpoint=True) * 1_000


def _written(shape: Shape, at: Ints) -> Ints:
    """Records of a partition before each instant: a steady rate, and more of them in bursts."""
    seconds = (at - int(START.timestamp() * 1e6)) / 1e6 + 86_400
    whole, rest = np.divmod(seconds, _BURST_EVERY_S)
    extra = (_BURST_TIMES - 1) * (whole * _BURST_S + np.minimum(rest, _BURST_S))
    written: Ints = np.floor((seconds + extra) * shape.records_per_second).astype(np.int64)
    return written


def _micros(interval: Interval) -> tuple[int, int]:
    return int(interval.start.timestamp() * 1e6), int(interval.end.timestamp() * 1e6)


def _place(shape: Shape, gp: Ints) -> list[pa.Array]:
    cluster = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(gp), dtype=np.int8)), [CLUSTER])
    partition = pa.array((gp % shape.partitions).astype(np.int32))
    return [cluster, _names("topic", shape.topics, gp // shape.partitions), partition]


def _names(kind: str, count: int, index: Ints) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), [f"{kind}-{i:05}" for i in range(count)])


def _times(at: Ints) -> pa.Array:
    return pa.array(at, pa.timestamp("us", "UTC"))


def _table(table: Table, columns: list[pa.Array]) -> pa.Table:
    schema = arrow_schema(table)
    return pa.table([column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema=schema)
