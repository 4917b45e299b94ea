"""When a miss begins, continues and ends."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from kafka_sla.model.entities import Interval, Miss, SlaWindow, Verdict
from kafka_sla.sla.evaluate import expiry
from kafka_sla.sla.miss_rule import is_in_progress, judge_misses, separates_misses
from tests.kafka_sla.sla.test_evaluate import MINUTE, START, promise, run, window

HOUR = timedelta(hours=1)


def timeline(letters: str) -> list[SlaWindow]:
    """A minute a letter: g good, b bad, B bad within its bounds only, e excluded, u unknown without figures, m unknown
    and may have been good, l unknown and late at best; a dot was never judged."""
    return [_window(minute, letter) for minute, letter in enumerate(letters) if letter != "."]


def _window(minute: int, letter: str) -> SlaWindow:
    if letter == "u":
        silent = window(minute, "unknown", is_certain=False)
        return replace(silent, worst_latency_ms=None, worst_latency_low_ms=None, worst_latency_high_ms=None)
    verdicts: dict[str, Verdict] = {
        "g": "good",
        "b": "bad",
        "B": "bad",
        "e": "excluded",
        "m": "unknown",
        "l": "unknown",
    }
    found = window(minute, verdicts[letter], worst=35_000.0 if letter == "m" else 60_000.0, is_certain=letter == "b")
    return replace(found, reason="maintenance: upgrade") if letter == "e" else found


def minute_of(at: datetime | None) -> int | None:
    return None if at is None else (at - START) // MINUTE


def spans(letters: str, **changes: Any) -> list[tuple[int | None, int | None, str]]:
    """First minute, end and state of the misses."""
    found = judge_misses(promise(**changes), timeline(letters))
    return [(minute_of(m.start), minute_of(m.end), m.state) for m in found]


FIVE = {"for_ms": 300_000}


def test_three_bad_minutes_of_every_twenty_are_no_miss_for_five_minutes() -> None:
    assert spans("bbb" + ("m" * 17 + "bbb") * 6, **FIVE) == []


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("bbbbb", [(0, None, "open")]),
        ("bbbbg", []),
        ("bbbmmmmmbb", [(0, None, "open")]),  # five minutes of other time among them
        ("bbbmmmmmmbb", []),  # six
        ("bbbuuuuuubb", []),  # a blind monitor is no proof either
        ("bbbeeeeeebb", []),
        ("bbb......bb", []),
        ("bbbggbb", []),
        ("bmmmmmmbbmmbbb", [(7, None, "open")]),  # the first one is too far away
        ("bb" + "mmmbb" * 2, [(0, None, "open")]),  # a dead consumer that is polled each five minutes
        ("bbbbbgbbbbbg", [(0, 5, "recovered"), (6, 11, "recovered")]),
    ],
)
def test_a_miss_opens_when_bad_time_adds_up_with_no_more_other_time_among_it(
    letters: str, expected: list[tuple[int, int | None, str]]
) -> None:
    assert spans(letters, **FIVE) == expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("g", [(0, 5, "recovered")]),
        ("mmmmm", [(0, None, "open")]),
        ("mmmmmm", [(0, 5, "recovered")]),
        ("mmmmmbmmmmm", [(0, None, "open")]),
        ("mmmmmmbbbbb", [(0, 5, "recovered"), (11, None, "open")]),
        ("l" * 600, [(0, None, "open")]),
        ("u" * 600, [(0, None, "open")]),
        ("u" * 600 + "b", [(0, None, "open")]),
        ("." * 600 + "bg", [(0, 606, "recovered")]),
        ("u" * 600 + "g", [(0, 5, "recovered")]),
        ("mmmuuummm", [(0, 5, "recovered")]),
    ],
)
def test_an_open_miss_ends_with_a_good_window_or_with_more_than_for_that_may_have_been_good(
    after: str, expected: list[tuple[int, int | None, str]]
) -> None:
    assert spans("bbbbb" + after, **FIVE) == expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("e", [(0, 5, "excluded")]),
        ("ueu", [(0, 5, "excluded")]),
        ("eeg", [(0, 5, "excluded")]),  # what is good afterwards does not show that it recovered
        ("eeeeeeeeb", [(0, None, "open")]),
        ("eeeeeeeebg", [(0, 14, "recovered")]),
        ("eegbbbbb", [(0, 5, "excluded"), (8, None, "open")]),
        ("emmmmmmbbbbb", [(0, 5, "excluded"), (12, None, "open")]),
        ("ge", [(0, 5, "recovered")]),
    ],
)
def test_a_miss_that_is_no_longer_judged_is_excluded_and_continues_if_it_was_not_over(
    after: str, expected: list[tuple[int, int | None, str]]
) -> None:
    assert spans("bbbbb" + after, **FIVE) == expected


def test_a_miss_says_why_it_is_no_longer_judged() -> None:
    def reasons(letters: str) -> list[str]:
        return [miss.end_reason for miss in judge_misses(promise(), timeline(letters))]

    assert reasons("bbe") == reasons("bbeg") == ["no longer judged: maintenance: upgrade"]
    assert reasons("bb") == reasons("bbg") == reasons("bbeb") == [""]


def test_a_miss_that_continues_after_excluded_time_keeps_its_id() -> None:
    assert {judge_misses(promise(), timeline(letters))[0].id for letters in ("bb", "bbe", "bbeb")} == {
        "7e48f3fc34ce3acd"
    }


@pytest.mark.parametrize(
    ("letters", "is_certain"),
    [
        ("bbb", True),
        ("bBb", False),
        ("bbub", False),
        ("bbmb", False),
        ("bb.b", False),
        ("bub", False),
        ("b.b", False),
        ("bbeb", True),  # what is not judged is no doubt
        ("beb", True),
        ("bbu", True),  # after the run
        ("ubb", True),
        ("Bgbb", True),
    ],
)
def test_a_miss_is_certain_when_its_whole_run_is(letters: str, is_certain: bool) -> None:
    (miss,) = judge_misses(promise(), timeline(letters))
    assert miss.is_certain is is_certain


def test_a_miss_is_settled_by_the_window_after_which_nothing_continues_it() -> None:
    def settled(letters: str) -> int | None:
        return minute_of(judge_misses(promise(), timeline(letters))[0].settled_at)

    assert [settled(letters) for letters in ("bb", "bbuu", "bbee", "bbuug", "bbeeg", "bbmmmm")] == [
        None,
        None,
        None,
        5,
        5,
        5,
    ]


def test_the_threshold_that_a_window_was_judged_by_says_whether_it_may_have_been_good() -> None:
    windows = [*timeline("bb"), *(replace(w, max_latency_ms=20_000) for w in timeline("..mmmmm"))]

    assert [m.state for m in judge_misses(promise(max_latency_ms=20_000), windows)] == ["open"]
    assert [m.state for m in judge_misses(promise(max_latency_ms=20_000), timeline("bbmmmmm"))] == ["recovered"]


def find_start(windows: list[SlaWindow], before: list[Miss], at: datetime, for_ms: int) -> datetime:
    """As the ledger reads back: to the miss in progress, or to time that separates misses."""
    for back in itertools.count(1):
        start = at - back * MINUTE
        if starts := [m.start for m in before if is_in_progress(m, start)]:
            return min(start, *starts)
        within = Interval(start, at)
        if separates_misses([w for w in windows if within.covers(w.window)], within, for_ms):
            return start
    raise AssertionError


@pytest.mark.parametrize("seed", range(60))
def test_continuing_a_miss_and_reading_little_give_what_all_windows_give(seed: int) -> None:
    dice = random.Random(seed)
    sla = promise(for_ms=dice.choice([0, 60_000, 180_000, 330_000]))
    letters = "".join(dice.choice("bbBgeumml.") * dice.randint(1, 5) for _ in range(40))
    windows = timeline(letters)
    whole = list(judge_misses(sla, windows))
    for cut in range(0, len(letters), 3):
        at = START + cut * MINUTE
        before = list(judge_misses(sla, [w for w in windows if w.window.start < at]))
        if before and before[-1].settled_at is None:
            rest = [w for w in windows if w.window.start >= before[-1].bad_until]
            assert [*before[:-1], *judge_misses(sla, rest, before[-1])] == whole
        first = find_start(windows, before, at, sla.for_ms)
        after = judge_misses(sla, [w for w in windows if w.window.start >= first])
        assert [m for m in after if m.start >= first] == [m for m in whole if m.start >= first], (letters, cut)


def test_a_window_whose_latency_is_unknown_is_never_the_worst() -> None:
    unknown = [replace(window(minute, "bad"), worst_latency_ms=None) for minute in (0, 2)]

    (miss,) = judge_misses(promise(), [unknown[0], window(1, "bad", worst=0.5), unknown[1]])

    assert (miss.worst_latency_ms, miss.worst_at) == (0.5, START + MINUTE)


def test_bad_windows_for_long_enough_are_a_miss_that_closes_with_the_first_good_one() -> None:
    (miss,) = judge_misses(promise(), [*run("gbb"), window(3, "bad", worst=90_000.0), window(4, "good")])

    assert (miss.start, miss.end, miss.opened_at, miss.bad_windows) == (
        START + MINUTE,
        START + 4 * MINUTE,
        START + 3 * MINUTE,
        3,
    )
    assert (
        miss.worst_latency_ms,
        miss.worst_latency_low_ms,
        miss.worst_latency_high_ms,
        miss.worst_at,
        miss.worst_group,
        miss.worst_topic,
        miss.worst_partition,
    ) == (90_000.0, 80_000.0, 100_000.0, START + 3 * MINUTE, "pay", "orders", 0)


def test_without_a_for_one_bad_window_is_a_miss() -> None:
    assert [m.opened_at for m in judge_misses(promise(for_ms=0), run("gbg"))] == [START + 2 * MINUTE]


def test_a_for_that_is_no_multiple_of_the_window_needs_the_next_whole_window() -> None:
    assert [len(judge_misses(promise(for_ms=61_000), run(letters))) for letters in ("bg", "bbg")] == [0, 1]


def test_windows_count_for_as_long_as_they_are_when_their_width_was_edited() -> None:
    wide = [replace(window(0, "bad"), window=Interval(START + n * MINUTE, START + (n + 5) * MINUTE)) for n in (0, 5)]
    narrow = [window(minute, "bad") for minute in range(10, 15)]
    (miss,) = judge_misses(promise(for_ms=720_000), [*wide, *narrow])
    assert (miss.opened_at, miss.bad_windows) == (START + 12 * MINUTE, 7)
    assert judge_misses(promise(for_ms=720_000), [wide[1], *narrow[:2]]) == ()


def test_the_id_of_a_miss_stays_when_it_grows_and_closes_and_differs_between_slas_and_starts() -> None:
    def ids(letters: str, **changes: Any) -> list[str]:
        return [m.id for m in judge_misses(promise(**changes), run(letters))]

    assert ids("bb") == ids("bbbbb") == ids("bbbg")
    assert len({*ids("bb"), *ids("gbb"), *ids("bb", name="other")}) == 3


def test_a_bad_window_that_does_not_say_where_is_refused() -> None:
    bare = SlaWindow("payments-30s", Interval(START, START + MINUTE), "bad", True, "", max_latency_ms=30_000)

    with pytest.raises(ValueError, match="does not say where"):
        judge_misses(promise(for_ms=0), [bare])


@pytest.mark.parametrize("missing", ["worst_latency_ms", "worst_group", "worst_topic", "worst_partition"])
def test_a_bad_window_has_to_say_all_of_where_and_how_late(missing: str) -> None:
    changes: dict[str, Any] = {missing: None}
    with pytest.raises(ValueError, match="does not say where"):
        judge_misses(promise(for_ms=0), [replace(window(0, "bad"), **changes)])


def test_the_ids_of_misses_that_stores_hold_stay() -> None:
    (miss,) = judge_misses(promise(), run("bb"))

    assert miss.id == "7e48f3fc34ce3acd"


def test_what_a_window_outside_a_miss_says_of_records_that_expire_is_not_the_misss() -> None:
    soon = [replace(w, reason=f"minute {n}") for n, w in enumerate(run("bbbgb"))]
    (miss,) = judge_misses(promise(), soon[1:4])

    assert expiry(miss, soon) == "minute 2"
    assert expiry(replace(miss, end=None), soon) == "minute 4"
    assert expiry(replace(miss, end=None), [*soon, replace(run("bbbbbu")[5], reason="no rows")]) == "minute 4"
    assert expiry(miss, soon[:1]) == ""
