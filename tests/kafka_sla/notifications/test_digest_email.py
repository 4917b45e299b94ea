"""How long a digest's mail may be: Gmail shows no more than 102 KB of one, and hides the rest behind a link."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.cli.console.arguments import parser
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Sla, SlaWindow
from kafka_sla.notifications.digest_email import digest_mail, digest_page
from kafka_sla.reporting.digest import Told, tell
from kafka_sla.reporting.digest_schedule import period_of
from tests.kafka_sla.notifications.misses import EVIDENCE, START, miss, promise
from tests.kafka_sla.reporting.test_digest import judged, kept, weekly

MOST_BYTES = 100_000
MANY = 300
STRICT = 0.99995
URL = "https://airflow.example.com/kafka-sla/reports/Payments/week-20260301T2300Z"
PERIOD = period_of(weekly(), START)


def as_it_was(window: SlaWindow) -> SlaWindow:
    return window


def named(letter: str, number: int = MANY) -> list[Sla]:
    """SLAs with names as long as they may be."""
    return [promise(name=f"{n:03}".rjust(100, letter)) for n in range(number)]


def holding(folder: Path, slas: list[Sla], missed: range) -> Ledger:
    ledger = Ledger(Store.embedded(folder))
    for n, sla in enumerate(slas):
        others = a_little_late if sla.objective == STRICT else kept
        judged(ledger, sla, as_if=as_it_was if n in missed else others)
    return ledger


def a_little_late(window: SlaWindow) -> SlaWindow:
    """One bad minute: no miss, which takes two, and more than the strict objective allows in a week."""
    return window if window.window.start == miss().start else kept(window)


@pytest.fixture(scope="module")
def company() -> list[Sla]:
    """As many SLAs, of which a dozen is missed and one at risk."""
    slas = named("n")
    return [*slas[:200], replace(slas[200], objective=STRICT, period="week"), *slas[201:]]


@pytest.fixture(scope="module")
def told(company: list[Sla], tmp_path_factory: pytest.TempPathFactory) -> Told:
    return tell(holding(tmp_path_factory.mktemp("company"), company, range(100, 112)), weekly(), company, PERIOD)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """Three hundred SLAs that were missed, with names that take five bytes a character in HTML."""
    return holding(tmp_path_factory.mktemp("crowd"), named("&"), range(MANY))


@pytest.fixture(scope="module")
def crowded(crowd: Ledger) -> EmailMessage:
    return mailed(tell(crowd, weekly(), named("&"), PERIOD))


def mailed(told: Told, url: str = URL, **digest: Any) -> EmailMessage:
    return digest_mail(weekly(**digest), PERIOD, told, ["lead@example.com"], "sla@example.com", url=url)


def body(mail: EmailMessage, kind: str) -> str:
    found = mail.get_body((kind,))
    assert found is not None
    return str(found.get_content())


def unnamed(slas: list[Sla], text: str) -> list[str]:
    return [sla.name for sla in slas if sla.name not in text]


def test_three_hundred_slas_are_all_named_and_those_in_trouble_in_full(company: list[Sla], told: Told) -> None:
    mail = mailed(told)
    html, text = body(mail, "html"), body(mail, "plain")

    assert len(html.encode()) < MOST_BYTES
    assert unnamed(company, html) == unnamed(company, text) == unnamed(company, digest_page(told)) == []
    assert html.count("&#10007; missed") == html.count(EVIDENCE["sentence"]) == 12
    assert text.count("threshold   30 s") == 12 + 1
    assert text.count("\nMET: ") == MANY - 12
    assert f'href="{URL}"' in html and URL in text
    assert "shortened" not in digest_page(told)


def test_a_mail_into_which_not_all_names_fit_leaves_out_as_little_as_it_can(crowded: EmailMessage) -> None:
    html = body(crowded, "html")

    assert 0.6 * MOST_BYTES < len(html.encode()) < MOST_BYTES
    assert re.search(r"\d+ more", html)
    assert f'href="{URL}"' in html


def test_pictures_that_the_page_does_not_show_are_not_attached(crowded: EmailMessage) -> None:
    html = body(crowded, "html")
    ids = [part["Content-ID"][1:-1] for part in crowded.walk() if part.get_content_maintype() == "image"]

    assert [one for one in ids if f"cid:{one}" not in html] == []


def test_a_mail_that_notes_alone_would_fill_names_all_slas_without_them(tmp_path: Path) -> None:
    slas = named("n", 12)
    ledger = holding(tmp_path, slas, range(12))
    for each in ledger.verdicts.misses():
        ledger.triage.comment(each, "Ada Lovelace", "It went on and on. " * 1_000)

    html = body(mailed(tell(ledger, weekly(), slas, PERIOD)), "html")

    assert unnamed(slas, html) == [] and len(html.encode()) < MOST_BYTES
    assert "Ada" not in html


def test_a_short_digest_is_in_full_and_leads_nowhere_else(tmp_path: Path) -> None:
    slas = named("n", 8)
    mail = mailed(tell(holding(tmp_path, slas, range(1)), weekly(), slas, PERIOD))
    html, text = body(mail, "html"), body(mail, "plain")

    assert text.count("threshold   30 s") == 8
    assert html.count("threshold 30 s<") + html.count("threshold 30 s;") == 8
    assert URL not in html + text and "shortened" not in html + text


@pytest.mark.parametrize("name", ["Payments, weekly", "--our $HOME's"])
def test_without_an_address_the_command_for_the_whole_digest_can_be_typed(crowd: Ledger, name: str) -> None:
    mail = mailed(tell(crowd, weekly(name=name), named("&"), PERIOD), url="", name=name)
    typed = next(
        line.strip() for line in body(mail, "plain").splitlines() if line.strip().startswith("kafka-sla digest")
    )

    asked = parser().parse_args(shlex.split(typed)[1:])

    assert (asked.name, asked.day, str(asked.output)) == (name, "2026-03-02", "digest.html")


def test_slas_at_risk_are_in_full_before_those_that_were_met(company: list[Sla], told: Told) -> None:
    text = body(mailed(told), "plain")

    assert text.index(f"MET: {company[200].name}\n  threshold") < text.index(f"MET: {company[0].name}, ")
