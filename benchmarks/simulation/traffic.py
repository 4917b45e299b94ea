"""What producers write and brokers keep: one life of a partition from a random generator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.simulation.world import NEVER, Bools, Ints, Life, TopicConfig

Generator = np.random.Generator
_MOST_RECORDS = 1_500


@dataclass(frozen=True, slots=True)
class Shape:
    """How one topic is written to and kept."""

    producer: str
    clock: str
    transactions: str
    retention: str
    config: TopicConfig


def _steady(rng: Generator, start: int, end: int) -> Ints:
    period = int(np.exp(rng.uniform(np.log(150), np.log(20_000))))
    at = np.arange(start + rng.integers(period), end, period)
    return np.asarray(at + rng.integers(0, max(1, period // 4), len(at)), dtype=np.int64)


def _poisson(rng: Generator, start: int, end: int) -> Ints:
    mean = np.exp(rng.uniform(np.log(200), np.log(60_000)))
    return (start + np.cumsum(rng.exponential(mean, int(3 * (end - start) / mean) + 8))).astype(np.int64)


def _bursty(rng: Generator, start: int, end: int) -> Ints:
    period, length, size = rng.integers(10_000, 240_000), rng.integers(50, 5_000), rng.integers(5, 120)
    bursts = np.arange(start + rng.integers(period), end, period)
    return np.sort((bursts[:, None] + rng.integers(0, length, (len(bursts), size))).ravel())


def _idle(rng: Generator, start: int, end: int) -> Ints:
    return np.sort(rng.integers(start, end, rng.integers(0, 6)))


def _job(rng: Generator, start: int, end: int) -> Ints:
    """At fixed seconds of the minute, all at once."""
    period, size = int(rng.choice([5_000, 10_000, 15_000, 60_000, 300_000])), int(rng.integers(1, 40))
    fires = np.arange(-(-start // period) * period + rng.integers(0, 3) * 1_000, end, period)
    return np.repeat(fires, size) + np.tile(np.arange(size) * int(rng.integers(0, 4)), len(fires))


def _changing(rng: Generator, start: int, end: int) -> Ints:
    """One rate, then silence or another rate."""
    middle = int(rng.integers(start, end))
    later = [_idle, _steady, _poisson][int(rng.integers(3))](rng, middle, end)
    return np.concatenate([_poisson(rng, start, middle), later])


PRODUCERS: dict[str, Callable[[Generator, int, int], Ints]] = {
    "steady": _steady,
    "poisson": _poisson,
    "bursty": _bursty,
    "idle": _idle,
    "job": _job,
    "changing": _changing,
}
CLOCKS = ("append", "create", "linger", "ahead", "behind", "two_clocks", "backwards")


def life(rng: Generator, shape: Shape, born: int, died: int, end: int, topic_id: str) -> Life:
    """A partition of this shape that is written to until it dies or the world ends."""
    until = min(died, end)
    written = PRODUCERS[shape.producer](rng, born, max(until, born + 1))
    appended = np.sort(written[(written >= born) & (written < until)])[:_MOST_RECORDS].astype(np.int64)
    stamp = _stamps(rng, shape.clock, appended)
    appended, stamp, visible, record, marker = _in_transactions(rng, shape, appended, stamp)
    moved_at, moved_to = _retention(rng, shape, appended, stamp, born, until)
    removed = np.full(len(appended), NEVER)
    if "compact" in shape.config.cleanup_policy:
        removed = _compaction(rng, appended, record, until)
    return Life(born, died, topic_id, appended, stamp, visible, record, marker, removed, moved_at, moved_to)


def _stamps(rng: Generator, clock: str, appended: Ints) -> Ints:
    if clock == "linger":  # batches wait in the producer; their order is kept
        return np.maximum.accumulate(appended - rng.integers(0, rng.integers(2, 5_000), len(appended)))
    if clock in ("ahead", "behind"):
        skew = int(rng.integers(200, 20_000))
        return appended + (skew if clock == "ahead" else -skew)
    if clock == "two_clocks":
        return appended - int(rng.integers(100, 10_000)) * rng.integers(0, 2, len(appended))
    if clock == "backwards" and len(appended):
        set_back = appended >= int(rng.integers(appended[0], appended[-1] + 1))
        return np.asarray(appended - int(rng.integers(1_000, 60_000)) * set_back, dtype=np.int64)
    return appended


def _in_transactions(
    rng: Generator, shape: Shape, appended: Ints, stamp: Ints
) -> tuple[Ints, Ints, Ints, Bools, Bools]:
    """Appended, stamp, visible, record and marker, with a marker behind each transaction."""
    if shape.transactions == "none" or not len(appended):
        ones = np.ones(len(appended), dtype=np.bool_)
        return appended, stamp, appended, ones, ~ones
    size = int(rng.integers(1, 12))
    of = np.arange(len(appended)) // size
    last = np.append(of[1:] != of[:-1], True)
    closing = appended[last] + rng.integers(0, int(rng.choice([2, 50, 3_000])), int(last.sum()))
    closing = np.maximum.accumulate(closing)
    begins = appended[np.append(True, of[1:] != of[:-1])]
    closing[:-1] = np.minimum(closing[:-1], begins[1:])  # one producer: a transaction ends before the next begins
    aborted = rng.random(len(closing)) < (0.3 if shape.transactions == "aborting" else 0)
    order = np.argsort(np.concatenate([np.arange(len(appended)), np.flatnonzero(last) + 0.5]), kind="stable")
    every = np.concatenate([appended, closing])[order]
    record = np.concatenate([~aborted[of], np.zeros(len(closing), dtype=np.bool_)])[order]
    stamps = np.concatenate([stamp, np.maximum(closing, stamp[last])])[order]
    marker = order >= len(appended)
    return every, stamps, np.concatenate([closing[of], closing])[order], record, marker


def _retention(rng: Generator, shape: Shape, appended: Ints, stamp: Ints, born: int, until: int) -> tuple[Ints, Ints]:
    """The moves of the log start: whole segments that are old, all but the newest so many, or up to some offset."""
    nothing = np.zeros(0, dtype=np.int64)
    if shape.retention == "none" or not len(appended):
        return nothing, nothing
    segment = int(rng.integers(1, 200))
    checks = np.arange(born + rng.integers(1_000, 120_000), until, rng.integers(5_000, 300_000))
    if shape.retention == "delete_records":
        checks = np.sort(rng.integers(born, max(until, born + 1), rng.integers(1, 4)))
        ends = np.searchsorted(appended, checks, side="right")
        return checks, np.maximum.accumulate((ends * rng.random(len(checks)) ** 0.5).astype(np.int64))
    if shape.retention == "time":
        bound = np.searchsorted(np.maximum.accumulate(stamp), checks - (shape.config.retention_ms or 0), side="left")
        bound = np.minimum(bound, np.searchsorted(appended, checks, side="right"))
    else:
        bound = np.searchsorted(appended, checks, side="right") - int(rng.integers(1, 300))
    return checks, np.maximum.accumulate(np.maximum(bound, 0) // segment * segment)


def _compaction(rng: Generator, appended: Ints, record: Bools, until: int) -> Ints:
    """Each cleaning removes what a newer record of its key replaced; the newest records stay."""
    keys = rng.integers(0, max(2, len(appended) // 4), len(appended))
    removed = np.full(len(appended), NEVER)
    for cleaning in np.sort(rng.integers(int(appended[0]) if len(appended) else 0, until, 3)):
        clean = np.searchsorted(appended, cleaning - 60_000, side="right")
        newest = {key: n for n, key in enumerate(keys[:clean])}
        for n in range(clean):
            if record[n] and newest[keys[n]] != n:
                removed[n] = min(removed[n], cleaning)
    return removed
