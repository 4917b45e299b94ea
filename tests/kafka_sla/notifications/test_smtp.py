"""Mails sent to real servers: plain, TLS and STARTTLS with login, refusals, and each notice once."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from demo.broker import free_ports
from kafka_sla.config.store import Store
from kafka_sla.errors import MailRefused
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.notices.outbox import Notice
from kafka_sla.model.entities import Connection
from kafka_sla.notifications.smtp import probe, send
from tests.kafka_sla.notifications.misses import hour, miss, promise

OPENED = Notice("opened", miss(end=None))


class Mailbox:
    """Keeps what it is sent and refuses whom it is told to."""

    def __init__(self, *refused: str) -> None:
        self.mails: list[Message] = []
        self.recipients: list[list[str]] = []
        self.encrypted: list[bool] = []
        self.logins: list[str | None] = []
        self.refused = refused

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, to: str, _: list[str]) -> str:  # noqa: N802
        if to in self.refused:
            return "550 no such mailbox"
        envelope.rcpt_tos.append(to)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        assert isinstance(envelope.content, bytes)
        self.mails.append(message_from_bytes(envelope.content))
        self.recipients.append(envelope.rcpt_tos)
        self.encrypted.append(session.ssl is not None)
        self.logins.append(session.auth_data.login.decode() if session.auth_data else None)
        return "250 kept"


@contextmanager
def serving(box: Mailbox, **options: Any) -> Iterator[Connection]:
    """The server, as the connection that reaches it without TLS."""
    (port,) = free_ports(1)
    server = Controller(box, hostname="127.0.0.1", port=port, **options)
    server.start()
    try:
        yield Connection(
            "smtp_test",
            "localhost",
            port,
            extra={"from_email": "sla@example.com", "disable_ssl": True, "disable_tls": True},
        )
    finally:
        server.stop()


def secured(connection: Connection, extra: dict[str, Any], **login: str) -> Connection:
    return Connection(
        connection.id, connection.host, connection.port, **login, extra={"from_email": "sla@example.com", **extra}
    )


def authenticate(_: SMTP, __: Session, ___: Envelope, ____: str, data: LoginPassword) -> AuthResult:
    return AuthResult(success=data.login == b"sla" and data.password == b"s3cret", auth_data=data, handled=False)


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's certificate whose authority the client trusts."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    return context


def test_a_notice_reaches_all_recipients_of_its_sla_in_one_mail() -> None:
    box = Mailbox()
    with serving(box) as server:
        send(server, promise(), OPENED, hour())

    assert box.recipients == [["oncall@example.com", "lead@example.com"]]
    assert box.mails[0]["Subject"] == "SLA missed: payments-30s, worst latency 17 min 24 s, threshold 30 s"
    assert None is not box.mails[0]["Date"]


def test_an_sla_without_recipients_is_mailed_to_nobody() -> None:
    box = Mailbox()
    with serving(box) as server:
        send(server, promise(recipients=()), OPENED, hour())

    assert not box.mails


def test_starttls_and_login_are_used_by_default_without_ssl(tls: ssl.SSLContext) -> None:
    box = Mailbox()
    with serving(box, tls_context=tls, require_starttls=True, authenticator=authenticate) as server:
        send(secured(server, {"disable_ssl": "true"}, login="sla", password="s3cret"), promise(), OPENED, hour())

    assert (box.encrypted, box.logins) == ([True], ["sla"])


def test_tls_from_the_first_byte_is_the_default(tls: ssl.SSLContext) -> None:
    box = Mailbox()
    with serving(box, ssl_context=tls) as server:
        send(secured(server, {}), promise(), OPENED, hour())

    assert len(box.mails) == 1


def test_a_certificate_that_nobody_vouches_for_is_refused_unless_the_connection_says_none(
    tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with serving(Mailbox(), ssl_context=tls) as server:
        with pytest.raises(MailRefused, match="certificate"):
            probe(secured(server, {}))
        probe(secured(server, {"ssl_context": "none"}))


def test_a_wrong_password_is_told_without_showing_it(tls: ssl.SSLContext) -> None:
    with (
        serving(Mailbox(), tls_context=tls, require_starttls=True, authenticator=authenticate) as server,
        pytest.raises(MailRefused, match=r"mail server localhost:.*smtp_test.*535") as refused,
    ):
        send(secured(server, {"disable_ssl": True}, login="sla", password="wr0ng"), promise(), OPENED, hour())

    assert "wr0ng" not in str(refused.value)


def test_a_server_that_is_down_is_named_with_what_to_check() -> None:
    with serving(Mailbox()) as server:
        pass

    with pytest.raises(MailRefused, match=rf"localhost:{server.port} .*check host, port"):
        probe(server)


def test_a_connection_without_a_sender_says_what_it_needs() -> None:
    with pytest.raises(MailRefused, match="needs a host, and in its extra a from_email"):
        probe(Connection("smtp_test", "localhost", 25))


def test_an_ssl_context_that_is_not_known_is_refused() -> None:
    with pytest.raises(MailRefused, match="ssl_context in its extra is 'maybe'; allowed: default, none"):
        probe(Connection("smtp_test", "localhost", 1, extra={"from_email": "a@b.c", "ssl_context": "maybe"}))


def test_a_recipient_that_is_refused_is_named_and_the_others_get_the_mail(caplog: pytest.LogCaptureFixture) -> None:
    box = Mailbox("lead@example.com")
    with serving(box) as server, caplog.at_level(logging.WARNING):
        send(server, promise(), OPENED, hour())

    assert box.recipients == [["oncall@example.com"]]
    assert "refused lead@example.com: 550 no such mailbox" in caplog.text


def test_when_all_recipients_are_refused_nothing_was_sent_and_it_says_so() -> None:
    box = Mailbox("lead@example.com", "oncall@example.com")
    with serving(box) as server, pytest.raises(MailRefused, match=r"lead@example\.com: 550 no such mailbox"):
        send(server, promise(), OPENED, hour())


def test_the_outbox_mails_each_notice_once_and_again_only_what_could_not_be_sent(tmp_path: Path) -> None:
    ledger, box = Ledger(Store.embedded(tmp_path)), Mailbox()
    with serving(box) as server:
        down = Connection("smtp_down", "localhost", 1, extra=server.extra)
        ledger.outbox.enqueue(OPENED)
        with pytest.raises(MailRefused):
            ledger.outbox.deliver(lambda notice: send(down, promise(), notice, hour()))
        for _ in range(3):
            ledger.outbox.enqueue(OPENED)
            ledger.outbox.enqueue(Notice("recovered", miss()))
            ledger.outbox.deliver(lambda notice: send(server, promise(), notice, hour()))

    opened, recovered = box.mails
    assert opened["Message-ID"] == recovered["In-Reply-To"]
