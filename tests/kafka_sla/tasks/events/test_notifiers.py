from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from airflow.sdk import BaseNotifier

from kafka_sla.errors import SettingsError
from kafka_sla.ledger.notices.burn_notices import BurnMessage, BurnNotice
from kafka_sla.ledger.notices.incidents import IncidentNotice
from kafka_sla.ledger.notices.outbox import Notice, NoticeKind
from kafka_sla.model.entities import Miss, Notifier, Patterns, Sla, SteadyState
from kafka_sla.tasks.events.burn_notifiers import about_burns
from kafka_sla.tasks.events.notifiers import about, caller
from tests.kafka_sla.notifications.misses import miss
from tests.kafka_sla.notifications.test_burn_email import BURN

HEARD: list[str] = []
SLA = Sla("orders", "eu", Patterns(), Patterns(), 30_000, 300_000, 0.999, SteadyState(30_000), team="Shop")


def notice(kind: NoticeKind, *misses: Miss, still_open: tuple[Miss, ...] = ()) -> IncidentNotice:
    notices = tuple(Notice(kind, found) for found in misses or (miss(),))
    others = tuple(Notice("opened", left) for left in still_open)
    return IncidentNotice(kind, "chat", "i1", notices, others, len(notices) + len(others))


class Chat(BaseNotifier):
    """A chat that keeps what it is told."""

    template_fields = ("text",)

    def __init__(self, text: str, channel: str) -> None:
        super().__init__()
        self.text, self.channel = text, channel

    def notify(self, context: Any) -> None:
        HEARD.append(f"{self.channel}: {self.text}")


def test_a_notifier_is_called_with_its_arguments_templated() -> None:
    HEARD.clear()
    chat = Notifier(
        f"{__name__}.Chat", {"text": "{{ kind }} {{ sla }} ({{ team }}) {{ miss.id }} {{ run_id }}", "channel": "#ops"}
    )

    caller({"run_id": "manual"}, about)(chat, SLA, notice("opened", found := miss()))  # type: ignore[typeddict-item]

    assert HEARD == [f"#ops: opened orders (Shop) {found.id} manual"]


def test_the_message_says_what_was_promised_how_bad_and_where() -> None:
    HEARD.clear()
    chat = Notifier(f"{__name__}.Chat", {"text": "{{ message }}", "channel": "#ops"})

    for kind in ("opened", "recovered"):
        caller({}, about)(chat, SLA, notice(kind))

    opened, recovered = HEARD
    assert (
        opened.startswith("#ops: SLA missed: orders, 2026-03-02 10:00:00 UTC to ")
        and "worst latency 17 min 24 s, threshold 30 s, group" in opened
    )
    assert recovered.startswith("#ops: SLA recovered: orders, 2026-03-02 10:00:00 UTC to ")


@pytest.mark.parametrize(
    ("path", "kwargs"), [("nowhere.at.All", {}), (f"{__name__}.Talk", {}), (f"{__name__}.Chat", {"colour": "red"})]
)
def test_a_notifier_that_cannot_be_made_is_named(path: str, kwargs: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"the notifier {path} of the SLA 'orders' cannot be made"):
        caller({}, about)(Notifier(path, kwargs), SLA, notice("opened"))


def test_a_message_of_several_misses_names_them_and_what_is_still_missed() -> None:
    HEARD.clear()
    text = "{{ message }} ({{ misses | length }}, {{ incident }})"

    caller({}, about)(
        Notifier(f"{__name__}.Chat", {"text": text, "channel": "#ops"}),
        SLA,
        notice("recovered", miss(), miss(sla="billing.alerts"), still_open=(miss(sla="refunds"),)),
    )

    assert HEARD == [
        "#ops: SLAs recovered: 2 of 3, consumer group payments: payments-30s, billing.alerts; "
        "still missed: refunds (2, i1)"
    ]


@pytest.mark.parametrize("group", ["payments", "p" * 2_000, "pay\r\nments\u202e" * 200])
def test_a_message_of_hundreds_of_slas_is_a_line_that_any_chat_takes(group: str) -> None:
    misses = [replace(miss(worst_group=group), sla=f"{n:03}".rjust(100, "n")) for n in range(500)]
    told = about(SLA, notice("recovered", *misses[:250], still_open=tuple(misses[250:])))
    alone = about(SLA, notice("opened", misses[0]))

    assert len(told["message"]) <= 2_000 and len(alone["message"]) <= 2_000
    assert (told["message"] + alone["message"]).isprintable()
    assert len(told["misses"]) == len(told["still_open"]) == 250
    if group == "payments":
        assert told["message"].count("and 244 more") == 2


def test_a_message_of_hundreds_of_burns_is_a_line_that_any_chat_takes() -> None:
    burns = [
        BurnNotice("over", replace(BURN, sla=f"{n:03}".rjust(100, "n"), end=BURN.start), None, "") for n in range(500)
    ]
    told = about_burns(SLA, BurnMessage("over", "chat", "i1", tuple(burns[:250]), tuple(burns[250:]), 500))

    assert len(told["message"]) <= 2_000
    assert told["message"].count("and 244 more") == 2
    assert len(told["burns"]) == len(told["still_burning"]) == 250
