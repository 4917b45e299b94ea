"""How mails begin and are written to bytes: the standard library's rules, but a subject is short enough for any server,
begins with no empty line and keeps its blanks. Knows not what they say."""

from __future__ import annotations

from collections.abc import Sequence
from email.header import Header
from email.message import EmailMessage
from email.policy import EmailPolicy
from textwrap import wrap
from typing import Any

_WIDTH = 78
_LONGEST = 500
"""Characters of a subject: servers refuse lines of 1,000 bytes, and a name without a blank cannot be folded."""


class MailPolicy(EmailPolicy):
    """Python folds a subject of 70 to 77 characters before its first word, and some mail programs show such a subject
    as empty. Plain text is folded between words here; what needs encoding is encoded as a whole, since Python loses
    blanks between words of which only some need it."""

    def header_store_parse(self, name: str, value: Any) -> tuple[str, Any]:
        if name.lower() == "subject" and len(value) > _LONGEST:
            value = f"{value[: _LONGEST - 3]}..."
        return super().header_store_parse(name, value)

    def fold_binary(self, name: str, value: str) -> bytes:
        if name.lower() != "subject":
            return super().fold_binary(name, value)
        if not value.isascii():
            encoded = Header(str(value), "utf-8", maxlinelen=_WIDTH, header_name=name).encode(linesep=self.linesep)
            return f"{name}: {encoded}{self.linesep}".encode("ascii")
        lines = wrap(f"{name}: {value}", _WIDTH, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False)
        return "".join(line + self.linesep for line in lines).encode("ascii")


POLICY = MailPolicy(linesep="\r\n")


def new_mail(sender: str, to: Sequence[str], subject: str, own_id: str, first_id: str = "") -> EmailMessage:
    """A mail without content. `first_id`: the Message-ID that its thread began with, to which it replies unless it is
    the first itself."""
    mail = EmailMessage(policy=POLICY)
    mail["From"], mail["To"] = sender, ", ".join(to)
    mail["Subject"] = subject
    mail["Message-ID"] = own_id
    if first_id not in ("", own_id):
        mail["In-Reply-To"] = mail["References"] = first_id
    mail["Auto-Submitted"] = "auto-generated"
    return mail


def message_id(name: str, sender: str) -> str:
    """The Message-ID of what has this name: the same for a mail that is sent again, so that it shows once."""
    domain = sender.rpartition("@")[2].rstrip(">") or "localhost"
    return f"<kafka-sla.{name}@{domain}>"
