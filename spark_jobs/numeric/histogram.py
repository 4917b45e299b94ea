"""Logarithmic latency histograms of linear segments, exactly counted and additive. NumPy only; knows no Spark.

Bucket i holds latencies in (gamma^(i-1), gamma^i] ms, bucket 0 those in [0, 1] ms; gamma is `LATENCY_BUCKET_GAMMA`.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from kafka_sla.model.tables import LATENCY_BUCKET_GAMMA
from kafka_sla.spark_jobs.numeric.arrays import Floats, Ints

Shorts = npt.NDArray[np.int32]
_LOG_GAMMA = np.log(LATENCY_BUCKET_GAMMA)
_BLOCK_ROWS = 1024
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


def count_over(threshold_ms: Floats, first_ms: Floats, last_ms: Floats, records: Ints) -> Ints:
    """Of `records` latencies that fall linearly from first to last, how many exceed the threshold."""
    step = (first_ms - last_ms) / np.maximum(records - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        falling = np.ceil((first_ms - threshold_ms) / step)
    flat = np.where(first_ms > threshold_ms, records, 0)
    inside = np.clip(np.nan_to_num(falling, nan=0.0, posinf=0.0, neginf=0.0), 0, records).astype(np.int64)
    counted = np.where((step > 0) & (first_ms > threshold_ms), np.maximum(inside, 1), 0)
    return np.where(last_ms > threshold_ms, records, np.where(step > 0, counted, flat))


def histograms(row: Ints, first_ms: Floats, last_ms: Floats, records: Ints, rows: int) -> tuple[Ints, Shorts, Ints]:
    """Merge segments, ordered by row, into one histogram a row.

    Returns (offsets [rows + 1], buckets, counts): row r owns entries offsets[r]:offsets[r + 1], buckets ascending.
    """
    highest, lowest = bucket_of(first_ms), bucket_of(last_ms)
    falls = highest > lowest
    slope = np.where(falls, (records - 1) / np.where(falls, first_ms - last_ms, 1), 0.0)
    height = np.where(falls, first_ms * slope + 0.5, 0.0)
    filled = np.zeros(rows, dtype=np.int64)
    buckets, counts = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int64)]
    borders = np.searchsorted(row, np.arange(0, rows + _BLOCK_ROWS, _BLOCK_ROWS))
    for lo, hi in pairwise(borders.tolist()):
        if hi > lo:
            part = slice(lo, hi)
            found = _block(row[part], lowest[part], highest[part], height[part], slope[part], records[part])
            filled[found[0]] = found[1]
            buckets.append(found[2])
            counts.append(found[3])
    return np.concatenate([[0], np.cumsum(filled)]), np.concatenate(buckets), np.concatenate(counts)


def _block(
    row: Ints, lowest: Ints, highest: Ints, height: Floats, slope: Floats, records: Ints
) -> tuple[Ints, Ints, Shorts, Ints]:
    """(rows, entries of each, buckets, counts) of a block, by adding up ramps instead of visiting every bucket of
    every segment.

    Of a segment, (first - x) / step + 1/2 records exceed x while x is inside it: a line in x, `height` less `slope`
    times x. The lines of all segments of a row add up, so each segment only switches its line on at its lowest bucket
    and off at its highest.
    """
    begins_row = np.append(True, row[1:] != row[:-1])
    starts, here = np.flatnonzero(begins_row), np.cumsum(begins_row) - 1
    base, columns = int(lowest.min()), len(starts)
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
    found = count.ravel()[line * columns + of]
    return row[starts], entries, (base + line).astype(np.int32), found.astype(np.int64)


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
