"""What a mail about the measuring being late says. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from urllib.parse import urlsplit

from kafka_sla.model.entities import FreshnessAlert, Interval
from kafka_sla.notifications.mail_policy import message_id, new_mail
from kafka_sla.reporting.templates import render, visible
from kafka_sla.text import formatting


@dataclass(frozen=True, slots=True)
class LateRun:
    """A scheduled run that was not done when it should have been."""

    dag_id: str
    run_id: str
    interval: Interval
    state: str
    """Of the run when it became late, as Airflow names it."""
    run_url: str | None = None


def late_mail(
    freshness_alert: FreshnessAlert, run: LateRun, late: dict[str, datetime | None], problem: str | None, sender: str
) -> EmailMessage:
    """The mail to the operators. `late`: clusters that nobody can read yet, and until when they are published;
    `problem`: why that could not be asked. The same run makes the same Message-ID."""
    told = {
        "run": run,
        "span": f"{formatting.moment(run.interval.start)} to {formatting.moment(run.interval.end)}",
        "due": formatting.moment(run.interval.end + timedelta(milliseconds=freshness_alert.after_ms)),
        "after": formatting.span(freshness_alert.after_ms),
        "late": [(name, formatting.moment(until) if until else None) for name, until in sorted(late.items())],
        "problem": problem,
        "state": {"failed": "has failed", "success": "has ended"}.get(run.state, f"is {run.state}"),
        "unfinished": run.state not in ("failed", "success"),
        "run_url": run.run_url if urlsplit(run.run_url or "").scheme in ("http", "https") else None,
    }
    subject = visible(f"SLA measuring late: {run.dag_id}, {told['span']}")
    own_id = message_id(f"late.{run.dag_id}.{run.interval.end:%Y%m%dT%H%M%S}", sender)
    message = new_mail(sender, freshness_alert.recipients, subject, own_id)
    message.set_content(render("notifications/late.txt.j2", told))
    message.add_alternative(render("notifications/late.html.j2", told), subtype="html")
    return message
