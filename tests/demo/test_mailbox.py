from __future__ import annotations

import smtplib
from email.message import EmailMessage
from pathlib import Path

from demo.mailbox import mailbox


def test_each_mail_becomes_a_file(tmp_path: Path) -> None:
    with mailbox(tmp_path / "mail") as box, smtplib.SMTP("127.0.0.1", box.port) as server:
        for subject in ("first", "später"):
            mail = EmailMessage()
            mail["From"], mail["To"], mail["Subject"] = "a@example.com", "b@example.com", subject
            mail.set_content("text")
            server.send_message(mail)

    assert ["001.eml", "002.eml"] == [path.name for path in box.files()]
    assert ["first", "später"] == [mail["subject"] for mail in box.mails()]
