"""Segments: runs of records that one commit consumed and one bracket produced. NumPy only.

Latency falls linearly inside a segment, so count, maximum, mean and histogram of all its records follow from its ends.
Cost grows with commits and points, never with records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafka_sla.spark_jobs.events.chunks import Chunk
from kafka_sla.spark_jobs.numeric.arrays import CLOCK_TOLERANCE_US, FAR, NONE, Bools, Floats, Ints
from kafka_sla.spark_jobs.numeric.positions import OTHER_INCARNATION
from kafka_sla.spark_jobs.numeric.produced_timeline import OBSERVED, Produced, Timeline, middle
from kafka_sla.spark_jobs.numeric.scans import begins, once_a_run

_MS = 1_000.0
UNCOMPACTED_US = 60_000_000
"""Compaction leaves the newest segment alone: records so young are there."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What each commit did, one entry per commit of a chunk; times in µs."""

    at: Ints
    epoch: Ints
    horizon: Ints
    """End of the commit's window: only points up to it may answer."""
    reach: Ints
    """Where it was `overtaken`, the first offset that it may have consumed, though it was removed since."""
    begin: Ints
    """First offset that the commit consumed (never below the log start); equals `end` where it consumed nothing."""
    end: Ints
    before: Ints
    """Time of the commit before."""
    unchanged_until: Ints
    """Until then nothing of this step was consumed: the time of the commit before, or when it was last seen to hold."""
    start_unknown: Bools
    """Nobody saw when it was consumed, and that may have been before its window."""
    first: Bools
    """The first that is known of its group-partition, or since its offset was deleted."""
    known: Bools
    """It is a position, and there is one before it in the same life of the topic."""
    exact: Bools
    """All commits since the one before it are known, and so is what was there to read."""
    overtaken: Bools
    """The log began behind the position before, or may have: which records it read, if any, is not known."""
    void: Bools
    """It is no position: where the group stands from then on is not known."""
    after_void: Bools
    """The commit before it, in the same life of the topic, is no position."""
    rewound: Bools
    recreated: Bools


@dataclass(frozen=True, slots=True)
class Segments:
    """One entry per segment: `commit` indexes the chunk's commits; latencies in ms, NaN where unknown."""

    commit: Ints
    offset: Ints
    """Of its first record."""
    records: Ints
    first_ms: Floats
    """Latency of its first (longest waiting) record."""
    last_ms: Floats
    low_ms: Floats
    """No record waited less."""
    unread_ms: Floats
    """Its first record was unread for so long, at least, until the commit that consumed it."""
    high_ms: Floats
    """No record waited longer; inf where nothing bounds it."""
    negative: Bools
    """Produced after it was consumed, even at best or by its own timestamp: clocks disagree."""
    perishable: Bools
    """Some of its offsets, or all, may have been no records when it was read: compaction had removed them, or they were
    markers."""
    method: Ints


def steps(chunk: Chunk, window_us: int) -> Steps:
    """Compare every commit with the one before it in its group-partition."""
    t = chunk.timeline
    same = np.zeros(len(chunk.gp), dtype=np.bool_)
    same[1:] = chunk.gp[1:] == chunk.gp[:-1]
    void = chunk.invalid_from <= chunk.at
    horizon = (chunk.within // window_us + 1) * window_us
    epoch = t.epoch_of(chunk.gp_partition[chunk.gp], chunk.at)
    offset_before, invalid_from = np.roll(chunk.offset, 1), np.roll(chunk.invalid_from, 1)
    stood = same & (offset_before != NONE)
    other_life = (np.roll(chunk.invalid, 1) == OTHER_INCARNATION) & (invalid_from <= horizon)
    moved = stood & ((np.roll(epoch, 1) != epoch) | other_life)
    after_void = same & ~moved & (invalid_from <= chunk.at)
    previous = np.where(same & ~after_void, offset_before, NONE)
    known = (previous != NONE) & ~moved & ~void
    before = np.where(same, np.roll(chunk.at, 1), NONE)
    polled = same & np.roll(chunk.polled, 1)
    gap_before = polled | (same & chunk.gap_before)
    unchanged_until = np.where(polled, np.maximum(before, chunk.polls.last(chunk.gp, chunk.at - 1)), before)
    start = log_start_at(chunk, chunk.gp, epoch, chunk.at)
    consumes = known & (chunk.offset > previous)
    end = np.where(consumes, chunk.offset, 0)
    begin = np.where(consumes, np.minimum(np.maximum(previous, start), chunk.offset), 0)
    overtaken = consumes & (start > previous)
    asked = np.flatnonzero(consumes & ~overtaken)
    at_most = t.start_at_most(epoch[asked], chunk.at[asked], horizon[asked] - window_us, horizon[asked])
    overtaken[asked] = at_most > previous[asked]
    return Steps(
        chunk.at,
        epoch,
        horizon,
        previous,
        begin,
        end,
        before,
        unchanged_until,
        gap_before & (unchanged_until < horizon - window_us),
        ~stood,
        known,
        ~gap_before & ~overtaken,
        overtaken,
        void,
        after_void,
        known & (chunk.offset != NONE) & (chunk.offset < previous),
        moved,
    )


def log_start_at(chunk: Chunk, gp: Ints, epoch: Ints, at: Ints) -> Ints:
    """Log start offset of group-partitions known at each instant; -1 where neither a point nor the carry-over tells."""
    t = chunk.timeline
    index = t.last_until(epoch, at)
    usable = index >= t.lo[epoch]
    seen = np.where(usable, t.log_start[np.clip(index, 0, None)] if len(t.at) else NONE, NONE)
    return np.maximum(seen, carried_over(chunk, gp, epoch, chunk.carried_log_start))


def log_end_at(chunk: Chunk, gp: Ints, epoch: Ints, at: Ints) -> Ints:
    """Log end offset of group-partitions known at each instant; -1 where neither a point nor the carry-over tells."""
    t = chunk.timeline
    index = t.last_until(epoch, at)
    usable = index >= t.lo[epoch]
    seen = np.where(usable, t.offset[np.clip(index, 0, None)] if len(t.at) else NONE, NONE)
    return np.maximum(seen, carried_over(chunk, gp, epoch, chunk.carried_log_end))


def carried_over(chunk: Chunk, gp: Ints, epoch: Ints, values: Ints) -> Ints:
    """What was known of topic-partitions at the carry-over, -1 where the topic was created again since."""
    place = chunk.gp_partition[gp]
    return np.where(epoch == chunk.timeline.first_epoch[place], values[place], NONE)


def segments(chunk: Chunk, step: Steps, selected: Ints) -> Segments:
    """Cut what the `selected` commits consumed at every produced point inside it, and where what was read begins."""
    t = chunk.timeline
    commit = selected[step.end[selected] > step.begin[selected]]
    epoch, horizon, begin, end = (of[commit] for of in (step.epoch, step.horizon, step.begin, step.end))
    latest = once_a_run(t.last_until, epoch, horizon)
    lo, hi = t.inside(epoch, begin, end)
    hi = np.maximum(np.minimum(hi, latest + 1), lo)
    owner, start, stop, after = _cut(begin, end, lo, hi, t.offset)
    if len(t.ranges):
        of, start, stop = _cut_at_ranges(t, step, commit[owner], start, stop)
        owner, after = owner[of], after[of]
    commit, epoch, horizon, latest = commit[owner], epoch[owner], horizon[owner], latest[owner]
    found = t.bracketed(epoch, start, horizon, after, latest)
    return _measure(chunk, step, commit, epoch, horizon, start, stop, found)


def _cut(begin: Ints, end: Ints, lo: Ints, hi: Ints, at: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Cut each [begin, end) at the offsets `at[lo:hi]` inside it: (which one, start, stop) of each non-empty piece, and
    where in `at` what comes after it stands."""
    pieces = hi - lo + 1
    owner = np.repeat(np.arange(len(begin)), pieces)
    after = np.arange(len(owner)) + np.repeat(lo - (np.cumsum(pieces) - pieces), pieces)
    first = begins(owner)
    last = np.append(first[1:], True)[: len(owner)]
    cut = at.take(after, mode="clip") if len(at) else after
    stop = np.where(last, end[owner], cut)
    start = np.where(first, begin[owner], np.roll(stop, 1))
    full = stop > start
    return (owner, start, stop, after) if full.all() else (owner[full], start[full], stop[full], after[full])


def _cut_at_ranges(t: Timeline, step: Steps, commit: Ints, start: Ints, stop: Ints) -> tuple[Ints, Ints, Ints]:
    """Cut pieces at the borders of ranges that were read, leave out those that hold no records, and cut once more
    where records begin that were produced only after they were consumed: (which one, start, stop) of each piece."""
    ranges = t.ranges
    inner, start, stop, _ = _cut(start, stop, *ranges.edges_inside(step.epoch[commit], start, stop), ranges.edges)
    index = ranges.find(step.epoch[commit[inner]], start, step.horizon[commit[inner]])
    whole = np.flatnonzero(begins(inner, index))  # borders of ranges that nobody knew of yet cut nothing
    stop = stop[np.append(whole[1:], len(stop))[: len(whole)] - 1]
    of, start, index = inner[whole], start[whole], index[whole]
    full = ~ranges.void(index)
    of, start, stop, index = of[full], start[full], stop[full], index[full]
    crossing = np.where(ranges.read(index), ranges.first_after(index, step.at[commit[of]]), start)
    inside = (crossing > start) & (crossing < stop)
    piece = np.repeat(np.arange(len(of)), 1 + inside)
    second = ~begins(piece)
    cut = crossing[piece]
    start = np.where(second, cut, start[piece])
    stop = np.where(inside[piece] & ~second, cut, stop[piece])
    return of[piece], start, stop


def _measure(
    chunk: Chunk, step: Steps, commit: Ints, epoch: Ints, horizon: Ints, start: Ints, stop: Ints, found: Produced
) -> Segments:
    """Latency and bounds of the records [start, stop) that each commit consumed, produced as `found` says."""
    t = chunk.timeline
    consumed = chunk.at[commit]
    first, last = t.estimates(epoch, (middle(start), middle(stop - 1)), found)
    impossible = np.flatnonzero(found.low > consumed + CLOCK_TOLERANCE_US)
    if len(impossible):
        found = _observed(t, found, impossible, epoch, start, horizon)
        first[impossible] = last[impossible] = np.nan
    negative = found.low > consumed
    if len(t.ranges):
        negative = np.where(t.ranges.read(found.range), first > consumed, negative)
    latest_production = np.minimum(found.high, consumed)
    first, last = _between(first, last, found.low, latest_production, stop - start)
    low = (
        np.where(
            step.start_unknown[commit] | step.overtaken[commit],
            0,
            np.maximum(0, step.unchanged_until[commit] - latest_production),
        )
        / _MS
    )
    unread = np.where(step.exact[commit], (consumed - latest_production) / _MS, low)
    high = np.where(found.low > -FAR, (consumed - found.low) / _MS, np.inf)
    return Segments(
        commit,
        start,
        stop - start,
        (consumed - first) / _MS,
        (consumed - last) / _MS,
        low,
        unread,
        high,
        negative,
        perishable(chunk, chunk.gp[commit], horizon, high) | t.ranges.unread(epoch, found.range, horizon),
        found.method,
    )


def _observed(t: Timeline, found: Produced, rows: Ints, epoch: Ints, start: Ints, horizon: Ints) -> Produced:
    """`found` with bounds from polls only where a commit proves that records were stamped ahead."""
    low, high, method, index = (values.copy() for values in (found.low, found.high, found.method, found.range))
    low[rows], high[rows] = t.observed(epoch[rows], start[rows], horizon[rows])
    method[rows], index[rows] = OBSERVED, NONE
    return Produced(low, high, found.index, found.latest, method, index)


def perishable(chunk: Chunk, gp: Ints, at: Ints, age_ms: Floats) -> Bools:
    """May compaction have removed records of each group-partition's topic that are so old, at most, at that instant?"""
    old = np.flatnonzero(age_ms > UNCOMPACTED_US / _MS)
    found = np.zeros(len(gp), dtype=np.bool_)
    found[old] = chunk.compacts(gp[old], at[old])
    return found


def _between(first: Floats, last: Floats, low: Ints, high: Ints, records: Ints) -> tuple[Floats, Floats]:
    """Keep estimates inside their bracket; where no slope is known, spread the records evenly over the bracket.

    Without slope and bracket nothing is known: NaN.
    """
    lower = low.astype(np.float64)
    lower[low == -FAR] = np.nan
    flat = np.flatnonzero(np.isnan(first) | np.isnan(last))
    half = (high[flat] - lower[flat]) / (2 * records[flat])
    first[flat] = np.where(np.isnan(first[flat]), lower[flat] + half, first[flat])
    last[flat] = np.where(np.isnan(last[flat]), high[flat] - half, last[flat])
    unknown = flat[np.isnan(first[flat])]
    first, last = np.fmin(np.fmax(first, lower), high), np.fmin(np.fmax(last, lower), high)
    first[unknown] = last[unknown] = np.nan
    return first, last
