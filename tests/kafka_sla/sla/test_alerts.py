"""Which changes bring a receiver from what it has been told to what is true now, as a table of states."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from kafka_sla.model.entities import Patterns, Sla, SteadyState
from kafka_sla.sla.alerts import Alert, EndReason, Report, ReportState, plan_changes
from tests.kafka_sla.loads import MINUTE, at

SLA = Sla("payments", "a", Patterns(), Patterns(), 30_000, 120_000, 0.999, SteadyState(30_000))


def alert(start: str, end: str | None = None, reason: EndReason = "recovered", id: str = "") -> Alert:
    """Of an open alert two minutes are known."""
    begin = at(start)
    until = at(end) if end else begin + 2 * MINUTE
    return Alert("miss", id or f"m{start}", "payments", "page", begin, at(end) if end else None, until, reason)


def opened(start: str, end: str | None = None) -> Alert:
    return alert(start, end, "" if end is None else "recovered")


def report(
    of: Alert, state: ReportState = "open", *, known_until: str = "", thread: str = "", in_doubt: bool = False
) -> Report:
    until: datetime = at(known_until) if known_until else of.known_until
    seq = int(f"{of.start:%H%M}") * 10 + len(thread)
    name = thread or of.id
    return Report(seq, "mail", name, of.id, of.start, until, of, SLA, None, state, name, in_doubt)


def planned(alerts: list[Alert], reports: list[Report], may_open: set[str] | None = None) -> list[str]:
    """Each change in short: what is to be done in which thread, and why."""
    allowed = {a.id for a in alerts} if may_open is None else may_open
    changes = plan_changes(alerts, reports, allowed)
    shown = [(c.action, c.thread or (c.report.thread if c.report else ""), c.alert.end_reason) for c in changes]
    return [" ".join(filter(None, parts)) for parts in shown]


OPEN, ENDED = opened("10:00"), opened("10:00", "10:10")
EXCLUDED = alert("10:00", "10:10", "excluded")


@pytest.mark.parametrize(
    ("current", "state", "expected"),
    [
        (OPEN, None, ["open m10:00"]),
        (OPEN, "opening", ["extend m10:00"]),
        (OPEN, "open", ["extend m10:00"]),
        (OPEN, "resolving", ["withdraw_resolution m10:00"]),
        (OPEN, "resolved", ["open m10:00-2"]),
        (ENDED, None, ["open m10:00 recovered"]),
        (ENDED, "opening", ["resolve m10:00 recovered"]),
        (ENDED, "open", ["resolve m10:00 recovered"]),
        (ENDED, "resolving", []),
        (ENDED, "resolved", []),
        (EXCLUDED, "opening", ["withdraw_opening m10:00 excluded"]),
        (EXCLUDED, "open", ["resolve m10:00 excluded"]),
        (EXCLUDED, "resolved", []),
        (None, "opening", ["withdraw_opening m10:00 removed"]),
        (None, "open", ["resolve m10:00 removed"]),
        (None, "resolving", []),
        (None, "resolved", []),
    ],
)
def test_one_alert_and_one_report(current: Alert | None, state: ReportState | None, expected: list[str]) -> None:
    reports = [report(OPEN, state)] if state else []
    assert planned([current] if current else [], reports) == expected


@pytest.mark.parametrize(
    ("current", "state", "expected"),
    [
        (OPEN, "resolving", []),
        (EXCLUDED, "opening", ["resolve m10:00 excluded"]),
        (None, "opening", ["resolve m10:00 removed"]),
    ],
)
def test_a_message_that_may_have_been_sent_is_never_withdrawn(
    current: Alert | None, state: ReportState, expected: list[str]
) -> None:
    assert planned([current] if current else [], [report(OPEN, state, in_doubt=True)]) == expected


def test_an_alert_that_the_interval_did_not_change_is_not_opened() -> None:
    assert planned([opened("9:00", "9:10"), OPEN], [], {OPEN.id}) == ["open m10:00"]


def test_an_alert_whose_start_was_moved_continues_the_report_that_it_overlaps() -> None:
    moved, told = opened("9:55"), report(OPEN)
    assert planned([moved], [told]) == ["extend m10:00"]
    assert planned([opened("9:55", "10:20")], [told]) == ["resolve m10:00 recovered"]
    assert planned([opened("9:55", "10:20")], [replace(told, state="resolved")]) == []


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (opened("10:02"), ["open m10:02", "resolve m10:00 removed"]),
        (opened("9:50", "10:00"), ["open m9:50 recovered", "resolve m10:00 removed"]),
        (opened("10:01"), ["extend m10:00"]),
    ],
)
def test_an_alert_that_only_touches_a_reported_one_is_another(other: Alert, expected: list[str]) -> None:
    """The report reaches from 10:00 to 10:02."""
    assert planned([other], [report(OPEN)]) == expected


def test_an_alert_inside_the_time_of_a_report_whose_alert_still_exists_is_opened() -> None:
    told = report(opened("10:00", "10:30"), "resolved")
    assert planned([ENDED, opened("10:20")], [told]) == ["open m10:20"]


def test_of_an_alert_that_came_apart_the_open_part_continues_the_report() -> None:
    told = report(OPEN, known_until="10:20")
    assert planned([opened("10:03", "10:06"), opened("10:08")], [told]) == ["extend m10:00"]
    assert planned([opened("10:03", "10:06"), opened("10:08", "10:15")], [told]) == ["resolve m10:00 recovered"]


def test_of_two_reports_that_now_are_about_one_alert_the_older_one_continues() -> None:
    first, second = report(opened("10:00", "10:05")), report(opened("10:10"))
    assert planned([opened("9:58")], [first, second]) == ["extend m10:00", "resolve m10:10 merged"]


def test_a_merged_alert_that_ends_is_resolved_in_both_threads() -> None:
    first, second = report(opened("10:00", "10:05")), report(opened("10:10"))
    assert planned([opened("9:58", "10:30")], [first, second]) == [
        "resolve m10:00 recovered",
        "resolve m10:10 recovered",
    ]


def test_an_alert_that_opens_again_gets_a_new_thread_each_time() -> None:
    told = [report(OPEN, "resolved"), report(OPEN, "resolved", thread="m10:00-2")]
    assert planned([OPEN], told) == ["open m10:00-3"]
    assert planned([OPEN], [*told, report(OPEN, thread="m10:00-3")]) == ["extend m10:00-3"]


def test_what_is_removed_ends_at_the_latest_time_that_is_known_of_it() -> None:
    (change,) = plan_changes([], [report(OPEN, known_until="10:40")], set())
    assert change.alert.end == at("10:40")


def test_alerts_of_other_kinds_and_severities_are_not_those_that_were_reported() -> None:
    ticket = replace(OPEN, id="t", severity="ticket")
    assert planned([ticket], [report(OPEN)]) == ["open t", "resolve m10:00 removed"]
