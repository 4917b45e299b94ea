"""What receivers that forget are told again: what they were told that began, and goes on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import pytest

from kafka_sla.errors import WebhookRefused, WebhookUnavailable
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.notices.burn_notices import BurnMessage, BurnNotice
from kafka_sla.ledger.notices.incidents import IncidentNotice
from kafka_sla.ledger.notices.outbox import Notice
from kafka_sla.model.entities import BurnPair
from kafka_sla.sla.burn import Burn
from tests.kafka_sla.ledger.notices.test_incidents import (
    DAY,
    by_cause,
    delivered,
    happened,
    judged,
    miss,
    removed,
    slas,
)
from tests.kafka_sla.loads import at

NAMES = ["orders", "payments", "clicks"]
CHANNELS = ["mail"]


def repeated(ledger: Ledger, channels: list[str] = CHANNELS) -> list[IncidentNotice]:
    again: list[IncidentNotice] = []
    ledger.outbox.queue.repeat_together(again.append, NAMES, channels)
    return again


def test_an_incident_is_told_again_as_it_was_told_first_as_often_as_one_asks(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("payments"), miss("clicks", cause="group clicks"))
    assert repeated(ledger) == []
    told = delivered(ledger)

    assert repeated(ledger) == repeated(ledger)
    assert [(one.kind, one.incident, one.notices) for one in sorted(repeated(ledger), key=lambda one: -one.size)] == [
        (one.kind, one.incident, one.notices) for one in told
    ]
    assert delivered(ledger) == []


def test_what_is_over_removed_or_was_told_to_others_is_not_told_again(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("payments"), miss("clicks"))
    delivered(ledger)
    assert repeated(ledger, ["chat"]) == []

    happened(ledger, miss("orders", end="10:30"))
    removed(ledger, "payments")
    assert [slas(one) for one in repeated(ledger)] == [["clicks"]]

    judged(ledger, miss("clicks", end="10:40"))
    assert repeated(ledger) == []


def test_a_resolution_does_not_overtake_the_alert_that_is_being_repeated(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("payments"))
    delivered(ledger)
    order: list[str] = []

    def recover_and_deliver() -> None:
        ledger.outbox.enqueue(Notice("recovered", miss("payments", end="10:30")))
        ledger.outbox.queue.deliver_together(lambda _: order.append("recovered"), by_cause, NAMES, CHANNELS)

    with ThreadPoolExecutor() as pool:

        def send(_: IncidentNotice) -> None:
            wait([pool.submit(recover_and_deliver)], timeout=0.5)
            order.append("repeated")

        ledger.outbox.queue.repeat_together(send, NAMES, CHANNELS)

    assert order == ["repeated", "recovered"]


def test_one_that_is_refused_keeps_no_other_from_being_told_again(ledger: Ledger) -> None:
    happened(ledger, miss("orders"), miss("clicks", cause="group clicks"))
    delivered(ledger)
    asked: list[str] = []

    def send(notice: IncidentNotice) -> None:
        asked.extend(slas(notice))
        raise WebhookRefused("it answered 400")

    with pytest.raises(WebhookRefused):
        ledger.outbox.queue.repeat_together(send, NAMES, CHANNELS)
    assert sorted(asked) == ["clicks", "orders"]


def test_a_receiver_that_is_not_there_is_tried_once(ledger: Ledger) -> None:
    for channel in ("alerts", "others"):
        happened(ledger, miss("orders"), miss("clicks", cause="group clicks"), channel=channel)
    delivered(ledger)
    asked: list[str] = []

    def send(notice: IncidentNotice) -> None:
        asked.append(notice.channel)
        if notice.channel == "alerts":
            raise WebhookUnavailable("no answer")

    with pytest.raises(WebhookUnavailable):
        ledger.outbox.queue.repeat_together(send, NAMES, ["alerts", "others"])
    assert sorted(asked) == ["alerts", "others", "others"]


def test_a_burn_is_told_again_until_it_is_over(ledger: Ledger) -> None:
    pair = BurnPair(14.4, 3_600_000, 300_000, "page", 300_000)
    burn = Burn("b1", "orders", "prod", "page", at("10:00"), None, 83.4, pair)
    over = replace(burn, end=at("11:00"))
    sent: list[BurnMessage] = []

    for found in (burn, over):
        ledger.burns.replace(["orders"], DAY, lambda *_, found=found: [found])  # type: ignore[misc]
        for kind in ("began", "over") if found.end else ("began",):
            ledger.burn_notices.enqueue(BurnNotice(kind, found, None, "mail"))
        ledger.burn_notices.queue.deliver_together(
            lambda _: None, lambda notices: ["" for _ in notices], NAMES, CHANNELS
        )
        for _ in range(2):
            ledger.burn_notices.queue.repeat_together(sent.append, NAMES, CHANNELS)

    assert [[notice.burn for notice in message.notices] for message in sent] == [[burn], [burn]]
