"""Histograms of linear segments, compared with counting every record."""

from __future__ import annotations

import numpy as np

from kafka_sla.model.tables import LATENCY_BUCKET_GAMMA
from kafka_sla.spark_jobs.numeric.histogram import bucket_of, edge_of, histograms


def _latencies(first: float, last: float, records: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    step = (first - last) / max(records - 1, 1)
    return np.asarray(first - np.arange(records) * step)


def test_every_value_lies_in_its_bucket() -> None:
    values = np.concatenate(
        [[0.0, 0.5, 1.0], LATENCY_BUCKET_GAMMA ** np.arange(1, 900), np.random.default_rng(3).uniform(1, 1e9, 5000)]
    )
    bucket = bucket_of(values)
    assert np.all(values <= edge_of(bucket))
    assert np.all((values > edge_of(bucket - 1)) | (bucket == 0))


def test_the_middle_of_a_bucket_is_within_one_percent_of_its_values() -> None:
    edges = edge_of(np.arange(1, 1200))
    middle = 2 * edges / (LATENCY_BUCKET_GAMMA + 1)
    assert np.max(np.abs(middle / edges - 1)) <= 0.01


def test_merged_histograms_hold_every_record_of_their_row_once() -> None:
    luck = np.random.default_rng(9)
    row = np.sort(luck.integers(0, 5, 200))
    first = luck.uniform(0, 1e6, 200)
    records = luck.integers(1, 1000, 200)
    last = np.where(records == 1, first, first * luck.uniform(0, 1, 200))
    offsets, buckets, counts = histograms(row, first, last, records, 6)
    for r in range(6):
        mine = row == r
        assert counts[offsets[r] : offsets[r + 1]].sum() == records[mine].sum()
        every = np.concatenate([np.zeros(0), *map(_latencies, first[mine], last[mine], records[mine])])
        for bucket in range(0, 800, 7):
            edge = edge_of(np.array([bucket]))[0]
            over = int(counts[offsets[r] : offsets[r + 1]][buckets[offsets[r] : offsets[r + 1]] > bucket].sum())
            inside = int(((first[mine] > edge) & (last[mine] <= edge)).sum())
            assert abs(over - int((every > edge).sum())) <= inside / 2 + 1
