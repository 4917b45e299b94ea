"""What a mail about an error budget says that is spent too fast. Pure: knows no server, store or clock."""

from __future__ import annotations

from datetime import timedelta
from email.message import EmailMessage
from typing import Any
from urllib.parse import urlsplit

from kafka_sla.ledger.notices.burn_notices import BurnNotice
from kafka_sla.model.entities import Sla
from kafka_sla.notifications.mail_policy import message_id, new_mail
from kafka_sla.notifications.miss_context import sla_url
from kafka_sla.reporting.templates import render, visible
from kafka_sla.sla.attainment import Attainment
from kafka_sla.sla.wording import burning
from kafka_sla.text.formatting import burn as rate_text
from kafka_sla.text.formatting import span


def burn_mail(sla: Sla, notice: BurnNotice, period: Attainment, sender: str) -> EmailMessage:
    """The mail that a burn began, or that it is over, which answers the first. `period`: the SLA's, until then.

    The same notice makes the same Message-ID, so that a mail sent twice shows once.
    """
    told = _told(sla, notice, period)
    thread = told["thread"]
    own_id, first_id = (burn_message_id(thread, kind, sender) for kind in (notice.kind, "began"))
    message = new_mail(sender, sla.recipients, told["subject"], own_id, first_id)
    message["X-Kafka-Sla-Burn"] = thread
    message.set_content(render("notifications/burn.txt.j2", told))
    message.add_alternative(render("notifications/burn.html.j2", told), subtype="html")
    return message


def _told(sla: Sla, notice: BurnNotice, period: Attainment) -> dict[str, Any]:
    burn, over = notice.burn, notice.kind == "over"
    length = span((burn.end - burn.start) / timedelta(milliseconds=1)) if burn.end else ""
    rate = rate_text(burn.burn_rate)
    subject = f"Burn over: {sla.name} after {length}" if over else f"Error budget burns {rate}x: {sla.name}"
    return {
        "over": over,
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
