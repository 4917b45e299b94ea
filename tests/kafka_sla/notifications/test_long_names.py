"""Names without a blank are broken in mails: one that is not makes the page as wide as itself on a phone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import FreshnessAlert, Interval
from kafka_sla.notifications import incident_email, miss_email
from kafka_sla.notifications.burn_email import burn_mail, burns_mail
from kafka_sla.notifications.digest_email import digest_mail
from kafka_sla.notifications.late_run_email import LateRun, late_mail
from kafka_sla.notifications.notices import BurnMessage, BurnNotice, Notice
from kafka_sla.reporting.digest import tell
from kafka_sla.reporting.digest_schedule import period_of
from tests.kafka_sla.notifications.incidents import slas, slow
from tests.kafka_sla.notifications.misses import MINUTE, START, hour, miss, promise
from tests.kafka_sla.notifications.test_burn_email import BURN, PERIOD
from tests.kafka_sla.notifications.test_incident_email import incident
from tests.kafka_sla.reporting.test_digest import judged, weekly

LONG = "TheTeamThatOwnsTheConsumersOfAllPayments" * 5
RUN = "https://airflow.example.com/dags/kafka_sla/runs/1"
SENDER = "sla@example.com"


def of_a_miss(_: Path) -> EmailMessage:
    sla = promise(name=LONG[:100], team=LONG, description=LONG)
    found = miss(end=None, worst_group=LONG, worst_topic=LONG, evidence={**miss().evidence, "sentence": LONG})
    return miss_email.compose(sla, Notice("opened", found, RUN), hour(), SENDER)


def of_an_incident(_: Path) -> EmailMessage:
    known = {sla.name: replace(sla, team=LONG) for sla in slas(3)}
    return incident_email.compose(known, incident("opened", [slow(sla) for sla in slas(3)]), SENDER)


def of_a_burn(_: Path) -> EmailMessage:
    sla = promise(name=BURN.sla, team=LONG, description=LONG)
    return burn_mail(sla, BurnNotice("began", BURN, RUN, "mail"), PERIOD, SENDER)


def of_burns(_: Path) -> EmailMessage:
    burns = [replace(BURN, id=sla.name, sla=sla.name) for sla in slas(3)]
    notices = tuple(BurnNotice("began", burn, RUN, "mail") for burn in burns)
    known = {sla.name: replace(sla, team=LONG) for sla in slas(3)}
    return burns_mail(known, BurnMessage("began", "mail", "i1", notices, (), 3), dict.fromkeys(known, PERIOD), SENDER)


def of_a_late_run(_: Path) -> EmailMessage:
    run = LateRun(LONG, LONG, Interval(START, START + MINUTE), "failed", RUN)
    return late_mail(FreshnessAlert(("ops@example.com",), 900_000), run, {LONG: START}, None, SENDER)


def digest(folder: Path) -> EmailMessage:
    ledger, asked, sla = Ledger(Store.embedded(folder)), weekly(name=LONG[:100], team=LONG), promise(name=LONG[:100])
    judged(ledger, sla, as_if=lambda window: window)
    period = period_of(asked, START)
    return digest_mail(asked, period, tell(ledger, asked, [sla], period), ["lead@example.com"], SENDER)


class LongTexts(HTMLParser):
    """Where a text with a long word stands: whether it may be broken there."""

    VOID = ("meta", "br", "img")

    def __init__(self) -> None:
        super().__init__()
        self.styles: list[tuple[str, str]] = []
        self.found: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.styles.append((tag, dict(attrs).get("style") or ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.styles.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        inside = [tag for tag, _ in self.styles]
        if any(len(word) > 60 for word in data.split()) and not {"title", "style"} & set(inside):
            self.found.append((inside[-1], any("overflow-wrap:anywhere" in style for _, style in self.styles)))


@pytest.mark.parametrize("kind", [of_a_miss, of_an_incident, of_a_burn, of_burns, of_a_late_run, digest])
def test_a_long_name_is_broken_wherever_it_stands(kind: Callable[[Path], EmailMessage], tmp_path: Path) -> None:
    page, texts = kind(tmp_path).get_body(("html",)), LongTexts()
    assert page is not None

    texts.feed(page.get_content())

    assert texts.found
    assert [tag for tag, breaks in texts.found if not breaks] == []
