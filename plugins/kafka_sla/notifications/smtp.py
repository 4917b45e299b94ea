"""The door to mail servers, by Airflow's conventions of SMTP connections."""

from __future__ import annotations

import logging
import smtplib
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from email.message import EmailMessage
from email.utils import formatdate
from functools import partial
from threading import Event
from typing import TypeVar

from kafka_sla.errors import MailRefused, MailServerUnavailable
from kafka_sla.model.entities import Connection, Sla, SlaWindow
from kafka_sla.network.in_time import in_time
from kafka_sla.network.trust import why_untrusted
from kafka_sla.notifications import incident_email, smtp_login
from kafka_sla.notifications.miss_context import Surroundings
from kafka_sla.notifications.miss_email import compose
from kafka_sla.notifications.notices import IncidentNotice, Notice

log = logging.getLogger(__name__)
T = TypeVar("T")
_NOTHING = Surroundings()
_TIMEOUT_S = 30
_LONGEST_TIMEOUT_S = 3_600
"""Until the server answers, as in Airflow's provider; `timeout` in the connection's extra."""
_ALL_TIMES = 5
"""Of it a whole talk may take: connecting, the login, the mail and each recipient are answered one by one."""
_CLOSING = 421
_TOO_MANY = (452, 552)
"""By RFC 5321 a server that takes only so many recipients at once refuses the others so, until the next mail."""
_NOT_ASCII = 553, b"it takes no addresses with letters beyond ASCII"


def send(
    smtp: Connection, sla: Sla, notice: Notice, windows: Sequence[SlaWindow], around: Surroundings = _NOTHING
) -> None:
    """Mail the notice to the recipients of the SLA, nobody if there are none. `windows`: the time to plot."""
    if not sla.recipients:
        return
    deliver(smtp, compose(sla, notice, windows, sender_of(smtp), around))


def send_incident(smtp: Connection, slas: Mapping[str, Sla], notice: IncidentNotice) -> None:
    """Mail one notice of several misses to the recipients of their SLAs, which have the same; nobody if there are none.
    `slas` by name."""
    if slas[notice.notices[0].miss.sla].recipients:
        deliver(smtp, incident_email.compose(slas, notice, sender_of(smtp)))


def deliver(smtp: Connection, message: EmailMessage) -> None:
    """Hand a message to the server; MailRefused when it refuses all recipients, MailServerUnavailable when it is not
    there or lets nobody in.

    Those who were too many for one mail get it by further ones. A server that takes the mail for some recipients only
    has sent it: the others are named in the log.
    """
    message["Date"] = formatdate()
    refused = _talk(smtp, lambda server: _sent(server, message))
    while left := [address for address, (code, _) in refused.items() if code in _TOO_MANY]:
        try:
            again = _talk(smtp, partial(_sent_to, message, left))
        except (MailRefused, MailServerUnavailable) as error:
            if not isinstance(error.__cause__, smtplib.SMTPRecipientsRefused):
                log.warning("%s took the mail for some recipients, then no more: %s", _address(smtp), error)
            break
        refused = {address: why for address, why in refused.items() if address not in left} | again
    for address, (code, reason) in refused.items():
        log.warning("%s refused %s: %s %s", _address(smtp), address, code, reason.decode(errors="replace"))


def _sent_to(message: EmailMessage, addresses: list[str], server: smtplib.SMTP) -> dict[str, tuple[int, bytes]]:
    return server.send_message(message, to_addrs=addresses)


def _sent(server: smtplib.SMTP, message: EmailMessage) -> dict[str, tuple[int, bytes]]:
    """Those with an address that the server cannot be told are refused, and the others get the message."""
    try:
        return server.send_message(message)
    except smtplib.SMTPNotSupportedError:
        readers = [address.addr_spec for address in message["To"].addresses]
        if not (plain := [reader for reader in readers if reader.isascii()]):
            raise
        untold = dict.fromkeys([reader for reader in readers if not reader.isascii()], _NOT_ASCII)
        return server.send_message(message, to_addrs=plain) | untold


def probe(smtp: Connection) -> None:
    """Connect and log in, send nothing; MailRefused when a mail could not be sent."""
    sender_of(smtp)
    _talk(smtp, lambda server: server.noop())


def _talk(smtp: Connection, say: Callable[[smtplib.SMTP], T]) -> T:
    """What `say` returns of a server that is ready to take mail. A server that answers, but never to the end, is given
    up: if it takes the mail all the same, the mail is sent again, under the same Message-ID."""
    login, timeout = smtp_login.login(smtp), _timeout_s(smtp)
    given_up = Event()

    def talk() -> T:
        with _ready(smtp, login, timeout) as server:
            if given_up.is_set():
                raise TimeoutError
            return say(server)

    try:
        return in_time(talk, _ALL_TIMES * timeout)
    except smtplib.SMTPException as error:
        raise (MailServerUnavailable if _hung_up(error) else MailRefused)(_words(smtp, error)) from error
    except OSError as error:
        raise MailServerUnavailable(_words(smtp, error)) from error
    finally:
        given_up.set()


def _timeout_s(smtp: Connection) -> float:
    given = smtp.extra.get("timeout", _TIMEOUT_S)
    try:
        seconds = float(given)
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds <= _LONGEST_TIMEOUT_S:
        raise MailRefused(
            f"connection {smtp.id!r}: timeout in its extra is {str(given)[:50]!r}; allowed: a number of seconds"
            f" above 0, {_LONGEST_TIMEOUT_S} at most, such as 30"
        )
    return seconds


def _hung_up(error: smtplib.SMTPException) -> bool:
    """Whatever the server was told, it takes nothing more."""
    return isinstance(error, smtplib.SMTPServerDisconnected) or getattr(error, "smtp_code", None) == _CLOSING


@contextmanager
def _ready(smtp: Connection, login: smtp_login.Login, timeout: float) -> Iterator[smtplib.SMTP]:
    """The server after the login; MailServerUnavailable when it lets nobody in."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(closing(_connect(smtp, timeout)))
            if _flag(smtp, "disable_ssl") and not _flag(smtp, "disable_tls"):
                server.starttls(context=_tls(smtp))
            login.into(server)
        except (OSError, ValueError, OverflowError) as error:  # smtplib sends ASCII, reads base64; ports out of range
            raise MailServerUnavailable(f"{_words(smtp, error)}; check {login.to_check}") from error
        yield server
        with suppress(OSError):  # what it took it took, whatever it says to a farewell
            server.quit()


def _connect(smtp: Connection, timeout: float) -> smtplib.SMTP:
    """With TLS from the first byte, unless `disable_ssl`: then STARTTLS follows, unless `disable_tls` too."""
    if _flag(smtp, "disable_ssl"):
        return smtplib.SMTP(smtp.host or "", _port(smtp), timeout=timeout)
    return smtplib.SMTP_SSL(smtp.host or "", _port(smtp), timeout=timeout, context=_tls(smtp))


def _tls(smtp: Connection) -> ssl.SSLContext:
    """Certificates are verified unless the connection's `ssl_context` is `none`."""
    wanted = smtp.extra.get("ssl_context") or "default"
    if wanted not in ("default", "none"):
        raise MailRefused(f"connection {smtp.id!r}: ssl_context in its extra is {wanted!r}; allowed: default, none")
    context = ssl.create_default_context()
    if wanted == "none":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def sender_of(smtp: Connection) -> str:
    """The address that mails come from; MailRefused when the connection names none."""
    sender = smtp.extra.get("from_email") or smtp.login or ""
    if not smtp.host or "@" not in sender:
        raise MailRefused(f"connection {smtp.id!r} needs a host, and in its extra a from_email such as sla@example.com")
    return str(sender)


def _port(smtp: Connection) -> int:
    return smtp.port or (465 if not _flag(smtp, "disable_ssl") else 25 if _flag(smtp, "disable_tls") else 587)


def _words(smtp: Connection, error: Exception) -> str:
    return f"mail server {_address(smtp)} of connection {smtp.id!r}: {_reason(error)}"


def _address(smtp: Connection) -> str:
    return f"{smtp.host}:{_port(smtp)}"


def _flag(smtp: Connection, name: str) -> bool:
    """A switch in the extra, which forms and addresses give as text."""
    return str(smtp.extra.get(name, False)).lower() in ("true", "1", "yes", "on")


def _reason(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        said = error.smtp_error.decode(errors="replace") if isinstance(error.smtp_error, bytes) else error.smtp_error
        return f"{error.smtp_code} {said}"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return "; ".join(
            f"{to}: {code} {said.decode(errors='replace')}" for to, (code, said) in error.recipients.items()
        )
    if isinstance(error, UnicodeEncodeError):  # its words hold what could not be sent
        return "its login or password has letters beyond ASCII, which cannot be sent"
    return why_untrusted(error) or str(error) or type(error).__name__
