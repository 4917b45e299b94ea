"""Notices that share a cause are one message, each miss in exactly one, however often somebody is killed."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.notices.incidents import IncidentNotice
from kafka_sla.ledger.notices.notice_queue import Batch
from kafka_sla.ledger.notices.outbox import Notice
from kafka_sla.model.entities import Interval, Miss, Patterns, Sla, SteadyState
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


def happened(ledger: Ledger, *misses: Miss, channel: str = "mail") -> None:
    """A run judges these misses, and queues what is new about them."""
    judged(ledger, *misses)
    for found in misses:
        ledger.outbox.enqueue(Notice("opened", found, channel=channel))
        if found.end:
            ledger.outbox.enqueue(Notice("recovered", found, channel=channel))


def by_cause(notices: Sequence[Notice]) -> list[str]:
    return [notice.miss.evidence["cause"] for notice in notices]


def delivered(ledger: Ledger) -> list[IncidentNotice]:
    sent: list[IncidentNotice] = []
    ledger.outbox.queue.deliver_together(sent.append, by_cause)
    return sent


def slas(notice: IncidentNotice) -> list[str]:
    return [one.miss.sla for one in notice.notices]


def test_notices_of_a_run_that_share_a_cause_are_one_message(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("clicks", cause="group clicks"), miss("payments"))

    brokers, clicks = delivered(ledger)

    assert (slas(brokers), slas(clicks)) == (["orders", "payments"], ["clicks"])
    assert (brokers.kind, brokers.incident, brokers.size, brokers.is_single) == ("opened", "orders 10:00", 2, False)
    assert clicks.is_single
    assert delivered(ledger) == []


def test_all_that_recover_in_a_run_are_one_message_that_names_what_is_still_missed(ledger: Ledger) -> None:
    happened(ledger, *(miss(name) for name in ("orders", "payments", "refunds")))
    (opened,) = delivered(ledger)

    happened(ledger, *(miss(name, end="10:30") for name in ("orders", "payments")))
    (some,) = delivered(ledger)
    happened(ledger, miss("refunds", end="10:40"))
    (last,) = delivered(ledger)

    assert (some.kind, some.incident, slas(some), some.size) == (
        "recovered",
        opened.incident,
        ["orders", "payments"],
        3,
    )
    assert [left.miss.sla for left in some.still_open] == ["refunds"]
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

    assert (more.incident, more.size, [left.miss.sla for left in more.still_open]) == (first.incident, 3, ["orders"])
    assert (over.incident, slas(over), over.size) == (first.incident, ["orders", "payments", "refunds"], 3)
    assert (another.incident, another.is_single) == ("orders 11:00", True)


def test_an_incident_of_which_nothing_is_open_any_more_does_not_go_on(ledger: Ledger) -> None:
    """Another SLA's miss, of another cause, goes on meanwhile."""
    happened(ledger, miss("clicks", "9:00", cause="group clicks"), miss("orders"))
    delivered(ledger)
    removed(ledger, "orders")
    happened(ledger, miss("payments", "10:05"))

    assert [notice.incident for notice in delivered(ledger)] == ["payments 10:05"]


def test_a_miss_that_begins_where_the_reported_one_ended_is_not_what_was_reported(ledger: Ledger) -> None:
    """The one of 10:00 was known until 10:02."""
    happened(ledger, miss("orders"))
    delivered(ledger)
    judged(ledger, miss("orders", "10:02"))
    ledger.outbox.enqueue(Notice("opened", miss("payments", "10:05")))

    assert [notice.incident for notice in delivered(ledger)] == ["payments 10:05"]


@pytest.mark.parametrize(("start", "incident"), [("33:59", "orders 10:00"), ("34:00", "payments 34:00")])
def test_an_incident_takes_up_what_opens_within_a_day_of_its_last_opening(
    ledger: Ledger, start: str, incident: str
) -> None:
    happened(ledger, miss("orders"))
    delivered(ledger)
    ledger.outbox.enqueue(Notice("opened", miss("payments", start)))

    assert [notice.incident for notice in delivered(ledger)] == [incident]


def test_of_two_incidents_of_a_cause_the_older_one_takes_up_what_opens_within_a_day_of_both(ledger: Ledger) -> None:
    found = []
    for name, start in (("orders", "0:00"), ("payments", "20:00"), ("refunds", "45:00"), ("clicks", "43:00")):
        happened(ledger, miss(name, start))
        found += [notice.incident for notice in delivered(ledger)]

    assert found == ["orders 0:00", "orders 0:00", "refunds 45:00", "orders 0:00"]


def test_misses_of_one_message_are_named_in_the_order_in_which_they_were_queued(ledger: Ledger) -> None:
    happened(ledger, *(miss(name) for name in ("payments", "orders", "clicks", "refunds")))
    sent: list[IncidentNotice] = []

    ledger.outbox.queue.deliver_together(sent.append, by_cause, ["clicks", "orders", "payments"])
    happened(ledger, miss("orders", end="10:30"))
    rest, over = delivered(ledger)

    assert [slas(notice) for notice in sent] == [["payments", "orders", "clicks"]]
    assert (slas(rest), rest.kind, rest.incident) == (["refunds"], "opened", "payments 10:00")
    assert [left.miss.sla for left in over.still_open] == ["payments", "clicks", "refunds"]


def test_what_follows_in_an_incident_waits_for_what_was_first_and_nothing_else_does(ledger: Ledger) -> None:
    happened(ledger, miss("orders"))
    sent: list[IncidentNotice] = []

    def send(notice: IncidentNotice) -> None:
        if slas(notice) == ["orders"]:
            raise ConnectionError("the mail server is down")
        sent.append(notice)

    for more in ((), (miss("payments", "10:05"), miss("clicks", "10:05", cause="group clicks"))):
        happened(ledger, *more)
        with pytest.raises(ConnectionError):
            ledger.outbox.queue.deliver_together(send, by_cause)

    assert [slas(notice) for notice in sent] == [["clicks"]]
    assert [(slas(notice), notice.incident) for notice in delivered(ledger)] == [
        (["orders"], "orders 10:00"),
        (["payments"], "orders 10:00"),
    ]


def test_what_ends_and_what_begins_in_one_run_are_two_messages(ledger: Ledger) -> None:
    happened(ledger, miss("orders"))
    delivered(ledger)

    happened(ledger, miss("orders", end="10:30"), miss("payments", "10:40"))

    assert [(notice.kind, slas(notice)) for notice in delivered(ledger)] == [
        ("recovered", ["orders"]),
        ("opened", ["payments"]),
    ]


def test_sending_to_one_channel_delays_no_other_channel(ledger: Ledger) -> None:
    happened(ledger, miss("orders"))
    happened(ledger, miss("clicks", cause="group clicks"), channel="chat")
    sent: list[IncidentNotice] = []

    with ThreadPoolExecutor(1) as other_run:

        def send(notice: IncidentNotice) -> None:
            other = other_run.submit(ledger.outbox.queue.deliver_together, sent.append, by_cause, None, ["chat"])
            other.result(timeout=60)
            sent.append(notice)

        ledger.outbox.queue.deliver_together(send, by_cause, None, ["mail"])

    assert [notice.channel for notice in sent] == ["chat", "mail"]


def test_two_deliveries_to_one_channel_send_no_message_twice(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("clicks", cause="group clicks"))
    sent: list[IncidentNotice] = []

    with ThreadPoolExecutor(1) as other_run:

        def send(notice: IncidentNotice) -> None:
            if not sent:
                wait([other_run.submit(ledger.outbox.queue.deliver_together, sent.append, by_cause)], timeout=0.5)
            sent.append(notice)

        ledger.outbox.queue.deliver_together(send, by_cause)

    assert [slas(notice) for notice in sent] == [["orders"], ["clicks"]]


def test_a_channel_waits_for_no_other(ledger: Ledger) -> None:
    for channel in ("mail", "chat"):
        happened(ledger, miss("orders"), channel=channel)
        happened(ledger, miss("orders", end="10:30"), channel=channel)
    sent: list[IncidentNotice] = []

    def send(notice: IncidentNotice) -> None:
        if notice.channel == "mail":
            raise ConnectionError("the mail server is down")
        sent.append(notice)

    with pytest.raises(ConnectionError):
        ledger.outbox.queue.deliver_together(send, by_cause)

    assert [(notice.channel, notice.kind) for notice in sent] == [("chat", "opened"), ("chat", "recovered")]


def test_what_was_queued_before_an_incident_is_no_part_of_it(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("payments", "10:05"))
    sent: list[IncidentNotice] = []

    ledger.outbox.queue.deliver_together(sent.append, by_cause, ["payments"])
    sent += delivered(ledger)
    happened(ledger, miss("refunds", "10:10"))
    sent += delivered(ledger)

    assert [(slas(notice), notice.incident, notice.size) for notice in sent] == [
        (["payments"], "payments 10:05", 1),
        (["orders"], "orders 10:00", 1),
        (["refunds"], "orders 10:00", 2),
    ], "of two that go on, what follows joins the older one"


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
        assert [[left.miss.sla for left in one.still_open] for one in notices] == [["orders"], []]


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
    ledger.outbox.enqueue(Notice("recovered", miss("orders", end="10:30")))
    delivered(ledger)
    for channel in ("mail", "chat"):
        happened(ledger, miss("refunds", "10:40"), channel=channel)

    assert [(one.channel, [left.miss.sla for left in one.still_open]) for one in delivered(ledger)] == [
        ("mail", ["payments"]),
        ("chat", ["orders", "payments"]),
    ]


def test_a_message_names_as_open_what_was_open_by_the_messages_before_it(ledger: Ledger) -> None:
    """Late facts open orders again, whose end is on its way: behind a message that failed."""
    happened(ledger, miss("orders"), miss("payments"))
    delivered(ledger)
    ledger.outbox.enqueue(Notice("opened", miss("refunds", "10:40")))

    def send(notice: IncidentNotice) -> None:
        raise ConnectionError("the mail server is down")

    with pytest.raises(ConnectionError):
        ledger.outbox.queue.deliver_together(send, by_cause)
    ledger.outbox.enqueue(Notice("recovered", miss("orders", end="10:30")))

    assert [(slas(one), [left.miss.sla for left in one.still_open]) for one in delivered(ledger)] == [
        (["refunds"], ["orders", "payments"]),
        (["orders"], ["payments"]),
    ]


def test_a_message_counts_and_names_only_what_was_reported_before_it(ledger: Ledger) -> None:
    happened(ledger, miss("orders"))
    happened(ledger, miss("refunds", "10:02", cause="group refunds"))

    def send(notice: IncidentNotice) -> None:
        raise ConnectionError("the mail server is down")

    with pytest.raises(ExceptionGroup):
        ledger.outbox.queue.deliver_together(send, by_cause)
    happened(ledger, miss("payments", "10:05"))
    sent = delivered(ledger)

    assert [(slas(one), one.size, [left.miss.sla for left in one.still_open]) for one in sent] == [
        (["orders"], 1, []),
        (["refunds"], 1, []),
        (["payments"], 2, ["orders"]),
    ]


def test_what_was_mailed_together_is_not_what_others_heard(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), channel="chat")
    happened(ledger, miss("payments"))
    happened(ledger, miss("refunds"), miss("clicks"))
    delivered(ledger)
    happened(ledger, miss("refunds", end="10:30"))
    delivered(ledger)

    assert [other.sla for other in ledger.incidents.reported_with(miss("clicks"))] == ["payments", "refunds"]
    assert ledger.incidents.reported_with(miss("orders")) == []
    assert ledger.incidents.of([miss("orders"), miss("clicks")]) == {"clicks 10:00": "payments 10:00"}
    assert ledger.incidents.of([]) == {}


def test_a_miss_that_several_channels_heard_of_was_mailed_once(ledger: Ledger) -> None:
    for channel in ("mail", "chat"):
        happened(ledger, miss("orders"), miss("payments"), channel=channel)
    delivered(ledger)

    assert [other.sla for other in ledger.incidents.reported_with(miss("payments"))] == ["orders"]


def test_what_a_channel_put_together_was_mailed_apart(ledger: Ledger) -> None:
    over, later = miss("orders", end="10:30"), miss("payments", "11:00")
    for found in (over, later):
        happened(ledger, found)
        delivered(ledger)
    happened(ledger, over, later, channel="chat")
    assert delivered(ledger)[0].size == 2

    assert ledger.incidents.reported_with(later) == []


def test_a_miss_that_a_rerun_removed_is_not_named_as_still_missed(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("payments"))
    delivered(ledger)
    removed(ledger, "payments")

    happened(ledger, miss("orders", end="10:30"))

    assert [notice.still_open for notice in delivered(ledger)] == [()]


def test_channels_have_incidents_of_their_own_and_one_that_fails_keeps_its_message(ledger: Ledger) -> None:
    for channel in ("mail", "chat"):
        happened(ledger, miss("orders"), miss("payments"), channel=channel)
    sent: list[IncidentNotice] = []

    def send(notice: IncidentNotice) -> None:
        if notice.channel == "chat":
            raise ConnectionError("the chat is down")
        sent.append(notice)

    with pytest.raises(ConnectionError):
        ledger.outbox.queue.deliver_together(send, by_cause)
    happened(ledger, miss("refunds"), channel="chat")
    later = delivered(ledger)

    assert [slas(notice) for notice in sent] == [["orders", "payments"]]
    assert [(notice.channel, slas(notice)) for notice in later] == [
        ("chat", ["orders", "payments"]),
        ("chat", ["refunds"]),
    ]


def test_a_recovery_of_what_an_earlier_version_reported_is_on_its_own(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("payments"))
    ledger.outbox.queue.deliver(lambda _: None)  # as before there were incidents

    happened(ledger, miss("orders", end="10:30"), miss("payments", end="10:30"))

    assert [(notice.incident, notice.is_single) for notice in delivered(ledger)] == [
        ("orders 10:00", True),
        ("payments 10:00", True),
    ]


def test_the_misses_that_were_mailed_together_are_found_from_each(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("payments"), miss("clicks", cause="group clicks"))
    delivered(ledger)

    assert [other.sla for other in ledger.incidents.reported_with(miss("payments"))] == ["orders"]
    assert ledger.incidents.reported_with(miss("clicks")) == []
    assert ledger.incidents.of([miss("payments"), miss("clicks"), miss("refunds")]) == {
        "payments 10:00": "orders 10:00",
        "clicks 10:00": "clicks 10:00",
    }


def killed_after_sending(store: Store, file: str) -> None:
    """Sends one message, and dies before anything can be marked."""

    def send(notice: IncidentNotice) -> None:
        with Path(file).open("a") as lines:
            lines.write(f"{notice.incident}: {' '.join(slas(notice))}\n")
        os._exit(9)

    Ledger(store).outbox.queue.deliver_together(send, by_cause)


def test_five_hundred_misses_are_one_message_and_the_same_one_when_its_sender_was_killed(
    store: Store, tmp_path: Path
) -> None:
    ledger = Ledger(store)
    names = [f"sla-{number:03}" for number in range(500 if "sqlite" in str(store.url) else 50)]
    for name in names:
        ledger.outbox.enqueue(Notice("opened", miss(name)))
    file = tmp_path / "sent"
    sender = multiprocessing.get_context("spawn").Process(target=killed_after_sending, args=(store, str(file)))
    sender.start()
    sender.join()
    ledger.outbox.enqueue(Notice("opened", replace(miss("too late"), start=at("10:01"))))

    again, late = delivered(ledger)

    assert sender.exitcode == 9
    assert file.read_text() == f"{again.incident}: {' '.join(names)}\n"
    assert (slas(again), slas(late)) == (names, ["too late"])


@pytest.mark.parametrize(("began", "over"), [("opened", "recovered"), ("began", "over")])
def test_a_message_is_about_one_unless_others_were_reported_with_it(began: str, over: str) -> None:
    def single(kind: str, notices: int, size: int) -> bool:
        return Batch(kind, "mail", "i1", tuple(range(notices)), (), size).is_single

    assert [single(began, 1, 1), single(began, 1, 3), single(over, 1, 1)] == [True] * 3
    assert [single(over, 1, 3), single(began, 2, 2), single(over, 2, 2)] == [False] * 3
