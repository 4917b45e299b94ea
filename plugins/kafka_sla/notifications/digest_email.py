"""A digest as a mail, and as the page of the archive: the same document twice. Knows no server and no store."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from email.message import EmailMessage

from kafka_sla.model.entities import Digest, Interval
from kafka_sla.notifications.mail_policy import POLICY
from kafka_sla.reporting.digest import Told
from kafka_sla.reporting.templates import render, visible


def digest_page(told: Told) -> str:
    """One HTML file with its pictures inside."""
    pictures = {key: f"data:image/png;base64,{b64encode(png).decode()}" for key, png in told.plots}
    return render("notifications/digest.html.j2", told.values, pictures=pictures)


def digest_mail(
    digest: Digest, period: Interval, told: Told, recipients: Sequence[str], sender: str, again: str = ""
) -> EmailMessage:
    """The mail to these recipients. The same digest makes the same Message-ID, so that one sent twice shows once;
    `again` names a sending by hand, which is to be seen as well."""
    message = EmailMessage(policy=POLICY)
    message["From"], message["To"] = sender, ", ".join(recipients)
    message["Subject"] = visible(told.values["subject"])
    message["Message-ID"] = _message_id(digest, period, recipients, sender, again)
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(render("notifications/digest.txt.j2", told.values))
    ids = {key: f"{key}.{message['Message-ID'][1:-1]}" for key, _ in told.plots}
    page = render("notifications/digest.html.j2", told.values, pictures={key: f"cid:{cid}" for key, cid in ids.items()})
    message.add_alternative(page, subtype="html")
    _, html = message.iter_parts()
    for key, png in told.plots:
        html.add_related(png, "image", "png", cid=f"<{ids[key]}>", filename=f"{key}.png", disposition="inline")
    return message


def _message_id(digest: Digest, period: Interval, recipients: Sequence[str], sender: str, again: str) -> str:
    said = "\n".join([digest.name, *sorted(recipients), again])
    domain = sender.rpartition("@")[2].rstrip(">") or "localhost"
    mark = hashlib.sha256(said.encode()).hexdigest()[:16]
    return f"<kafka-sla.digest.{mark}.{digest.every}-{period.start:%Y%m%d}@{domain}>"
