"""Mails about error budgets that are spent too fast: one burn, or several in one mail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from email.message import EmailMessage
from typing import Any
from urllib.parse import urlsplit

from kafka_sla.model.entities import Sla
from kafka_sla.notifications.incident_email import (
    LONGEST_CAUSE,
    common_values,
    describe_line_cause,
    find_team,
    has_several_causes,
    order_by_team,
    written,
)
from kafka_sla.notifications.mail_policy import message_id, new_mail
from kafka_sla.notifications.miss_context import overview_url, run_link, sla_url
from kafka_sla.notifications.notices import BurnMessage, BurnNotice
from kafka_sla.reporting.templates import render, visible
from kafka_sla.sla.attainment import Attainment
from kafka_sla.sla.burn import Burn
from kafka_sla.sla.root_cause.shared_cause import common_words
from kafka_sla.sla.wording import alerted_above, burning, end_reason
from kafka_sla.text.formatting import burn as rate_text
from kafka_sla.text.formatting import count, plural, span


def burn_mail(sla: Sla, notice: BurnNotice, period: Attainment, sender: str) -> EmailMessage:
    """The mail that a burn began, or that it is over, which answers the first. `period`: the SLA's, until then.

    The same notice makes the same Message-ID, so that a mail sent twice shows once.
    """
    told = _burn_values(sla, notice, period)
    thread = told["thread"]
    own_id, first_id = (burn_message_id(thread, kind, sender) for kind in (notice.kind, "began"))
    message = new_mail(sender, sla.recipients, told["subject"], own_id, first_id)
    message["X-Kafka-Sla-Burn"] = thread
    message.set_content(render("notifications/burn.txt.j2", told))
    message.add_alternative(render("notifications/burn.html.j2", told), subtype="html")
    return message


def _burn_values(sla: Sla, notice: BurnNotice, period: Attainment) -> dict[str, Any]:
    burn, over = notice.burn, notice.kind == "over"
    length = span((burn.end - burn.start) / timedelta(milliseconds=1)) if burn.end else ""
    rate = rate_text(burn.burn_rate)
    reason = end_reason(notice.end_reason)
    end = f"Burn ended: {sla.name}, {reason}" if reason else f"Burn over: {sla.name} after {length}"
    subject = end if over else f"Error budget burns {rate}x: {sla.name}"
    return {
        "over": over,
        "reason": reason,
        "sla": sla,
        "burn": burn,
        "period": period,
        "length": length,
        "text": burning(burn, sla.objective_of),
        "subject": visible(f"{subject} ({burn.severity})"),
        "links": _links(sla, notice.run_url or ""),
        "thread": notice.thread or burn.id,
    }


def _links(sla: Sla, run_url: str) -> list[tuple[str, str]]:
    """Addresses of anything but web pages are left out."""
    found = [("Runbook", sla.runbook), ("SLA", sla_url(run_url, sla.name))]
    return [(name, url) for name, url in found if urlsplit(url).scheme in ("http", "https")]


def burn_message_id(thread: str, kind: str, sender: str) -> str:
    """The Message-ID of what is mailed of a burn; `thread`: the id under which it was first reported."""
    return message_id(f"burn.{thread}.{kind}", sender)


@dataclass(frozen=True, slots=True)
class Line:
    """One SLA of the mail."""

    sla: str
    team: str
    burn: Burn
    length: str
    """How long it burned; empty while it does."""
    period: Attainment | None
    url: str
    runbook: str
    cause: str
    """Empty where all SLAs of the mail have one."""
    gravity: float
    """What is left out of a mail that is too long is least grave."""


def burns_mail(
    slas: Mapping[str, Sla], message: BurnMessage, periods: Mapping[str, Attainment], sender: str
) -> EmailMessage:
    """The mail that reports all these burns to the recipients of their SLAs, which have the same; `slas` and `periods`
    by name of the SLA.

    The first mail of an incident begins a thread, all others reply to it.
    """
    values, first = _values(slas, message, periods), message.notices[0]
    own_id = burn_message_id(first.thread or first.burn.id, message.kind, sender)
    first_id = burn_message_id(message.incident, "began", sender)
    mail = new_mail(sender, slas[first.burn.sla].recipients, values["subject"], own_id, first_id)
    mail["X-Kafka-Sla-Incident"] = message.incident
    mail["X-Kafka-Sla-Burn"] = ", ".join(one.thread or one.burn.id for one in message.notices)
    text, page = written("burns", values)
    mail.set_content(text)
    mail.add_alternative(page, subtype="html")
    return mail


def subject(message: BurnMessage) -> str:
    """`Error budgets burn: 500 SLAs, slow brokers of cluster prod (page)`, `Burns over: 480 of 500, …`."""
    number, words = len(message.notices), cause(message)
    severity = message.notices[0].burn.severity
    if message.kind == "over":
        return f"Burns over: {count(number)} of {count(message.size)}, {words} ({severity})"
    more = " more" if message.size > number else ""
    return f"Error budgets burn: {plural(number, 'SLA')}{more}, {words} ({severity})"


def cause(message: BurnMessage) -> str:
    """What the burns of the message have in common."""
    return common_words([notice.bad_time for notice in message.notices])


def sentence(message: BurnMessage) -> str:
    """Why the fastest of them began; empty where that is not known."""
    fastest = max(message.notices, key=lambda notice: notice.burn.burn_rate)
    return str(fastest.bad_time.evidence.get("sentence", ""))


def _values(slas: Mapping[str, Sla], message: BurnMessage, periods: Mapping[str, Attainment]) -> dict[str, Any]:
    """Every value of the templates."""
    burns, run_url = [n.burn for n in message.notices], message.notices[0].run_url
    several = has_several_causes(message.notices)
    return {
        **common_values(slas, message),
        "ended": message.kind == "over",
        "subject": visible(subject(message))[:LONGEST_CAUSE],
        "severity": burns[0].severity,
        "sentence": sentence(message)[:LONGEST_CAUSE],
        "until": max(burn.end or burn.start for burn in burns),
        "links": run_link(run_url),
        "all": ("All SLAs", overview_url(run_url), "kafka-sla status"),
        "above": alerted_above([burn.pair for burn in burns]),
        "lines": [_line(slas, n, run_url, periods, several=several) for n in order_by_team(slas, message.notices)],
        "still_open": [_line(slas, n, run_url, {}) for n in message.still_open],
        "rest": _rest(message),
    }


def _rest(message: BurnMessage) -> str:
    """Of the incident: which of its SLAs this mail does not list; empty for the mail that begins it."""
    if message.kind == "began" and message.size == len(message.notices):
        return ""
    if not message.still_open:
        return "No other error budget of this incident burns."
    number = len(message.still_open)
    budgets, burn = ("budget", "burns") if number == 1 else ("budgets", "burn")
    return f"{count(number)} other error {budgets} of this incident still {burn}."


def _line(
    slas: Mapping[str, Sla],
    notice: BurnNotice,
    run_url: str | None,
    periods: Mapping[str, Attainment],
    *,
    several: bool = False,
) -> Line:
    burn = notice.burn
    runbook, words = slas[burn.sla].runbook if burn.sla in slas else "", describe_line_cause(notice, several=several)
    length = span((burn.end - burn.start) / timedelta(milliseconds=1)) if burn.end else ""
    url, team = sla_url(run_url, burn.sla), find_team(slas, burn.sla)
    return Line(burn.sla, team, burn, length, periods.get(burn.sla), url, runbook, words, burn.burn_rate)
