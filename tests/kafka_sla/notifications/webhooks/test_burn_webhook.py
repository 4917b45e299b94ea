"""Burns of error budgets as webhooks, against receivers that take only what their vendors' documents allow."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Webhook
from kafka_sla.notifications.notices import BurnMessage, BurnNotice, BurnNoticeKind
from kafka_sla.notifications.webhooks.event import AlertEvent, burn_event_of, schema
from kafka_sla.notifications.webhooks.webhook import send
from kafka_sla.pipeline import steps
from kafka_sla.sla.burn import Burn
from tests.kafka_sla.loads import at
from tests.kafka_sla.notifications import receivers
from tests.kafka_sla.notifications.receivers import Receiver, serving
from tests.kafka_sla.notifications.test_burn_email import BURN, SLA
from tests.kafka_sla.notifications.webhooks.test_webhook import TAKES, received
from tests.kafka_sla.pipeline.test_burn_alerts import MINUTE, STORY, put, runs
from tests.kafka_sla.pipeline.test_burn_alerts import SLA as BURNING

OVER = replace(BURN, end=BURN.start + timedelta(minutes=20))
RUN = "http://airflow.example.com/dags/kafka_sla/runs/1"


def event(kind: BurnNoticeKind, burn: Burn) -> AlertEvent:
    notice = BurnNotice(kind, burn, RUN, "webhook", "b1")
    return burn_event_of({SLA.name: SLA}, BurnMessage(kind, "webhook", "b1", (notice,), (), 1))


EVENTS = [event("began", BURN), event("over", OVER)]


@pytest.mark.parametrize(
    ("format", "burning", "over"),
    [
        ("json", None, None),
        ("slack", None, None),
        ("teams", None, None),
        ("pagerduty", "trigger", "resolve"),
        ("opsgenie", "open", "closed"),
        ("alertmanager", "firing", "resolved"),
    ],
)
def test_a_burn_is_reported_once_and_resolved_when_it_is_over(
    format: str, burning: str | None, over: str | None
) -> None:
    handle, login = TAKES[format]
    receiver = Receiver(handle)
    seen = []
    with serving(receiver, **login) as connection:
        for event in EVENTS:
            send(connection, Webhook("receiver", format), event)  # type: ignore[arg-type]
            seen.append(list(receiver.states.values()))

    assert receiver.refused == []
    assert [body for body in receiver.bodies if SLA.name not in str(body) and "resolve" not in str(body)] == []
    assert seen == [[burning], [over]] if burning else [[], []] == seen


def body(format: str, of: AlertEvent) -> Any:
    (found,) = received(format, of).bodies
    return found


def test_a_ticket_is_less_urgent_than_a_page() -> None:
    page, ticket = event("began", BURN), event("began", replace(BURN, severity="ticket"))

    assert [body("pagerduty", of)["payload"]["severity"] for of in (page, ticket)] == ["critical", "warning"]
    assert [body("opsgenie", of)["priority"] for of in (page, ticket)] == ["P1", "P3"]
    labels = [body("alertmanager", of)[0]["labels"] for of in (page, ticket)]
    assert [(each["severity"], each["burn"]) for each in labels] == [("page", "b1"), ("ticket", "b1")]


def test_of_a_burn_whose_cause_is_not_known_pagerduty_hears_what_the_burns_have_in_common() -> None:
    of = event("began", BURN)

    assert of.sentence == ""
    assert (
        body("pagerduty", of)["payload"]["custom_details"]["cause"]
        == of.cause
        == "no cause that stands out in cluster main"
    )


def test_a_card_is_green_once_it_is_over() -> None:
    headings = [body("teams", of)["attachments"][0]["content"]["body"][0]["inlines"][0] for of in EVENTS]

    assert [heading["color"] for heading in headings] == ["attention", "good"]


def test_the_plain_event_fits_the_published_schema() -> None:
    receiver = Receiver(TAKES["json"][0])
    with serving(receiver) as connection:
        for event in EVENTS:
            send(connection, Webhook("receiver", "json"), event)

    for body in receiver.bodies:
        jsonschema.validate(body, schema())
    assert [(body["kind"], body["alerts"][0]["id"]) for body in receiver.bodies] == [
        ("burn_began", "b1"),
        ("burn_over", "b1"),
    ]


def test_runs_page_a_burn_and_resolve_it_each_once(tmp_path: Path) -> None:
    sla = replace(BURNING, recipients=(), webhooks=(Webhook("pagerduty", "pagerduty"),))
    store, settings = Store.embedded(tmp_path), Settings((Cluster("a", None),), (sla,))
    receiver = Receiver(receivers.pagerduty)
    with serving(receiver, **TAKES["pagerduty"][1]) as connection:
        for n, letters in runs(STORY):
            interval = put(Ledger(store), at("8:00") + n * MINUTE, letters, sla)
            for _ in range(2):
                steps.notify(settings, store, [sla.name], interval, None, RUN, login=lambda _: connection)

    assert [body["event_action"] for body in receiver.bodies] == ["trigger", "resolve"]
    assert receiver.bodies[0]["payload"]["severity"] == "critical"
