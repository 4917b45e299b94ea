"""Burns judged from what a real ledger keeps, and told once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import cycle, islice, pairwise
from typing import Any

import numpy as np
import pytest

from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.alerts.report_rows import AlertMessage
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import (
    BurnPair,
    Cluster,
    Interval,
    Notifier,
    Patterns,
    Sla,
    SlaWindow,
    SteadyState,
    Verdict,
    floor_time,
)
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE
from kafka_sla.pipeline import steps
from kafka_sla.pipeline.alerting.receivers import find_address
from kafka_sla.pipeline.alerting.report_planner import Planner
from kafka_sla.pipeline.burn_alerts import judge_burns
from kafka_sla.pipeline.judged_time import judged_time, lookbacks
from kafka_sla.sla.attainment import attainment_of
from kafka_sla.sla.burn import Burn
from kafka_sla.sla.evaluate import judge
from kafka_sla.sla.exclusion_request import exclusion_request
from kafka_sla.sla.rollups import HOUR_MS, RecordStats, judged
from tests.kafka_sla.loads import at

MINUTE = timedelta(minutes=1)
PAGE = BurnPair(14.4, 3_600_000, 300_000, "page", 300_000)
SLA = Sla(
    "payments",
    "a",
    Patterns(),
    Patterns(),
    30_000,
    300_000,
    0.999,
    SteadyState(30_000),
    burn_pairs=(PAGE,),
    recipients=("oncall@example.com",),
)
WHERE: dict[str, Any] = {
    "max_latency_ms": 30_000,
    "worst_latency_ms": 45_000.0,
    "worst_group": "pay",
    "worst_topic": "orders",
    "worst_partition": 0,
}
VERDICTS: dict[str, Verdict] = {"g": "good", "b": "bad", "u": "unknown"}


def put(ledger: Ledger, start: datetime, letters: str, sla: Sla = SLA) -> Interval:
    """Judge minutes, a letter each, add them up as a run does, and judge what burns."""
    interval = Interval(start, start + len(letters) * MINUTE)
    windows = [
        SlaWindow(
            sla.name,
            w,
            VERDICTS[letter],
            True,
            "",
            **WHERE,
            records_due=100,
            records_late=60 if letter == "b" else 0,
        )
        for w, letter in zip(interval.windows(60_000), letters, strict=True)
    ]
    put_windows(ledger, interval, windows, sla)
    return interval


def put_windows(ledger: Ledger, interval: Interval, windows: Sequence[SlaWindow], sla: Sla) -> None:
    """Store verdicts, add them up as a run does, and judge what burns."""
    ledger.verdicts.replace(sla, interval, windows, lambda *_: [])
    for hour in Interval(floor_time(interval.start, HOUR_MS), interval.end).windows(HOUR_MS):
        kept = ledger.verdicts.windows(sla, hour)
        ledger.rollups.replace(sla.name, hour, [judged(w.window, [w], RecordStats()) for w in kept], 60_000)
    judge_burns(ledger, [sla], interval, 60_000)


def spans(ledger: Ledger) -> list[tuple[str, str | None]]:
    found = ledger.burns.of(["payments"], Interval(at("0:00"), at("24:00")))
    return [(f"{b.start:%H:%M}", f"{b.end:%H:%M}" if b.end else None) for b in found]


def told(ledger: Ledger, interval: Interval) -> list[tuple[str, str]]:
    plan(ledger, interval)
    sent: list[AlertMessage] = []
    delivery = ledger.alert_reports.deliver("mail", sent.append, lambda _: True, find_address)
    assert not delivery.errors
    return [(message.state, f"{report.alert.start:%H:%M}") for message in sent for report in message.reports]


def plan(ledger: Ledger, interval: Interval) -> None:
    settings = Settings((Cluster("a", None),), (SLA,))
    Planner(settings, [SLA], ledger, interval, None, lambda _: None).plan_messages()


def runs(letters: str) -> Iterator[tuple[int, str]]:
    """An hour, then the windows in which the burn begins and is over in runs of five, and the rest."""
    return ((n, letters[n:m]) for n, m in pairwise([0, 60, 65, 70, 75, 80, len(letters)]))


def judged_outage(start: datetime, sla: Sla) -> tuple[SlaWindow, ...]:
    """An hour in which all 600 records a minute are read in time, then ten minutes in which none is."""
    latency, states = [], []
    for number, window in enumerate(Interval(start, start + 70 * MINUTE).windows(60_000)):
        down = number >= 60
        key = {"cluster": "a", "group": "pay", "topic": "orders", "partition": 0}
        key |= {"window_start": window.start, "window_end": window.end}
        age = 60_000.0 * (number - 58) if down else 1_000.0
        latency.append(
            key
            | dict.fromkeys(("backlog_age_max_ms", "backlog_age_max_low_ms", "backlog_age_max_high_ms"), age)
            | {"records_consumed": 0 if down else 600, "negative_latency_records": 0, "unknown_latency_records": 0}
        )
        late = dict.fromkeys(("records_late", "records_late_low", "records_late_high"), 600 if down else 0)
        state = {"sla": sla.name, "state": "steady", "since": start, "reason": "caught_up", "steady_whole_window": True}
        states.append(key | state | late | {"records_due": 600})
    tables = arrow_rows(CONSUMER_LATENCY, latency), arrow_rows(STEADY_STATE, states)
    return judge(sla, Interval(start, start + 70 * MINUTE), 60_000, *tables)


def test_an_outage_burns_the_budget_of_records_at_once_though_it_reads_none(ledger: Ledger) -> None:
    sla = replace(SLA, objective_of="records", burn_pairs=(replace(PAGE, min_bad=10),))
    windows = judged_outage(at("9:00"), sla)
    put_windows(ledger, Interval(at("9:00"), at("10:10")), windows, sla)

    assert [w.verdict for w in windows[58:62]] == ["good", "good", "bad", "bad"]
    assert spans(ledger) == [("10:01", None)]
    day = Interval(at("0:00"), at("24:00"))
    attainment = attainment_of(sla, day, at("10:10"), judged_time(ledger, ["payments"], day)["payments"])
    assert attainment.attainment == 60 / 70
    assert (attainment.budget, round(attainment.left)) == ("exhausted", 42 - 6_000)


STORY = 60 * "g" + 3 * "g" + 9 * "b" + 28 * "g"


@pytest.mark.parametrize("of", ["time", "records"])
def test_what_a_run_reads_of_long_times_is_what_their_windows_say(ledger: Ledger, of: str) -> None:
    sla = replace(SLA, objective_of="records" if of == "records" else "time", burn_pairs=())
    letters = "".join(islice(cycle("ggbguggggbgggu"), 7 * 60 + 37))
    put(ledger, at("3:00"), letters, sla)
    interval, lengths = Interval(at("10:12"), at("10:17")), (300_000, 1_800_000, 21_600_000)

    quiet = replace(sla, name="orders")
    found = {n: back.of(1) for n, back in lookbacks(ledger, [quiet, sla], lengths, interval, 60_000).items()}

    for length in lengths:
        for n, window in enumerate(interval.windows(60_000)):
            span = Interval(window.end - timedelta(milliseconds=length), window.end)
            sums = ledger.verdicts.sums("payments", span)
            expected = (
                (sums.records_due, sums.records_late) if of == "records" else (sums.good_ms + sums.bad_ms, sums.bad_ms)
            )
            assert (int(found[length].total[n]), int(found[length].bad[n])) == expected
            assert judged_time(ledger, ["payments"], span)["payments"] == sums
    assert isinstance(found[300_000].bad, np.ndarray)


def test_what_is_read_of_two_weeks_is_what_their_windows_say_though_slots_are_kept_for_one(ledger: Ledger) -> None:
    fortnight = Interval(at("3:00"), at("3:00") + timedelta(days=15, hours=8))
    letters = islice(cycle("ggbggggbggg"), (fortnight.end - fortnight.start) // (5 * MINUTE))
    windows = [
        SlaWindow(SLA.name, w, VERDICTS[letter], True, "", **WHERE)
        for w, letter in zip(fortnight.windows(300_000), letters, strict=True)
    ]
    ledger.verdicts.replace(SLA, fortnight, windows, lambda *_: [])
    ledger.rollups.replace(SLA.name, fortnight, [judged(w.window, [w], RecordStats()) for w in windows], 300_000)
    run = Interval(fortnight.end - 10 * MINUTE, fortnight.end)

    for days in (6, 14):
        found = lookbacks(ledger, [SLA], [21_600_000, days * 86_400_000], run, 300_000)[days * 86_400_000]
        sums = ledger.verdicts.sums("payments", Interval(run.end - timedelta(days=days), run.end))
        assert (found.total[0, -1], found.bad[0, -1]) == (sums.good_ms + sums.bad_ms, sums.bad_ms)


def test_run_by_run_a_burn_begins_and_is_over_and_each_is_told_once(ledger: Ledger) -> None:
    heard = []
    for n, letters in runs(STORY):
        interval = put(ledger, at("8:00") + n * MINUTE, letters)
        heard += [*told(ledger, interval), *told(ledger, interval)]

    assert spans(ledger) == [("09:08", "09:17")]
    assert heard == [("open", "09:08"), ("resolved", "09:08")]


def test_one_run_over_all_of_it_finds_the_same(ledger: Ledger) -> None:
    put(ledger, at("8:00"), STORY)
    assert spans(ledger) == [("09:08", "09:17")]


def test_a_run_that_is_repeated_changes_nothing_and_tells_nobody(ledger: Ledger) -> None:
    whole = put(ledger, at("8:00"), STORY)
    assert told(ledger, whole) == [("open", "09:08"), ("resolved", "09:08")]
    for n, letters in list(runs(STORY))[:0:-2]:
        assert told(ledger, put(ledger, at("8:00") + n * MINUTE, letters)) == []
    assert spans(ledger) == [("09:08", "09:17")]


def test_late_facts_that_move_the_beginning_tell_nobody_again(ledger: Ledger) -> None:
    interval = put(ledger, at("8:00"), STORY[:75])
    assert told(ledger, interval) == [("open", "09:08")]

    put(ledger, at("9:00"), "bbbbb")
    assert spans(ledger) == [("09:05", None)]
    assert told(ledger, interval) == []
    rest = put(ledger, at("9:15"), 25 * "g")
    assert told(ledger, rest) == [("resolved", "09:05")]


def test_verdicts_of_the_past_change_what_burned_after_them(ledger: Ledger) -> None:
    put(ledger, at("8:00"), STORY)
    put(ledger, at("9:03"), "ggggg")
    assert spans(ledger) == []


def test_a_mail_that_fails_is_sent_by_the_next_run_and_the_end_waits_for_the_beginning(ledger: Ledger) -> None:
    interval = put(ledger, at("8:00"), STORY)
    plan(ledger, interval)

    def refuse(_: AlertMessage) -> None:
        raise OSError("mail server is away")

    delivery = ledger.alert_reports.deliver("mail", refuse, lambda _: True, find_address)
    assert [str(error) for error in delivery.errors] == ["mail server is away"]
    assert told(ledger, interval) == [("open", "09:08"), ("resolved", "09:08")]


def test_an_sla_without_alerts_has_no_burns(ledger: Ledger) -> None:
    put(ledger, at("8:00"), STORY, replace(SLA, burn_pairs=()))
    assert spans(ledger) == []


def test_a_run_calls_notifiers_once_and_mails_wait_for_a_server(ledger: Ledger, store: Store) -> None:
    sla = replace(SLA, notifiers=(Notifier("chat.Notifier"),))
    settings = Settings((Cluster("a", None),), (sla,))
    interval = put(ledger, at("8:00"), STORY, sla)
    called: list[tuple[str, str]] = []

    def call(notifier: Notifier, _: Sla, message: AlertMessage) -> None:
        called.append((notifier.path, message.state))

    for _ in range(2):
        steps.notify(settings, store, ["payments"], interval, None, None, call=call)

    assert called == [("chat.Notifier", "open"), ("chat.Notifier", "resolved")]


def test_a_burn_whose_bad_time_is_excluded_is_over_with_the_next_run_and_that_is_told_once(ledger: Ledger) -> None:
    interval = put(ledger, at("8:00"), STORY[:75])
    assert told(ledger, interval) == [("open", "09:08")]

    wanted = exclusion_request(SLA, (at("9:03"), at("9:15")), "load test", "ada", now=at("9:15"), window_ms=60_000)
    ledger.exclusions.add(wanted)
    assert spans(ledger) == [("09:08", None)]

    following = put(ledger, at("9:15"), "ggggg")
    assert spans(ledger) == [("09:08", "09:16")]
    assert [told(ledger, following) for _ in range(2)] == [[("resolved", "09:08")], []]


def test_other_dags_hear_of_each_burn_once(ledger: Ledger, store: Store) -> None:
    settings = Settings((Cluster("a", None),), (SLA, replace(SLA, name="orders", burn_pairs=())))
    interval = put(ledger, at("8:00"), STORY)
    heard: list[AlertMessage] = []

    for _ in range(2):
        steps.announce(settings, store, ["payments", "orders"], interval, heard.append)

    assert [(m.state, m.kind, m.channel, [r.alert.sla for r in m.reports]) for m in heard] == [
        ("open", "burn", "asset", ["payments"]),
        ("resolved", "burn", "asset", ["payments"]),
    ]


def test_a_burn_that_late_facts_moved_to_the_end_of_its_interval_goes_on_as_the_one_that_was_told(
    ledger: Ledger,
) -> None:
    def judged_to(identity: str, start: str, end: str | None, interval: Interval) -> list[tuple[str, str]]:
        found = Burn(identity, "payments", "a", "page", at(start), at(end) if end else None, 20.0, PAGE)
        ledger.burns.replace(["payments"], interval, lambda *_: [found])
        return told(ledger, interval)

    first, second = Interval(at("9:55"), at("10:00")), Interval(at("10:00"), at("10:30"))
    assert judged_to("b1", "9:58", None, first) == [("open", "09:58")]
    assert judged_to("b2", "10:00", None, first) == []
    assert judged_to("b2", "10:00", "10:20", second) == [("resolved", "10:00")]
    assert told(ledger, Interval(at("10:30"), at("10:35"))) == []
