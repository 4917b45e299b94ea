"""What a digest tells of a period, from a real ledger to the words of its page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Digest, Interval, Sla, SlaWindow
from kafka_sla.notifications.digest_email import digest_mail, digest_page
from kafka_sla.reporting.digest import PLOTS, tell
from kafka_sla.reporting.digest_schedule import due_at, period_name, period_of, periods_due
from kafka_sla.reporting.report import html_report, reported
from kafka_sla.sla.exclusion_request import exclusion_request
from kafka_sla.sla.wording import budget, budget_left
from tests.kafka_sla.notifications.misses import EVIDENCE, START, hour, promise

WEEK = timedelta(days=7)
HOSTILE = '<script>alert("1")</script>\u202e'


def weekly(**changes: Any) -> Digest:
    fields: dict[str, Any] = {"name": "Payments", "every": "week", "at": time(7), "time_zone": "Europe/Berlin"}
    return Digest(**{**fields, **changes})


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def kept(window: SlaWindow) -> SlaWindow:
    return replace(window, verdict="good", worst_latency_ms=2_000.0) if window.verdict == "bad" else window


def judged(
    ledger: Ledger, sla: Sla, shift: timedelta = timedelta(), as_if: Callable[[SlaWindow], SlaWindow] = kept
) -> None:
    """Put the hour of the story into the ledger, some time later."""
    windows = [
        replace(as_if(w), sla=sla.name, window=Interval(w.window.start + shift, w.window.end + shift)) for w in hour()
    ]
    span = Interval(windows[0].window.start, windows[-1].window.end)
    ledger.verdicts.replace(sla, span, windows, lambda found, *_: [replace(m, evidence=EVIDENCE) for m in found])


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(Store.embedded(tmp_path))


@pytest.mark.parametrize(
    ("every", "start", "end", "name"),
    [
        ("day", "2026-03-28T23:00", "2026-03-29T22:00", "Sunday 29 March 2026"),
        ("week", "2026-03-22T23:00", "2026-03-29T22:00", "23 to 29 March 2026"),
        ("month", "2026-02-28T23:00", "2026-03-31T22:00", "March 2026"),
    ],
)
def test_periods_are_of_the_digest_s_own_calendar(every: Any, start: str, end: str, name: str) -> None:
    digest = weekly(every=every)
    period = period_of(digest, utc("2026-03-29T10:00"))

    assert Interval(utc(start), utc(end)) == period
    assert name == period_name(digest, period)


def test_a_week_over_two_years_names_both() -> None:
    assert period_name(weekly(), period_of(weekly(), utc("2025-12-31T10:00"))) == "29 December 2025 to 4 January 2026"


def test_a_digest_is_due_at_its_hour_on_the_day_after_also_when_clocks_change() -> None:
    assert due_at(weekly(), period_of(weekly(), utc("2026-03-25T10:00"))) == utc("2026-03-30T05:00")
    assert due_at(weekly(), period_of(weekly(), utc("2026-03-18T10:00"))) == utc("2026-03-23T06:00")


@pytest.mark.parametrize("every", ["day", "week", "month"])
def test_hour_by_hour_each_period_of_a_year_falls_due_once(every: Any) -> None:
    digest, hours = weekly(every=every), [utc("2026-01-01T00:00") + timedelta(hours=n) for n in range(365 * 24)]

    found = [period for at in hours for period in periods_due(digest, Interval(at, at + timedelta(hours=1)))]

    assert len(found) == len(set(found)) == {"day": 365, "week": 52, "month": 12}[every]


def test_the_gravest_promise_comes_first_with_its_miss_and_cause(ledger: Ledger) -> None:
    late, fine, silent = promise(), promise(name="orders"), promise(name="clicks")
    judged(ledger, late, as_if=lambda w: w)
    judged(ledger, fine)

    told = tell(ledger, weekly(), [silent, fine, late], period_of(weekly(), START)).values

    assert [(row["sla"].sla.name, row["sla"].outcome) for row in told["slas"]] == [
        ("payments-30s", "missed"),
        ("clicks", "unknown"),
        ("orders", "met"),
    ]
    assert told["summary"] == "1 of 2 SLAs was met, 1 was missed. 1 was not measured."
    assert told["subject"] == "SLA weekly: Payments, 2 to 8 March 2026: 1 missed, 1 met, 1 unknown"
    assert [m.evidence["sentence"] for m in told["slas"][0]["sla"].misses] == [EVIDENCE["sentence"]]


def test_what_changed_since_the_period_before_is_said(ledger: Ledger) -> None:
    judged(ledger, promise(), -WEEK)
    judged(ledger, promise(), as_if=lambda w: w)

    told = tell(ledger, weekly(), [promise()], period_of(weekly(), START)).values

    assert told["changes"] == [
        "payments-30s: attainment fell from 100 % to 61.818 %; 1 miss, after none the week before."
    ]
    assert told["slas"][0]["trend"] == "worse, was 100 %"


def test_two_periods_alike_say_no_change(ledger: Ledger) -> None:
    for shift in (-WEEK, timedelta()):
        judged(ledger, promise(), shift)

    assert tell(ledger, weekly(), [promise()], period_of(weekly(), START)).values["changes"] == []


def test_time_that_was_not_measured_is_told_apart_from_time_without_data(ledger: Ledger) -> None:
    judged(ledger, promise())

    (gap,) = tell(ledger, weekly(), [promise()], period_of(weekly(), START)).values["gaps"]

    assert gap == (
        "payments-30s: nothing is known about 6 d 23 h of the week (6 d 23 h never measured, 2 min no data for group"
        " payments)."
    )


def test_why_time_was_excluded_keeps_its_lines(ledger: Ledger) -> None:
    judged(ledger, promise())
    times = (START, START + timedelta(minutes=5))
    why = "load test,\r\nannounced"
    ledger.exclusions.add(exclusion_request(promise(), times, why, "ada", now=START + WEEK, window_ms=60_000))
    period = period_of(weekly(), START)

    told = tell(ledger, weekly(), [promise()], period)
    body = digest_mail(weekly(), period, told, ["a@example.com"], "b@example.com").get_body(("plain",))
    report = html_report(period, [(reported(ledger, promise(), period), {})], [])

    assert "payments-30s: 5 min excluded afterwards by ada: load test,<br>announced." in digest_page(told)
    assert body is not None
    assert "  payments-30s: 5 min excluded afterwards by ada: load test,\n    announced.\n" in body.get_content()
    assert "excluded afterwards by ada: load test,<br>announced</td>" in report


def test_page_and_mail_hold_the_same_pictures_and_nothing_from_outside(ledger: Ledger) -> None:
    judged(ledger, promise())
    period = period_of(weekly(), START)
    told = tell(ledger, weekly(), [promise()], period)

    page = digest_page(told)
    mail = digest_mail(weekly(), period, told, ["lead@example.com"], "SLA <sla@example.com>")

    assert page.count('src="data:image/png;base64,') == 2 and "http" not in page
    assert [p.get_content_type() for p in mail.walk()] == [
        "multipart/alternative",
        "text/plain",
        "multipart/related",
        "text/html",
        "image/png",
        "image/png",
    ]
    light, dark = (p for p in mail.walk() if p.get_content_type() == "image/png")
    assert light.get_content() != dark.get_content()
    html = mail.get_body(("html",))
    assert html is not None
    for picture in (light, dark):
        assert f'src="cid:{picture["Content-ID"][1:-1]}"' in html.get_content()


def test_of_many_slas_those_in_trouble_are_plotted(ledger: Ledger) -> None:
    slas = [promise(name=f"shop.orders-{n:03}") for n in range(40)]
    for n, sla in enumerate(slas):
        judged(ledger, sla, as_if=(lambda window: window) if n in (17, 33) else kept)

    told = tell(ledger, weekly(), slas, period_of(weekly(), START))

    plotted = [row["sla"].sla.name for row in told.values["slas"] if row["plots"]]
    assert plotted[:2] == ["shop.orders-017", "shop.orders-033"]
    assert (len(plotted), len(told.plots), told.values["plots_left_out"]) == (PLOTS, 2 * PLOTS, 40 - PLOTS)


def test_hostile_names_are_shown_and_do_nothing(ledger: Ledger) -> None:
    sla = promise(name=HOSTILE, description=HOSTILE, team=HOSTILE)
    judged(ledger, sla)
    digest = weekly(name=HOSTILE, team=HOSTILE)
    told = tell(ledger, digest, [sla], period_of(digest, START))

    assert "<script" not in digest_page(told) and "\u202e" not in digest_page(told)
    assert "\u202e" not in digest_mail(digest, period_of(digest, START), told, ["a@example.com"], "b@c.d")["Subject"]


def test_the_same_digest_makes_the_same_message_id_unless_it_is_sent_again_by_hand(ledger: Ledger) -> None:
    period = period_of(weekly(), START)
    told = tell(ledger, weekly(), [], period)

    def message_id(**more: Any) -> str:
        return str(digest_mail(weekly(), period, told, ["a@example.com"], "b@example.com", **more)["Message-ID"])

    assert message_id() == message_id() != message_id(again="manual")


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Pacific/Kiritimati", "Europe/Berlin", "America/New_York"])
def test_the_budget_is_that_of_the_period_that_ran_in_the_digest_s_time(ledger: Ledger, zone: str) -> None:
    week = promise(objective=0.9999, period="week", time_zone=zone)
    judged(ledger, week, as_if=lambda w: w)

    told = tell(ledger, weekly(time_zone="UTC"), [week], period_of(weekly(time_zone="UTC"), START)).values

    (row,) = told["slas"]
    assert row["sla"].period.bad_ms == 21 * 60_000
    assert row["sla"].period.left < 0


def test_a_digest_says_of_which_rolling_days_and_how_many_records_a_budget_is(ledger: Ledger) -> None:
    sla = promise(objective=0.99, objective_of="records", period="28d")
    judged(ledger, sla, as_if=lambda w: replace(w, records_due=1_000, records_late_high=500))
    period = period_of(weekly(), START)

    told = tell(ledger, weekly(), [sla], period)
    body = digest_mail(weekly(), period, told, ["a@example.com"], "b@example.com").get_body(("plain",))
    text = " ".join(body.get_content().split()) if body else ""

    assert "objective 99 % of the records of any 28 days" in text
    of = told.values["slas"][0]["sla"].period
    assert f"budget {budget_left(of)} left of {budget(of)} in the last 28 days" in text
    assert "record" in budget(of)
    assert "(bounds " in text
