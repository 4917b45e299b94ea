"""How long a mail about many SLAs may be: Gmail shows no more than 102 KB of one, and hides the rest behind a link."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from email.message import EmailMessage

import pytest

from kafka_sla.cli.console.arguments import parser
from kafka_sla.ledger.triage import Note
from kafka_sla.model.entities import Miss, Patterns, Sla
from kafka_sla.notifications.burn_email import burns_mail
from kafka_sla.notifications.miss_context import Surroundings
from kafka_sla.notifications.miss_email import compose, miss_page
from kafka_sla.notifications.notices import BurnMessage, BurnNotice, Notice
from tests.kafka_sla.notifications.incidents import RUN, slas, slow
from tests.kafka_sla.notifications.misses import miss, promise
from tests.kafka_sla.notifications.test_burn_email import BURN, PERIOD
from tests.kafka_sla.notifications.test_incident_email import incident, mail, part

MOST_BYTES = 100_000
SENDER = "sla@example.com"
WORST = 417
"""The SLA that is by far the worst, though others come before it by team and name."""
LIKE_PRODUCTION = "payments.settlement-ledger.prod-eu-central-1.card-authorisations-{:03}-within-30s"

LONGEST = "ä" * 16_383
"""A consumer group: Kafka allows 32,767 bytes."""


def known(number: int, name: str = LIKE_PRODUCTION) -> list[Sla]:
    return [
        replace(sla, name=name.format(n), team=f"payments-settlement-{n % 7}") for n, sla in enumerate(slas(number))
    ]


def missed(sla: Sla, *, end: bool = False) -> Miss:
    group = sla.groups.include[0]
    own = {"cause": "rewound", "broker_verdict": "even", "sentence": f"{group} went back."} if group == LONGEST else {}
    found = replace(
        slow(sla, end=end, **own), id=f"{slas_number(sla):016x}", worst_topic="prod.payments.authorised-cards.v3"
    )
    return replace(found, worst_latency_ms=7_200_000.0) if slas_number(sla) == WORST else found


def slas_number(sla: Sla) -> int:
    return int(sla.name.removesuffix("-within-30s")[-3:])


def opened(of: list[Sla]) -> EmailMessage:
    return mail(incident("opened", [missed(sla) for sla in of]), of)


def recovered(of: list[Sla]) -> EmailMessage:
    return mail(incident("recovered", [missed(sla, end=True) for sla in of]), of)


def recovered_in_part(of: list[Sla]) -> EmailMessage:
    half = len(of) // 2
    found = [missed(sla, end=True) for sla in of[:half]], [missed(sla) for sla in of[half:]]
    return mail(incident("recovered", *found, len(of)), of)


def one_more(of: list[Sla]) -> EmailMessage:
    return mail(incident("opened", [missed(of[-1])], [missed(sla) for sla in of[:-1]], len(of)), of)


def began(of: list[Sla], run: str | None = RUN) -> EmailMessage:
    return burns_mail(
        {s.name: s for s in of}, message(of, run=run), dict.fromkeys([s.name for s in of], PERIOD), SENDER
    )


def over_in_part(of: list[Sla]) -> EmailMessage:
    half, end = len(of) // 2, BURN.start + timedelta(minutes=20)
    found = message(of)
    over = tuple(replace(one, kind="over", burn=replace(one.burn, end=end)) for one in found.notices[:half])
    rest = replace(found, kind="over", notices=over, still_open=found.notices[half:])
    return burns_mail({s.name: s for s in of}, rest, dict.fromkeys([s.name for s in of], PERIOD), SENDER)


def message(of: list[Sla], run: str | None = RUN) -> BurnMessage:
    burns = [replace(BURN, id=f"{slas_number(sla):016x}", sla=sla.name) for sla in of]
    burns = [replace(burn, burn_rate=900.0) if slas_number(of[n]) == WORST else burn for n, burn in enumerate(burns)]
    notices = tuple(
        BurnNotice("began", burn, run, "mail", burn.id, missed(sla)) for burn, sla in zip(burns, of, strict=True)
    )
    return BurnMessage("began", "mail", "i1", notices, (), len(notices))


MAILS = [opened, recovered, recovered_in_part, one_more, began, over_in_part]
Write = Callable[[list[Sla]], EmailMessage]


@pytest.mark.parametrize("write", MAILS)
@pytest.mark.parametrize("number", [300, 500])
def test_hundreds_of_slas_with_names_as_in_production_are_all_named(write: Write, number: int) -> None:
    of = known(number)
    found = write(of)

    for kind in ("plain", "html"):
        text = part(found, kind)
        assert len(text.encode()) < MOST_BYTES
        assert [sla.name for sla in of if sla.name not in text] == []


@pytest.mark.parametrize("write", MAILS)
def test_of_names_that_do_not_all_fit_the_others_are_counted(write: Write) -> None:
    of = known(500, "&" * 97 + "{:03}")
    texts = [part(write(of), kind) for kind in ("plain", "html")]

    assert max(len(text.encode()) for text in texts) < MOST_BYTES
    assert 0.6 * MOST_BYTES < len(texts[1].encode())
    for text in texts:
        shown = len(set(re.findall(r"(?:&|&amp;){97}(\d{3})", text)))
        counted = re.findall(r"(\d+) more(?: SLAs)?: see above", text)
        assert shown + sum(map(int, counted)) == 500
        assert "This mail is shortened" in text


@pytest.mark.parametrize(("write", "page"), [(opened, f"/misses/{WORST:016x}"), (began, f"-{WORST}-within-30s")])
def test_the_gravest_is_in_full_wherever_its_name_stands(write: Write, page: str) -> None:
    found = write(known(500))

    for kind in ("plain", "html"):
        links = re.findall(r"https://airflow[^\s\"]+/(?:misses|slas)/[^\s\"]+", part(found, kind))
        assert 0 < len(links) < 500
        assert [link for link in links if link.endswith(page)]


@pytest.mark.parametrize("write", MAILS)
def test_a_mail_that_is_shortened_leads_to_all_of_them(write: Write) -> None:
    found = write(known(500))
    page = "https://airflow.example.com/kafka-sla/"

    assert f'href="{page}' in part(found, "html").partition("This mail is shortened")[2].partition("</p>")[0]
    assert part(found, "plain").partition("This mail is shortened")[2].splitlines()[1].startswith(f"  {page}")
    assert "shortened" not in part(write(known(40)), "html") + part(write(known(40)), "plain")


def test_without_an_address_the_command_for_all_of_them_can_be_typed() -> None:
    of = known(500)
    misses = incident("opened", [missed(sla) for sla in of])
    nowhere = replace(misses, notices=tuple(replace(notice, run_url=None) for notice in misses.notices))

    for found, command in [(mail(nowhere, of), "misses"), (began(of, None), "status")]:
        typed = part(found, "plain").partition("This mail is shortened")[2].splitlines()[1]
        assert parser().parse_args(shlex.split(typed)[1:]).action == command
        assert f"<code>{typed.strip()}</code>" in part(found, "html")


def test_of_hundreds_of_teams_those_with_the_most_slas_are_named() -> None:
    of = [replace(sla, team="big" if n % 2 else f"team-{n:03}-{'x' * 300}") for n, sla in enumerate(known(500))]

    first = part(opened(of), "plain").splitlines()[0]

    assert "team big (250), " in first
    assert first.endswith(", and 241 more teams.")


@pytest.mark.parametrize("write", MAILS)
def test_a_cause_that_is_a_group_with_a_name_as_long_as_kafka_allows_fits_into_a_mail(
    write: Write,
) -> None:
    found = write([replace(sla, groups=Patterns((LONGEST,))) for sla in known(500)])

    for kind in ("plain", "html"):
        text = part(found, kind)
        assert "consumer group ää" in text
        assert len(text.encode()) < MOST_BYTES


def test_of_many_long_comments_on_a_miss_the_newest_are_mailed_and_the_others_counted() -> None:
    notes = tuple(Note("comment", "ops", f"log {n:03} " + "&" * 3_000, BURN.start) for n in range(90))
    recovery = Notice("recovered", miss(), RUN)
    found = compose(promise(), recovery, [], SENDER, Surroundings(notes=notes))

    for kind in ("plain", "html"):
        text = part(found, kind)
        shown = [int(number) for number in re.findall(r"log (\d{3})", text)]
        assert len(text.encode()) < MOST_BYTES
        assert shown == list(range(90 - len(shown), 90)) and shown
        assert f"{90 - len(shown)} earlier notes: see the page of the miss." in text
    assert miss_page(promise(), recovery, [], Surroundings(notes=notes)).count("log ") == 90
