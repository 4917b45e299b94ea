"""How mails are written to bytes: the standard library's rules, but no subject begins with an empty line. Knows no
message."""

from __future__ import annotations

from email.policy import EmailPolicy
from textwrap import wrap

_WIDTH = 78


class MailPolicy(EmailPolicy):
    """Python folds a subject of 70 to 77 characters before its first word, and some mail programs show such a subject
    as empty. Plain text is folded between words here; what needs encoding is folded as before."""

    def fold_binary(self, name: str, value: str) -> bytes:
        if name.lower() != "subject" or not value.isascii():
            return super().fold_binary(name, value)
        lines = wrap(f"{name}: {value}", _WIDTH, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False)
        return "".join(line + self.linesep for line in lines).encode("ascii")


POLICY = MailPolicy(linesep="\r\n")
