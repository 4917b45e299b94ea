"""Mails about error budgets that are spent too fast."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from kafka_sla.model.entities import BurnPair
from kafka_sla.notifications.burn_email import burn_mail
from kafka_sla.notifications.notices import BurnMessage, BurnNotice
from kafka_sla.sla.attainment import attainment_of
from kafka_sla.sla.burn import Burn
from kafka_sla.sla.periods import period_until
from kafka_sla.sla.rollups import Sums
from kafka_sla.tasks.events.burn_notifiers import about_burns, burn_message
from tests.kafka_sla.notifications.misses import START, promise

PAIR = BurnPair(14.4, 3_600_000, 300_000, "page", 300_000)
BURN = Burn("b1", "payments-30s", "main", "page", START, None, 83.4, PAIR)
SLA = promise(recipients=("oncall@example.com",), objective=0.999, period="28d", runbook="https://wiki.example.com/pay")
PERIOD = attainment_of(SLA, period_until(SLA, START), START, Sums(good_ms=28 * 86_400_000 - 300_000, bad_ms=300_000))


def test_the_mail_says_how_fast_the_budget_burns_and_what_is_left_of_it() -> None:
    mail = burn_mail(SLA, BurnNotice("began", BURN, "http://airflow", "mail", "b1"), PERIOD, "sla@example.com")
    text, page = (part.get_content() for part in mail.iter_parts())

    assert mail["Subject"] == "Error budget burns 83x: payments-30s (page)"
    words = " ".join(text.split())
    assert "burned 83 times as fast as it lasts over 1 h; alerted above 14.4 there and over 5 min" in words
    assert "Budget 35 min 19 s left of 40 min 19 s" in words
    assert "Objective 99.9 % of any 28 days" in words
    assert "http://airflow/kafka-sla/slas/payments-30s" in page


def test_its_end_answers_its_beginning() -> None:
    over = replace(BURN, id="b2", end=START + timedelta(minutes=50))
    began = burn_mail(SLA, BurnNotice("began", BURN, None, "mail", "b1"), PERIOD, "sla@example.com")
    ended = burn_mail(SLA, BurnNotice("over", over, None, "mail", "b1"), PERIOD, "sla@example.com")

    assert ended["Subject"] == "Burn over: payments-30s after 50 min (page)"
    assert ended["In-Reply-To"] == began["Message-ID"] != ended["Message-ID"]


def test_a_notifier_gets_one_line_and_the_burn_under_the_id_that_was_told_first() -> None:
    notice = BurnNotice("began", BURN, None, "chat", "b0")

    assert burn_message(SLA, notice).startswith("Burn (page): payments-30s, since 2026-03-02")
    told = about_burns(SLA, BurnMessage("began", "chat", "b0", (notice,), (), 1))
    assert (told["kind"], told["miss"], told["burn"]["id"], told["burn"]["severity"]) == (
        "burn_began",
        None,
        "b0",
        "page",
    )
