"""The same facts measured otherwise: in pieces that carry over, with an SLA that comes later, in another order, some
twice."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.simulation import kernel
from benchmarks.simulation.facts import Facts
from benchmarks.simulation.making import generator
from benchmarks.simulation.slas import slas_of
from benchmarks.simulation.world import World
from kafka_sla.model.entities import Patterns
from kafka_sla.model.tables import COMMITTED_OFFSETS


def in_pieces(world: World, known: kernel.Files, into: Path) -> kernel.Made:
    """Run after run, each going on from the published rows of the one before."""
    rng = generator(world.seed, "cuts")
    count = (world.end - world.start) // world.window_ms
    inner = rng.choice(np.arange(1, count), size=min(int(rng.integers(1, 4)), count - 1), replace=False)
    borders = [world.start, *(world.start + int(n) * world.window_ms for n in sorted(inner)), world.end]
    parts: list[kernel.Made] = []
    for start, end in itertools.pairwise(borders):
        carry = kernel.between(parts[-1], start - world.window_ms, start) if parts and parts[-1] else None
        parts.append(kernel.measured(into, known, start, end, world.window_ms, slas_of(world), carry=carry))
    return kernel.joined(parts)


def with_an_sla_added(world: World, known: kernel.Files, into: Path) -> tuple[kernel.Made, kernel.Made]:
    """Rows since an SLA over one group was added at some window: by a run that replays all facts from the beginning,
    and by one that carries over what it need not replay."""
    rng = generator(world.seed, "added")
    *old, new = slas_of(world)
    group = str(rng.choice(sorted({reader.group for reader in world.readers})))
    new = replace(new, groups=Patterns((group,)))
    border = world.start + int(rng.integers(1, (world.end - world.start) // world.window_ms)) * world.window_ms
    before = kernel.measured(into, known, world.start, border, world.window_ms, tuple(old))
    carry = kernel.between(before, border - world.window_ms, border)
    topics = {reader.partition.topic for reader in world.readers if reader.group == group}
    how = (into, known, border, world.end, world.window_ms, (*old, new))
    return kernel.measured(*how), kernel.measured(*how, carry, tuple(sorted(topics)))


def shuffled(world: World, known: Facts, into: Path) -> kernel.Made:
    """The rows of the facts in another order, and some commits twice: as the store has them and as the log has them."""
    rng = generator(world.seed, "order")
    other = {}
    for table, rows in known.items():
        twice = rng.integers(0, max(1, len(rows)), len(rows) // 5 if table == COMMITTED_OFFSETS else 0)
        again = rng.permutation(np.concatenate([np.arange(len(rows)), twice]))
        other[table] = rows.take(pa.array(again)) if len(rows) else rows
    return kernel.measured(into, other, world.start, world.end, world.window_ms, slas_of(world))
