"""Digests made and mailed through a real store and a real mail server: who gets what, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import time, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from demo.mailbox import Mailbox, mailbox
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.errors import BadRequest, MailRefused, MailServerUnavailable, SettingsError
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Connection, Digest, Interval
from kafka_sla.notifications.digest_delivery import day_asked, digests_due, mail_digest, make_digest
from kafka_sla.reporting.digest_schedule import period_of
from tests.kafka_sla.notifications.misses import START, promise
from tests.kafka_sla.reporting.test_digest import judged, utc


def settings(**changes: Any) -> Settings:
    """Two SLAs with two readers, one of whom reads both."""
    slas = (
        promise(recipients=("ann@example.com", "bob@example.com")),
        promise(name="orders", team="Shop", recipients=("bob@example.com",)),
    )
    fields: dict[str, Any] = {"name": "Weekly", "every": "week", "at": time(7)}
    return Settings((Cluster("main", None),), slas, (Digest(**{**fields, **changes}),))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found = Store.embedded(tmp_path)
    for sla in settings().slas:
        judged(Ledger(found), sla)
    return found


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Mailbox]:
    with mailbox(tmp_path / "mails") as found:
        yield found


def smtp(port: int) -> Connection:
    return Connection(
        "smtp_test",
        "127.0.0.1",
        port,
        extra={"from_email": "sla@example.com", "disable_ssl": True, "disable_tls": True},
    )


def readers(mails: list[EmailMessage]) -> list[str]:
    return sorted(str(mail["To"]) for mail in mails)


def text(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


def test_the_page_of_a_period_is_kept_and_replaced_when_made_again(store: Store) -> None:
    made = [make_digest(settings(), store, "Weekly", START)["page"] for _ in range(2)]

    assert made == [f"{store.warehouse}/reports/Weekly/week-20260302T0000Z.html"] * 2
    assert [path.name for path in Path(made[0]).parent.iterdir()] == ["week-20260302T0000Z.html"]
    assert "payments-30s" in Path(made[0]).read_text()


def test_digests_whose_names_look_alike_in_a_path_are_kept_apart(store: Store) -> None:
    names = ("A/B", "A B", "A-B", "..", "\u00c4")
    pages = [make_digest(settings(name=name), store, name, START)["page"] for name in names]

    assert len(names) == len(set(pages))
    assert all(Path(page).resolve().is_relative_to(store.archive) for page in pages)


def test_each_reader_is_mailed_once_about_the_own_promises(store: Store, box: Mailbox) -> None:
    for _ in range(2):
        mail_digest(settings(), store, "Weekly", START, smtp(box.port))

    assert readers(box.mails()) == ["ann@example.com", "bob@example.com"]
    told = {str(mail["To"]): text(mail) for mail in box.mails()}
    assert "orders" not in told["ann@example.com"] and "orders" in told["bob@example.com"]


def test_named_recipients_get_one_mail_together_about_their_team(store: Store, box: Mailbox) -> None:
    team = settings(team="Shop", recipients=("lead@example.com", "dev@example.com"))
    mail_digest(team, store, "Weekly", START, smtp(box.port))

    (mail,) = box.mails()
    assert mail["To"] == "lead@example.com, dev@example.com"
    assert "orders" in text(mail) and "payments-30s" not in text(mail)


def test_a_preview_reaches_one_address_and_leaves_the_mail_to_the_team_due(store: Store, box: Mailbox) -> None:
    mail_digest(settings(), store, "Weekly", START, smtp(box.port), to=["me@example.com"])
    assert readers(box.mails()) == ["me@example.com"]

    mail_digest(settings(), store, "Weekly", START, smtp(box.port))
    assert readers(box.mails()) == ["ann@example.com", "bob@example.com", "me@example.com"]


def test_a_mail_that_is_shortened_leads_to_the_page_that_is_kept(store: Store, box: Mailbox) -> None:
    slas = tuple(promise(name=f"{n:03}".rjust(100, "n"), recipients=("ann@example.com",)) for n in range(300))
    many = replace(settings(), slas=slas, base_url="https://airflow.example.com/team")
    kept = Path(make_digest(many, store, "Weekly", START)["page"])
    mail_digest(many, store, "Weekly", START, smtp(box.port))

    (mail,) = box.mails()
    address = f"https://airflow.example.com/team/kafka-sla/reports/{kept.parent.name}/{kept.stem}"
    page = mail.get_body(("html",))
    assert page is not None
    assert f'href="{address}"' in page.get_content() and address in text(mail)


def test_a_digest_sent_again_by_hand_reaches_everybody_again(store: Store, box: Mailbox) -> None:
    mail_digest(settings(), store, "Weekly", START, smtp(box.port))
    mail_digest(settings(), store, "Weekly", START, smtp(box.port), again="manual__1")

    assert len(box.mails()) == 4 == len({mail["Message-ID"] for mail in box.mails()})


def test_a_mail_that_was_refused_is_sent_by_the_next_try(store: Store, box: Mailbox) -> None:
    with pytest.raises(MailRefused):
        mail_digest(settings(), store, "Weekly", START, smtp(1))

    assert mail_digest(settings(), store, "Weekly", START, smtp(box.port))["mailed"] == [
        "ann@example.com",
        "bob@example.com",
    ]


def test_a_mail_server_that_is_gone_is_not_asked_for_each_reader(store: Store, box: Mailbox) -> None:
    readers = tuple(f"reader-{number}@example.com" for number in range(3))
    slas = tuple(promise(name=reader, recipients=(reader,)) for reader in readers)
    many = replace(settings(), slas=slas)

    with pytest.raises(MailServerUnavailable) as refused:
        mail_digest(many, store, "Weekly", START, smtp(1))
    assert str(refused.value).count("Connection refused") == 1
    assert len(mail_digest(many, store, "Weekly", START, smtp(box.port))["mailed"]) == 3


def test_a_digest_for_nobody_says_so(store: Store, box: Mailbox) -> None:
    alone = Settings((Cluster("main", None),), (promise(recipients=()),), (Digest("Weekly", "week", time(7)),))
    with pytest.raises(SettingsError, match="'Weekly' has no recipients"):
        mail_digest(alone, store, "Weekly", START, smtp(box.port))


def test_a_digest_is_due_in_the_hour_after_its_time(store: Store) -> None:
    def due(hour: str) -> list[dict[str, str]]:
        return digests_due(settings(), Interval(utc(hour), utc(hour) + timedelta(hours=1)))

    assert due("2026-03-09T06:00") == due("2026-03-09T08:00") == []
    assert due("2026-03-09T07:00") == [{"digest": "Weekly", "at": "2026-03-02T00:00:00+00:00"}]


def test_a_day_asked_for_means_its_period_and_none_the_last_whole_one() -> None:
    digest, now = settings().digests[0], utc("2026-03-12T10:00")

    assert period_of(digest, day_asked(digest, "2026-03-04", now)).start == utc("2026-03-02T00:00")
    assert period_of(digest, day_asked(digest, None, now)).start == utc("2026-03-02T00:00")
    assert period_of(digest, day_asked(digest, "2026-03-12", now)).start == utc("2026-03-09T00:00")


@pytest.mark.parametrize(("day", "words"), [("2026-03-16", "has not begun"), ("march", "is no day")])
def test_a_day_that_cannot_be_told_of_is_refused(day: str, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        day_asked(settings().digests[0], day, utc("2026-03-12T10:00"))
