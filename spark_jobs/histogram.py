"""Logarithmic latency histograms of linear segments, exactly counted and additive. NumPy only; knows no Spark.

Bucket i holds latencies in (gamma^(i-1), gamma^i] ms, bucket 0 those in [0, 1] ms; gamma is `LATENCY_BUCKET_GAMMA`.
"""

from __future__ import annotations

import numpy as np

from kafka_sla.tables import LATENCY_BUCKET_GAMMA
from spark_jobs.timeline import Floats, Ints

_LOG_GAMMA = np.log(LATENCY_BUCKET_GAMMA)
_BLOCK_ROWS = 4096
"""Rows whose histograms are laid out side by side at once: bounds memory to about 100 MB."""


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


def histograms(row: Ints, first_ms: Floats, last_ms: Floats, records: Ints, rows: int) -> tuple[Ints, Ints, Ints]:
    """Merge segments, ordered by row, into one histogram a row.

    Returns (offsets [rows + 1], buckets, counts): row r owns entries offsets[r]:offsets[r + 1], buckets ascending.
    """
    highest, lowest = bucket_of(first_ms), bucket_of(last_ms)
    owners, counts, buckets = [], [], []
    for begin in range(0, rows, _BLOCK_ROWS):
        lo, hi = np.searchsorted(row, [begin, begin + _BLOCK_ROWS])
        if hi > lo:
            part = slice(lo, hi)
            found = _block(row[part] - begin, lowest[part], highest[part], first_ms[part], last_ms[part], records[part])
            owners.append(found[0] + begin)
            buckets.append(found[1])
            counts.append(found[2])
    owner = np.concatenate([np.zeros(0, dtype=np.int64), *owners])
    offsets = np.searchsorted(owner, np.arange(rows + 1))
    none = np.zeros(0, dtype=np.int64)
    return offsets.astype(np.int64), np.concatenate([none, *buckets]), np.concatenate([none, *counts])


def _block(
    row: Ints, lowest: Ints, highest: Ints, first_ms: Floats, last_ms: Floats, records: Ints
) -> tuple[Ints, Ints, Ints]:
    """(row, bucket, count) of a block of rows, by adding up ramps instead of visiting every bucket of every segment.

    Of a segment, (first - x) / step + 1/2 records exceed x while x is inside it: a line in x. The lines of all segments
    of a row add up, so each segment only switches its line on at its lowest bucket and off at its highest.
    """
    starts = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
    here = np.cumsum(np.append(False, row[1:] != row[:-1]))
    base = np.minimum.reduceat(lowest, starts)
    width = int((np.maximum.reduceat(highest, starts) - base).max()) + 1
    on, off = here * width + lowest - base[here], here * width + highest - base[here]
    slope = np.where(highest > lowest, (records - 1) / np.where(highest > lowest, first_ms - last_ms, 1), 0.0)
    height = np.where(highest > lowest, first_ms * slope + 0.5, 0.0)
    shape = (len(starts), width)

    def running(at_on: Floats, at_off: Floats | None = None) -> Floats:
        size = shape[0] * width
        change = np.bincount(on, at_on, size) - (np.bincount(off, at_off, size) if at_off is not None else 0)
        return np.asarray(np.cumsum(change.reshape(shape), axis=1))

    edges = edge_of(base[:, None] + np.arange(width)[None, :])
    passed = running(records.astype(np.float64))
    total = passed[:, -1:]
    over = np.rint(total - passed + running(height, height) - running(slope, slope) * edges)
    over = np.minimum.accumulate(np.clip(over, 0, total), axis=1)
    over[:, -1] = 0
    count = np.concatenate([total - over[:, :1], over[:, :-1] - over[:, 1:]], axis=1).astype(np.int64)
    found, bucket = np.nonzero(count)
    return row[starts][found], base[found] + bucket, count[found, bucket]
