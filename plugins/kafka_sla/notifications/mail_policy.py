"""How mails are written to bytes: the standard library's rules, but a subject is short enough for any server, begins
with no empty line and keeps its blanks. Knows no message."""

from __future__ import annotations

from email.header import Header
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
