"""Mails sent to real servers: plain, TLS and STARTTLS with login, refusals, and each notice once."""

from __future__ import annotations

import base64
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from demo.broker import free_ports
from demo.token_server import TokenServer
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.errors import MailRefused, MailServerUnavailable
from kafka_sla.ledger.alerts.report_rows import AlertMessage
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Connection, Notifier, Sla
from kafka_sla.network.token_endpoint import NoToken
from kafka_sla.notifications import smtp_login
from kafka_sla.notifications.notices import Notice
from kafka_sla.notifications.smtp import probe, send
from kafka_sla.pipeline import steps
from tests.kafka_sla.notifications.incidents import INTERVAL, RUN, judged, slas, slow
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
        with pytest.raises(MailRefused, match=r"its certificate is not trusted \(unable .+ SSL_CERT_FILE"):
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


class NarrowMailbox(Mailbox):
    """Takes a hundred recipients at once, as many as RFC 5321 demands; `refused` have no room left."""

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, to: str, options: list[str]) -> str:  # noqa: N802
        if len(envelope.rcpt_tos) == 100:
            return "452 4.5.3 too many recipients"
        if to in self.refused:
            return "452 4.2.2 mailbox full"
        return await super().handle_RCPT(server, session, envelope, to, options)


def test_more_recipients_than_a_server_takes_at_once_get_the_mail_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    readers = tuple(f"reader-{n}@example.com" for n in range(450))
    box = NarrowMailbox("reader-7@example.com", "reader-440@example.com")
    with serving(box) as server, caplog.at_level(logging.WARNING):
        send(server, promise(recipients=readers), OPENED, hour())

    assert sorted(map(len, box.recipients)) == [48, 100, 100, 100, 100]
    assert {to for recipients in box.recipients for to in recipients} == set(readers) - set(box.refused)
    assert len({mail["Message-ID"] for mail in box.mails}) == 1
    assert [sum(to in line for line in caplog.messages) for to in box.refused] == [1, 1]


class OncePerSession(Mailbox):
    """Takes two recipients a mail and one mail a session; what comes then, it puts off."""

    sessions: list[Session]

    def __init__(self) -> None:
        super().__init__()
        self.sessions = []

    def is_too_much(self, session: Session) -> bool:
        return session in self.sessions

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, to: str, options: list[str]) -> str:  # noqa: N802
        if len(envelope.rcpt_tos) == 2:
            return "452 4.5.3 too many recipients"
        return await super().handle_RCPT(server, session, envelope, to, options)

    async def handle_MAIL(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.is_too_much(session):
            return "451 4.7.1 one mail a session, try again later"
        self.sessions.append(session)
        envelope.mail_from, envelope.mail_options = address, options
        return "250 OK"


def test_further_mails_of_many_recipients_have_sessions_of_their_own() -> None:
    readers, box = tuple(f"reader-{n}@example.com" for n in range(5)), OncePerSession()
    with serving(box) as server:
        send(server, promise(recipients=readers), OPENED, hour())

    assert [to for recipients in box.recipients for to in recipients] == list(readers)


class OnceADay(OncePerSession):
    """Takes one mail, and no other."""

    def is_too_much(self, session: Session) -> bool:
        return bool(self.sessions)


def test_a_server_that_took_the_mail_for_some_is_not_given_it_again(caplog: pytest.LogCaptureFixture) -> None:
    box = OnceADay()
    with serving(box) as server, caplog.at_level(logging.WARNING):
        send(server, promise(recipients=("a@example.com", "b@example.com", "c@example.com")), OPENED, hour())

    assert box.recipients == [["a@example.com", "b@example.com"]]
    assert "took the mail for some recipients, then no more" in caplog.text and "one mail a session" in caplog.text
    assert "refused c@example.com" in caplog.text


@pytest.mark.parametrize("takes_any_script", [True, False])
def test_an_address_beyond_ascii_that_a_server_does_not_take_keeps_no_other_from_the_mail(
    caplog: pytest.LogCaptureFixture, takes_any_script: bool
) -> None:
    readers, box = ("lead@example.com", "jürgen@example.com"), Mailbox()
    with serving(box, enable_SMTPUTF8=takes_any_script) as server, caplog.at_level(logging.WARNING):
        send(server, promise(recipients=readers), OPENED, hour())

    assert box.recipients == [list(readers) if takes_any_script else ["lead@example.com"]]
    told = "refused jürgen@example.com: 553 it takes no addresses with letters beyond ASCII" in caplog.text
    assert told is not takes_any_script


def test_when_nobody_has_an_address_that_the_server_takes_nothing_was_sent_and_it_says_so() -> None:
    with serving(Mailbox(), enable_SMTPUTF8=False) as server, pytest.raises(MailRefused, match="SMTPUTF8"):
        send(server, promise(recipients=("jürgen@example.com",)), OPENED, hour())


def test_when_all_recipients_are_refused_nothing_was_sent_and_it_says_so() -> None:
    box = Mailbox("lead@example.com", "oncall@example.com")
    with serving(box) as server, pytest.raises(MailRefused, match=r"lead@example\.com: 550 no such mailbox"):
        send(server, promise(), OPENED, hour())


def test_each_alert_is_mailed_once_and_again_only_if_it_could_not_be_sent(tmp_path: Path) -> None:
    store, box = Store.embedded(tmp_path), Mailbox()
    (sla,) = slas(1)
    settings, ledger = Settings((Cluster("main", None),), (sla,)), Ledger(store)
    judged(ledger, [sla], [slow(sla)])
    with serving(box) as server:
        down = Connection("smtp_down", "localhost", 1, extra=server.extra)
        with pytest.raises(MailRefused):
            steps.notify(settings, store, [sla.name], INTERVAL, down, RUN)
        judged(ledger, [sla], [slow(sla, end=True)])
        for _ in range(3):
            steps.notify(settings, store, [sla.name], INTERVAL, server, RUN)

    opened, recovered = box.mails
    assert opened["Message-ID"] == recovered["In-Reply-To"]


class TokenMailbox(Mailbox):
    """Lets in who has one of these tokens, and says why it does not, as Microsoft and Google do."""

    def __init__(self, tokens: list[str]) -> None:
        super().__init__()
        self.tokens, self.said = tokens, list[str]()

    async def judge(self, server: SMTP, sent: str, form: str, understood: bytes) -> AuthResult:
        said = base64.b64decode(sent).decode()
        self.said.append(said)
        if said in [form.format(token) for token in self.tokens]:
            return AuthResult(success=True, auth_data=LoginPassword(b"sla@example.com", b""))
        assert await server.challenge_auth('{"status":"400","schemes":"Bearer"}') == understood
        return AuthResult(success=False, handled=False)


class Xoauth2Mailbox(TokenMailbox):
    async def auth_XOAUTH2(self, server: SMTP, args: list[str]) -> AuthResult:  # noqa: N802
        return await self.judge(server, args[1], "user=sla@example.com\x01auth=Bearer {}\x01\x01", b"")


class Rfc7628Mailbox(TokenMailbox):
    async def auth_OAUTHBEARER(self, server: SMTP, args: list[str]) -> AuthResult:  # noqa: N802
        return await self.judge(server, args[1], "n,a=sla@example.com,\x01auth=Bearer {}\x01\x01", b"\x01")


BOTH = pytest.mark.parametrize("kind", [Xoauth2Mailbox, Rfc7628Mailbox])


def by_token(connection: Connection, **extra: Any) -> Connection:
    return secured(connection, {"disable_ssl": True, "auth_type": "oauth2", **extra})


ONLY_TOKENS = {"require_starttls": True, "auth_exclude_mechanism": ["LOGIN", "PLAIN"]}


@BOTH
def test_a_server_that_takes_no_passwords_gets_a_token_and_all_mails_of_its_life_the_same(
    tls: ssl.SSLContext, kind: type[TokenMailbox]
) -> None:
    with TokenServer(life_s=3600) as tokens:
        box = kind(tokens.issued)
        login = {
            "token_url": tokens.url,
            "client_id": tokens.client_id,
            "client_secret": tokens.secret,
            "scope": "mail",
        }
        with serving(box, tls_context=tls, **ONLY_TOKENS) as server:
            for _ in range(3):
                send(by_token(server, **login), promise(), OPENED, hour())

    assert (box.logins, len(tokens.issued), tokens.scopes) == (["sla@example.com"] * 3, 1, ["mail"])


def test_a_refresh_token_is_exchanged_and_one_that_has_expired_named_with_what_to_check(tls: ssl.SSLContext) -> None:
    with TokenServer() as tokens, serving(Xoauth2Mailbox(tokens.issued), tls_context=tls, **ONLY_TOKENS) as server:
        login = {"token_url": tokens.url, "client_id": tokens.client_id, "client_secret": tokens.secret}
        probe(by_token(server, **login, refresh_token=tokens.refresh_token))
        with pytest.raises(MailServerUnavailable) as refused:
            probe(by_token(server, **login, refresh_token="0ld"))

    assert "issued no token to client 'kafka-sla' (400 invalid_grant AADSTS70043); check client_id" in str(
        refused.value
    )
    assert "0ld" not in str(refused.value)


@BOTH
def test_a_token_that_the_server_refuses_is_not_shown(tls: ssl.SSLContext, kind: type[TokenMailbox]) -> None:
    box = kind([])
    with (
        serving(box, tls_context=tls, **ONLY_TOKENS) as server,
        pytest.raises(MailServerUnavailable, match=r"535 .*; check that the login is the mailbox") as refused,
    ):
        probe(by_token(server, access_token="t0ken"))

    assert "t0ken" in box.said[0]
    assert "t0ken" not in str(refused.value)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"auth_type": "ntlm"}, "auth_type in its extra is 'ntlm'; allowed: basic, oauth2"),
        ({"auth_type": "oauth2"}, "needs in its extra client_id and client_secret with tenant_id"),
        ({"auth_type": "oauth2", "client_id": "c", "client_secret": "s"}, "or token_url, or an access_token"),
    ],
)
def test_an_extra_that_lacks_what_a_token_needs_says_so(extra: dict[str, Any], message: str) -> None:
    with pytest.raises(MailRefused, match=message):
        probe(Connection("smtp_test", "localhost", 1, extra={"from_email": "a@b.c", **extra}))


def test_the_endpoint_of_a_tenant_is_microsofts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def refuse(*request: Any) -> None:
        asked.append(request)
        raise NoToken("the token endpoint does not answer", answered=False)

    monkeypatch.setattr(smtp_login, "issued", refuse)
    extra = {"auth_type": "oauth2", "tenant_id": "contoso", "client_id": "c", "client_secret": "s"}
    with pytest.raises(MailServerUnavailable, match="check token_url or tenant_id in its extra"):
        probe(Connection("smtp_test", "smtp.office365.com", 587, extra={"from_email": "a@b.c", **extra}))

    grant = {"grant_type": "client_credentials", "scope": "https://outlook.office.com/.default"}
    assert asked == [("https://login.microsoftonline.com/contoso/oauth2/v2.0/token", grant, "c", "s")]


def test_a_password_beyond_ascii_is_told_without_showing_it(tls: ssl.SSLContext) -> None:
    with (
        serving(Mailbox(), tls_context=tls, require_starttls=True, authenticator=authenticate) as server,
        pytest.raises(MailServerUnavailable, match="has letters beyond ASCII") as refused,
    ):
        probe(secured(server, {"disable_ssl": True}, login="sla", password="schlüssel"))

    assert "schl" not in str(refused.value)


@contextmanager
def greeting_slowly(heard: list[bytes]) -> Iterator[Connection]:
    """A server that adds a line to its greeting each tenth of a second, and ends it when the block does; then it hears
    what the client has to say."""
    over = threading.Event()

    def greet() -> None:
        with listening.accept()[0] as client:
            while not over.wait(0.1):
                client.sendall(b"220-wait\r\n")
            client.sendall(b"220 ready\r\n")
            heard.append(client.recv(1000))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        greeter = threading.Thread(target=greet)
        greeter.start()
        extra = {"from_email": "sla@example.com", "disable_ssl": True, "disable_tls": True, "timeout": 0.4}
        try:
            yield Connection("smtp_test", "127.0.0.1", listening.getsockname()[1], extra=extra)
        finally:
            over.set()
            greeter.join()


def test_a_server_that_never_comes_to_an_end_is_given_up_and_gets_no_mail_when_it_does() -> None:
    began, heard = time.monotonic(), list[bytes]()
    with greeting_slowly(heard) as server, pytest.raises(MailServerUnavailable, match="no whole answer within 2 s"):
        send(server, promise(), OPENED, hour())

    assert time.monotonic() - began < 60
    assert heard == [b""]


@pytest.mark.parametrize("hangs_up", [False, True])
def test_what_a_server_says_to_a_farewell_changes_nothing(hangs_up: bool) -> None:
    class Rude(Mailbox):
        async def handle_QUIT(self, server: SMTP, *_: Any) -> str:  # noqa: N802
            if hangs_up:
                server.transport.close()
            return "500 stay"

    box = Rude()
    with serving(box) as server:
        send(server, promise(), OPENED, hour())

    assert len(box.mails) == 1


@pytest.mark.parametrize(("answer", "asked"), [("421 too many connections", 1), ("550 not this one", 3)])
def test_a_server_that_hangs_up_is_asked_once_and_one_that_refuses_a_mail_for_each(
    tmp_path: Path, answer: str, asked: int
) -> None:
    class Refusing(Mailbox):
        async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
            await super().handle_DATA(server, session, envelope)
            return answer

    box, store, called = Refusing(), Store.embedded(tmp_path), list[str]()
    known = [
        replace(sla, recipients=(f"{n}@example.com",), notifiers=(Notifier("chat.Notifier", each_miss=True),))
        for n, sla in enumerate(slas(3))
    ]
    judged(Ledger(store), known, [slow(sla) for sla in known])
    settings = Settings((Cluster("main", None),), tuple(known))

    def call(_: Notifier, sla: Sla, __: AlertMessage) -> None:
        called.append(sla.name)

    with serving(box) as server, pytest.raises((MailRefused, ExceptionGroup)):
        steps.notify(settings, store, [sla.name for sla in known], INTERVAL, server, RUN, call)

    unsent = Ledger(store).alert_reports.unsent()
    assert (len(box.mails), len(called), [report.channel for report in unsent]) == (asked, 3, ["mail"] * 3)
