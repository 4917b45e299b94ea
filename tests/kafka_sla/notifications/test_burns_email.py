"""Burns of error budgets that share a cause are one message, as misses are: what it says, who gets it, and that it is
the same one when its sender was killed."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from dataclasses import replace
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

import jsonschema
import pytest

from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.alerts.report_plan import Opening
from kafka_sla.ledger.alerts.report_rows import AlertMessage
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import BurnPair, Cluster, Interval, Miss, Severity, Sla, SlaWindow, Webhook
from kafka_sla.notifications.burn_email import burns_mail
from kafka_sla.notifications.incident_causes import name_causes
from kafka_sla.notifications.notices import BurnMessage, BurnNotice
from kafka_sla.notifications.webhooks.event import burn_event_of, schema
from kafka_sla.notifications.webhooks.webhook import send
from kafka_sla.pipeline import steps
from kafka_sla.pipeline.alerting.receivers import find_address
from kafka_sla.pipeline.burn_causes import bad_time_behind
from kafka_sla.sla.alerts import Alert, close_report
from kafka_sla.sla.burn import Burn
from kafka_sla.tasks.events.burn_notifiers import about_burns
from tests.kafka_sla.notifications.incidents import INTERVAL, RUN, judged, minutes_pass, slas, slow
from tests.kafka_sla.notifications.misses import MINUTE, START
from tests.kafka_sla.notifications.receivers import Receiver, serving
from tests.kafka_sla.notifications.test_burn_email import PERIOD
from tests.kafka_sla.notifications.test_smtp import Mailbox
from tests.kafka_sla.notifications.test_smtp import serving as mail_server
from tests.kafka_sla.notifications.webhooks.test_webhook import TAKES

PAIR = BurnPair(14.4, 3_600_000, 300_000, "page", 300_000)
BEGAN = START + 24 * MINUTE


def alerted(number: int) -> list[Sla]:
    return [replace(sla, burn_pairs=(PAIR,)) for sla in slas(number)]


def burn(sla: Sla, *, minutes: int | None = None, severity: Severity = "page") -> Burn:
    end = BEGAN + minutes * MINUTE if minutes else None
    return Burn(
        f"b-{sla.name}-{severity}", sla.name, sla.cluster, severity, BEGAN, end, 83.4, replace(PAIR, severity=severity)
    )


def burning(ledger: Ledger, burns: Sequence[Burn]) -> None:
    """These are the burns of their SLAs."""
    of = {one.sla: [other for other in burns if other.sla == one.sla] for one in burns}
    ledger.burns.replace(list(of), INTERVAL, lambda sla, _: of[sla])


def opened(ledger: Ledger, burns: Sequence[Burn], behind: Sequence[Miss]) -> None:
    alerts = [alert_of(burn, miss) for burn, miss in zip(burns, behind, strict=True)]
    openings = [Opening("mail", a.id, a, recipient_of(a.sla), RUN, "", False) for a in alerts]
    with ledger.alert_reports.planning() as plan:
        plan.open(name_causes(openings, find_address), find_address)


def alert_of(burn: Burn, behind: Miss) -> Alert:
    until = burn.end or burn.start
    return Alert("burn", burn.id, burn.sla, burn.severity, burn.start, burn.end, until, "", behind, burn)


def recipient_of(name: str) -> Sla:
    return replace(slas(1)[0], name=name)


def delivered(ledger: Ledger) -> list[AlertMessage]:
    sent: list[AlertMessage] = []
    assert not ledger.alert_reports.deliver("mail", sent.append, lambda _: True, find_address).errors
    return sent


def names(message: AlertMessage) -> list[str]:
    return [report.alert.sla for report in message.reports]


def killed_after_sending(store: Store, file: str) -> None:
    """Sends one message, and dies before anything can be marked."""

    def last_words(message: AlertMessage) -> None:
        Path(file).write_text(f"{message.incident}: {' '.join(names(message))}")
        os._exit(9)

    Ledger(store).alert_reports.deliver("mail", last_words, lambda _: True, find_address)


def test_five_hundred_burns_of_one_cause_are_one_message_and_the_same_one_when_its_sender_was_killed(
    store: Store, ledger: Ledger, tmp_path: Path
) -> None:
    known = alerted(500)
    opened(ledger, [burn(sla) for sla in known[:-1]], [slow(sla) for sla in known[:-1]])
    sender = multiprocessing.get_context("spawn").Process(
        target=killed_after_sending, args=(store, str(tmp_path / "sent"))
    )
    sender.start()
    sender.join()
    opened(ledger, [burn(known[-1])], [slow(known[-1])])

    again, late = delivered(ledger)

    assert sender.exitcode == 9
    assert (tmp_path / "sent").read_text() == f"{again.incident}: {' '.join(sla.name for sla in known[:-1])}"
    assert (len(again.reports), names(late), delivered(ledger)) == (499, [known[-1].name], [])


def test_causes_and_severities_are_apart_and_what_is_over_belongs_to_the_incident_that_began(ledger: Ledger) -> None:
    first, second, third = alerted(3)
    own = slow(third, cause="rewound")
    pages = [burn(sla) for sla in (first, second, third)]
    burning(ledger, [*pages, burn(first, severity="ticket")])
    opened(ledger, [*pages, burn(first, severity="ticket")], [slow(first), slow(second), own, slow(first)])

    brokers, consumer, ticket = delivered(ledger)

    assert (names(brokers), names(consumer), names(ticket)) == ([first.name, second.name], [third.name], [first.name])
    assert [message.is_single for message in (brokers, consumer, ticket)] == [False, True, True]

    over = burn(first, minutes=10)
    burning(ledger, [over, pages[1], pages[2]])
    (report,) = [r for r in ledger.alert_reports.unresolved() if r.alert_id == over.id]
    with ledger.alert_reports.planning() as plan:
        plan.update([close_report(report, replace(report.alert, burn=over).closed("recovered"))], RUN)
    (some,) = delivered(ledger)
    assert (some.incident, names(some), [r.alert.sla for r in some.still_open], some.size, some.is_single) == (
        brokers.incident,
        [first.name],
        [second.name],
        2,
        False,
    )


def test_a_run_sends_each_team_one_mail_that_names_its_slas_and_replies_when_they_are_over(
    store: Store, ledger: Ledger
) -> None:
    known = alerted(5)
    settings = Settings((Cluster("main", None),), tuple(known))
    judged(ledger, known, [slow(sla) for sla in known])
    mailbox = Mailbox()
    with mail_server(mailbox) as smtp:
        for minutes in (None, 12):
            burning(ledger, [burn(sla, minutes=minutes) for sla in known])
            for _ in range(2):
                steps.notify(settings, store, [sla.name for sla in known], INTERVAL, smtp, RUN)

    mails = [m for m in map(read, map(bytes, mailbox.mails)) if m["X-Kafka-Sla-Burn"]]
    assert sorted(m["Subject"] for m in mails) == [
        "Burns over: 2 of 2, slow brokers of cluster main (page)",
        "Burns over: 3 of 3, slow brokers of cluster main (page)",
        "Error budgets burn: 2 SLAs, slow brokers of cluster main (page)",
        "Error budgets burn: 3 SLAs, slow brokers of cluster main (page)",
    ]
    began = {m["To"]: m for m in mails if m["Subject"].startswith("Error")}
    for mail in mails:
        for kind in ("plain", "html"):
            text = part(mail, kind)
            wanted = [sla.name for sla in known if sla.recipients[0] == mail["To"]]
            assert [name for name in (sla.name for sla in known) if name in text] == wanted
        if mail["Subject"].startswith("Burns"):
            assert mail["In-Reply-To"] == began[mail["To"]]["Message-ID"] != mail["Message-ID"]
    assert "alerted above a burn rate of 14.4 over 1 h and 5 min" in part(mails[0], "html")


SEEN = {
    "pagerduty": [["trigger"], ["trigger"], ["resolve"]],
    "opsgenie": [["open"], ["noted"], ["closed"]],
    "alertmanager": [["firing"] * 3, ["firing", "resolved", "resolved"], ["resolved"] * 3],
}


@pytest.mark.parametrize("format", ["json", "slack", "teams", "pagerduty", "opsgenie", "alertmanager"])
def test_receivers_take_several_burns_and_resolve_them_with_the_last(format: str) -> None:
    handle, login = TAKES[format]
    known, receiver = alerted(3), Receiver(handle)
    burns = [burn(sla) for sla in known]
    began = [BurnNotice("began", b, RUN, "webhook", b.id, slow(s)) for b, s in zip(burns, known, strict=True)]
    over = [replace(n, kind="over", burn=replace(n.burn, end=BEGAN + 9 * MINUTE)) for n in began]
    incident = began[0].thread
    messages = [
        BurnMessage("began", "webhook", incident, tuple(began), (), 3),
        BurnMessage("over", "webhook", incident, tuple(over[:2]), (began[2],), 3),
        BurnMessage("over", "webhook", incident, tuple(over[2:]), (), 3),
    ]
    events = [burn_event_of({sla.name: sla for sla in known}, message) for message in messages]
    seen = []
    with serving(receiver, **login) as connection:
        for event in events:
            send(connection, Webhook("receiver", format), event)  # type: ignore[arg-type]
            seen.append(sorted(receiver.states.values()))

    assert receiver.refused == []
    assert [sla.name for sla in known if sla.name not in str(receiver.bodies[0])] == []
    assert seen == SEEN.get(format, [[], [], []])
    if format == "json":
        for body in receiver.bodies:
            jsonschema.validate(body, schema())


def test_an_alertmanager_that_was_restarted_hears_from_the_next_run_what_still_burns(
    store: Store, ledger: Ledger
) -> None:
    known = [replace(sla, webhooks=(Webhook("receiver", "alertmanager"),)) for sla in alerted(3)]
    settings, receiver = Settings((Cluster("main", None),), tuple(known)), Receiver(TAKES["alertmanager"][0])
    states = []
    with serving(receiver) as connection:
        for over in (0, 0, 2, 2):
            receiver.states.clear()
            minutes_pass(store, 10)
            burning(ledger, [burn(sla, minutes=9 if n < over else None) for n, sla in enumerate(known)])
            names = [sla.name for sla in known]
            steps.notify(settings, store, names, INTERVAL, None, RUN, login=lambda _: connection)
            states.append(sorted(receiver.states.values()))

    assert states == [["firing"] * 3, ["firing"] * 3, ["firing", "resolved", "resolved"], ["firing"]]


def test_a_notifier_hears_of_all_of_them_in_one_line() -> None:
    known = alerted(2)
    notices = tuple(BurnNotice("began", burn(sla), RUN, "chat", "", slow(sla)) for sla in known)

    told = about_burns(known[0], BurnMessage("began", "chat", "i1", notices, (), 2))

    assert told["message"] == (
        "Error budgets burn: 2 SLAs, slow brokers of cluster main (page): billing.alerts-000, billing.alerts-001"
    )
    assert [one["id"] for one in told["burns"]] == [one.burn.id for one in notices]


def test_bad_time_that_was_too_short_for_a_miss_is_explained_like_one(ledger: Ledger, lake: Lake) -> None:
    (sla,) = alerted(1)
    settings = Settings((Cluster("main", None),), (sla,))
    window = SlaWindow(
        sla.name,
        Interval(BEGAN - MINUTE, BEGAN),
        "bad",
        True,
        "",
        max_latency_ms=30_000,
        worst_latency_ms=45_000.0,
        worst_group="group-000",
        worst_topic="orders",
        worst_partition=3,
    )

    assert bad_time_behind(settings, ledger, lake, burn(sla)) is None
    ledger.verdicts.replace(sla, Interval(BEGAN - 2 * MINUTE, BEGAN), [window], lambda *_: [])
    found = bad_time_behind(settings, ledger, lake, burn(sla))

    assert found
    assert (found.worst_group, found.worst_topic, found.worst_partition) == ("group-000", "orders", 3)
    assert found.evidence["cause"]


def test_hostile_names_are_shown_and_do_nothing() -> None:
    name = '<script>alert("1")</script>\r\nBcc: all@example.com'
    bad = [replace(sla, name=name + str(n), team=name) for n, sla in enumerate(alerted(2))]
    notices = tuple(
        BurnNotice("began", replace(burn(sla), id=f"b{n}"), RUN, "mail", "", slow(sla)) for n, sla in enumerate(bad)
    )

    periods, known = dict.fromkeys([sla.name for sla in bad], PERIOD), {sla.name: sla for sla in bad}
    mail = read(bytes(burns_mail(known, BurnMessage("began", "mail", "i", notices, (), 2), periods, "sla@example.com")))

    assert "<script" not in part(mail, "html")
    assert mail["Bcc"] is None


def read(raw: bytes) -> EmailMessage:
    return message_from_bytes(raw, policy=default)


def part(mail: EmailMessage, kind: str) -> str:
    body = mail.get_body((kind,))
    assert body is not None
    return str(body.get_content())
