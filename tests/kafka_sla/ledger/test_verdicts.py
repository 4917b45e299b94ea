"""Verdicts replaced by interval, and the misses that come of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, update
from sqlalchemy.exc import IntegrityError

from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.errors import MailRefused
from kafka_sla.ledger.alerts.report_rows import AlertMessage
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.storage.database import Database
from kafka_sla.ledger.storage.schema import SLA_MISSES, SLA_WINDOWS
from kafka_sla.ledger.verdicts import MissChange
from kafka_sla.model.entities import Cluster, Connection, Interval, Miss, Patterns, Sla, SlaWindow, SteadyState, Verdict
from kafka_sla.pipeline import steps
from kafka_sla.sla.rollups import Sums, sums_of
from tests.kafka_sla.loads import at, span

SLA = Sla("payments", "a", Patterns(), Patterns(), 30_000, 120_000, 0.999, SteadyState(30_000))
WORDS: dict[str, Verdict] = {"g": "good", "b": "bad", "e": "excluded", "u": "unknown"}


def windows(start: str, verdicts: str, sla: Sla = SLA) -> list[SlaWindow]:
    """A minute a letter (good, bad, excluded, unknown); a dot is a window that is not there."""
    return [
        SlaWindow(
            sla.name,
            window,
            WORDS[letter],
            letter == "b",
            "no data" if letter == "u" else "",
            45_000.0 if letter == "b" else None,
            worst_group="g",
            worst_topic="t",
            worst_partition=0,
            max_latency_ms=sla.max_latency_ms,
        )
        for letter, window in zip(verdicts, Interval(at(start), at("48:00")).windows(60_000), strict=False)
        if letter != "."
    ]


def explain(misses: Sequence[Miss], *_: object) -> list[Miss]:
    return [replace(miss, evidence={"why": [1, None]}) for miss in misses]


def put(ledger: Ledger, start: str, end: str, verdicts: str) -> MissChange:
    return ledger.verdicts.replace(SLA, span(start, end), windows(start, verdicts), explain)


def spans(misses: Sequence[Miss]) -> list[tuple[str, str | None]]:
    return [(f"{m.start:%H:%M}", f"{m.end:%H:%M}" if m.end else None) for m in misses]


def test_windows_come_back_as_they_went_in(ledger: Ledger) -> None:
    put(ledger, "10:00", "10:05", "gbueg")
    assert list(ledger.verdicts.windows("payments", span("9:00", "11:00"))) == windows("10:00", "gbueg")
    assert list(ledger.verdicts.windows(SLA, span("10:01", "10:02"))) == windows("10:01", "b")


def test_what_is_read_at_one_moment_knows_nothing_of_what_is_written_meanwhile(ledger: Ledger) -> None:
    def known() -> tuple[list[Verdict], list[tuple[str, str | None]]]:
        found = ledger.verdicts.windows(SLA, span("10:00", "10:05"))
        return [w.verdict for w in found], spans(ledger.verdicts.misses(SLA))

    put(ledger, "10:00", "10:05", "ggggg")
    with ThreadPoolExecutor(1) as somebody_else, ledger.at_one_moment():
        before = known()
        somebody_else.submit(put, ledger, "10:00", "10:05", "bbggg").result()
        assert known() == before == (["good"] * 5, [])
        after = somebody_else.submit(known).result()

    assert known() == after == (["bad", "bad", "good", "good", "good"], [("10:00", "10:02")])


def test_the_database_adds_judged_time_up(ledger: Ledger) -> None:
    late = {"records_late": 3, "records_late_low": 1, "records_late_high": 7}
    found = [replace(w, records_due=10, **late) for w in windows("10:00", "gggbbeuu")]
    found[3:7] = [replace(w, records_of_unknown_state=100) for w in found[3:7]]
    ledger.verdicts.replace(SLA, span("10:00", "10:08"), found, explain)
    minute = 60_000
    everything = Sums(3 * minute, 2 * minute, minute, 2 * minute, 50, 15, 5, 35, 320)
    assert ledger.verdicts.sums(SLA, span("9:00", "11:00")) == everything == sums_of(found)
    assert ledger.verdicts.sums("payments", span("10:02", "10:04")) == Sums(minute, minute, 0, 0, 20, 6, 2, 14, 100)
    assert ledger.verdicts.sums(SLA, span("11:00", "12:00")) == Sums()


def test_thresholds_are_told_in_time_order_as_often_as_they_came_into_force(ledger: Ledger) -> None:
    for start, end, threshold in (("10:00", "10:03", 30), ("10:03", "10:05", 5), ("10:05", "10:09", 30)):
        found = windows(start, "g" * 3, replace(SLA, max_latency_ms=threshold * 1_000))
        ledger.verdicts.replace(SLA, span(start, end), found, explain)

    def thresholds(start: str, end: str) -> list[int]:
        return [one.max_latency_ms for one in ledger.verdicts.thresholds(SLA.name, span(start, end))]

    assert thresholds("10:00", "11:00") == [30_000, 5_000, 30_000]
    assert thresholds("10:05", "10:07") == [30_000]
    assert thresholds("12:00", "13:00") == []


def test_exactly_the_interval_is_replaced(ledger: Ledger) -> None:
    put(ledger, "10:00", "10:05", "ggggg")
    put(ledger, "10:02", "10:04", "u.")
    assert [w.verdict for w in ledger.verdicts.windows(SLA, span("10:00", "10:05"))] == [
        "good",
        "good",
        "unknown",
        "good",
    ]


def test_other_slas_are_left_alone(ledger: Ledger) -> None:
    put(ledger, "10:00", "10:05", "bbbbb")
    other = replace(SLA, name="other")
    ledger.verdicts.replace(other, span("9:00", "11:00"), windows("10:00", "ggggg", other), explain)
    assert spans(ledger.verdicts.misses(SLA)) == [("10:00", None)]


def test_a_miss_opens_grows_and_closes_over_several_intervals(ledger: Ledger) -> None:
    first = put(ledger, "10:00", "10:05", "gggbb")
    second = put(ledger, "10:05", "10:10", "bubub")
    third = put(ledger, "10:10", "10:15", "ugggg")
    assert [spans(change.before) for change in (first, second, third)] == [[], [("10:03", None)], [("10:03", None)]]
    assert [spans(change.after) for change in (first, second, third)] == [
        [("10:03", None)],
        [("10:03", None)],
        [("10:03", "10:10")],
    ]
    assert len({miss.id for change in (first, second, third) for miss in change.after}) == 1
    assert ledger.verdicts.misses()[0].evidence == {"why": [1, None]}


def test_a_miss_may_close_in_the_first_window_after_its_interval(ledger: Ledger) -> None:
    put(ledger, "10:00", "10:05", "ggbbb")
    change = put(ledger, "10:05", "10:10", "ggggg")
    assert (spans(change.before), spans(change.after)) == ([("10:02", None)], [("10:02", "10:05")])


def test_too_short_runs_on_both_sides_of_a_border_make_one_miss(ledger: Ledger) -> None:
    assert put(ledger, "10:00", "10:05", "ggggb").after == ()
    change = put(ledger, "10:05", "10:10", "bgggg")
    assert (change.before, spans(change.after)) == ((), [("10:04", "10:06")])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0), (0, 2, 1), (2, 0, 1)])
def test_intervals_in_any_order_give_the_same_misses(ledger: Ledger, order: tuple[int, ...]) -> None:
    parts = [("10:00", "10:05", "bbgbu"), ("10:05", "10:10", "ubbuu"), ("10:10", "10:15", "bgbb.")]
    for i in order:
        put(ledger, *parts[i])
    assert spans(ledger.verdicts.misses()) == [("10:00", "10:02"), ("10:03", "10:11"), ("10:12", None)]


def test_a_late_interval_moves_the_start_of_a_miss(ledger: Ledger) -> None:
    put(ledger, "10:05", "10:10", "bbbgg")
    change = put(ledger, "10:00", "10:05", "ggbbb")
    assert (spans(change.before), spans(change.after)) == ([("10:05", "10:08")], [("10:02", "10:08")])


def test_misses_that_look_back_on_a_late_interval_are_judged_again(ledger: Ledger) -> None:
    put(ledger, "10:20", "11:00", "ggbbb" + "g" * 32 + "bbb")
    judged: list[str] = []

    def note(misses: Sequence[Miss], *_: object) -> list[Miss]:
        judged.extend(f"{miss.start:%H:%M}" for miss in misses)
        return list(misses)

    late = (SLA, span("10:00", "10:05"), windows("10:00", "ggggg"), note)
    ledger.verdicts.replace(*late)
    assert judged == []
    ledger.verdicts.replace(*late, looks_back=timedelta(minutes=20))
    assert judged == ["10:22"]
    assert spans(ledger.verdicts.misses()) == [("10:22", "10:25"), ("10:57", None)]


def test_misses_that_an_interval_may_have_changed_are_those_up_to_the_good_windows_around_it(ledger: Ledger) -> None:
    put(ledger, "10:00", "10:20", "bbbgbbbbbbbbbubbgbbb")
    put(ledger, "10:05", "10:10", "ggggg")
    assert spans(ledger.verdicts.misses()) == [("10:00", "10:03"), ("10:10", "10:16"), ("10:17", None)]
    assert spans(ledger.verdicts.misses_around("payments", span("10:05", "10:10"))) == [("10:10", "10:16")]
    assert spans(ledger.verdicts.misses_around("payments", span("10:16", "10:17"))) == [
        ("10:10", "10:16"),
        ("10:17", None),
    ]
    assert ledger.verdicts.misses_around("other", span("10:05", "10:10")) == []


def test_other_dags_hear_of_a_miss_whose_mail_cannot_be_sent(store: Store, ledger: Ledger) -> None:
    nobody_listens = Connection("smtp", "127.0.0.1", 1, extra={"from_email": "sla@example.com", "disable_ssl": True})
    settings = Settings((Cluster("a", None),), (replace(SLA, recipients=("on-call@example.com",)),))
    over, verdicts = span("10:00", "10:10"), windows("10:00", "gbbbbbbbbg")
    ledger.verdicts.replace(SLA, over, verdicts)
    with pytest.raises(MailRefused, match="refused"):
        steps.notify(settings, store, ["payments"], over, nobody_listens, None)
    heard: list[AlertMessage] = []

    for _ in range(2):
        steps.announce(settings, store, ["payments"], over, heard.append)

    assert [message.state for message in heard] == ["open", "resolved"]


def test_what_came_apart_when_its_middle_was_judged_again_is_told_by_itself(store: Store, ledger: Ledger) -> None:
    settings = Settings((Cluster("a", None),), (replace(SLA, recipients=("on-call@example.com",)),))
    put(ledger, "10:00", "10:20", "gbbbbbbbbbbbbbbubbbg")
    assert steps.notify(settings, store, ["payments"], span("10:00", "10:20"), None, None)["queued"] == 2
    put(ledger, "10:05", "10:15", "gggggggggg")

    queued = steps.notify(settings, store, ["payments"], span("10:05", "10:15"), None, None)["queued"]

    assert spans(ledger.verdicts.misses()) == [("10:01", "10:05"), ("10:16", "10:19")]
    assert queued == 2


def test_judging_again_takes_a_miss_back(ledger: Ledger) -> None:
    put(ledger, "10:00", "10:05", "gbbbg")
    put(ledger, "10:00", "10:05", "ggggg")
    assert ledger.verdicts.misses() == []


def test_windows_that_are_not_there_neither_end_a_miss_nor_count(ledger: Ledger) -> None:
    put(ledger, "10:00", "10:05", "ggbbb")
    put(ledger, "12:00", "12:05", "bbggg")
    found = ledger.verdicts.misses()
    assert (spans(found), found[0].bad_windows) == ([("10:02", "12:02")], 5)


def test_misses_are_found_by_sla_by_overlap_and_by_state(ledger: Ledger) -> None:
    put(ledger, "10:00", "10:10", "gbbbgggbbb")
    assert spans(ledger.verdicts.misses("payments", span("10:03", "10:04"))) == [("10:01", "10:04")]
    assert spans(ledger.verdicts.misses("payments", span("10:04", "10:07"))) == []
    assert spans(ledger.verdicts.misses(interval=span("11:00", "12:00"))) == [("10:07", None)]
    assert spans(ledger.verdicts.misses(open_only=True)) == [("10:07", None)]
    assert ledger.verdicts.misses("other") == []


def test_a_judge_that_fails_leaves_everything_as_it_was(ledger: Ledger) -> None:
    put(ledger, "10:00", "10:05", "gbbbb")

    def fail(*_: object) -> list[Miss]:
        raise ValueError("no judgement")

    with pytest.raises(ValueError, match="no judgement"):
        ledger.verdicts.replace(SLA, span("10:00", "10:05"), windows("10:00", "ggggg"), fail)
    assert [w.verdict for w in ledger.verdicts.windows(SLA, span("10:00", "10:02"))] == ["good", "bad"]
    assert spans(ledger.verdicts.misses()) == [("10:01", None)]


def test_the_judge_may_read_the_store_while_it_judges(store: Store, ledger: Ledger) -> None:
    put(ledger, "10:00", "10:01", "g")

    def look(misses: Sequence[Miss], *_: object) -> Sequence[Miss]:
        assert Ledger(store).verdicts.misses() == []
        return misses

    ledger.verdicts.replace(SLA, span("10:01", "10:04"), windows("10:01", "bbb"), look)
    assert spans(ledger.verdicts.misses()) == [("10:01", None)]


@pytest.mark.parametrize(
    "change", [update(SLA_WINDOWS).values(verdict="fine"), update(SLA_MISSES).values(state="shut")]
)
def test_the_database_refuses_words_that_are_no_verdict_and_no_state(
    store: Store, ledger: Ledger, change: object
) -> None:
    put(ledger, "10:00", "10:05", "gbbbb")
    with pytest.raises(IntegrityError), Database(store).writing() as connection:
        connection.execute(change)  # type: ignore[call-overload]


def test_a_long_time_in_which_nothing_was_bad_is_not_read_again(ledger: Ledger) -> None:
    """As of an SLA whose windows are all unknown, because positions are polled too rarely."""
    put(ledger, "10:00", "20:00", "gbbb" + "u" * 596)
    put(ledger, "20:00", "21:00", "g" + "u" * 59)
    seen: list[int] = []

    def count(misses: Sequence[Miss], read: Sequence[SlaWindow], _: object) -> Sequence[Miss]:
        seen.append(len(read))
        return misses

    ledger.verdicts.replace(SLA, span("21:00", "21:05"), windows("21:00", "uuuuu"), count)
    assert seen == [4 + 5]


def test_judging_a_run_reads_as_little_after_days_of_good_windows_as_after_one(tmp_path: Path) -> None:
    ledger = Ledger(Store.embedded(tmp_path))
    put(ledger, "0:00", "1:00", "bbb" + "g" * 57)
    put(ledger, "1:00", "3:00", "g" * 120)
    with steps_of_sqlite() as after_hours:
        put(ledger, "3:00", "3:05", "ggbbb")
    put(ledger, "3:00", "40:00", "g" * 2220)
    with steps_of_sqlite() as after_days:
        put(ledger, "40:00", "40:05", "ggbbb")

    assert len(after_days) <= len(after_hours) + 5


@contextmanager
def steps_of_sqlite() -> Iterator[list[int]]:
    """Gets an item for each hundred steps that SQLite makes meanwhile: it makes some for every row that it looks at."""
    steps: list[int] = []

    def watched(connection: sqlite3.Connection, _: object) -> None:
        connection.set_progress_handler(lambda: steps.append(1), 100)

    event.listen(Engine, "connect", watched)
    try:
        yield steps
    finally:
        event.remove(Engine, "connect", watched)


def test_why_time_was_not_judged_is_kept_until_all_of_it_is(ledger: Ledger) -> None:
    for sla, reason in (("payments", "a torn file"), ("orders", "a torn file"), ("payments", "a torn file, still")):
        ledger.failures.add_unjudged(sla, span("10:00", "10:05"), reason)

    for start, end in (("10:00", "10:04"), ("10:01", "10:05"), ("9:55", "10:00"), ("10:05", "10:10")):
        put(ledger, start, end, "g")
    assert unjudged(ledger, "10:04", "10:06") == [("orders", "a torn file"), ("payments", "a torn file, still")]
    assert unjudged(ledger, "9:55", "10:00") == unjudged(ledger, "10:05", "10:10") == []

    put(ledger, "10:00", "10:05", "ggggg")
    assert unjudged(ledger, "0:00", "24:00") == [("orders", "a torn file")]


def unjudged(ledger: Ledger, start: str, end: str) -> list[tuple[str, str]]:
    return [(one.sla, one.reason) for one in ledger.failures.unjudged_within(span(start, end))]
