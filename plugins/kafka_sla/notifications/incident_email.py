"""What one mail about several misses says: text and HTML, each SLA in a line. Pure: knows no server, store or clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from functools import partial
from typing import Any

from kafka_sla.ledger.notices.incidents import IncidentNotice
from kafka_sla.ledger.notices.outbox import Notice
from kafka_sla.model.entities import Miss, Sla
from kafka_sla.notifications.mail_policy import POLICY
from kafka_sla.notifications.miss_context import incident_links, miss_url
from kafka_sla.notifications.miss_email import clock_time, message_id
from kafka_sla.reporting.templates import render, visible
from kafka_sla.sla.root_cause.shared_cause import common_words, shared_cause
from kafka_sla.text.formatting import count, plural
from kafka_sla.text.natural_order import natural

_NO_TEAM = "without a team"


@dataclass(frozen=True, slots=True)
class Line:
    """One SLA of the mail."""

    sla: str
    team: str
    miss: Miss
    url: str
    runbook: str
    cause: str
    """Empty where all SLAs of the mail have one."""


def compose(slas: Mapping[str, Sla], notice: IncidentNotice, sender: str) -> EmailMessage:
    """The mail that reports all these misses to the recipients of their SLAs, which have the same; `slas` by name.

    The first mail of an incident begins a thread, all others reply to it.
    """
    values = incident_values(slas, notice)
    first = notice.notices[0]
    message = EmailMessage(policy=POLICY)
    message["From"], message["To"] = sender, ", ".join(slas[first.miss.sla].recipients)
    message["Subject"] = values["subject"]
    message["Message-ID"] = message_id(first.thread or first.miss.id, notice.kind, sender)
    if message["Message-ID"] != (root := message_id(notice.incident, "opened", sender)):
        message["In-Reply-To"] = message["References"] = root
    message["Auto-Submitted"] = "auto-generated"
    message["X-Kafka-Sla-Incident"] = notice.incident
    message["X-Kafka-Sla-Miss"] = ", ".join(one.miss.id for one in notice.notices)
    message.set_content(render("notifications/incident.txt.j2", values))
    message.add_alternative(render("notifications/incident.html.j2", values), subtype="html")
    return message


def incident_values(slas: Mapping[str, Sla], notice: IncidentNotice) -> dict[str, Any]:
    """Every value of the templates."""
    misses, run_url = [n.miss for n in notice.notices], notice.notices[0].run_url
    several = len({shared_cause(miss) for miss in misses}) > 1
    zones = {slas[miss.sla].time_zone for miss in misses if miss.sla in slas}
    worst = max(misses, key=lambda miss: miss.worst_latency_ms / miss.max_latency_ms)
    return {
        "ended": notice.kind == "recovered",
        "subject": visible(subject(notice)),
        "cause": common_words(misses),
        "sentence": worst.evidence.get("sentence", ""),
        "sentence_of": worst.sla,
        "size": notice.size,
        "since": min(miss.start for miss in misses),
        "until": max(m.end or m.opened_at for m in misses),
        "teams": team_counts(slas, [miss.sla for miss in misses]),
        "links": incident_links(run_url, misses),
        "lines": [_line(slas, n.miss, run_url, several=several) for n in _ordered(slas, notice.notices)],
        "still_open": [_line(slas, miss, run_url) for miss in notice.still_open],
        "when": partial(clock_time, zones.pop() if len(zones) == 1 else "UTC"),
        "incident": notice.incident,
        "continued": notice.kind == "opened" and notice.size > len(misses),
        "rest": _rest(notice),
    }


def subject(notice: IncidentNotice) -> str:
    """`SLAs missed: 500, slow brokers of cluster prod`, `SLAs recovered: 480 of 500, slow brokers of cluster prod`."""
    number, cause = len(notice.notices), common_words([n.miss for n in notice.notices])
    if notice.kind == "recovered":
        return f"SLAs recovered: {count(number)} of {count(notice.size)}, {cause}"
    more = " more" if notice.size > number else ""
    return f"SLAs missed: {count(number)}{more}, {cause}"


def team_counts(slas: Mapping[str, Sla], names: Sequence[str]) -> str:
    """`team Billing (300), team Shop (200)`, the one with the most SLAs first."""
    counted = Counter(_team(slas, name) for name in names)
    ordered = sorted(counted.items(), key=lambda pair: (-pair[1], natural(pair[0])))
    return ", ".join(f"{f'team {team}' if team else _NO_TEAM} ({count(number)})" for team, number in ordered)


def _rest(notice: IncidentNotice) -> str:
    """Of the incident: which of its SLAs this mail does not list; empty for the mail that begins it."""
    if notice.kind == "opened" and notice.size == len(notice.notices):
        return ""
    if not notice.still_open:
        return "No other SLA of this incident is missed."
    number = len(notice.still_open)
    return f"{plural(number, 'other SLA')} of this incident {'is' if number == 1 else 'are'} still missed."


def _ordered(slas: Mapping[str, Sla], notices: Sequence[Notice]) -> list[Notice]:
    return sorted(notices, key=lambda n: (natural(_team(slas, n.miss.sla)), natural(n.miss.sla), n.miss.start))


def _team(slas: Mapping[str, Sla], name: str) -> str:
    """Empty, too, for an SLA that has left the configuration since its notice was queued."""
    return slas[name].team if name in slas else ""


def _line(slas: Mapping[str, Sla], miss: Miss, run_url: str | None, *, several: bool = False) -> Line:
    runbook = slas[miss.sla].runbook if miss.sla in slas else ""
    cause = shared_cause(miss).words if several else ""
    return Line(miss.sla, _team(slas, miss.sla), miss, miss_url(run_url, miss.id), runbook, cause)
