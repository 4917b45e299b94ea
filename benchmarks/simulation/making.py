"""A world from one number. Knows the kinds of producers and consumers, nothing of what is seen of them."""

from __future__ import annotations

import numpy as np

from benchmarks.simulation.consumers import commits, habits
from benchmarks.simulation.traffic import CLOCKS, PRODUCERS, Generator, Shape, life
from benchmarks.simulation.world import BASE, NEVER, Partition, Reader, TopicConfig, World

_TOPICS = ("payments.authorised-v2", "billing.alerts", "orders.placed-v1", "shop.clicks")
_GROUPS = ("billing.alerts-authorised-v2", "audit-trail", "fraud.scoring")
_MINUTE = 60_000


def generator(seed: int, *parts: int | str) -> Generator:
    """A generator of its own for each part of a world: leaving one part out leaves the others as they are."""
    words = [seed, *(part if isinstance(part, int) else sum(map(ord, part)) for part in parts)]
    return np.random.default_rng(words)


def world(seed: int) -> World:
    """The world of this number."""
    rng = generator(seed, "world")
    features: set[str] = set()
    window_ms = int(rng.choice([10_000, 30_000, _MINUTE], p=[0.15, 0.15, 0.7]))
    length = int(rng.integers(6, 17)) * window_ms
    lead = int(rng.choice([0, 2, 10])) * _MINUTE
    start, end = BASE + lead, BASE + lead + length
    configs, partitions = [], []
    for number in range(int(rng.choice([1, 2, 3], p=[0.65, 0.3, 0.05]))):
        shape = _shape(generator(seed, "shape", number), _TOPICS[number], features)
        configs.append(shape.config)
        partitions += _partitions(seed, number, shape, end, features)
    readers = [
        Reader(group, partition, commits(own, habits(own, BASE, end, features), partition, end + 5 * _MINUTE))
        for g, group in enumerate(_GROUPS[: int(rng.choice([1, 2, 3], p=[0.7, 0.25, 0.05]))])
        for p, partition in enumerate(partitions)
        for own in [generator(seed, "reader", g, p)]
    ]
    kept = tuple(reader for reader in readers if reader.commits)
    return World(seed, start, end, window_ms, tuple(configs), tuple(partitions), kept, tuple(sorted(features)))


def _shape(rng: Generator, topic: str, features: set[str]) -> Shape:
    producer = str(rng.choice(list(PRODUCERS)))
    clock = str(rng.choice(CLOCKS, p=[0.4, 0.25, 0.07, 0.07, 0.07, 0.07, 0.07]))
    transactions = str(rng.choice(["none", "committing", "aborting"], p=[0.8, 0.1, 0.1]))
    retention = str(rng.choice(["none", "time", "size", "delete_records"], p=[0.6, 0.15, 0.15, 0.1]))
    compact = bool(rng.random() < 0.1)
    policy = "compact" if compact and retention == "none" else "compact,delete" if compact else "delete"
    kept_ms = int(rng.integers(10_000, 1_200_000)) if retention == "time" else None
    config = TopicConfig(topic, policy, kept_ms, clock == "append", transactions != "none")
    features.update(
        (
            f"producer: {producer}",
            f"clock: {clock}",
            f"transactions: {transactions}",
            f"retention: {retention}",
            f"cleanup: {policy}",
        )
    )
    return Shape(producer, clock, transactions, retention, config)


def _partitions(seed: int, number: int, shape: Shape, end: int, features: set[str]) -> list[Partition]:
    rng = generator(seed, "topic", number)
    lives = [(BASE - 1, NEVER)]
    if rng.random() < 0.12:
        died = int(rng.integers(min(BASE + _MINUTE, end - 10_000), end))
        lives = [(BASE - 1, died), (died + int(rng.choice([500, 5_000, 200_000])), NEVER)]
        features.add("topic: deleted and created again")
    found = []
    for partition in range(int(rng.choice([1, 2, 3], p=[0.6, 0.3, 0.1]))):
        own = generator(seed, "partition", number, partition)
        added = partition > 0 and own.random() < 0.3
        first = (int(own.integers(BASE, lives[0][1] if len(lives) > 1 else end)), lives[0][1]) if added else lives[0]
        features.update(["topic: partition added later"] * added)
        made = [
            life(own, shape, born, died, end + 5 * _MINUTE, f"{shape.config.topic}-{n}")
            for n, (born, died) in enumerate([first, *lives[1:]])
        ]
        found.append(Partition(shape.config.topic, partition, tuple(made)))
    return found
