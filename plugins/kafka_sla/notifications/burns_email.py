"""What one mail about the error budgets of several SLAs says: text and HTML, each SLA in a line. Pure: knows no server,
store or clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from email.message import EmailMessage
from functools import partial
from typing import Any

from kafka_sla.ledger.notices.burn_notices import BurnMessage, BurnNotice
from kafka_sla.model.entities import Sla
from kafka_sla.notifications.burn_email import burn_message_id
from kafka_sla.notifications.incident_causes import as_miss
from kafka_sla.notifications.incident_email import LONGEST_CAUSE, team_counts, written
from kafka_sla.notifications.mail_policy import new_mail
from kafka_sla.notifications.miss_context import overview_url, run_link, sla_url
from kafka_sla.notifications.miss_email import clock_time
from kafka_sla.reporting.templates import visible
from kafka_sla.sla.attainment import Attainment
from kafka_sla.sla.burn import Burn
from kafka_sla.sla.root_cause.shared_cause import common_words, shared_cause
from kafka_sla.sla.wording import alerted_above
from kafka_sla.text.formatting import count, plural, span
from kafka_sla.text.natural_order import natural


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
    return common_words([as_miss(notice) for notice in message.notices])


def sentence(message: BurnMessage) -> str:
    """Why the fastest of them began; empty where that is not known."""
    fastest = max(message.notices, key=lambda notice: notice.burn.burn_rate)
    return str(as_miss(fastest).evidence.get("sentence", ""))


def _values(slas: Mapping[str, Sla], message: BurnMessage, periods: Mapping[str, Attainment]) -> dict[str, Any]:
    """Every value of the templates."""
    burns, run_url = [n.burn for n in message.notices], message.notices[0].run_url
    several = len({shared_cause(as_miss(notice)) for notice in message.notices}) > 1
    zones = {slas[burn.sla].time_zone for burn in burns if burn.sla in slas}
    return {
        "ended": message.kind == "over",
        "subject": visible(subject(message))[:LONGEST_CAUSE],
        "cause": cause(message)[:LONGEST_CAUSE],
        "severity": burns[0].severity,
        "sentence": sentence(message)[:LONGEST_CAUSE],
        "size": message.size,
        "since": min(burn.start for burn in burns),
        "until": max(burn.end or burn.start for burn in burns),
        "teams": team_counts(slas, [burn.sla for burn in burns]),
        "links": run_link(run_url),
        "all": ("All SLAs", overview_url(run_url), "kafka-sla status"),
        "above": alerted_above([burn.pair for burn in burns]),
        "lines": [_line(slas, n, run_url, periods, several=several) for n in _ordered(slas, message.notices)],
        "still_open": [_line(slas, n, run_url, {}) for n in message.still_open],
        "when": partial(clock_time, zones.pop() if len(zones) == 1 else "UTC"),
        "incident": message.incident,
        "continued": message.kind == "began" and message.size > len(burns),
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


def _ordered(slas: Mapping[str, Sla], notices: Sequence[BurnNotice]) -> list[BurnNotice]:
    return sorted(notices, key=lambda n: (natural(_team(slas, n.burn.sla)), natural(n.burn.sla), n.burn.start))


def _team(slas: Mapping[str, Sla], name: str) -> str:
    """Empty, too, for an SLA that has left the configuration since its notice was queued."""
    return slas[name].team if name in slas else ""


def _line(
    slas: Mapping[str, Sla],
    notice: BurnNotice,
    run_url: str | None,
    periods: Mapping[str, Attainment],
    *,
    several: bool = False,
) -> Line:
    burn = notice.burn
    runbook = slas[burn.sla].runbook if burn.sla in slas else ""
    words = shared_cause(as_miss(notice)).words if several else ""
    length = span((burn.end - burn.start) / timedelta(milliseconds=1)) if burn.end else ""
    url, team = sla_url(run_url, burn.sla), _team(slas, burn.sla)
    return Line(burn.sla, team, burn, length, periods.get(burn.sla), url, runbook, words, burn.burn_rate)
