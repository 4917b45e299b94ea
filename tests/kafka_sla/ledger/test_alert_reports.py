"""Alerts that share a cause are one message, each alert in exactly one, however often somebody is killed."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from kafka_sla.config.store import Store
from kafka_sla.errors import WebhookRefused, WebhookUnavailable
from kafka_sla.ledger.alerts.alert_reports import Delivery
from kafka_sla.ledger.alerts.report_plan import Opening
from kafka_sla.ledger.alerts.report_rows import AlertMessage
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, Miss, Patterns, Sla, SteadyState
from kafka_sla.sla.alerts import Alert, Change, plan_changes
from tests.kafka_sla.loads import MINUTE, at

DAY = Interval(at("0:00"), at("24:00"))


def miss(sla: str, start: str = "10:00", end: str | None = None, cause: str = "brokers") -> Miss:
    begun = at(start)
    return Miss(
        f"{sla} {start}",
        sla,
        "prod",
        begun,
        at(end) if end else None,
        begun + 2 * MINUTE,
        2,
        True,
        45_000.0,
        None,
        None,
        begun,
        "billing.alerts-v2",
        "billing.alerts-authorised-v2",
        0,
        {"cause": cause},
        state="recovered" if end else "open",
        bad_until=at(end) if end else begun + 2 * MINUTE,
        max_latency_ms=30_000,
        for_ms=120_000,
    )


def judged(ledger: Ledger, *misses: Miss) -> None:
    """These are the misses of their SLAs, and nothing else is."""
    for found in misses:
        sla = Sla(found.sla, "prod", Patterns(), Patterns(), 30_000, 120_000, 0.999, SteadyState(30_000))
        ledger.verdicts.replace(sla, DAY, [], lambda *_, found=found: [found])  # type: ignore[misc]


def removed(ledger: Ledger, name: str) -> None:
    """A rerun finds no miss of the SLA."""
    sla = Sla(name, "prod", Patterns(), Patterns(), 30_000, 120_000, 0.999, SteadyState(30_000))
    ledger.verdicts.replace(sla, DAY, [], lambda *_: [])


def alert_of(miss: Miss) -> Alert:
    return Alert(
        "miss",
        miss.id,
        miss.sla,
        "page",
        miss.start,
        miss.end,
        miss.end or miss.opened_at,
        "recovered" if miss.end else "",
        miss,
    )


def sla_of(name: str) -> Sla:
    return Sla(name, "prod", Patterns(), Patterns(), 30_000, 120_000, 0.999, SteadyState(30_000))


def same_address(_: Sla, channel: str) -> str:
    return channel


def plan(ledger: Ledger, names: Sequence[str], channel: str = "mail") -> None:
    """Record what is new about the misses of these SLAs, in this order."""
    with ledger.alert_reports.planning() as planned:
        changes, openings = find_changes(ledger, names, channel)
        planned.update(changes, None)
        planned.open(openings, same_address)


def find_changes(ledger: Ledger, names: Sequence[str], channel: str) -> tuple[list[Change], list[Opening]]:
    known = [*ledger.alert_reports.unresolved(names), *ledger.alert_reports.resolved_since(names, DAY.start)]
    changes: list[Change] = []
    openings: list[Opening] = []
    for name in names:
        alerts = [alert_of(found) for found in ledger.verdicts.misses(name)]
        reports = sorted((r for r in known if (r.channel, r.alert.sla) == (channel, name)), key=lambda r: r.seq)
        for change in plan_changes(alerts, reports, {alert.id for alert in alerts}):
            if change.report:
                changes.append(change)
            elif change.alert.miss:
                cause, ended = change.alert.miss.evidence["cause"], change.alert.end is not None
                openings.append(Opening(channel, change.thread, change.alert, sla_of(name), None, cause, ended))
    return changes, openings


def happened(ledger: Ledger, *misses: Miss, channel: str = "mail") -> None:
    """A run judges these misses, and records what is new about them."""
    judged(ledger, *misses)
    plan(ledger, [found.sla for found in misses], channel)


def deliver(
    ledger: Ledger,
    send: Callable[[AlertMessage], None],
    slas: Sequence[str] | None = None,
    channels: Sequence[str] | None = None,
) -> Delivery:
    """Send what is unsent, and raise nothing."""
    whole = Delivery()
    unsent = dict.fromkeys(report.channel for report in ledger.alert_reports.unsent())
    for channel in channels or unsent:
        part = ledger.alert_reports.deliver(channel, send, lambda sla: slas is None or sla in slas, same_address)
        whole.sent += part.sent
        whole.errors += part.errors
    return whole


def delivered(ledger: Ledger) -> list[AlertMessage]:
    sent: list[AlertMessage] = []
    assert not deliver(ledger, sent.append).errors
    return sent


def slas(message: AlertMessage) -> list[str]:
    return [report.alert.sla for report in message.reports]


def left(message: AlertMessage) -> list[str]:
    return [report.alert.sla for report in message.still_open]


def test_notices_of_a_run_that_share_a_cause_are_one_message(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("clicks", cause="group clicks"), miss("payments"))

    brokers, clicks = delivered(ledger)

    assert (slas(brokers), slas(clicks)) == (["orders", "payments"], ["clicks"])
    assert (brokers.state, brokers.incident, brokers.size, brokers.is_single) == ("open", "orders 10:00", 2, False)
    assert clicks.is_single
    assert delivered(ledger) == []


def test_all_that_recover_in_a_run_are_one_message_that_names_what_is_still_missed(ledger: Ledger) -> None:
    happened(ledger, *(miss(name) for name in ("orders", "payments", "refunds")))
    (opened,) = delivered(ledger)

    happened(ledger, *(miss(name, end="10:30") for name in ("orders", "payments")))
    (some,) = delivered(ledger)
    happened(ledger, miss("refunds", end="10:40"))
    (last,) = delivered(ledger)

    assert (some.state, some.incident, slas(some), some.size) == (
        "resolved",
        opened.incident,
        ["orders", "payments"],
        3,
    )
    assert left(some) == ["refunds"]
    assert (slas(last), last.still_open, last.size, last.is_single) == (["refunds"], (), 3, False)


def test_a_miss_that_opens_later_by_the_same_cause_joins_the_incident_while_it_goes_on(ledger: Ledger) -> None:
    happened(ledger, miss("orders"))
    (first,) = delivered(ledger)
    happened(ledger, miss("payments", "10:05"), miss("refunds", "10:05"))
    (more,) = delivered(ledger)
    happened(
        ledger,
        *(
            miss(name, start, "10:30")
            for name, start in (("orders", "10:00"), ("payments", "10:05"), ("refunds", "10:05"))
        ),
    )
    (over,) = delivered(ledger)
    happened(ledger, miss("orders", "11:00"))
    (another,) = delivered(ledger)

    assert (more.incident, more.size, left(more)) == (first.incident, 3, ["orders"])
    assert (over.incident, slas(over), over.size) == (first.incident, ["orders", "payments", "refunds"], 3)
    assert (another.incident, another.is_single) == ("orders 11:00", True)


def test_an_alert_does_not_join_an_incident_that_is_resolved(ledger: Ledger) -> None:
    """Another SLA's miss, of another cause, is open meanwhile."""
    happened(ledger, miss("clicks", "9:00", cause="group clicks"), miss("orders"))
    delivered(ledger)
    removed(ledger, "orders")
    judged(ledger, miss("payments", "10:05"))
    plan(ledger, ["orders", "payments"])

    assert [(message.state, message.incident) for message in delivered(ledger)] == [
        ("resolved", "orders 10:00"),
        ("open", "payments 10:05"),
    ]


def test_a_miss_that_begins_where_the_reported_one_ended_is_another(ledger: Ledger) -> None:
    """The one of 10:00 was known until 10:02."""
    happened(ledger, miss("orders"))
    delivered(ledger)
    happened(ledger, miss("orders", "10:02"))

    assert [(message.state, message.incident) for message in delivered(ledger)] == [
        ("resolved", "orders 10:00"),
        ("open", "orders 10:02"),
    ]


@pytest.mark.parametrize(("start", "incident"), [("33:59", "orders 10:00"), ("34:00", "payments 34:00")])
def test_an_incident_takes_up_what_opens_within_a_day_of_its_last_opening(
    ledger: Ledger, start: str, incident: str
) -> None:
    happened(ledger, miss("orders"))
    delivered(ledger)
    happened(ledger, miss("payments", start))

    assert [notice.incident for notice in delivered(ledger)] == [incident]


def test_of_two_incidents_of_a_cause_the_older_one_takes_up_what_opens_within_a_day_of_both(ledger: Ledger) -> None:
    found = []
    for name, start in (("orders", "0:00"), ("payments", "20:00"), ("refunds", "45:00"), ("clicks", "43:00")):
        happened(ledger, miss(name, start))
        found += [notice.incident for notice in delivered(ledger)]

    assert found == ["orders 0:00", "orders 0:00", "refunds 45:00", "orders 0:00"]


def test_misses_of_one_message_are_named_in_the_order_in_which_they_were_queued(ledger: Ledger) -> None:
    happened(ledger, *(miss(name) for name in ("payments", "orders", "clicks", "refunds")))
    sent: list[AlertMessage] = []

    deliver(ledger, sent.append, ["clicks", "orders", "payments"])
    happened(ledger, miss("orders", end="10:30"))
    rest, over = delivered(ledger)

    assert [slas(notice) for notice in sent] == [["payments", "orders", "clicks"]]
    assert (slas(rest), rest.state, rest.incident) == (["refunds"], "open", "payments 10:00")
    assert left(over) == ["payments", "clicks", "refunds"]


def test_what_follows_in_an_incident_waits_for_what_was_first_and_nothing_else_does(ledger: Ledger) -> None:
    happened(ledger, miss("orders"))
    sent: list[AlertMessage] = []

    def send(notice: AlertMessage) -> None:
        if slas(notice) == ["orders"]:
            raise ConnectionError("the mail server is down")
        sent.append(notice)

    for more in ((), (miss("payments", "10:05"), miss("clicks", "10:05", cause="group clicks"))):
        happened(ledger, *more)
        assert deliver(ledger, send).errors

    assert [slas(notice) for notice in sent] == [["clicks"]]
    assert [(slas(notice), notice.incident) for notice in delivered(ledger)] == [
        (["orders"], "orders 10:00"),
        (["payments"], "orders 10:00"),
    ]


def test_what_ends_and_what_begins_in_one_run_are_two_messages(ledger: Ledger) -> None:
    happened(ledger, miss("orders"))
    delivered(ledger)

    happened(ledger, miss("orders", end="10:30"), miss("payments", "10:40"))

    assert [(notice.state, slas(notice)) for notice in delivered(ledger)] == [
        ("resolved", ["orders"]),
        ("open", ["payments"]),
    ]


def test_sending_to_one_channel_delays_no_other_channel(ledger: Ledger) -> None:
    happened(ledger, miss("orders"))
    happened(ledger, miss("clicks", cause="group clicks"), channel="chat")
    sent: list[AlertMessage] = []

    with ThreadPoolExecutor(1) as other_run:

        def send(notice: AlertMessage) -> None:
            other = other_run.submit(deliver, ledger, sent.append, None, ["chat"])
            other.result(timeout=60)
            sent.append(notice)

        deliver(ledger, send, None, ["mail"])

    assert [notice.channel for notice in sent] == ["chat", "mail"]


def test_two_deliveries_to_one_channel_send_no_message_twice(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("clicks", cause="group clicks"))
    sent: list[AlertMessage] = []

    with ThreadPoolExecutor(1) as other_run:

        def send(notice: AlertMessage) -> None:
            if not sent:
                wait([other_run.submit(deliver, ledger, sent.append)], timeout=0.5)
            sent.append(notice)

        deliver(ledger, send)

    assert [slas(notice) for notice in sent] == [["orders"], ["clicks"]]


def test_a_channel_waits_for_no_other(ledger: Ledger) -> None:
    for channel in ("mail", "chat"):
        happened(ledger, miss("orders"), channel=channel)
        happened(ledger, miss("orders", end="10:30"), channel=channel)
    sent: list[AlertMessage] = []

    def send(notice: AlertMessage) -> None:
        if notice.channel == "mail":
            raise ConnectionError("the mail server is down")
        sent.append(notice)

    assert deliver(ledger, send).errors

    assert [(notice.channel, notice.state) for notice in sent] == [("chat", "open"), ("chat", "resolved")]


def test_a_recovery_belongs_to_the_incident_of_its_own_opening_on_its_own_channel(ledger: Ledger) -> None:
    """Chat hears of payments alone, mail of an incident that began with orders."""
    happened(ledger, miss("clicks", "9:00", cause="group clicks"), miss("orders"))
    delivered(ledger)
    for channel in ("mail", "chat"):
        happened(ledger, miss("payments", "10:05"), channel=channel)
    opened = delivered(ledger)
    for channel in ("mail", "chat"):
        happened(ledger, miss("payments", "10:05", "10:30"), channel=channel)
    over = delivered(ledger)

    for notices in (opened, over):
        assert [(one.channel, one.incident, one.size) for one in notices] == [
            ("mail", "orders 10:00", 2),
            ("chat", "payments 10:05", 1),
        ]
        assert [left(one) for one in notices] == [["orders"], []]


def test_two_that_recover_in_one_run_are_each_of_their_own_incident(ledger: Ledger) -> None:
    happened(ledger, miss("clicks", cause="group clicks"), miss("orders"))
    delivered(ledger)

    happened(ledger, miss("clicks", end="10:30", cause="group clicks"), miss("orders", end="10:30"))

    assert [(notice.incident, slas(notice)) for notice in delivered(ledger)] == [
        ("clicks 10:00", ["clicks"]),
        ("orders 10:00", ["orders"]),
    ]


def test_a_miss_whose_end_a_channel_was_told_is_not_named_as_open_there(ledger: Ledger) -> None:
    """Late facts open it again, but nobody is told of the same miss twice."""
    for channel in ("mail", "chat"):
        happened(ledger, miss("orders"), miss("payments"), channel=channel)
    delivered(ledger)
    happened(ledger, miss("orders", end="10:30"))
    delivered(ledger)
    for channel in ("mail", "chat"):
        happened(ledger, miss("refunds", "10:40"), channel=channel)

    assert [(one.channel, left(one)) for one in delivered(ledger)] == [
        ("mail", ["payments"]),
        ("chat", ["orders", "payments"]),
    ]


def test_a_message_names_as_open_what_was_open_by_the_messages_before_it(ledger: Ledger) -> None:
    """Late facts open orders again, whose end is on its way: behind a message that failed."""
    happened(ledger, miss("orders"), miss("payments"))
    delivered(ledger)
    happened(ledger, miss("refunds", "10:40"))

    def send(notice: AlertMessage) -> None:
        raise ConnectionError("the mail server is down")

    assert deliver(ledger, send).errors
    happened(ledger, miss("orders", end="10:30"))

    assert [(slas(one), left(one)) for one in delivered(ledger)] == [
        (["refunds"], ["orders", "payments"]),
        (["orders"], ["payments", "refunds"]),
    ]


def test_a_message_counts_and_names_only_what_was_reported_before_it(ledger: Ledger) -> None:
    happened(ledger, miss("orders"))
    happened(ledger, miss("refunds", "10:02", cause="group refunds"))

    def send(notice: AlertMessage) -> None:
        raise ConnectionError("the mail server is down")

    assert deliver(ledger, send).errors
    happened(ledger, miss("payments", "10:05"))
    sent = delivered(ledger)

    assert [(slas(one), one.size, left(one)) for one in sent] == [
        (["orders"], 1, []),
        (["refunds"], 1, []),
        (["payments"], 2, ["orders"]),
    ]


def test_misses_of_a_mailed_incident_are_not_those_that_other_channels_heard_of(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), channel="chat")
    happened(ledger, miss("payments"))
    happened(ledger, miss("refunds"), miss("clicks"))
    delivered(ledger)
    happened(ledger, miss("refunds", end="10:30"))
    delivered(ledger)

    assert [other.sla for other in ledger.alert_reports.reported_with(miss("clicks"))] == ["payments", "refunds"]
    assert ledger.alert_reports.reported_with(miss("orders")) == []
    assert ledger.alert_reports.incidents_of([miss("orders"), miss("clicks")]) == {"clicks 10:00": "payments 10:00"}
    assert ledger.alert_reports.incidents_of([]) == {}


def test_a_miss_that_several_channels_heard_of_was_mailed_once(ledger: Ledger) -> None:
    for channel in ("mail", "chat"):
        happened(ledger, miss("orders"), miss("payments"), channel=channel)
    delivered(ledger)

    assert [other.sla for other in ledger.alert_reports.reported_with(miss("payments"))] == ["orders"]


def test_what_a_channel_put_together_was_mailed_apart(ledger: Ledger) -> None:
    over, later = miss("orders", end="10:30"), miss("payments", "11:00")
    for found in (over, later):
        happened(ledger, found)
        delivered(ledger)
    happened(ledger, over, later, channel="chat")
    assert delivered(ledger)[0].size == 2

    assert ledger.alert_reports.reported_with(later) == []


def test_a_miss_that_a_rerun_removed_is_resolved_and_not_named_as_open(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("payments"))
    delivered(ledger)
    removed(ledger, "payments")
    judged(ledger, miss("orders", end="10:30"))
    plan(ledger, ["orders", "payments"])

    (message,) = delivered(ledger)
    assert [(report.alert.sla, report.alert.end_reason) for report in message.reports] == [
        ("orders", "recovered"),
        ("payments", "removed"),
    ]
    assert message.still_open == ()


def test_channels_have_incidents_of_their_own_and_one_that_fails_keeps_its_message(ledger: Ledger) -> None:
    for channel in ("mail", "chat"):
        happened(ledger, miss("orders"), miss("payments"), channel=channel)
    sent: list[AlertMessage] = []

    def send(notice: AlertMessage) -> None:
        if notice.channel == "chat":
            raise ConnectionError("the chat is down")
        sent.append(notice)

    assert deliver(ledger, send).errors
    happened(ledger, miss("refunds"), channel="chat")
    later = delivered(ledger)

    assert [slas(notice) for notice in sent] == [["orders", "payments"]]
    assert [(notice.channel, slas(notice)) for notice in later] == [
        ("chat", ["orders", "payments"]),
        ("chat", ["refunds"]),
    ]


def test_the_misses_that_were_mailed_together_are_found_from_each(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("payments"), miss("clicks", cause="group clicks"))
    delivered(ledger)

    assert [other.sla for other in ledger.alert_reports.reported_with(miss("payments"))] == ["orders"]
    assert ledger.alert_reports.reported_with(miss("clicks")) == []
    assert ledger.alert_reports.incidents_of([miss("payments"), miss("clicks"), miss("refunds")]) == {
        "payments 10:00": "orders 10:00",
        "clicks 10:00": "clicks 10:00",
    }


def killed_after_sending(store: Store, file: str) -> None:
    """Sends one message, and dies before anything can be marked."""

    def send(notice: AlertMessage) -> None:
        with Path(file).open("a") as lines:
            lines.write(f"{notice.incident}: {' '.join(slas(notice))}\n")
        os._exit(9)

    deliver(Ledger(store), send)


def test_five_hundred_misses_are_one_message_and_the_same_one_when_its_sender_was_killed(
    store: Store, tmp_path: Path
) -> None:
    ledger = Ledger(store)
    names = [f"sla-{number:03}" for number in range(500 if "sqlite" in str(store.url) else 50)]
    happened(ledger, *(miss(name) for name in names))
    file = tmp_path / "sent"
    sender = multiprocessing.get_context("spawn").Process(target=killed_after_sending, args=(store, str(file)))
    sender.start()
    sender.join()
    happened(ledger, miss("too late", "10:01"))

    again, late = delivered(ledger)

    assert sender.exitcode == 9
    assert file.read_text() == f"{again.incident}: {' '.join(names)}\n"
    assert (slas(again), slas(late)) == (names, ["too late"])


NAMES = ["orders", "payments", "clicks"]


def repeat(ledger: Ledger, channel: str, send: Callable[[AlertMessage], None]) -> list[Exception]:
    """Repeat what is open of the misses that the ledger has."""
    is_open = {miss.id for miss in ledger.verdicts.misses(open_only=True)}
    going_on = [r.seq for r in ledger.alert_reports.unresolved(NAMES) if r.alert_id in is_open]
    return ledger.alert_reports.repeat(channel, send, going_on, same_address)


def repeated(ledger: Ledger, channel: str = "mail") -> list[AlertMessage]:
    again: list[AlertMessage] = []
    assert not repeat(ledger, channel, again.append)
    return again


def test_an_incident_is_repeated_as_it_was_reported_as_often_as_one_wants(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("payments"), miss("clicks", cause="group clicks"))
    assert repeated(ledger) == []
    first = delivered(ledger)

    assert repeated(ledger) == repeated(ledger)
    assert [(again.state, again.incident, slas(again)) for again in repeated(ledger)] == [
        (message.state, message.incident, slas(message)) for message in first
    ]
    assert delivered(ledger) == []


def test_resolved_alerts_and_other_channels_are_not_repeated(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("payments"), miss("clicks"))
    delivered(ledger)
    assert repeated(ledger, "chat") == []

    happened(ledger, miss("orders", end="10:30"))
    removed(ledger, "payments")
    assert [slas(message) for message in repeated(ledger)] == [["clicks"]]

    judged(ledger, miss("clicks", end="10:40"))
    assert repeated(ledger) == []


def test_a_resolution_does_not_overtake_the_alert_that_is_being_repeated(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("payments"))
    delivered(ledger)
    order: list[str] = []

    def recover_and_deliver() -> None:
        happened(ledger, miss("payments", end="10:30"))
        deliver(ledger, lambda _: order.append("recovered"))

    with ThreadPoolExecutor() as pool:

        def send(_: AlertMessage) -> None:
            wait([pool.submit(recover_and_deliver)], timeout=0.5)
            order.append("repeated")

        repeat(ledger, "mail", send)

    assert order == ["repeated", "recovered"]


def test_a_refused_repetition_keeps_no_other_from_being_sent(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("clicks", cause="group clicks"))
    delivered(ledger)
    tried: list[str] = []

    def send(message: AlertMessage) -> None:
        tried.extend(slas(message))
        raise WebhookRefused("it answered 400")

    assert len(repeat(ledger, "mail", send)) == 2
    assert sorted(tried) == ["clicks", "orders"]


def test_a_receiver_that_is_not_there_is_tried_once(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("clicks", cause="group clicks"))
    delivered(ledger)
    tried: list[str] = []

    def send(message: AlertMessage) -> None:
        tried.extend(slas(message))
        raise WebhookUnavailable("no answer")

    assert len(repeat(ledger, "mail", send)) == 1
    assert tried == ["orders"]


def test_an_end_that_nobody_was_told_of_is_withdrawn_when_the_miss_goes_on(ledger: Ledger) -> None:
    happened(ledger, miss("orders"))
    delivered(ledger)
    happened(ledger, miss("orders", end="10:10"))
    happened(ledger, miss("orders"))

    assert delivered(ledger) == []


def test_a_message_that_failed_is_withdrawn_and_one_that_may_have_been_sent_is_not(store: Store) -> None:
    ledger = Ledger(store)
    happened(ledger, miss("orders"), miss("payments", "9:00", cause="group payments"))
    sender = multiprocessing.get_context("spawn").Process(target=killed_after_sending, args=(store, os.devnull))
    sender.start()
    sender.join()
    for name in ("orders", "payments"):
        removed(ledger, name)
    plan(ledger, ["orders", "payments"])

    assert [(message.state, slas(message)) for message in delivered(ledger)] == [
        ("open", ["orders"]),
        ("resolved", ["orders"]),
    ]


def test_a_miss_that_opens_again_is_reported_in_a_thread_of_its_own(ledger: Ledger) -> None:
    threads = []
    for _ in range(3):
        happened(ledger, miss("orders"))
        threads += [report.thread for message in delivered(ledger) for report in message.reports]
        happened(ledger, miss("orders", end="10:10"))
        delivered(ledger)

    assert threads == ["orders 10:00", "orders 10:00-2", "orders 10:00-3"]


def deliver_into(store: Store, file: str) -> None:
    ledger, names = Ledger(store), [f"sla-{number:02}" for number in range(20)]
    plan(ledger, names)

    def send(message: AlertMessage) -> None:
        with Path(file).open("a") as lines:
            lines.write(f"{message.incident}\n")

    deliver(ledger, send)


@pytest.mark.slow
def test_four_processes_at_once_send_each_message_once(store: Store, tmp_path: Path) -> None:
    file, names = tmp_path / "sent", [f"sla-{number:02}" for number in range(20)]
    judged(Ledger(store), *(miss(name, cause=f"group {name}") for name in names))
    spawn = multiprocessing.get_context("spawn")
    senders = [spawn.Process(target=deliver_into, args=(store, str(file))) for _ in range(4)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()

    assert [sender.exitcode for sender in senders] == [0] * 4
    assert sorted(file.read_text().splitlines()) == [f"{name} 10:00" for name in names]
