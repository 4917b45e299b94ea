"""The produced timeline of an interval, asked from Kafka: drives the searches of all partitions round by round.

Knows requests and searches, not tables. Works through long intervals hour by hour, so that memory stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from kafka_sla.sources.kafka.committed_positions import DELETED, Ints, Steps, Tracks
from kafka_sla.sources.kafka.consumed_windows import windows_read
from kafka_sla.sources.kafka.protocol.list_offsets import Asked, Found, Offsets
from kafka_sla.sources.kafka.protocol.record_timestamps import RecordTimes
from kafka_sla.sources.kafka.protocol.topics import TopicPartition
from kafka_sla.sources.kafka.record_sampling import Contents, SampledRange
from kafka_sla.sources.kafka.timeline.offset_ranges import Range
from kafka_sla.sources.kafka.timeline.offset_search import Point, Rule, Search
from kafka_sla.sources.kafka.timeline.transaction_markers import before_markers, transactional_topics

_SLICE_MS = 3_600_000
_UNKNOWN, _NOT_THERE = -1, -2
"""In the place of a log end offset: it is not known, or the partition does not answer."""

Progress = Callable[[str], None]
Searches = dict[TopicPartition, Search]
Lagging = tuple[TopicPartition, int, int]
"""Topic-partition, position, moment (ms)."""


class Produced(NamedTuple):
    """A point of one partition's produced timeline."""

    tp: TopicPartition
    point: Point


@dataclass(slots=True)
class Looking:
    """What one pass looks with, and what it found out on the way."""

    offsets: Offsets
    times: RecordTimes
    rule: Rule
    per_slice: int
    """Look-ups that each hour may spend; a shorter interval is one slice too. What lies a window before it comes on
    top."""
    now: int
    """When the pass began (ms): what Kafka has no record after yet is known until then only."""
    ends: dict[TopicPartition, int]
    """Log ends, read after that."""
    compacted: Callable[[str], bool]
    tracks: Tracks
    progress: Progress
    contents: Contents
    clock: Callable[[], int]
    """The time now (ms)."""
    unfinished: int = field(default=0)
    """Gaps that were left wide because the look-ups were spent."""
    ranges: list[SampledRange] = field(default_factory=list)
    """Where points do not suffice, filled while points are told."""

    @property
    def read(self) -> set[TopicPartition]:
        """The partitions that somebody reads."""
        return set(self.tracks.numbers.partitions(self.tracks.readers)[0])


def produced_points(looking: Looking, start: int, end: int) -> Iterator[Produced]:
    """All true points for [start, end] (ms): window boundaries, where traffic bends, lagging readers' positions."""
    read, before = looking.read, Searches()
    for begin, stop in _slices(start, end):
        ends = looking.offsets.answering(looking.ends) if begin == start else looking.offsets.ends()
        searches = {tp: Search(looking.rule, log_end) for tp, log_end in ends.items()}
        for search in searches.values():
            search.grid(begin, stop)
            search.examine(begin - looking.rule.window_ms)
        budget = _run(looking, searches, looking.per_slice + len(searches))
        rewinds = looking.tracks.falls_back(begin, stop)
        lagging = _lagging(looking, searches, rewinds, begin, stop, first=begin == start)
        budget = _run(looking, searches, budget)
        answered_by = looking.clock()
        width, first = looking.rule.window_ms, begin == start
        spans = list(windows_read(looking.tracks, rewinds, searches, ends, begin, stop, width, first=first))
        looking.ranges += looking.contents.of(spans, budget)
        starts = looking.offsets.starts()
        exact = looking.times.at((tp, max(position, starts.get(tp, 0))) for tp, position, _ in lagging)
        backdated = {
            (tp, position)
            for (tp, position), found in exact.items()
            if _backdated(found, width, before.get(tp), searches.get(tp))
        }
        looking.ranges += _untimed(lagging, backdated, searches)
        of_readers: dict[TopicPartition, list[Point]] = {}
        for (tp, position), found in exact.items():
            if tp in looking.contents.disordered or (tp, position) in backdated or found.timestamp < 0:
                continue  # records before it may be younger
            of_readers.setdefault(tp, []).extend(
                Point(found.timestamp, offset, exact=True) for offset in (found.offset, found.offset + 1)
            )
        transactional = transactional_topics(looking.times, read, ends)
        for tp, search in searches.items():
            points = list(search.points(starts[tp], looking.now, answered_by)) if tp in starts else []
            points = _without_prehistory(points, begin)
            told = _true(looking, tp, [*points, *of_readers.get(tp, [])])
            told = _before_markers(looking, tp, list(told)) if tp.topic in transactional else told
            yield from (Produced(tp, point) for point in told)
        before = searches
        looking.progress(f"{looking.offsets.offset_lookups:,} offset lookups")


def _backdated(found: Found, width: int, *searches: Search | None) -> bool:
    """Is a record before it younger by more than a window? So says an answer for a later time that lies before it. As
    a point, a record of last year that was written today would make all of the log a year old."""
    answers = (search.next_answer(found.timestamp + width) for search in searches if search)
    return any(offset is not None and offset < found.offset for offset in answers)


def _untimed(
    lagging: Sequence[Lagging], backdated: Set[tuple[TopicPartition, int]], searches: Searches
) -> Iterator[SampledRange]:
    """What a reader stands before whose next record is back-dated: answers for times skip it, so that nobody knows when
    it came, or whether it was there yet."""
    first: dict[tuple[TopicPartition, int], int] = {}
    for tp, position, at in lagging:
        if (tp, position) in backdated:
            first[tp, position] = min(at, first.get((tp, position), at))
    for (tp, position), at in first.items():
        end = searches[tp].offset_at(at)
        if end is not None and position < end:
            yield SampledRange(tp, at, Range(position, end, None, None, None))


def _without_prehistory(points: list[Point], begin: int) -> list[Point]:
    """Of the times before `begin` at which the partition was still empty, keep the last: the others say less."""
    empty = [point.at for point in points if not point.exact and point.offset == 0 and point.at < begin]
    if not empty:
        return points
    last = max(empty)
    return [point for point in points if point.at >= last or point.exact or point.offset]


def _slices(start: int, end: int) -> Iterator[tuple[int, int]]:
    begin = start
    while begin < end:
        stop = min(end, begin // _SLICE_MS * _SLICE_MS + _SLICE_MS)
        yield begin, stop
        begin = stop


def _run(looking: Looking, searches: Searches, budget: int) -> int:
    """Ask in rounds until all searches are settled or the budget is spent; returns what is left of it."""
    waiting = {tp: search for tp, search in searches.items() if not search.is_settled}
    while waiting:
        wanted = {tp: wants for tp, search in waiting.items() if (wants := search.wanted())}
        asked = _within(wanted, budget)
        answers = looking.offsets.at(asked) if asked else {}
        waiting = {}
        for tp, wants in wanted.items():
            searches[tp].take(answers.get(tp, {}))
            if len(answers.get(tp, {})) == len(wants):
                waiting[tp] = searches[tp]
            else:
                looking.unfinished += len(wants) - len(asked.get(tp, ()))
                searches[tp].give_up()
        budget -= sum(len(times) for times in asked.values())
    return budget


def _within(wanted: Mapping[TopicPartition, Mapping[int, int]], budget: int) -> Asked:
    """As many of the wanted times as the budget allows, those of the widest gaps first."""
    if sum(len(wants) for wants in wanted.values()) <= budget:
        return {tp: list(wants) for tp, wants in wanted.items()}
    ranked = sorted((-width, tp, at) for tp, wants in wanted.items() for at, width in wants.items())
    asked: dict[TopicPartition, list[int]] = {}
    for _, tp, at in ranked[: max(0, budget)]:
        asked.setdefault(tp, []).append(at)
    return dict(asked)


def _lagging(
    looking: Looking, searches: Searches, rewinds: Steps, begin: int, stop: int, *, first: bool
) -> list[Lagging]:
    """Positions that lay more than a window back at a window's end, and when; sets the searches to look at the past of
    backlogs.

    The past is looked at from the interval's start, and from each rewind or beginning. Later moments need no look of
    their own: what they would ask for was asked from an earlier one, or lies inside the interval.
    """
    width = looking.rule.window_ms
    moments = sorted({begin, stop, *range(-(-begin // width) * width, stop + 1, width)})
    partitions, which = looking.tracks.numbers.partitions(looking.tracks.readers)
    late = _offsets(searches, partitions, [moments[-1] - width])[which, 0]  # offsets grow with time
    may_lag = (late == _UNKNOWN) | (looking.tracks.lowest < late)
    positions, read = looking.tracks.only(may_lag).at(moments), which[may_lag]
    offsets = np.full((len(partitions), len(moments)), _NOT_THERE)
    late_ones = np.unique(read)
    offsets[late_ones] = _offsets(searches, [partitions[one] for one in late_ones], [at - width for at in moments])
    behind = (positions != DELETED) & (positions < offsets[read])
    lagging = [
        (partitions[read[reader]], int(positions[reader, at]), moments[at])
        for reader, at in np.argwhere(behind).tolist()
    ]
    for tp, position, at in lagging:
        if first and at == begin:
            searches[tp].look_back(position, begin)
    _look_back_from(rewinds, which, partitions, searches, width)
    return lagging


def _look_back_from(
    steps: Steps, which: Ints, partitions: Sequence[TopicPartition], searches: Searches, width: int
) -> None:
    """Look at the backlogs' past from the window in which each step was taken."""
    moments, places = np.unique(steps.at // width * width, return_inverse=True)
    known = _offsets(searches, partitions, moments.tolist())[which[steps.reader], places] if len(moments) else moments
    for step in np.flatnonzero(steps.position < known).tolist():
        tp = partitions[which[steps.reader[step]]]
        searches[tp].look_back(int(steps.position[step]), int(moments[places[step]]))


def _offsets(searches: Searches, partitions: Sequence[TopicPartition], moments: Sequence[int]) -> Ints:
    """Log end offsets of partitions at moments, as far as answers tell."""
    return np.array([_offsets_at(searches.get(tp), moments) for tp in partitions], np.int64).reshape(-1, len(moments))


def _offsets_at(search: Search | None, moments: Sequence[int]) -> list[int]:
    if search is None:
        return [_NOT_THERE] * len(moments)
    return [_UNKNOWN if (offset := search.offset_at(at)) is None else offset for at in moments]


def _true(looking: Looking, tp: TopicPartition, points: list[Point]) -> Iterator[Point]:
    """The points that are true even if the topic is compacted.

    There an answer is the first record that was *kept*, and those removed before it may be younger than the asked time.
    The point is true when the record just before it still exists, since that one is older.
    """
    if not looking.compacted(tp.topic):
        yield from points
        return
    before = {(tp, point.offset - 1) for point in points if not point.exact and point.offset > 0}
    kept = looking.times.at(sorted(before))
    for point in points:
        found = kept.get((tp, point.offset - 1))
        if point.exact or point.offset == 0 or (found and found.offset == point.offset - 1):
            yield point


def _before_markers(looking: Looking, tp: TopicPartition, points: list[Point]) -> Iterator[Point]:
    told = before_markers(looking.times, tp, {point.offset for point in points})
    return (point._replace(offset=told[point.offset]) for point in points)
