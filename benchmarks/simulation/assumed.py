"""Rows of partitions on which a group has no committed offset: are their bounds true, and what is left without them?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.simulation.bounds import Failure
from benchmarks.simulation.facts import Facts
from benchmarks.simulation.kernel import Made
from benchmarks.simulation.world import Partition, World
from kafka_sla.model.entities import epoch_ms
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_LATENCY, EVERY_COMMIT, STEADY_STATE

_PLACE = ["cluster", "group", "topic", "partition", "window_start"]


def committed_only(whole: Made) -> Made:
    """The rows without those of partitions on which a group has no committed offset."""
    latency = whole[CONSUMER_LATENCY]
    committed = latency.filter(pc.is_null(latency["assumed_offset"]))
    steady = whole[STEADY_STATE].join(committed.select(_PLACE), _PLACE, join_type="left semi")
    return whole | {CONSUMER_LATENCY: committed, STEADY_STATE: _in_order(steady, whole[STEADY_STATE].schema)}


def comparable(whole: Made, known: Facts) -> Made:
    """The rows that do not depend on how the facts are cut. Whether the log of commits or only polls tell of a group
    is taken from all facts of a run. Where both exist, rows without a committed offset may have other bounds."""
    sources = set(known[COMMITTED_OFFSETS]["source"].to_pylist())
    is_mixed = bool(sources & set(EVERY_COMMIT)) and bool(sources - set(EVERY_COMMIT))
    return committed_only(whole) if is_mixed and whole else whole


def _in_order(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    key = [(name, "ascending") for name in STEADY_STATE.key]
    return rows.select(schema.names).cast(schema).sort_by(key)


def outside_bounds(world: World, whole: Made) -> Iterator[Failure]:
    """Rows with certain times whose backlog age excludes that of the oldest record behind the assumed position."""
    partitions = {(one.topic, one.number): one for one in world.partitions}
    for row in whole[CONSUMER_LATENCY].to_pylist():
        partition = partitions[row["topic"], row["partition"]]
        if row["assumed_offset"] is not None and row["unknown_reason"] is None and _is_plain(partition):
            yield from _of_row(partition, row)


def _is_plain(partition: Partition) -> bool:
    life = partition.lives[0]
    is_clocked = bool((life.stamp == life.appended).all())
    return len(partition.lives) == 1 and is_clocked and bool(life.record.all()) and not len(life.moved_at)


def _of_row(partition: Partition, row: Mapping[str, Any]) -> Iterator[Failure]:
    life, end = partition.lives[0], epoch_ms(row["window_end"])
    waiting = life.waiting(row["assumed_offset"], end)
    true = 0 if waiting is None else end - int(life.stamp[waiting])
    low, high = row["backlog_age_low_ms"], row["backlog_age_high_ms"]
    if not (low or 0) <= true + 1 or (high is not None and true > high + 1):
        place = f"{row['group']} without an offset in {row['topic']}-{row['partition']}"
        yield Failure(
            "truth in bounds", "backlog_age", place, epoch_ms(row["window_start"]), str(true), f"{low} to {high}"
        )
