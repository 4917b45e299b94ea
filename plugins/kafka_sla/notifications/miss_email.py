"""What a mail about a miss says: text, HTML and the plot, as one message. Pure."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from email.message import EmailMessage
from functools import partial
from importlib.util import find_spec
from typing import Any
from zoneinfo import ZoneInfo

from kafka_sla.model.entities import Sla, SlaWindow
from kafka_sla.notifications.mail_extent import down, fitting
from kafka_sla.notifications.mail_policy import message_id, new_mail
from kafka_sla.notifications.miss_context import Surroundings, also_missed, commands, cost, links
from kafka_sla.notifications.notices import Notice
from kafka_sla.reporting.templates import render, visible
from kafka_sla.sla.wording import catching_up, miss_outcome, violation
from kafka_sla.text.formatting import moment, span

_NOTHING = Surroundings()
_PLOT_SIZE = (5.6, 3.2)
"""Small, so that its words can still be read when a phone shows it."""


def compose(
    sla: Sla, notice: Notice, windows: Sequence[SlaWindow], sender: str, around: Surroundings = _NOTHING
) -> EmailMessage:
    """The mail that tells the recipients of the SLA about the notice; `windows`: the time to plot, may be empty.

    The same notice makes the same Message-ID, so that a mail sent twice shows once; a recovery answers its opening.
    """
    told = _told(sla, notice, windows, around)
    thread = notice.thread or notice.miss.id
    own_id = miss_message_id(thread, notice.kind, sender)
    first_id = miss_message_id(notice.incident or thread, "opened", sender)
    message = new_mail(sender, sla.recipients, told["subject"], own_id, first_id)
    message["X-Kafka-Sla-Miss"] = notice.miss.id
    plots = _plots(sla, notice, windows)
    ids = {name: f"plot-{name}.{own_id[1:-1]}" for name in plots}
    pictures = {name: f"cid:{plot_id}" for name, plot_id in ids.items()}
    text, html = _parts(told | {"pictures": pictures})
    message.set_content(text)
    message.add_alternative(html, subtype="html")
    _, page = message.iter_parts()
    for name, plot in plots.items():
        page.add_related(
            plot, "image", "png", cid=f"<{ids[name]}>", filename=f"latency-{name}.png", disposition="inline"
        )
    return message


def _parts(told: dict[str, Any]) -> list[str]:
    """Text and HTML, with as many of the newest notes as mail programs show."""
    notes = told["notes"]

    def rendered(form: str, shown: int) -> str:
        left_out = len(notes) - shown
        return render(f"notifications/miss.{form}.j2", told | {"notes": notes[left_out:], "notes_left_out": left_out})

    _, parts = fitting([down(len(notes), 0)], partial(rendered, "txt"), partial(rendered, "html"))
    return parts


def miss_page(sla: Sla, notice: Notice, windows: Sequence[SlaWindow], around: Surroundings) -> str:
    """The same as one HTML file, with its pictures inside, for whoever writes the post-mortem. It has none without
    matplotlib, which a web server does not need."""
    plots = _plots(sla, notice, windows) if find_spec("matplotlib") else {}
    pictures = {name: f"data:image/png;base64,{b64encode(png).decode()}" for name, png in plots.items()}
    return render("notifications/miss.html.j2", _told(sla, notice, windows, around), pictures=pictures)


def _plots(sla: Sla, notice: Notice, windows: Sequence[SlaWindow]) -> Mapping[str, bytes]:
    from kafka_sla.reporting.charts import latency_plots

    return latency_plots(sla, windows, [notice.miss], size=_PLOT_SIZE)


def _told(sla: Sla, notice: Notice, windows: Sequence[SlaWindow], around: Surroundings) -> dict[str, Any]:
    """Every value of the templates."""
    miss = notice.miss
    ended = notice.kind == "recovered"
    outcome = miss_outcome(miss) if ended else "missed"
    until = miss.end or max([w.window.end for w in windows if w.verdict == "bad"], default=miss.bad_until)
    length = span((until - miss.start) / timedelta(milliseconds=1))
    subject = f"SLA {outcome}: {sla.name} after {length}" if ended else f"SLA missed: {sla.name}, {violation(miss)}"
    return {
        "ended": ended,
        "outcome": outcome,
        "sla": sla,
        "miss": miss,
        "subject": visible(subject),
        "until": until,
        "length": length,
        "when": partial(clock_time, sla.time_zone),
        "links": links(sla, notice),
        "commands": commands(sla, miss, until),
        "cost": cost(sla, miss, windows, around.period),
        "also_missed": also_missed(miss, around.others),
        "notes": around.notes,
        "notes_left_out": 0,
        "catch_up": around.catch_up and catching_up(around.catch_up),
    }


def clock_time(time_zone: str, at: datetime) -> str:
    """By the SLA's own clock first, which is its readers', and UTC."""
    if time_zone == "UTC":
        return moment(at)
    return f"{at.astimezone(ZoneInfo(time_zone)):%Y-%m-%d %H:%M:%S} {time_zone} ({moment(at)})"


def miss_message_id(thread: str, kind: str, sender: str) -> str:
    """The Message-ID of what is mailed of a miss; `thread`: the id under which the miss was first reported."""
    return message_id(f"{thread}.{kind}", sender)
