"""The planning of look-ups against flows whose every timestamp is known; no broker is needed to plan."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

import pytest

from kafka_sla.sources.kafka.protocol.list_offsets import Found
from kafka_sla.sources.kafka.timeline.offset_search import Point, Rule, Search

MINUTE = 60_000
HOUR = 60 * MINUTE
START = 1_000 * HOUR
RULE = Rule(window_ms=MINUTE, min_gap_ms=250, max_gap_ms=MINUTE)

Log = list[int]
"""Timestamps (ms) by offset."""


def poisson(per_second: float) -> Callable[[random.Random], Iterator[int]]:
    def flow(chance: random.Random) -> Iterator[int]:
        at = float(START - 10 * MINUTE)
        while at < START + HOUR + MINUTE:
            yield int(at)
            at += chance.expovariate(per_second) * 1000

    return flow


def bursts(every_ms: int, records: int, apart_ms: int) -> Callable[[random.Random], Iterator[int]]:
    def flow(_: random.Random) -> Iterator[int]:
        for begin in range(START - 10 * MINUTE, START + HOUR + MINUTE, every_ms):
            yield from (begin + number * apart_ms for number in range(records))

    return flow


FLOWS = {
    "fifty a second": poisson(50),
    "five a second": poisson(5),
    "one in five seconds": poisson(0.2),
    "a burst every 30 s": bursts(30_000, 150, 20),
    "a burst every 15 s": bursts(15_000, 150, 10),
    "a burst every 5 s": bursts(5_000, 50, 10),
    "ten records at once every 10 s": bursts(10_000, 10, 0),
    "forty records every ten minutes": bursts(10 * MINUTE, 40, 50),
    "many records in one millisecond": lambda _: iter([START + 70_000] * 500 + [START + 90_000] * 3),
    "nothing at all": lambda _: iter([]),
}


def log_of(flow: str) -> Log:
    return list(FLOWS[flow](random.Random(7)))


def answer(log: Log, at: int) -> Found:
    index = bisect_left(log, at)
    return Found(index, log[index]) if index < len(log) else Found(-1, -1)


def settle(search: Search, log: Log) -> set[int]:
    """Answer everything that the search wants; returns the times it asked about."""
    asked: set[int] = set()
    while wanted := search.wanted():
        assert not asked & wanted.keys(), "asked twice"
        asked |= wanted.keys()
        search.take({at: answer(log, at) for at in wanted})
    return asked


def explored(log: Log, start: int, end: int) -> Search:
    search = Search(RULE, len(log))
    search.grid(start, end)
    settle(search, log)
    return search


def points(search: Search, log_start: int = 0) -> set[Point]:
    return set(search.points(log_start, START + 10 * HOUR, START + 10 * HOUR))


def estimate_error(log: Log, found: set[Point]) -> Callable[[int], float]:
    """How far (ms) a straight line between the points beside an offset is from its record's own time."""
    line = sorted(found)
    ends = [p.offset for p in line]

    def error(offset: int) -> float:
        right = bisect_right(ends, offset)
        (t1, o1, _), (t2, o2, _) = line[right - 1], line[right]
        return abs(t1 + (offset + 0.5 - o1) / (o2 - o1) * (t2 - t1) - log[offset])

    return error


@pytest.mark.parametrize("flow", FLOWS)
def test_every_point_is_true(flow: str) -> None:
    log = log_of(flow)

    found = points(explored(log, START, START + HOUR))

    assert [p for p in found if not bisect_left(log, p.at) <= p.offset <= bisect_right(log, p.at)] == []


@pytest.mark.parametrize("flow", FLOWS)
def test_every_window_boundary_has_its_point(flow: str) -> None:
    log = log_of(flow)

    found = {p.at: p.offset for p in points(explored(log, START, START + HOUR)) if not p.exact}

    boundaries = range(START, START + HOUR + 1, MINUTE)
    assert {at: found.get(at) for at in boundaries} == {at: bisect_left(log, at) for at in boundaries}


@pytest.mark.parametrize("flow", FLOWS)
def test_an_hour_asks_for_what_its_five_minute_parts_ask_for(flow: str) -> None:
    log = log_of(flow)

    parts = set[Point]().union(
        *(points(explored(log, at, at + 5 * MINUTE)) for at in range(START, START + HOUR, 5 * MINUTE))
    )

    assert parts == points(explored(log, START, START + HOUR))


@pytest.mark.parametrize(
    ("flow", "at_most"),
    [
        ("fifty a second", 12),
        ("a burst every 30 s", 30),
        ("ten records at once every 10 s", 9),
        ("forty records every ten minutes", 3),
        ("nothing at all", 0.1),
    ],
)
def test_offset_lookups_per_minute_follow_the_bends_of_the_flow(flow: str, at_most: float) -> None:
    search = Search(RULE, len(log := log_of(flow)))
    search.grid(START, START + HOUR)

    assert len(settle(search, log)) / 60 <= at_most


@pytest.mark.parametrize("flow", [flow for flow in FLOWS if flow.startswith("a burst")])
def test_bursts_that_come_on_the_beat_of_the_window_are_seen(flow: str) -> None:
    """Halving minutes meets every 15 s burst at the same phase: it looked like a steady flow, up to 11 s off."""
    log = log_of(flow)
    error = estimate_error(log, points(explored(log, START, START + HOUR)))

    assert max(error(o) for o in range(bisect_left(log, START), bisect_left(log, START + HOUR))) < 1_100


@pytest.mark.parametrize("flow", ["fifty a second", "five a second", "a burst every 30 s", "a burst every 15 s"])
def test_a_backlogs_past_is_told_within_about_a_hundredth_of_its_age(flow: str) -> None:
    log = log_of(flow)
    moment, position = START + HOUR, bisect_left(log, START)
    search = Search(RULE, len(log))
    search.look_back(position, moment)
    asked = settle(search, log)

    error = estimate_error(log, points(search))
    shares = sorted(error(o) / (moment - log[o]) for o in range(position, bisect_left(log, moment - 10 * MINUTE)))
    assert shares[len(shares) // 2] < 0.01
    assert shares[-1] < 0.06
    assert len(asked) < 400


@pytest.mark.parametrize("flow", FLOWS)
def test_looking_back_later_asks_for_nothing_new_about_the_past(flow: str) -> None:
    log, day_start = log_of(flow), START + 30 * MINUTE
    position = bisect_left(log, START)
    first = explored(log, day_start, START + HOUR)
    first.look_back(position, day_start)
    settle(first, log)

    for minute in (1, 7, 16, 29):
        later = Search(RULE, len(log))
        later.look_back(position, day_start + minute * MINUTE)
        settle(later, log)
        assert points(later) - points(first) == set()


@pytest.mark.parametrize("log_start", [1_800, 1_850], ids=["stands still", "moved on while it was asked"])
def test_after_retention_the_first_surviving_record_tells_its_own_time_only(log_start: int) -> None:
    """ListOffsets answers the log start for every earlier time, though records before it were produced later."""
    log = list(range(START, START + HOUR, 1_000))
    survivors = {offset: at for offset, at in enumerate(log) if offset >= 1_800}
    search = Search(RULE, len(log))
    search.grid(START, START + HOUR)
    while wanted := search.wanted():
        search.take(
            {
                at: Found(max(1_800, answer(log, at).offset), log[max(1_800, answer(log, at).offset)])
                if at <= log[-1]
                else Found(-1, -1)
                for at in wanted
            }
        )

    found = points(search, log_start)

    assert min(p.at for p in found) == survivors[1_800]
    assert [p for p in found if not bisect_left(log, p.at) <= p.offset <= bisect_right(log, p.at)] == []


def test_nothing_is_said_about_times_after_the_asking() -> None:
    log = [START + 1_000]
    search = explored(log, START, START + 5 * MINUTE)

    found = set(search.points(0, until=START + 3 * MINUTE, answered_by=START + 6 * MINUTE))

    assert max(p.at for p in found) == START + 3 * MINUTE


def test_a_record_of_the_future_says_nothing_about_the_times_that_it_answers() -> None:
    """Record 2 is stamped an hour ahead; all that came after it is hidden from lookups."""
    log = [START + 1_000, START + 2_000, START + HOUR]
    search = explored(log, START, START + 5 * MINUTE)

    found = set(search.points(0, until=START + 5 * MINUTE, answered_by=START + 5 * MINUTE))

    assert max(p.at for p in found if not p.exact) < START + 2_000
    assert {p.offset for p in found if p.exact} == {0, 1, 2, 3}


def test_a_search_that_is_given_up_keeps_what_it_knows() -> None:
    log = log_of("fifty a second")
    search = Search(RULE, len(log))
    search.grid(START, START + HOUR)
    search.take({at: answer(log, at) for at in search.wanted()})
    search.wanted()
    search.give_up()

    assert search.wanted() == {}
    assert {p.at for p in points(search) if not p.exact} == {START, START + HOUR}
