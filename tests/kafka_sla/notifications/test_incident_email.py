"""What a mail about several misses says, as golden files; and that misses of one cause are one mail for each list of
recipients, also when the sender is killed after the server has taken it."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.alerts.report_rows import AlertMessage
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Connection, Miss, Notifier, Sla
from kafka_sla.notifications.incident_email import compose
from kafka_sla.notifications.notices import IncidentNotice, Notice, NoticeKind
from kafka_sla.pipeline import steps
from tests.kafka_sla.notifications.incidents import INTERVAL, RUN, judged, slas, slow
from tests.kafka_sla.notifications.test_smtp import Mailbox, serving

GOLDEN = Path(__file__).parent / "golden"
SENDER = "SLA <sla@example.com>"


def incident(kind: NoticeKind, found: Sequence[Miss], still_open: Sequence[Miss] = (), size: int = 0) -> IncidentNotice:
    notices = tuple(Notice(kind, miss, RUN, miss.id) for miss in found)
    others = tuple(Notice("opened", miss, RUN, miss.id) for miss in still_open)
    return IncidentNotice(kind, "mail", "m-billing.alerts-000", notices, others, size or len(found))


def mail(notice: IncidentNotice, known: Sequence[Sla] = tuple(slas(5))) -> EmailMessage:
    """As its readers get it."""
    return message_from_bytes(bytes(compose({sla.name: sla for sla in known}, notice, SENDER)), policy=default)


def part(message: EmailMessage, kind: str) -> str:
    body = message.get_body((kind,))
    assert body is not None
    return str(body.get_content()).replace("\r\n", "\n")


OPENED = incident("opened", [slow(sla) for sla in slas(5)])
SOME = incident("recovered", [slow(sla, end=True) for sla in slas(5)[1:4]], [slow(slas(5)[0]), slow(slas(5)[4])], 5)


@pytest.mark.parametrize(("name", "notice"), [("opened", OPENED), ("recovered", SOME)])
@pytest.mark.parametrize(("body", "suffix"), [("plain", "txt"), ("html", "html")])
def test_mails_are_as_the_golden_files(name: str, notice: IncidentNotice, body: str, suffix: str) -> None:
    assert (GOLDEN / f"incident_{name}.{suffix}").read_text() == part(mail(notice), body)


def test_the_first_lines_say_what_since_when_why_and_of_which_teams() -> None:
    first, second, *_ = part(mail(OPENED), "plain").splitlines()

    assert first == (
        "SLAS MISSED: 5 since 2026-03-02 10:00:00 UTC: slow brokers of cluster main; team Billing (3), team Shop (2)."
    )
    assert second == slow(slas(1)[0]).evidence["sentence"]
    assert mail(OPENED)["Subject"] == "SLAs missed: 5, slow brokers of cluster main"


def test_a_recovery_replies_to_the_first_mail_and_names_what_is_still_missed() -> None:
    text = part(mail(SOME), "plain")

    assert mail(SOME)["In-Reply-To"] == mail(SOME)["References"] == mail(OPENED)["Message-ID"]
    assert mail(SOME)["Message-ID"] != mail(OPENED)["Message-ID"]
    assert mail(SOME)["Subject"] == "SLAs recovered: 3 of 5, slow brokers of cluster main"
    assert "2 other SLAs of this incident are still missed." in text
    assert [line.split()[0] for line in text.partition("Still missed\n")[2].splitlines()[:2]] == [
        "billing.alerts-000",
        "billing.alerts-004",
    ]


def test_two_hundred_slas_are_all_named_with_their_links() -> None:
    known = slas(200)
    found = mail(incident("opened", [slow(sla) for sla in known]), known)

    for body in ("plain", "html"):
        text = part(found, body)
        assert [sla.name for sla in known if f"/misses/m-{sla.name}" not in text or f"{sla.name}" not in text] == []
    assert part(found, "plain").startswith(
        "SLAS MISSED: 200 since 2026-03-02 10:00:00 UTC: slow brokers of cluster main"
    )


def test_what_opens_later_replies_to_the_first_mail() -> None:
    later = incident("opened", [slow(sla) for sla in slas(5)[3:]], [slow(sla) for sla in slas(5)[:3]], 5)

    assert mail(later)["In-Reply-To"] == mail(OPENED)["Message-ID"]
    assert mail(later)["Subject"] == "SLAs missed: 2 more, slow brokers of cluster main"


def test_where_causes_differ_each_sla_has_its_own() -> None:
    found = [slow(sla, cause="too_slow", broker_verdict="even") for sla in slas(4)]

    for body in ("plain", "html"):
        text = part(mail(incident("opened", found)), body)
        assert "4 causes in cluster main" in text
        assert [n for n in range(4) if f"consumer group group-{n:03}" not in text] == []
    assert "consumer group" not in part(mail(OPENED), "plain")


def test_an_sla_that_has_left_the_configuration_is_still_named() -> None:
    text = part(mail(OPENED, slas(4)), "plain")

    assert text.startswith(
        "SLAS MISSED: 5 since 2026-03-02 10:00:00 UTC: slow brokers of cluster main; team Billing (3),"
    )
    assert "billing.alerts-004: since" in text


def test_hostile_names_are_shown_and_do_nothing() -> None:
    name = '<script>alert("1")</script>\r\nBcc: all@example.com\u202e'
    bad = [replace(sla, name=name + str(n), team=name) for n, sla in enumerate(slas(2))]

    found = mail(incident("opened", [replace(slow(sla), id="m", cluster=name) for sla in bad]), bad)

    assert "<script" not in part(found, "html")
    assert found["Bcc"] is None
    assert not [line for line in part(found, "plain").splitlines() if line.startswith("Bcc")]


def notified(settings: Settings, store: Store, smtp: Connection) -> None:
    steps.notify(settings, store, [sla.name for sla in settings.slas], INTERVAL, smtp, RUN)


def notified_or_said(said: Path, settings: Settings, store: Store, smtp: Connection) -> None:
    """In a process of its own, whose errors would be lost among the lines of the mail server."""
    try:
        notified(settings, store, smtp)
    except BaseException:
        said.write_text(traceback.format_exc())
        raise


class DeadlyMailbox(Mailbox):
    """Kills the process that sends, once it has taken its second mail."""

    async def handle_DATA(self, *arguments: Any) -> str:  # noqa: N802
        answer = await super().handle_DATA(*arguments)
        if len(self.mails) == 2 and self.victim:
            os.kill(self.victim, signal.SIGKILL)
        return answer

    victim: int | None = None


def test_misses_of_slow_brokers_are_one_mail_a_team_also_when_the_sender_is_killed(tmp_path: Path) -> None:
    store, known = Store.embedded(tmp_path), tuple(slas(60))
    settings = Settings((Cluster("main", None),), known)
    other: dict[int, dict[str, Any]] = {
        3: {"cause": "stopped"},
        7: {"cause": "too_slow", "broker_verdict": "even"},
        9: {"cause": "replication"},
    }
    judged(Ledger(store), known, [slow(sla, **other.get(n, {})) for n, sla in enumerate(known)])

    box = DeadlyMailbox()
    with serving(box) as server:
        said = tmp_path / "said.txt"
        sender = multiprocessing.get_context("spawn").Process(
            target=notified_or_said, args=(said, settings, store, server)
        )
        sender.start()
        box.victim = sender.pid
        sender.join()
        box.victim = None
        notified(settings, store, server)
        opened = {str(found["Message-ID"]): found for found in map(read, box.mails)}
        assert not said.exists(), said.read_text()
        assert sender.exitcode == -signal.SIGKILL
        assert len(box.mails) - len(opened) == 1, "the mail that the killed one could not mark came again"

        judged(Ledger(store), known, [slow(sla, end=n < 40, **other.get(n, {})) for n, sla in enumerate(known)])
        box.mails.clear()
        notified(settings, store, server)
        recovered = [read(found) for found in box.mails]
        notified(settings, store, server)
        assert len(box.mails) == len(recovered)

    assert sorted(Counter(str(found["To"]) for found in opened.values()).items()) == [
        ("billing-oncall@example.com", 2),
        ("shop-oncall@example.com", 1),
    ]
    assert named(opened.values()) == Counter(sla.name for sla in known)
    assert {str(found["In-Reply-To"]) for found in recovered} == set(opened)
    assert named(recovered) == Counter(sla.name for sla in known[:40])


def read(found: Any) -> EmailMessage:
    return message_from_bytes(bytes(found), policy=default)


def named(mails: Any) -> Counter[str]:
    """SLAs by how many of the mails are about them."""
    lines = [line for found in mails for line in part(found, "plain").splitlines()]
    found = [re.match(r"(?:SLA MISSED: |RECOVERED: )?(billing\S+) (?:\(\w+\):|since|at)", line) for line in lines]
    return Counter(match[1] for match in found if match)


def test_a_notifier_is_called_once_for_all_that_share_a_cause_unless_it_speaks_of_one_miss(tmp_path: Path) -> None:
    store = Store.embedded(tmp_path)
    notifiers = (Notifier("company.Chat", {"text": "{{ message }}"}, each_miss=False), Notifier("company.Pager", {}))
    known = tuple(replace(sla, notifiers=notifiers) for sla in slas(5))
    judged(Ledger(store), known, [slow(sla) for sla in known])
    calls: list[tuple[str, int]] = []

    def call(notifier: Notifier, sla: Sla, message: AlertMessage) -> None:
        calls.append((notifier.path, len(message.reports)))

    steps.notify(Settings((Cluster("main", None),), known), store, [s.name for s in known], INTERVAL, None, RUN, call)

    assert Counter(calls) == {("company.Chat", 5): 1, ("company.Pager", 1): 5}
