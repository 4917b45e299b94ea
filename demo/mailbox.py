"""A mail server on a free loopback port that keeps each mail as a file."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from demo.broker import free_ports


class Mailbox:
    """Mails as `.eml` files in one folder, which any mail program opens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (self.port,) = free_ports(1)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        """aiosmtpd calls this for each mail."""
        number = len(self.files()) + 1
        (self.folder / f"{number:03}.eml").write_bytes(envelope.original_content or b"")
        return "250 kept"

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.eml"))

    def mails(self) -> list[EmailMessage]:
        """All mails, oldest first."""
        return [email.message_from_bytes(path.read_bytes(), policy=email.policy.default) for path in self.files()]


@contextmanager
def mailbox(folder: Path, kind: type[Mailbox] = Mailbox, **options: Any) -> Iterator[Mailbox]:
    """A mailbox that takes mail inside the `with` block; its files stay. `options` are aiosmtpd's."""
    folder.mkdir(parents=True, exist_ok=True)
    box = kind(folder)
    server = Controller(box, hostname="127.0.0.1", port=box.port, **options)
    server.start()
    try:
        yield box
    finally:
        server.stop()
