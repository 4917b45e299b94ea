"""Logarithmic latency histograms of linear segments, exactly counted and additive. NumPy only; knows no Spark.

Bucket i holds latencies in (gamma^(i-1), gamma^i] ms, bucket 0 those in [0, 1] ms; gamma is `LATENCY_BUCKET_GAMMA`.
"""

from __future__ import annotations

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
    edges = edge_of(np.arange(2 * int(highest.max(initial=0)) + 1))  # a block is as wide as its widest row
    filled = np.zeros(rows, dtype=np.int64)
    buckets, counts = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int64)]
    for begin in range(0, rows, _BLOCK_ROWS):
        lo, hi = np.searchsorted(row, [begin, begin + _BLOCK_ROWS])
        if hi > lo:
            part = slice(lo, hi)
            found = _block(row[part], lowest[part], highest[part], first_ms[part], last_ms[part], records[part], edges)
            filled[found[0]] = found[1]
            buckets.append(found[2])
            counts.append(found[3])
    return np.concatenate([[0], np.cumsum(filled)]), np.concatenate(buckets), np.concatenate(counts)


def _block(
    row: Ints, lowest: Ints, highest: Ints, first_ms: Floats, last_ms: Floats, records: Ints, edges: Floats
) -> tuple[Ints, Ints, Shorts, Ints]:
    """(rows, entries of each, buckets, counts) of a block, by adding up ramps instead of visiting every bucket of
    every segment.

    Of a segment, (first - x) / step + 1/2 records exceed x while x is inside it: a line in x. The lines of all segments
    of a row add up, so each segment only switches its line on at its lowest bucket and off at its highest.
    """
    starts = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
    here = np.cumsum(np.append(False, row[1:] != row[:-1]))
    base = np.minimum.reduceat(lowest, starts)
    width = int((np.maximum.reduceat(highest, starts) - base).max()) + 1
    shape = (width, len(starts))
    on, off = (lowest - base[here]) * len(starts) + here, (highest - base[here]) * len(starts) + here
    slope = np.where(highest > lowest, (records - 1) / np.where(highest > lowest, first_ms - last_ms, 1), 0.0)
    height = np.where(highest > lowest, first_ms * slope + 0.5, 0.0)

    def switches(at_on: Floats, at_off: Floats | None = None) -> Floats:
        change = np.bincount(on, at_on, shape[0] * shape[1])
        if at_off is not None:
            change -= np.bincount(off, at_off, shape[0] * shape[1])
        return np.asarray(change.reshape(shape))

    count = _counts(switches(records.astype(np.float64)), switches(height, height), switches(slope, slope), base, edges)
    by_row = np.ascontiguousarray(count.T)
    place = np.flatnonzero(by_row)
    entries = np.count_nonzero(by_row, axis=1)
    bucket = place + np.repeat(base - np.arange(len(starts)) * width, entries)
    return row[starts], entries, bucket.astype(np.int32), by_row.ravel()[place].astype(np.int64)


def _counts(records: Floats, height: Floats, slope: Floats, base: Ints, edges: Floats) -> Floats:
    """Records of each bucket, one bucket a line, one column a row, from what each bucket switches on and off.

    Line by line, in place: a line stays in the processor's cache, where whole arrays would not.
    """
    total = np.sum(records, axis=0)
    passed, before = np.zeros(len(base)), total.copy()
    count = np.empty(records.shape)
    line, over = np.zeros(len(base)), np.zeros(len(base))
    high, steep = np.zeros(len(base)), np.zeros(len(base))
    for k in range(len(records) - 1):
        passed += records[k]
        high += height[k]
        steep += slope[k]
        np.subtract(total, passed, out=over)
        over += high
        np.multiply(steep, edges[base + k], out=line)
        over -= line
        np.rint(over, out=over)
        np.maximum(over, 0, out=over)
        np.minimum(over, before, out=over)
        np.subtract(before, over, out=count[k])
        before, over = over, before
    count[-1] = before
    return count
