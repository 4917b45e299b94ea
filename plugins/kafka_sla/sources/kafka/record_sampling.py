"""Reads the records of windows where points do not suffice, by Fetch requests within a budget of bytes.

Points hold while timestamps never run backwards and every offset is a record. A sample of each window tells whether
that is so; a small window is proven by it. Otherwise the window is read whole, or told to be unread where that would
cost too much. Knows requests and what makes a window suspicious; what was found, `ranges` puts into few rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka.errors import AuthorizationError, KafkaError, OffsetOutOfRangeError, for_code

from kafka_sla.sources.kafka.protocol.client import Client
from kafka_sla.sources.kafka.protocol.connection_errors import words_of
from kafka_sla.sources.kafka.protocol.fetch import FetchPosition, fetched
from kafka_sla.sources.kafka.protocol.record_batches import Batch, told_batches, uncommitted_batches
from kafka_sla.sources.kafka.protocol.topics import TopicPartition
from kafka_sla.sources.kafka.timeline.offset_ranges import Content, Range

SAMPLE_BYTES = 16 * 1024
"""Asked of each window, and proof enough for one that is not larger."""
WINDOW_BYTES = 4 * 1024**2
"""A window that seems larger is not read whole."""
BYTES_PER_SLICE = 128 * 1024**2
"""What reading windows whole may cost for each started hour, small windows first."""
_FETCH_BYTES = 1024**2
_AT_ONCE = 64
"""Answers held in memory at a time."""
_NO_LIMIT = 2**63 - 1


class OffsetSpan(NamedTuple):
    """Offsets [first, end) of a partition, looked at for the window that ends at `at` (ms)."""

    tp: TopicPartition
    at: int
    since: int
    """No record here would be older (ms), if timestamps ran in order."""
    first: int
    end: int
    boundary: int
    """The first offset of what was produced from `at` on, as far as times run in order."""
    commits: tuple[tuple[int, int], ...] = ()
    """Time and position of each group's last commit in the window."""


class HeldBack(NamedTuple):
    """How far committed readers can read a partition with an open transaction, and how far its log reaches."""

    last_stable_offset: int
    high_watermark: int


class SampledRange(NamedTuple):
    """A range of offsets, known from the end of a window on (ms)."""

    tp: TopicPartition
    at: int
    range: Range


@dataclass(slots=True)
class _Reading:
    span: OffsetSpan
    content: Content
    suspicious: bool = False
    backwards: bool = False
    stable: int = _NO_LIMIT
    """The last stable offset: from there on, an open transaction holds back what committed readers get."""

    @property
    def held_back(self) -> bool:
        """It reaches beyond the last stable offset."""
        return self.stable < self.span.end

    @property
    def whole(self) -> bool:
        return self.content.reached >= self.span.end

    @property
    def left(self) -> float:
        """About how many bytes are still to be read."""
        read = self.content.reached - self.span.first
        return self.content.size / max(1, read) * (self.span.end - self.content.reached)


@dataclass(slots=True)
class Contents:
    """Reads windows; counts requests, and what stayed unread."""

    client: Client
    leader: Callable[[TopicPartition], int | None]
    tolerance_ms: int
    offset_lookups: int = 0
    unread: int = 0
    """Spans of offsets that would have had to be read."""
    unanswered: Counter[str] = field(default_factory=Counter)
    disordered: set[TopicPartition] = field(default_factory=set)
    """Where timestamps were seen to run backwards."""
    held_back: dict[TopicPartition, HeldBack] = field(default_factory=dict)
    """Partitions with an open transaction, as the last answer of each says."""
    _refused: set[str] = field(default_factory=set)

    def of(self, spans: Iterable[OffsetSpan], budget: int) -> Iterator[SampledRange]:
        """Ranges of the windows for which points do not suffice, after at most so many requests for samples."""
        readings = [_Reading(one, Content(one.first, one.since)) for one in spans]
        if len(readings) > budget:
            self.unanswered["the offset lookups were spent"] += len(readings) - max(0, budget)
        self._sample(readings[: max(0, budget)])
        suspicious = [one for one in readings if one.suspicious]
        beside = _beside(suspicious, readings)
        self._read([*_affordable(suspicious, beside)])
        for one in [*suspicious, *(one for one in beside if _insufficient(one.content, one.span))]:
            one.backwards |= one.content.backwards
            if one.backwards:
                self.disordered.add(one.span.tp)
            yield from self._told(one)

    def notes(self) -> list[str]:
        """What was not read and why, for people."""
        notes = [
            f"{count} windows were not sampled, so that timestamps are taken to run in order there: {cause}"
            + ("; grant READ on the topics" if "AUTHORIZATION" in cause else "")
            for cause, count in sorted(self.unanswered.items())
        ]
        if self.unread:
            notes.append(
                f"{self.unread} windows with transactions, or with timestamps that run backwards, were too large to be"
                " read: latencies there are estimates without bounds"
            )
        return notes

    def _sample(self, readings: list[_Reading]) -> None:
        for one, batches in self._fetched(readings, _reached, SAMPLE_BYTES):
            one.content.take(batches, one.span.end)
        held_back = [one for one in readings if one.held_back and one.content.reached >= one.stable]
        for one, batches in self._fetched(held_back, _reached, SAMPLE_BYTES):
            one.content.take(batches, one.span.end)
        unproven = [one for one in readings if _unproven(one)]
        for one, batches in self._fetched(unproven, _near_end, SAMPLE_BYTES):
            last = Content(one.content.reached, one.content.highest)
            last.take(batches, one.span.end)
            one.suspicious = _insufficient(last, one.span)
            one.backwards = last.backwards
        for one in readings:
            one.suspicious |= _insufficient(one.content, one.span) or one.held_back

    def _read(self, readings: list[_Reading]) -> None:
        while readings:
            progress = [
                one
                for one, batches in self._fetched(readings, _reached, _FETCH_BYTES)
                if one.content.take(batches, one.span.end)
            ]
            readings = [one for one in progress if not one.whole]

    def _told(self, one: _Reading) -> Iterator[SampledRange]:
        found = one.content.ranges(one.span.first, self.tolerance_ms)
        unread = list(_unread(one))
        self.unread += bool(unread)
        yield from (SampledRange(one.span.tp, one.span.at, told) for told in (*found, *unread))

    def _fetched(
        self, readings: list[_Reading], offset: Callable[[_Reading], int], size: int
    ) -> Iterator[tuple[_Reading, list[tuple[Batch, bool | None]]]]:
        """Each reading with the batches from an offset of it on; the offset tells whether these can be committed."""
        for begin in range(0, len(readings), _AT_ONCE):
            some = [one for one in readings[begin : begin + _AT_ONCE] if one.span.tp.topic not in self._refused]
            stable = [one for one in some if offset(one) < one.stable]
            behind = [one for one in some if offset(one) >= one.stable]
            yield from self._fetch(stable, offset, size, committed=True)
            yield from self._fetch(behind, offset, size, committed=False)

    def _fetch(
        self, readings: list[_Reading], offset: Callable[[_Reading], int], size: int, *, committed: bool
    ) -> Iterator[tuple[_Reading, list[tuple[Batch, bool | None]]]]:
        led = [(one, leader) for one in readings if (leader := self.leader(one.span.tp)) is not None]
        places = [FetchPosition(leader, one.span.tp, offset(one)) for one, leader in led]
        self.offset_lookups += len(places)
        answers = fetched(self.client, places, size, committed=committed)
        for (one, _), answer in zip(led, answers, strict=True):
            yield one, self._batches(one, answer, committed)

    def _batches(self, one: _Reading, answer: Any, committed: bool) -> list[tuple[Batch, bool | None]]:
        error = answer if isinstance(answer, KafkaError) else _error(answer)
        if error:
            self.unanswered[words_of(error)] += 1
            if isinstance(error, AuthorizationError):
                self._refused.add(one.span.tp.topic)
            return []
        if not committed:
            return list(uncommitted_batches(answer.records or b""))
        self._note_stable(one, answer.last_stable_offset, answer.high_watermark)
        aborted = [(entry.first_offset, entry.producer_id) for entry in answer.aborted_transactions or ()]
        return list(told_batches(answer.records or b"", aborted))

    def _note_stable(self, one: _Reading, last_stable_offset: int, high_watermark: int) -> None:
        is_open = 0 <= last_stable_offset < high_watermark
        one.stable = last_stable_offset if is_open else _NO_LIMIT
        self.held_back.pop(one.span.tp, None)
        if is_open:
            self.held_back[one.span.tp] = HeldBack(last_stable_offset, high_watermark)


def _reached(one: _Reading) -> int:
    return one.content.reached


def _error(answer: Any) -> KafkaError | None:
    error = for_code(answer.error_code)
    return error() if answer.error_code and error is not OffsetOutOfRangeError else None


def _insufficient(content: Content, span: OffsetSpan) -> bool:
    """What was read of it shows that points do not tell when its records came."""
    return content.backwards or content.transactional or content.ahead_of(span.commits)


def _beside(suspicious: list[_Reading], readings: list[_Reading]) -> list[_Reading]:
    """Windows whose samples were in order, where times of the same partition run backwards in another one: that of two
    samples the later one bears the later time may be chance. Of one without a sample nobody knows what it would cost.
    """
    disordered = {one.span.tp for one in suspicious if one.backwards or one.content.backwards}
    sampled = (one for one in readings if one.content.reached > one.span.first and not one.whole)
    return [one for one in sampled if one.span.tp in disordered and not one.suspicious]


def _unproven(one: _Reading) -> bool:
    """It is larger than its sample, and nothing was found yet. Where the first sample was empty, the same one again
    would be, too."""
    content = one.content
    if one.whole or one.held_back or content.backwards or content.transactional:
        return False
    return content.reached > one.span.first or _near_end(one) > content.reached


def _near_end(one: _Reading) -> int:
    """The record that was read last in the window, as it tells whether clocks agree. Where that was seen, or nobody
    read, the last ones before its end, of which the record that ends it is none: that one is always younger."""
    content, span = one.content, one.span
    last_read = max((position for _, position in span.commits if position <= span.end), default=0) - 1
    if last_read >= content.reached:
        return last_read
    fit = SAMPLE_BYTES * (content.reached - span.first) // max(1, content.size)
    return max(content.reached, span.end - 1 - max(1, fit))


def _unread(one: _Reading) -> Iterator[Range]:
    """What was not read, with what is known of its times all the same; nothing where points tell all that there is."""
    span, begin = one.span, one.content.reached
    transactional = one.content.transactional or one.held_back
    if one.whole or not (transactional or one.backwards):
        return
    earliest = None if one.backwards else span.since
    before = begin if transactional else max(begin, min(span.boundary, span.end))
    if begin < before:
        yield Range(begin, before, None, earliest, span.at)
    if before < span.end:
        yield Range(before, span.end, None, earliest, None)


def _affordable(*groups: list[_Reading]) -> Iterator[_Reading]:
    """As many as the budget allows: those of the first group first, and in each the small ones."""
    spent = 0.0
    for group in groups:
        for one in sorted((one for one in group if not one.whole), key=lambda one: one.left):
            if one.left > WINDOW_BYTES or spent + one.left > BYTES_PER_SLICE:
                break
            spent += one.left
            yield one
