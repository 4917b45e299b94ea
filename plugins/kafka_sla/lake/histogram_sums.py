"""Histograms of published rows added up by span. Arrow reads them, because it verifies their pages while it does, and
they are most of what a table holds: for DuckDB they would have to be read once more."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kafka_sla.ledger.publications import Slice, clipped
from kafka_sla.model.entities import MOST, Interval
from kafka_sla.parquet_files import batches, parquet_file

_NAMES = ("cluster", "load_id", "group", "topic")
_COLUMNS = (*_NAMES, "window_start", "latency_histogram")
_TIME = pa.timestamp("us", "UTC")
_ROWS_AT_ONCE = 16_384
"""Each may have hundreds of buckets."""
_FILES_AT_ONCE = 2
"""One is unpacked while another is added up."""
_HALF, _EXACT = 2**31, 2**53
"""Sums of floats are exact below; larger counts are added up in halves."""
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Pair = tuple[str, str]
"""Group and topic."""


def histogram_sums(
    files: Sequence[str],
    slices: Sequence[Slice],
    of_slas: Sequence[Collection[Pair]],
    interval: Interval,
    width_ms: int,
    row_groups: Mapping[str, Sequence[int]],
) -> list[dict[datetime, dict[int, int]]]:
    """Records by bucket, by the start of each span of the interval, of the rows that these slices show; for each SLA of
    its pairs. `row_groups`: by file those that may hold some; of others all are read."""
    shown = clipped(slices, interval)
    kinds, kind_of = _kinds(of_slas)
    sums = _Sums()

    def add(path: str) -> None:
        with parquet_file(path, _NAMES) as file:
            for batch in batches(file, _COLUMNS, _ROWS_AT_ONCE, row_groups.get(path)):
                _add(sums, batch, np.where(_shown(batch, shown), _kind_of_rows(batch, kind_of), -1), width_ms)

    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        for _ in pool.map(add, files):
            pass
    found: list[dict[int, Ints]] = [{} for _ in of_slas]
    for (kind, start), halves in sums.items():
        for sla in kinds[kind]:
            found[sla][start] = halves + found[sla].get(start, 0)
    return [
        {datetime.fromtimestamp(start / 1000, UTC): dict(_counts(*halves)) for start, halves in of_sla.items()}
        for of_sla in found
    ]


class _Sums:
    """By kind of pair and start of a span, in ms. Pairs of the same SLAs are of one kind: most are of one SLA."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._row: dict[tuple[int, int], int] = {}
        self._halves = np.zeros((2, 0, 0), dtype=np.int64)
        """What is below `_HALF` of a count, and how many halves; of each span and bucket."""

    def add(self, keys: Sequence[tuple[int, int]], halves: Ints) -> None:
        """Counts of some buckets of spans, as many as there are keys."""
        with self._lock:
            rows = [self._row.setdefault(key, len(self._row)) for key in keys]
            self._fit(len(self._row), halves.shape[2])
            self._halves[:, rows, : halves.shape[2]] += halves

    def _fit(self, rows: int, buckets: int) -> None:
        _, had_rows, had_buckets = self._halves.shape
        if rows > had_rows or buckets > had_buckets:
            wider = 2 * rows if rows > had_rows else had_rows  # so that it is not copied for each span that is new
            halves = np.zeros((2, wider, max(buckets, had_buckets)), dtype=np.int64)
            halves[:, :had_rows, :had_buckets] = self._halves
            self._halves = halves

    def items(self) -> Iterator[tuple[tuple[int, int], Ints]]:
        """Both halves of each, by bucket."""
        return ((key, self._halves[:, row]) for key, row in self._row.items())


def _kinds(of_slas: Sequence[Collection[Pair]]) -> tuple[list[tuple[int, ...]], dict[Pair, int]]:
    """The SLAs of each kind of pair, by their place, and the kind of each pair."""
    slas: dict[Pair, list[int]] = {}
    for sla, pairs in enumerate(of_slas):
        for pair in set(pairs):
            slas.setdefault(pair, []).append(sla)
    numbers: dict[tuple[int, ...], int] = {}
    kind_of = {pair: numbers.setdefault(tuple(mine), len(numbers)) for pair, mine in slas.items()}
    return list(numbers), kind_of


def _shown(batch: pa.RecordBatch, slices: Sequence[Slice]) -> Flags:
    found = np.zeros(batch.num_rows, dtype=bool)
    at = batch["window_start"].cast(_TIME)
    loads = set(pc.unique(batch["load_id"]).to_pylist())
    for one in (one for one in slices if one.load_id in loads):
        of_load = pc.and_(pc.equal(batch["load_id"], one.load_id), pc.equal(batch["cluster"], one.cluster))
        start, end = (pa.scalar(bound, _TIME) for bound in (one.interval.start, one.interval.end))
        inside = pc.and_(pc.greater_equal(at, start), pc.less(at, end))
        found |= pc.and_(of_load, inside).to_numpy(zero_copy_only=False)
    return found


def _kind_of_rows(batch: pa.RecordBatch, kind_of: Mapping[Pair, int]) -> Ints:
    """-1: nobody's."""
    (groups, of_group), (topics, of_topic) = map(_coded, (batch["group"], batch["topic"]))
    there, index = np.unique(of_group * len(topics) + of_topic, return_inverse=True)
    kinds = [kind_of.get((groups[code // len(topics)], topics[code % len(topics)]), -1) for code in there.tolist()]
    return np.array(kinds, dtype=np.int64)[index]


def _coded(names: pa.Array) -> tuple[list[str], Ints]:
    coded = names if pa.types.is_dictionary(names.type) else names.dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64)


def _add(sums: _Sums, batch: pa.RecordBatch, kind: Ints, width_ms: int) -> None:
    at_ms = batch["window_start"].cast(_TIME).cast(pa.int64()).to_numpy() // 1000
    wanted = kind >= 0
    starts, of_start = np.unique(at_ms[wanted] // width_ms * width_ms, return_inverse=True)
    spans, span = np.unique(kind[wanted] * len(starts) + of_start, return_inverse=True)
    of_row = np.full(batch.num_rows, -1)
    of_row[wanted] = span
    histogram = batch["latency_histogram"]
    offsets = histogram.offsets.to_numpy()
    entries = slice(offsets[0], offsets[-1])
    bucket, count = histogram.keys.to_numpy()[entries], histogram.items.to_numpy()[entries]
    of_entry = np.repeat(of_row, np.diff(offsets))
    if not wanted.all():
        mine = of_entry >= 0
        of_entry, bucket, count = of_entry[mine], bucket[mine], count[mine]
    if len(bucket):
        kinds, nth = np.divmod(spans, len(starts))
        keys = list(zip(kinds.tolist(), starts[nth].tolist(), strict=True))
        sums.add(keys, _added(of_entry, bucket, count, len(spans)))


def _added(of_entry: Ints, bucket: NDArray[np.int32], count: Ints, spans: int) -> Ints:
    """Both halves, each by span and bucket."""
    width = int(bucket.max()) + 1
    place = of_entry * width + bucket

    def summed(part: Ints) -> Ints:
        found: Ints = np.bincount(place, part, spans * width).astype(np.int64).reshape(spans, width)
        return found

    if int(count.max()) * len(count) < _EXACT:
        return np.stack([summed(count), np.zeros((spans, width), dtype=np.int64)])
    return np.stack([summed(count % _HALF), summed(count // _HALF)])


def _counts(low: Ints, high: Ints) -> Iterator[tuple[int, int]]:
    for bucket in np.flatnonzero(low + high).tolist():
        yield bucket, min(int(high[bucket]) * _HALF + int(low[bucket]), MOST)
