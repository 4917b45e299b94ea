"""What a mail about a miss says: text, HTML and the plot, as one message. Pure: knows no server, store or clock."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from kafka_sla import wording
from kafka_sla.charts import latency_plot
from kafka_sla.model import Miss, Sla, SlaWindow
from kafka_sla.outbox import Notice


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
    message.set_content(_TEMPLATES.get_template("miss.txt.j2").render(told))
    plot_id = f"plot.{_message_id(notice, notice.kind, sender)[1:-1]}"
    html = _TEMPLATES.get_template("miss.html.j2").render(told, plot_id=plot_id if windows else None)
    message.add_alternative(html, subtype="html")
    if windows:
        _, page = message.iter_parts()
        plot = latency_plot(sla, windows, [notice.miss], size=_PLOT_SIZE)
        page.add_related(plot, "image", "png", cid=f"<{plot_id}>", filename="latency.png", disposition="inline")
    return message


def visible(text: Any) -> Any:
    """Text in which every character can be seen: names may hold line ends, control and direction characters."""
    if not isinstance(text, str) or isinstance(text, Markup):
        return text
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") else c for c in text
    )


_PLOT_SIZE = (5.6, 3.2)
"""Small, so that its words can still be read when a phone shows it."""
_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")), undefined=StrictUndefined, finalize=visible,
    autoescape=select_autoescape(["html.j2"]), trim_blocks=True, lstrip_blocks=True,
)  # fmt: skip


def _told(sla: Sla, notice: Notice, windows: Sequence[SlaWindow]) -> dict[str, Any]:
    """Every value of the templates."""
    miss = notice.miss
    ended = notice.kind == "recovered"
    until = miss.end or max([w.window.end for w in windows if w.verdict == "bad"], default=miss.opened_at)
    length = wording.span((until - miss.start).total_seconds() * 1000)
    worst, promised = wording.span(miss.worst_latency_ms), wording.span(sla.max_latency_ms)
    subject = f"SLA recovered: {sla.name} after {length}" if ended else (
        f"SLA missed: {sla.name}, worst {worst}, promised {promised}")  # fmt: skip
    return {
        "ended": ended, "over": miss.end is not None, "sla": sla, "miss": miss, "subject": visible(subject),
        "promised": promised, "lasting": wording.span(sla.for_ms) if sla.for_ms else None,
        "objective": wording.share(sla.objective), "worst": worst,
        "bounds": wording.bounds(miss.worst_latency_low_ms, miss.worst_latency_high_ms),
        "worst_at": _when(miss.worst_at, sla), "since": _when(miss.start, sla), "until": _when(until, sla),
        "length": length, "cause": miss.evidence.get("sentence"), "figures": figures(miss),
        "run_url": notice.run_url if urlsplit(notice.run_url or "").scheme in ("http", "https") else None,
    }  # fmt: skip


def figures(miss: Miss) -> list[tuple[str, str, str]]:
    """The evidence in words: what, before the trouble, during it. Empty for a miss without evidence."""
    found = miss.evidence
    if not found:
        return []
    rate, count = wording.rate, wording.count
    last = found["last_commit_at"]
    return [
        ("Produced", rate(found["produce_rate_before"]), rate(found["produce_rate_during"])),
        ("Consumed", rate(found["consume_rate_before"]), rate(found["consume_rate_during"])),
        ("Records waiting", count(found["lag_at_start"]), count(found["lag_worst"])),
        ("Last commit", "", wording.moment(datetime.fromisoformat(last)) if last else wording.UNKNOWN),
        ("Late partitions", "", count(found["late_partitions"])),
    ]


def _when(at: datetime, sla: Sla) -> str:
    """UTC, and the SLA's own clock where it differs."""
    if sla.time_zone == "UTC":
        return wording.moment(at)
    return f"{wording.moment(at)} ({at.astimezone(ZoneInfo(sla.time_zone)):%H:%M:%S} {sla.time_zone})"


def _message_id(notice: Notice, kind: str, sender: str) -> str:
    domain = sender.rpartition("@")[2].rstrip(">") or "localhost"
    return f"<kafka-sla.{notice.thread or notice.miss.id}.{kind}@{domain}>"
