"""A digest as a mail, shortened to what mail programs show, and whole as the page of the archive."""

from __future__ import annotations

import hashlib
import shlex
from base64 import b64encode
from collections.abc import Sequence
from email.message import EmailMessage
from functools import partial
from typing import Any

from kafka_sla.model.entities import Digest, Interval
from kafka_sla.notifications.digest_extent import Extent, extents, whole
from kafka_sla.notifications.mail_extent import fitting
from kafka_sla.notifications.mail_policy import message_id, new_mail
from kafka_sla.reporting.archive import first_day
from kafka_sla.reporting.digest import Told
from kafka_sla.reporting.templates import render, visible


def digest_page(told: Told) -> str:
    """One HTML file with its pictures inside."""
    pictures = {key: f"data:image/png;base64,{b64encode(png).decode()}" for key, png in told.plots}
    return _rendered("html", told.values | {"pictures": pictures}, whole(told.values))


def digest_mail(
    digest: Digest, period: Interval, told: Told, recipients: Sequence[str], sender: str, again: str = "", url: str = ""
) -> EmailMessage:
    """The mail to these recipients, as much of the digest as mail programs show. The same digest makes the same
    Message-ID, so that one sent twice shows once; `again` names a sending by hand, which is to be seen as well. `url`:
    where the page is; empty where nobody knows."""
    own_id = _message_id(digest, period, recipients, sender, again)
    message = new_mail(sender, recipients, visible(told.values["subject"]), own_id)
    ids = {key: f"{key}.{own_id[1:-1]}" for key, _ in told.plots}
    values = told.values | {
        "pictures": {key: f"cid:{cid}" for key, cid in ids.items()},
        "rest": _rest(digest, period, url),
    }
    _, (text, page) = fitting(extents(values), partial(_rendered, "txt", values), partial(_rendered, "html", values))
    message.set_content(text)
    message.add_alternative(page, subtype="html")
    _, html = message.iter_parts()
    for key, png in told.plots:
        if ids[key] in page:
            html.add_related(png, "image", "png", cid=f"<{ids[key]}>", filename=f"{key}.png", disposition="inline")
    return message


def _rendered(form: str, values: dict[str, Any], extent: Extent) -> str:
    return render(f"notifications/digest.{form}.j2", values, extent=extent, is_whole=extent == whole(values))


def _rest(digest: Digest, period: Interval, url: str) -> dict[str, str]:
    """Where the whole digest is; without an address, the command that writes it."""
    day = first_day(digest, period.start)
    command = f"kafka-sla digest --day {day} --output digest.html -- {shlex.quote(digest.name)}"
    return {"url": url, "command": "" if url else command}


def _message_id(digest: Digest, period: Interval, recipients: Sequence[str], sender: str, again: str) -> str:
    said = "\n".join([digest.name, *sorted(recipients), again])
    mark = hashlib.sha256(said.encode()).hexdigest()[:16]
    return message_id(f"digest.{mark}.{digest.every}-{period.start:%Y%m%d}", sender)
