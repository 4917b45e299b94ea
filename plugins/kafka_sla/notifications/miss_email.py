"""What a mail about a miss says: text, HTML and the plot, as one message. Pure: knows no server, store or clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from kafka_sla.ledger.outbox import Notice
from kafka_sla.model.entities import Sla, SlaWindow
from kafka_sla.reporting.charts import latency_plot
from kafka_sla.reporting.templates import render, visible
from kafka_sla.sla.wording import violation
from kafka_sla.text.formatting import moment, span

_PLOT_SIZE = (5.6, 3.2)
"""Small, so that its words can still be read when a phone shows it."""


def compose(sla: Sla, notice: Notice, windows: Sequence[SlaWindow], sender: str) -> EmailMessage:
    """The mail that tells the recipients of the SLA about the notice; `windows`: the time to plot, may be empty.

    The same notice makes the same Message-ID, so that a mail sent twice shows once; a recovery answers its opening.
    """
    told = _told(sla, notice, windows)
    message = EmailMessage(policy=SMTP)
    message["From"], message["To"] = sender, ", ".join(sla.recipients)
    message["Subject"] = told["subject"]
    message["Message-ID"] = _message_id(notice, notice.kind, sender)
    if notice.kind == "recovered":
        message["In-Reply-To"] = message["References"] = _message_id(notice, "opened", sender)
    message["Auto-Submitted"] = "auto-generated"
    message["X-Kafka-Sla-Miss"] = notice.miss.id
    message.set_content(render("notifications/miss.txt.j2", told))
    plot_id = f"plot.{_message_id(notice, notice.kind, sender)[1:-1]}"
    message.add_alternative(
        render("notifications/miss.html.j2", told, plot_id=plot_id if windows else None), subtype="html"
    )
    if windows:
        _, page = message.iter_parts()
        plot = latency_plot(sla, windows, [notice.miss], size=_PLOT_SIZE)
        page.add_related(plot, "image", "png", cid=f"<{plot_id}>", filename="latency.png", disposition="inline")
    return message


def _told(sla: Sla, notice: Notice, windows: Sequence[SlaWindow]) -> dict[str, Any]:
    """Every value of the templates."""
    miss = notice.miss
    ended = notice.kind == "recovered"
    until = miss.end or max([w.window.end for w in windows if w.verdict == "bad"], default=miss.opened_at)
    length = span((until - miss.start) / timedelta(milliseconds=1))
    subject = f"SLA recovered: {sla.name} after {length}" if ended else f"SLA missed: {sla.name}, {violation(miss)}"
    return {
        "ended": ended, "sla": sla, "miss": miss, "subject": visible(subject), "until": until, "length": length,
        "when": partial(_when, sla.time_zone),
        "run_url": notice.run_url if urlsplit(notice.run_url or "").scheme in ("http", "https") else None,
    }  # fmt: skip


def _when(time_zone: str, at: datetime) -> str:
    """UTC, and the SLA's own clock where it differs."""
    if time_zone == "UTC":
        return moment(at)
    return f"{moment(at)} ({at.astimezone(ZoneInfo(time_zone)):%H:%M:%S} {time_zone})"


def _message_id(notice: Notice, kind: str, sender: str) -> str:
    domain = sender.rpartition("@")[2].rstrip(">") or "localhost"
    return f"<kafka-sla.{notice.thread or notice.miss.id}.{kind}@{domain}>"
