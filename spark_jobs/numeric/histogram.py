"""Logarithmic latency histograms of linear segments, exactly counted and additive. NumPy only.

Bucket i holds latencies in (gamma^(i-1), gamma^i] ms, bucket 0 those in [0, 1] ms; gamma is `LATENCY_BUCKET_GAMMA`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafka_sla.model.tables import LATENCY_BUCKET_GAMMA
from kafka_sla.spark_jobs.numeric.arrays import Floats, Ints
from kafka_sla.spark_jobs.numeric.scans import begins

Shorts = npt.NDArray[np.int32]
_LOG_GAMMA = np.log(LATENCY_BUCKET_GAMMA)
_BLOCK_ROWS = 2048
"""Rows whose histograms are laid out side by side at once: few enough to stay in the processor's cache."""


def bucket_of(latency_ms: Floats) -> Ints:
    """Bucket of each latency (≥ 0)."""
    with np.errstate(divide="ignore"):
        bucket = np.ceil(np.log(np.maximum(latency_ms, 1.0)) / _LOG_GAMMA).astype(np.int64)
    above = edge_of(bucket) < latency_ms  # rounding of the logarithm may miss by one
    below = (bucket > 0) & (edge_of(bucket - 1) >= latency_ms)
    return np.asarray(bucket + above - below, dtype=np.int64)


def edge_of(bucket: Ints) -> Floats:
    """Upper edge of each bucket, ms."""
    return np.power(LATENCY_BUCKET_GAMMA, bucket.astype(np.float64))


def histograms(row: Ints, first_ms: Floats, last_ms: Floats, records: Ints, rows: int) -> tuple[Ints, Shorts, Ints]:
    """Merge segments, ordered by row, into one histogram a row.

    Returns (offsets [rows + 1], buckets, counts): row r owns entries offsets[r]:offsets[r + 1], buckets ascending.
    """
    highest, lowest = bucket_of(first_ms), bucket_of(last_ms)
    falls = highest > lowest
    slope = np.where(falls, (records - 1) / np.where(falls, first_ms - last_ms, 1), 0.0)
    height = np.where(falls, first_ms * slope + 0.5, 0.0)
    order, ends, index = _by_lowest(row, lowest)
    column = np.repeat(np.arange(len(order)), np.diff(ends, prepend=0))
    lowest, highest, records = (values[index] for values in (lowest, highest, records))
    height, slope = height[index], slope[index]
    blocks = []
    for begin in range(0, len(order), _BLOCK_ROWS):
        here = order[begin : begin + _BLOCK_ROWS]
        lo, hi = ends[begin - 1] if begin else 0, ends[begin + len(here) - 1]
        numbers = (column[lo:hi] - begin, lowest[lo:hi], highest[lo:hi], records[lo:hi])
        blocks.append((here, *_block(len(here), *numbers, height[lo:hi], slope[lo:hi])))
    filled = np.zeros(rows, dtype=np.int64)
    for here, entries, _, _ in blocks:
        filled[here] = entries
    offsets = np.concatenate([[0], np.cumsum(filled)])
    buckets, counts = np.empty(offsets[-1], dtype=np.int32), np.empty(offsets[-1], dtype=np.int64)
    for here, entries, bucket, count in blocks:
        place = np.repeat(offsets[here] - (np.cumsum(entries) - entries), entries) + np.arange(len(bucket))
        buckets[place], counts[place] = bucket, count
    return offsets, buckets, counts


def _by_lowest(row: Ints, lowest: Ints) -> tuple[Ints, Ints, Ints]:
    """Rows by their lowest bucket, where the segments of each end in that order, and that order of segments: rows of a
    block then fill the same buckets, and few lines are laid out for nothing."""
    first = np.flatnonzero(begins(row))
    segments = np.diff(first, append=len(row))
    base = np.minimum.reduceat(lowest, first) if len(first) else lowest
    order = np.argsort(base.astype(np.int16), kind="stable")  # short numbers are sorted without comparing
    ends = np.cumsum(segments[order])
    index = np.repeat(first[order] - (ends - segments[order]), segments[order]) + np.arange(len(row))
    return row[first[order]], ends, index


def _block(
    columns: int, here: Ints, lowest: Ints, highest: Ints, records: Ints, height: Floats, slope: Floats
) -> tuple[Ints, Shorts, Ints]:
    """(entries of each row, buckets, counts) of a block, by adding up ramps instead of visiting every bucket of every
    segment; `here`: the column of each segment's row.

    Of a segment, (first - x) / step + 1/2 records exceed x while x is inside it: a line in x, `height` less `slope`
    times x. The lines of all segments of a row add up, so each segment only switches its line on at its lowest bucket
    and off at its highest.
    """
    base = int(lowest.min())
    lines = int(highest.max()) - base + 1
    on, off = (lowest - base) * columns + here, (highest - base) * columns + here

    def switches(place: Ints, change: Ints | Floats) -> Floats:
        changed: Floats = np.asarray(np.bincount(place, change, lines * columns), dtype=np.float64)
        return changed.reshape(lines, columns)

    both = np.concatenate([on, off])
    count = _counts(
        switches(on, records),
        switches(both, np.concatenate([height, -height])),
        switches(both, np.concatenate([slope, -slope])),
        edge_of(np.arange(base, base + lines)),
    )
    there = np.ascontiguousarray((count != 0).T)
    place, entries = np.flatnonzero(there), np.count_nonzero(there, axis=1)
    of = np.repeat(np.arange(columns), entries)
    line = place - of * lines
    return entries, (base + line).astype(np.int32), count.ravel()[line * columns + of].astype(np.int64)


def _counts(records: Floats, height: Floats, slope: Floats, edges: Floats) -> Floats:
    """Records of each bucket, one bucket a line, one column a row, from what each bucket switches on and off.

    Line by line, in place: a line stays in the processor's cache, where whole arrays would not.
    """
    left = np.sum(records, axis=0)
    before = left.copy()
    count = np.empty(records.shape)
    high, steep, line, over = (np.zeros(len(left)) for _ in range(4))
    for k, edge in enumerate(edges[:-1].tolist()):
        left -= records[k]
        high += height[k]
        steep += slope[k]
        np.multiply(steep, edge, out=line)
        np.add(left, high, out=over)
        over -= line
        np.rint(over, out=over)
        np.maximum(over, 0, out=over)
        np.minimum(over, before, out=over)
        np.subtract(before, over, out=count[k])
        before, over = over, before
    count[-1] = before
    return count
