"""Logarithmic latency histograms of linear segments, exactly counted and additive. NumPy only; knows no Spark.

Bucket i holds latencies in (gamma^(i-1), gamma^i] ms, bucket 0 those in [0, 1] ms; gamma is `LATENCY_BUCKET_GAMMA`.
"""

from __future__ import annotations

import numpy as np

from kafka_sla.tables import LATENCY_BUCKET_GAMMA
from spark_jobs.timeline import Floats, Ints

_LOG_GAMMA = np.log(LATENCY_BUCKET_GAMMA)


def bucket_of(latency_ms: Floats) -> Ints:
    """Bucket of each latency (≥ 0)."""
    with np.errstate(divide="ignore"):
        bucket = np.ceil(np.log(np.maximum(latency_ms, 1.0)) / _LOG_GAMMA).astype(np.int64)
    above = edge_of(bucket) < latency_ms  # rounding of the logarithm may miss by one
    below = (bucket > 0) & (edge_of(bucket - 1) >= latency_ms)
    return bucket + above - below


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
    """Merge segments into one histogram a row.

    Returns (offsets [rows + 1], buckets, counts): row r owns entries offsets[r]:offsets[r + 1], buckets ascending.
    """
    highest, lowest = bucket_of(first_ms), bucket_of(last_ms)
    width = highest - lowest + 1
    owner = np.repeat(np.arange(len(row)), width)
    bucket = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width) + lowest[owner]
    f, l, n = first_ms[owner], last_ms[owner], records[owner]
    over_lower = np.where(bucket == lowest[owner], n, count_over(edge_of(bucket - 1), f, l, n))
    over_upper = np.where(bucket == highest[owner], 0, count_over(edge_of(bucket), f, l, n))
    count = over_lower - over_upper
    key = row[owner] * np.int64(1 << 20) + bucket
    keys, inverse = np.unique(key, return_inverse=True)
    totals = np.bincount(inverse, weights=count.astype(np.float64), minlength=len(keys)).astype(np.int64)
    keys, totals = keys[totals > 0], totals[totals > 0]
    offsets = np.searchsorted(keys, np.arange(rows + 1) * np.int64(1 << 20))
    return offsets.astype(np.int64), keys & np.int64((1 << 20) - 1), totals
