"""Ranges of offsets whose records were read, or could not be: they overrule the points. NumPy only.

Points say which records were produced *before* a time. That the others were not takes timestamps that never run
backwards, and that every offset is a record takes a partition without aborted transactions. Where either is not so, the
snapshot reads the records and tells each range's earliest and latest timestamp, or that it could not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kafka_sla.spark_jobs.numeric.arrays import FAR, NONE, Bools, Floats, Ints
from kafka_sla.spark_jobs.numeric.scans import begins, extremes, last_until, value_at


@dataclass(frozen=True, slots=True)
class RangeRows:
    """Ranges [offset, until) as they come; times in µs, `earliest` and `latest` -1 for unknown."""

    partition: Ints
    at: Ints
    """Known from then on: the end of the window that it was read for."""
    offset: Ints
    until: Ints
    records: Ints
    """0: nothing that anybody would wait for; -1: not read."""
    earliest: Ints
    latest: Ints


class Ranges:
    """Disjoint ranges of many epochs. Where two overlap, the one known first counts: later ones change no row.

    Of two that are known from the same time on, the one that was read counts, before compaction if there are two.
    """

    def __init__(self, rows: RangeRows, epoch: Ints, epochs: int) -> None:
        self._lay_out(epoch, rows.offset, rows.until, epochs)
        thin = (rows.records > 0) & (rows.records < rows.until - rows.offset)
        last = rows.latest, rows.earliest, -rows.records, rows.until, rows.offset
        order = np.lexsort((*last, thin, rows.records == NONE, rows.at, epoch))
        epoch, begin, until = epoch[order], rows.offset[order], rows.until[order]
        self._key, self._stop, own = _first_of_each(self._place(epoch, begin), self._place(epoch, until))
        self._begin, self._until = begin[own], until[own]
        self._edges: Ints = np.unique(np.concatenate([self._key, self._stop]))
        self.edges: Ints = self._offset(self._edges)
        """Offsets at which ranges begin or end, epoch by epoch."""
        self._at, self._records = rows.at[order][own], rows.records[order][own]
        self._thinned = thin[order][own]
        voids = rows.records[order] == 0
        self._void_epoch, self._void_at = epoch[voids], rows.at[order][voids]
        self._earliest, self._latest = rows.earliest[order][own], rows.latest[order][own]
        self._next_read = _next_true(self._records > 0)

    def _lay_out(self, epoch: Ints, begin: Ints, until: Ints, epochs: int) -> None:
        """Give every epoch a stretch of keys of its own, wide enough for its offsets and one to either side."""
        low, top = np.full(epochs, FAR), np.zeros(epochs, dtype=np.int64)
        np.minimum.at(low, epoch, begin)
        np.maximum.at(top, epoch, until)
        self._low = np.where(low < FAR, low, top)
        self._width = top - self._low + 3
        self._base = np.cumsum(self._width) - self._width

    def __len__(self) -> int:
        return len(self._key)

    def edges_inside(self, epoch: Ints, start: Ints, stop: Ints) -> tuple[Ints, Ints]:
        """The slice of `edges` that lies inside each run of offsets."""
        lo = np.searchsorted(self._edges, self._place(epoch, start), side="right")
        hi = np.searchsorted(self._edges, self._place(epoch, stop), side="left")
        return np.asarray(lo, dtype=np.int64), np.maximum(lo, hi).astype(np.int64)

    def _place(self, epoch: Ints, offset: Ints) -> Ints:
        """One number for an offset of an epoch; those beyond all ranges of the epoch share one."""
        rank = np.clip(offset - self._low[epoch] + 1, 0, self._width[epoch] - 1)
        return np.asarray(self._base[epoch] + rank, dtype=np.int64)

    def _offset(self, place: Ints) -> Ints:
        """The offset that a number stands for."""
        owner = np.searchsorted(self._base, place, side="right") - 1
        return np.asarray(place - self._base[owner] + self._low[owner] - 1, dtype=np.int64)

    def find(self, epoch: Ints, offset: Ints, horizon: Ints) -> Ints:
        """Index of the range that holds each offset and was known by the horizon; NONE without."""
        if not len(self):
            return np.full(len(offset), NONE)
        place = self._place(epoch, offset)
        index = np.searchsorted(self._key, place, side="right") - 1
        at = np.clip(index, 0, None)
        holds = (index >= 0) & (offset >= 0) & (place < self._stop[at])
        return np.where(holds & (self._at[at] <= horizon), index, NONE)

    def void(self, index: Ints) -> Bools:
        """Holds no record: markers, or what an aborted transaction wrote."""
        return np.asarray((index >= 0) & (self._of(self._records, index) == 0), dtype=np.bool_)

    def read(self, index: Ints) -> Bools:
        """All its records' timestamps were read."""
        return np.asarray((index >= 0) & (self._of(self._records, index) > 0), dtype=np.bool_)

    def reaches(self, index: Ints, offset: Ints) -> Bools:
        """So many of its records were read that one of them surely has this offset or a larger one."""
        before = np.maximum(offset - self._of(self._begin, index), 0)
        return np.asarray(self.read(index) & (self._of(self._records, index) > before), dtype=np.bool_)

    def thinned(self, index: Ints) -> Bools:
        """Compaction removed some of its records before they were read."""
        return np.asarray((index >= 0) & self._of(self._thinned, index), dtype=np.bool_)

    def unread(self, epoch: Ints, index: Ints, horizon: Ints) -> Bools:
        """Not read, though others of the same window were, and were no records: it may hold none either."""
        if not len(self._void_at):
            return np.zeros(len(index), dtype=np.bool_)
        last = last_until(self._void_epoch, self._void_at, epoch, horizon)
        known = value_at(self._void_at, last) == horizon
        return np.asarray(known & ~self.read(index) & ~self.void(index), dtype=np.bool_)

    def next_read(self, epoch: Ints, index: Ints, horizon: Ints) -> Ints:
        """Index of the first range behind each range whose records were read by the horizon; NONE without one."""
        following = self._next_read[np.clip(index + 1, 0, len(self))]
        inside = (index >= 0) & (following < len(self))
        inside &= self._of(self._key, np.minimum(following, len(self) - 1)) < self._base[epoch] + self._width[epoch]
        known = self._of(self._at, np.minimum(following, len(self) - 1)) <= horizon
        return np.where(inside & known, following, NONE)

    def earliest(self, index: Ints) -> Ints:
        return np.asarray(self._of(self._earliest, index), dtype=np.int64)

    def latest(self, index: Ints) -> Ints:
        return np.asarray(self._of(self._latest, index), dtype=np.int64)

    def skip(self, epoch: Ints, offset: Ints, horizon: Ints) -> Ints:
        """The first offset not before each one that is no known void: nothing there waits for anybody."""
        found = offset.copy()
        while len(self):
            index = self.find(epoch, found, horizon)
            void = self.void(index)
            if not void.any():
                break
            found[void] = self._offset(self._stop[index[void]])
        return found

    def widened(self, epoch: Ints, begin: Ints, end: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Bounds on when any record of the offsets [begin, end) was produced, from those of the first and the last:
        inside ranges timestamps may run backwards."""
        if not len(self):
            return low, high
        own = self._records > 0
        earliest = np.where(own & ~self._thinned, self._earliest, np.where(self._records == 0, FAR, -FAR))
        latest = np.where(own & ~self._thinned, self._latest, np.where(self._records == 0, -FAR, FAR))
        first = np.searchsorted(self._stop, self._place(epoch, begin), side="right")
        last = np.maximum(first, np.searchsorted(self._key, self._place(epoch, end), side="left"))
        inside = last > first
        lowest, _ = extremes(earliest, first, last)
        _, highest = extremes(latest, first, last)
        return np.where(inside, np.minimum(low, lowest), low), np.where(inside, np.maximum(high, highest), high)

    def line(self, index: Ints, offset: Floats) -> Floats:
        """When the record at each offset was produced if a range's records are spread evenly from first to last."""
        begin, last = self._of(self._begin, index), self._of(self._until, index) - 1
        share = np.clip((offset - begin) / np.maximum(last - begin, 1), 0.0, 1.0)
        earliest, latest = self.earliest(index), self.latest(index)
        return np.asarray(earliest + share * (latest - earliest), dtype=np.float64)

    def first_after(self, index: Ints, at: Ints) -> Ints:
        """First offset of each range whose record the line puts after `at`; the range's end where none is."""
        begin, until = self._of(self._begin, index), self._of(self._until, index)
        earliest, latest = self.earliest(index), self.latest(index)
        passed = (at - earliest) / np.maximum(latest - earliest, 1) * np.maximum(until - begin - 1, 1)
        inside = begin + np.clip(np.floor(passed), 0, until - begin).astype(np.int64) + 1
        found = np.where(earliest > at, begin, np.where(latest <= at, until, np.minimum(inside, until)))
        return np.asarray(found, dtype=np.int64)

    def _of(self, values: Any, index: Ints) -> Any:
        """values[index] with NONE clamped: callers mask what they must not use."""
        return values[np.clip(index, 0, None)] if len(values) else np.zeros(len(index), dtype=values.dtype)


def _next_true(values: Bools) -> Ints:
    """The first index from each index on that is true, for one index more than there are values; their number where
    none is."""
    there = np.append(np.where(values, np.arange(len(values)), len(values)), len(values))
    return np.asarray(np.minimum.accumulate(there[::-1])[::-1], dtype=np.int64)


def _first_of_each(begin: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """Where runs [begin, end) overlap, the one that comes first: disjoint runs in their order, and which one each is
    of."""
    edges = np.unique(np.concatenate([begin, end]))
    first = np.searchsorted(edges, begin)
    count = np.searchsorted(edges, end) - first
    own = np.repeat(np.arange(len(begin)), count)
    piece = np.arange(len(own)) - np.repeat(np.cumsum(count) - count, count) + first[own]
    piece, chosen = np.unique(piece, return_index=True)  # the first of each
    own = own[chosen]
    starts = np.flatnonzero(begins(own) | (np.diff(piece, prepend=-2) > 1)) if len(own) else own
    ends = np.append(starts[1:], len(own)) - 1 if len(own) else own
    return edges[piece[starts]], edges[piece[ends] + 1] if len(own) else edges, own[starts]
