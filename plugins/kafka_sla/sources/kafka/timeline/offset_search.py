"""Which times of a partition to ask about so that its produced timeline bends nowhere unseen. Asks nobody.

An answer for time t is the first record with a timestamp ≥ t. A *gap* lies between two answers. The grid asks at every
window boundary; a gap that offsets crossed is then split, again and again, until

* every record in it is known, or it is narrower than `min_gap_ms`, or
* it is straight: where it was split, and where the gap it came from was split, lie on their lines within twice the
  floor. (One split alone is fooled by chance.)

A gap with one or two unknown records is not split: asking right behind the known record gives the next one at once.
Likewise where a split off the line met silence, as between bursts: asking half a floor behind a burst's first record
skips the burst, if it is short, and gives the next one, where halving would ask for each of them several times.

Inside a window gaps are split at 0.382 of their width, not at their middle: halves and quarters of a minute lie on the
line of every job that fires each 5, 10 or 15 seconds, however abrupt its bursts are.

Every decision looks at its own gap only, and all gaps come from epoch-aligned windows. So a day asks for exactly what
its five-minute parts ask for. Looking back from a moment (`Search.look_back`) halves aligned cells of window × 2^k
with a tolerance that only grows as the moment moves on: a later moment never asks for more of the past.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from kafka_sla.sources.kafka.protocol.list_offsets import Found

FAR = 2**62
"""Timestamp of "no record yet" (ms)."""
_CHASE = 2
"""Unknown records that are cheaper to ask for one by one than to find by halving."""
_STRAIGHT = 2
"""Splits in a row that must lie on the line."""
_SILENCE = 4
"""Floors without a record after which bursts are leapt over; chance leaves shorter ones in many a steady flow."""
_LEAP = 2
"""A leap is half a floor: records of one moment, spread over it, are then a quarter of a floor off on average."""
_SPLIT_PER_MILLE = 382
"""The golden ratio's smaller part: no multiple of it is near a simple fraction of a minute."""
_CLOCK_TOLERANCE_MS = 10_000
"""Clocks of hosts differ by less."""
_AGE_SHARE = 200
"""A gap is narrow enough at 1/200 of its age, and straight at twice that: 1 % of what the backlog's latency will be."""


class Point(NamedTuple):
    """Records with a smaller offset were produced before `at` (ms)."""

    at: int
    offset: int
    exact: bool
    """It is a record's own timestamp, not an answer for an asked time."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How finely to look; milliseconds."""

    window_ms: int
    min_gap_ms: int
    max_gap_ms: int


@dataclass(frozen=True, slots=True)
class _Gap:
    left: int
    right: int
    straight: int = 0
    """Splits in a row that lay on the line so far."""
    seen_from: int | None = None
    """The moment that a backlog is looked at from; None inside the grid."""
    position: int = 0
    """What lies entirely before this offset is of no interest."""
    leaping: bool = False
    """Silence lies between bursts here."""


@lru_cache(maxsize=8)
def _grid(width: int, start: int, end: int) -> tuple[tuple[int, ...], tuple[_Gap, ...]]:
    """The same for all partitions of a look."""
    first, last = -(-start // width) * width, end // width * width
    edges = sorted({start, min(first, end), max(last, start), end})
    return tuple(edges), tuple(_Gap(left, right) for left, right in pairwise(edges))


class Search:
    """The look-ups of one partition: `wanted` says what to ask, `take` takes answers, `points` gives the result."""

    def __init__(self, rule: Rule, log_end: int) -> None:
        self._rule, self._log_end = rule, log_end
        self._asked: dict[int, Found] = {}
        self._times: list[int] = []
        self._examined: set[int] = set()
        self._open: list[_Gap] = []
        self._single: set[int] = set()
        """Times to look at that are not answered yet."""

    def grid(self, start: int, end: int) -> None:
        """Look at every window boundary from `start` to `end`, both included, and at what bends between them."""
        edges, gaps = _grid(self._rule.window_ms, start, end)
        self._single.update(edges)
        self._open += gaps

    def examine(self, time_ms: int) -> None:
        """Look at this time only."""
        self._single.add(time_ms)

    def look_back(self, position: int, moment: int) -> None:
        """Look at the time between the record at offset `position` and `moment`, coarser the longer ago."""
        width = self._rule.window_ms
        right = moment // width
        while right > 0:
            left = right - (right & -right)
            self._open.append(_Gap(left * width, right * width, seen_from=moment, position=position))
            right = left

    @property
    def is_settled(self) -> bool:
        """There is nothing to look at that was not looked at."""
        return not self._single and not self._open

    def wanted(self) -> dict[int, int]:
        """Times to ask about next, with the width of the gap that each is for; empty when all is settled."""
        if self.is_settled:
            return {}
        self._examined |= self._single
        self._single = {at for at in self._single if self._answer(at) is None}
        wants = dict.fromkeys(self._single, FAR)
        stack, self._open = self._open, []
        while stack:
            gap = stack.pop()
            missing, parts = self._settle(gap)
            stack += parts
            if missing:
                self._open.append(gap)
                wants |= dict.fromkeys(missing, gap.right - gap.left)
        return wants

    def take(self, answers: Mapping[int, Found]) -> None:
        for at, found in answers.items():
            if at not in self._asked:
                self._times.insert(bisect_left(self._times, at), at)
            self._asked[at] = found if found.offset >= 0 else Found(self._log_end, FAR)

    def give_up(self) -> None:
        """Leave what is still open as it is: those bounds stay wide."""
        self._open, self._single = [], set()

    def offset_at(self, time_ms: int) -> int | None:
        """Log end offset at that time, as far as answers tell without asking."""
        found = self._answer(time_ms)
        return found.offset if found else None

    def next_answer(self, time_ms: int) -> int | None:
        """The offset that was answered for the earliest asked time after this one; None: none was asked."""
        index = bisect_right(self._times, time_ms)
        return self._asked[self._times[index]].offset if index < len(self._times) else None

    def points(self, log_start: int, until: int, answered_by: int) -> Iterator[Point]:
        """All points that are true: (asked time, offset), and two of each answered record itself.

        Retention removed what lay before `log_start`, read after the answers: an answer that was the first surviving
        record tells nothing about the asked time, as records before it may be younger than that time. Likewise "no
        record since then" tells nothing about times after `until`, when asking began. A record stamped after
        `answered_by`, when the answers had come, has a wrong clock and hides every record behind it: an answer with it
        tells nothing.
        """
        records = set()
        for at in sorted(self._examined):
            found = self._answer(at)
            if found is None:
                continue
            if found.timestamp < FAR:
                records.add(found)
            trapped = 0 < found.offset <= log_start  # it may have been the first one when it was asked for
            is_true = at <= until if found.timestamp == FAR else found.timestamp <= answered_by + _CLOCK_TOLERANCE_MS
            if is_true and not trapped:
                yield Point(at, found.offset, exact=False)
        for offset, timestamp in sorted(records):
            yield Point(timestamp, offset, exact=True)
            yield Point(timestamp, offset + 1, exact=True)

    def _answer(self, at: int) -> Found | None:
        """The answer for `at`, asked or implied: the record found from an earlier time on is still the first one."""
        if at in self._asked:
            return self._asked[at]
        index = bisect_right(self._times, at)
        before = self._asked[self._times[index - 1]] if index else None
        if before and before.timestamp >= at:
            return before
        after = self._asked[self._times[index]] if index < len(self._times) else None
        if before and after and after.offset <= before.offset + 1:
            return after
        return None

    def _settle(self, gap: _Gap) -> tuple[list[int], list[_Gap]]:
        """Times that must be known before this gap can be judged, else the parts that it falls into (none: settled)."""
        left, right = self._answer(gap.left), self._answer(gap.right)
        if left is None or right is None:
            self._examined.update((gap.left, gap.right))
            return [at for at, found in ((gap.left, left), (gap.right, right)) if found is None], []
        self._examined.update((gap.left, gap.right))
        if gap.seen_from is None and gap.right - gap.left > self._rule.window_ms:
            return self._halve_grid(gap, left, right)
        unknown = right.offset - left.offset - 1
        if unknown <= 0 or right.offset <= gap.position:
            return [], []
        if gap.right - left.timestamp <= self._floor(gap):
            return [], []
        return self._split(gap, left, right, unknown)

    def _halve_grid(self, gap: _Gap, left: Found, right: Found) -> tuple[list[int], list[_Gap]]:
        width = self._rule.window_ms
        if right.offset <= left.offset:
            self._examined.update(range(gap.left + width, gap.right, width))
            return [], []
        middle = gap.left + (gap.right - gap.left) // width // 2 * width
        return [], [_Gap(gap.left, middle), _Gap(middle, gap.right)]

    def _split(self, gap: _Gap, left: Found, right: Found, unknown: int) -> tuple[list[int], list[_Gap]]:
        width, behind = gap.right - gap.left, left.timestamp + 1
        inside = width <= self._rule.window_ms
        if inside and unknown <= _CHASE:
            return [], [_Gap(behind, gap.right, 0, gap.seen_from, gap.position)]
        if gap.leaping:
            return self._leap(gap, left)
        at = gap.left + (width * _SPLIT_PER_MILLE // 1000 if inside else width // 2)
        if at < behind:
            return [], [_Gap(at, gap.right, gap.straight, gap.seen_from, gap.position)]
        found = self._answer(at)
        self._examined.add(at)
        if found is None:
            return [at], []
        straight = gap.straight + 1 if self._on_line(self._floor(gap), gap, left, right, at, found) else 0
        # Cells are halved at window boundaries, which any flow that repeats within a window meets at one phase.
        on_beat_only = False
        if straight >= _STRAIGHT and not inside:
            off_beat = gap.left + width * _SPLIT_PER_MILLE // 1000
            there = self._answer(off_beat)
            if there is None:
                return [off_beat], []
            on_beat_only = not self._on_line(self._floor(gap), gap, left, right, off_beat, there)
        if straight >= _STRAIGHT and not on_beat_only and width <= self._widest(gap):
            return [], []
        leaping = inside and self._silent(at, found) and not self._on_line(self._finest, gap, left, right, at, found)
        return [], [
            _Gap(gap.left, at, straight, gap.seen_from, gap.position, leaping),
            _Gap(at, gap.right, straight, gap.seen_from, gap.position, leaping),
        ]

    def _leap(self, gap: _Gap, left: Found) -> tuple[list[int], list[_Gap]]:
        """Go on behind what came at once with the known record. As in the grid also in a look back, which else would
        ask for other times than the grid did."""
        at = left.timestamp + max(1, self._finest // _LEAP)
        found = self._answer(at)
        self._examined.add(at)
        if found is None:
            return [at], []
        return [], [_Gap(at, gap.right, 0, gap.seen_from, gap.position, self._silent(at, found))]

    def _silent(self, at: int, found: Found) -> bool:
        """No record came for long from `at` on."""
        return found.timestamp - at > _SILENCE * self._finest

    def _on_line(self, floor: int, gap: _Gap, left: Found, right: Found, at: int, found: Found) -> bool:
        """This time, and the record found from it on, are where a steady flow between left and right would have them.

        Give or take the distance of two records, as no line tells where exactly between its neighbours one lies.
        """
        span, unknown = gap.right - left.timestamp, right.offset - left.offset - 1
        passed = found.offset - left.offset - 1
        tolerance = 2 * floor + min(self._rule.min_gap_ms, span // unknown)
        if abs(left.timestamp + passed * span / unknown - at) > tolerance:
            return False
        if found.offset >= right.offset:
            return True
        return abs(left.timestamp + (passed + 0.5) * span / unknown - found.timestamp) <= tolerance

    def _widest(self, gap: _Gap) -> int:
        return self._rule.max_gap_ms if gap.seen_from is None else FAR

    @property
    def _finest(self) -> int:
        return max(1, self._rule.min_gap_ms)

    def _floor(self, gap: _Gap) -> int:
        return self._finest if gap.seen_from is None else max(self._finest, (gap.seen_from - gap.right) // _AGE_SHARE)
