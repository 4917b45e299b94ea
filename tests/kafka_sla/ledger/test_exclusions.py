"""Time that people exclude afterwards and take back: sums, misses and notices follow, nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.errors import BadRequest
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Exclusion, Interval
from kafka_sla.model.tables import SLA_MISSES, SLA_WINDOWS
from kafka_sla.pipeline import steps
from kafka_sla.pipeline.rollup_builder import sum_up
from kafka_sla.reporting.report import reported
from kafka_sla.sla.exclusion_request import exclusion_request
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS, SLOT_MS
from tests.kafka_sla.ledger.test_verdicts import SLA, put, span, windows
from tests.kafka_sla.loads import at

HOUR, DAY = span("10:00", "11:00"), span("0:00", "24:00")
LATER = at("47:00")
embedded = pytest.mark.parametrize("database", ["sqlite"])
WIDTHS = (60_000, SLOT_MS, HOUR_MS, DAY_MS)


def judged(ledger: Ledger, lake: Lake, verdicts: str = "gggbbbbgggguubbbgggg") -> None:
    counted = [replace(w, records_due=100, records_late=7) for w in windows("10:00", verdicts)]
    ledger.verdicts.replace(SLA, HOUR, counted)
    sum_up(SLA, lake, ledger, HOUR, 60_000)


def exclude(ledger: Ledger, start: str, end: str, reason: str = "load test", author: str = "ada") -> Exclusion:
    times = (at(start), at(end))
    return ledger.exclusions.add(exclusion_request(SLA, times, reason, author, now=LATER, window_ms=60_000))


def everything(ledger: Ledger) -> Any:
    """Every row that an exclusion may touch, with the bytes of histograms."""
    rows = [ledger.declared_rows(table, DAY) for table in (SLA_WINDOWS, SLA_MISSES)]
    return rows, [ledger.rollups.read(SLA.name, width, DAY) for width in WIDTHS]


def assert_sums_agree(ledger: Ledger) -> None:
    for width in WIDTHS:
        for row in ledger.rollups.read(SLA.name, width, DAY):
            sums = ledger.verdicts.sums(SLA, row.rollup.span)
            assert [getattr(row.rollup, name) for name in sums.__slots__] == [
                getattr(sums, name) for name in sums.__slots__
            ]


def test_judged_time_by_reason_tells_what_was_excluded_afterwards(ledger: Ledger, lake: Lake) -> None:
    judged(ledger, lake)
    exclude(ledger, "10:02", "10:05")

    found = ledger.verdicts.judged_time(SLA.name, HOUR)

    assert [(time.verdict, time.reason, time.excluded_afterwards, time.ms // 60_000) for time in found] == [
        ("good", "", False, 10),
        ("bad", "", False, 5),
        ("excluded", "excluded afterwards by ada: load test", True, 3),
        ("unknown", "no data", False, 2),
    ]
    assert [time.worst_latency_ms for time in found] == [None, 45_000.0, 45_000.0, None]
    assert sum(time.ms for time in ledger.verdicts.judged_time(SLA.name, span("10:03", "10:05"))) == 2 * 60_000


def test_excluded_time_leaves_attainment_and_comes_back_byte_for_byte(ledger: Ledger, lake: Lake) -> None:
    judged(ledger, lake)
    before, sums = everything(ledger), ledger.verdicts.sums(SLA, HOUR)

    one = exclude(ledger, "10:02", "10:06")

    during = ledger.verdicts.sums(SLA, HOUR)
    assert (sums.bad_ms, during.bad_ms, during.excluded_ms) == (7 * 60_000, 4 * 60_000, 4 * 60_000)
    assert (sums.records_late - during.records_late) == 4 * 7
    assert_sums_agree(ledger)
    (window,) = ledger.verdicts.windows(SLA, span("10:03", "10:04"))
    assert (window.verdict, window.reason) == ("excluded", "excluded afterwards by ada: load test")
    assert (window.judged_verdict, window.worst_latency_ms) == ("bad", 45_000)

    ledger.exclusions.undo(one.id, "grace", "it was none")
    assert everything(ledger) == before
    (row,) = ledger.exclusions.listed()
    assert (row.undone_by, row.undone_reason, row.author, row.reason) == ("grace", "it was none", "ada", "load test")


@embedded
def test_a_miss_does_not_count_when_all_of_it_is_excluded_and_stays_in_the_list(ledger: Ledger, lake: Lake) -> None:
    judged(ledger, lake, "gggbbbbgggguubbbggggbbbb")
    first, second, still_open = ledger.verdicts.misses(SLA)
    exclude(ledger, "10:03", "10:05")
    assert [miss.state for miss in ledger.verdicts.misses(SLA)] == ["recovered", "recovered", "open"]

    rest = exclude(ledger, "10:05", "10:30", "wrong clock", "grace")

    found = ledger.verdicts.misses(SLA)
    assert [miss.state for miss in found] == ["recovered", "recovered", "excluded"]
    assert found[2].end_reason == "no longer judged: excluded afterwards by grace: wrong clock"
    assert found[0].exclusion == "excluded afterwards by ada: load test; excluded afterwards by grace: wrong clock"
    assert [miss.id for miss in found] == [first.id, second.id, still_open.id]
    assert found[1].exclusion == found[2].exclusion == "excluded afterwards by grace: wrong clock"
    assert ledger.verdicts.misses(open_only=True) == []
    assert reported(ledger, SLA, span("10:00", "10:20")).outcome == "met"
    ledger.exclusions.undo(rest.id, "grace")
    assert ledger.verdicts.misses(SLA) == [first, second, still_open]
    assert reported(ledger, SLA, span("10:00", "10:20")).outcome == "missed"


@embedded
def test_an_open_miss_is_no_longer_judged_in_excluded_time_and_continues_after_it(ledger: Ledger, lake: Lake) -> None:
    judged(ledger, lake, "gbbbb")
    one = exclude(ledger, "10:03", "10:07")
    (during,) = ledger.verdicts.misses(SLA)
    put(ledger, "10:05", "10:07", "bb")
    (later,) = ledger.verdicts.misses(SLA)
    put(ledger, "10:07", "10:08", "b")
    (after,) = ledger.verdicts.misses(SLA)

    assert [(m.state, m.exclusion) for m in (during, later, after)] == [
        ("excluded", None),
        ("excluded", None),
        ("open", None),
    ]
    assert during.end_reason == later.end_reason == "no longer judged: excluded afterwards by ada: load test"
    assert (during.id, later.id, after.end_reason) == (after.id, after.id, "")
    ledger.exclusions.undo(one.id, "ada")
    assert [m.state for m in ledger.verdicts.misses(SLA)] == ["open"]


@embedded
def test_what_is_judged_again_stays_excluded_and_nobody_is_mailed(store: Store, ledger: Ledger, lake: Lake) -> None:
    settings = Settings((Cluster("a", None),), (SLA,))
    judged(ledger, lake, "g" * 20)
    one = exclude(ledger, "10:00", "10:20")

    judged(ledger, lake, "gbbbbbggggbbbbbggggg")

    assert {w.verdict for w in ledger.verdicts.windows(SLA, HOUR)} == {"excluded"}
    assert all(miss.exclusion for miss in ledger.verdicts.misses(SLA))
    assert steps.notify(settings, store, [SLA.name], HOUR, None, None)["queued"] == 0
    assert_sums_agree(ledger)
    ledger.exclusions.undo(one.id, "ada")
    assert ledger.verdicts.sums(SLA, HOUR).bad_ms == 10 * 60_000
    assert_sums_agree(ledger)


@embedded
def test_where_exclusions_overlap_one_taken_back_leaves_the_other(ledger: Ledger, lake: Lake) -> None:
    judged(ledger, lake)
    before = everything(ledger)
    first, second = exclude(ledger, "10:02", "10:08"), exclude(ledger, "10:05", "10:12", "wrong clock", "grace")

    ledger.exclusions.undo(first.id, "ada")

    assert [w.reason for w in ledger.verdicts.windows(SLA, span("10:04", "10:06"))] == [
        "",
        "excluded afterwards by grace: wrong clock",
    ]
    assert ledger.verdicts.sums(SLA, HOUR).excluded_ms == 7 * 60_000
    assert_sums_agree(ledger)
    ledger.exclusions.undo(second.id, "grace")
    assert everything(ledger) == before


def test_two_people_at_once_exclude_and_take_back_once_each(store: Store, ledger: Ledger, lake: Lake) -> None:
    judged(ledger, lake)
    before = everything(ledger)

    def both(act: Callable[[Ledger, str], Exclusion]) -> list[Any]:
        def one(who: str) -> Any:
            try:
                return act(Ledger(store), who)
            except BadRequest as error:
                return str(error)

        with ThreadPoolExecutor(2) as people:
            return list(people.map(one, ("ada", "grace")))

    added = both(lambda own, who: exclude(own, "10:02", "10:06", author=who))
    assert ledger.verdicts.sums(SLA, HOUR).excluded_ms == 4 * 60_000
    assert_sums_agree(ledger)
    assert exclude(ledger, "10:02", "10:06", author="ada") == next(one for one in added if one.author == "ada")

    answers = both(lambda own, who: own.exclusions.undo(added[0].id, who))
    (refused,) = [one for one in answers if isinstance(one, str)]
    assert refused.startswith(f"{added[0].id} was undone by ")
    assert ledger.verdicts.sums(SLA, HOUR).excluded_ms == 4 * 60_000
    ledger.exclusions.undo(added[1].id, "ada")
    assert everything(ledger) == before


@embedded
def test_an_exclusion_between_judging_and_adding_up_is_in_the_sums(
    ledger: Ledger, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(ledger, lake)
    read = ledger.verdicts.windows

    def overtaken(*wanted: Any) -> Any:
        found = read(*wanted)
        exclude(ledger, "10:02", "10:06")
        return found

    monkeypatch.setattr(type(ledger.verdicts), "windows", lambda _, *wanted: overtaken(*wanted))
    sum_up(SLA, lake, ledger, HOUR, 60_000)
    monkeypatch.undo()

    assert ledger.verdicts.sums(SLA, HOUR).excluded_ms == 4 * 60_000
    assert_sums_agree(ledger)


@embedded
def test_time_that_was_never_judged_and_exclusions_that_are_not_there_are_refused(ledger: Ledger, lake: Lake) -> None:
    judged(ledger, lake)
    for refused, why in (
        (lambda: exclude(ledger, "12:00", "13:00"), "was not judged"),
        (lambda: ledger.exclusions.undo("0badcafe", "ada"), "there is no exclusion 0badcafe"),
    ):
        with pytest.raises(BadRequest, match=why):
            refused()
    assert ledger.exclusions.listed() == []


NOW = datetime(2026, 3, 3, tzinfo=UTC)
FIRST = datetime.min.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "end", "reason", "why"),
    [
        (at("11:00"), at("10:00"), "load test", "must end after it starts"),
        (at("10:00"), at("10:00"), "load test", "must end after it starts"),
        (at("10:00"), NOW + timedelta(minutes=1), "load test", "plan it as `maintenance`"),
        (FIRST, NOW, "load test", "at most 366 days long"),
        (at("10:00"), at("11:00"), " \n", "needs a reason"),
        (at("10:00"), at("11:00"), "x" * 1_001, "at most 1,000 characters"),
    ],
)
def test_an_impossible_exclusion_is_refused(start: datetime, end: datetime, reason: str, why: str) -> None:
    with pytest.raises(BadRequest, match=why):
        exclusion_request(SLA, (start, end), reason, "ada", now=NOW, window_ms=60_000)


def test_an_exclusion_takes_every_window_that_it_touches() -> None:
    times = (at("10:00") + timedelta(seconds=30), at("10:02") + timedelta(seconds=1))

    assert exclusion_request(SLA, times, "x", "ada", now=NOW, window_ms=60_000).span == Interval(
        at("10:00"), at("10:03")
    )


@embedded
def test_verdicts_judge_by_what_was_measured_beside_excluded_time(ledger: Ledger, lake: Lake) -> None:
    """A miss that an interval lengthens reaches over an excluded part of it."""
    judged(ledger, lake, "gbbbbb" + "." * 10)
    exclude(ledger, "10:03", "10:05")

    put(ledger, "10:06", "10:08", "bg")

    (miss,) = ledger.verdicts.misses(SLA)
    assert (miss.start, miss.end, miss.bad_windows, miss.state) == (at("10:01"), at("10:07"), 6, "recovered")
