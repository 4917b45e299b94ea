"""What the batches of a span of offsets say of its records, as few ranges of offsets. Pure: asks nobody.

A range is as small as it must be for its records to have come evenly: spread over it from the earliest to the latest
timestamp, none is off by more than a tolerance. Where a producer's clock runs behind another's, they overlap in time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_sla.sources.kafka.protocol.record_batches import Batch, is_commit_marker, read_times

_WIDEST = 8
"""Tolerances that one range may last: its bounds are the bounds of each of its records."""
MOST_RANGES = 2_000
"""Of one span; beyond, the tolerance is doubled until they suffice, or nothing but markers divides them."""


class Range(NamedTuple):
    """Offsets [first, end): so many records (None: not read), stamped from earliest to latest (ms)."""

    first: int
    end: int
    records: int | None = None
    earliest: int | None = None
    latest: int | None = None


class Written(NamedTuple):
    """Offsets [first, end) that a transaction wrote: offset and timestamp of each of its records."""

    producer_id: int
    first: int
    end: int
    records: list[tuple[int, int]]


@dataclass(slots=True)
class Content:
    """What was read so far of the offsets from `reached` on."""

    reached: int
    """All before it was read."""
    highest: int
    """No timestamp from here on is smaller, if they run in order."""
    records: list[tuple[int, int]] = field(default_factory=list)
    """Offset and timestamp of each record that somebody may read."""
    voids: list[tuple[int, int]] = field(default_factory=list)
    """Offsets [first, end) of markers, and of what aborted transactions wrote."""
    undecided: list[Written] = field(default_factory=list)
    """What transactions wrote whose markers were not read: these records may still be aborted."""
    size: int = 0
    backwards: bool = False
    transactional: bool = False

    def take(self, batches: Iterable[tuple[Batch, bool | None]], end: int) -> bool:
        """Add batches in the order of their offsets, up to `end`; False when there was nothing new.

        Each comes with whether it holds records: None where the marker of its transaction decides, also one from `end`
        on.
        """
        before = self.reached
        for batch, counts in batches:
            if batch.last_offset < self.reached:
                continue
            if batch.control:
                self._decide(batch)
            if batch.base_offset >= end:
                continue
            self.size += len(batch.payload)
            self.transactional |= batch.transactional
            first, until = max(batch.base_offset, self.reached), min(batch.last_offset + 1, end)
            records = [] if counts is False else [at for at in read_times(batch) if first <= at[0] < until]
            if counts is False:
                self.voids.append((first, until))
            elif counts is None:
                self._note_order(records)
                self.undecided.append(Written(batch.producer_id, first, until, records))
            else:
                self._note_order(records)
                self.records += records
            self.reached = until
        return self.reached > before

    def _decide(self, marker: Batch) -> None:
        """Turn what the transaction of a marker wrote into records, or into nothing when it was aborted."""
        ended = [one for one in self.undecided if one.producer_id == marker.producer_id]
        if not ended:
            return
        self.undecided = [one for one in self.undecided if one.producer_id != marker.producer_id]
        if is_commit_marker(marker):
            self.records = sorted([*self.records, *(record for one in ended for record in one.records)])
        else:
            self.voids = sorted([*self.voids, *((one.first, one.end) for one in ended)])

    def ahead_of(self, commits: Iterable[tuple[int, int]]) -> bool:
        """A record was read (time and position of commits) before the time that it bears."""
        last = {position: at for at, position in commits}
        return any(offset < position and stamp > at for position, at in last.items() for offset, stamp in self.records)

    def ranges(self, first: int, tolerance: int) -> list[Range]:
        """All that was read from `first` on.

        What compaction removed is in a range with fewer records than offsets, or beside markers in none; in one that
        was not read, where timestamps are out of order: its neighbours tell nothing of it. Nor do
        records that bear no timestamp.
        """
        stamps = [stamp for _, stamp in self.records]
        span = max(stamps, default=0) - min(stamps, default=0)
        found = list(self._ranges(first, tolerance))
        while len(found) > MOST_RANGES and tolerance <= span:
            tolerance *= 2
            found = list(self._ranges(first, tolerance))
        return [Range(one.first, one.end) if self._tells_nothing(one) else one for one in found]

    def _tells_nothing(self, one: Range) -> bool:
        return _timeless(one) or (self.backwards and _thinned(one))

    def _note_order(self, records: list[tuple[int, int]]) -> None:
        for _, stamp in records:
            self.backwards |= stamp < self.highest
            self.highest = max(self.highest, stamp)

    def _ranges(self, first: int, tolerance: int) -> Iterator[Range]:
        at, taken = first, 0
        for between in [*sorted([*self._void_ranges(), *self._undecided_ranges()]), Range(self.reached, self.reached)]:
            until = bisect_left(self.records, (between.first,))
            if until > taken:
                yield from _even_ranges(self.records[taken:until], at, between.first, tolerance)
                taken = until
            elif between.first > at and self.backwards:
                yield Range(at, between.first)
            if between.end > between.first:
                yield between
            at = between.end

    def _void_ranges(self) -> Iterator[Range]:
        return (Range(begin, end, 0) for begin, end in _merged(self.voids))

    def _undecided_ranges(self) -> Iterator[Range]:
        """Not read, as far as anybody can tell: without a latest time, nothing there is known to be waiting."""
        for one in self.undecided:
            earliest = min((stamp for _, stamp in one.records), default=None)
            yield Range(one.first, one.end, None, None if self.backwards else earliest)


def _thinned(one: Range) -> bool:
    return bool(one.records) and one.records != one.end - one.first


def _timeless(one: Range) -> bool:
    """Kafka keeps -1 where a producer of long ago gave no time."""
    return one.earliest is not None and one.earliest < 0


def _merged(voids: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Voids side by side as one."""
    merged: list[tuple[int, int]] = []
    for begin, end in voids:
        if merged and merged[-1][1] >= begin:
            begin, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((begin, end))
    return merged


def _even_ranges(records: list[tuple[int, int]], first: int, end: int, tolerance: int) -> Iterator[Range]:
    ranked = sorted(stamp for _, stamp in records)
    if _even(ranked, tolerance):
        yield Range(first, end, len(records), ranked[0], ranked[-1])
        return
    middle = len(records) // 2
    cut = records[middle][0]
    yield from _even_ranges(records[:middle], first, cut, tolerance)
    yield from _even_ranges(records[middle:], cut, end, tolerance)


def _even(ranked: Sequence[int], tolerance: int) -> bool:
    low, span, last = ranked[0], ranked[-1] - ranked[0], len(ranked) - 1
    if last == 0 or span == 0:
        return True
    if span > _WIDEST * tolerance:
        return False
    return all(abs(low + span * index / last - stamp) <= tolerance for index, stamp in enumerate(ranked))
