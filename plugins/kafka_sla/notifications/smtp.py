"""The door to mail servers, by Airflow's conventions of SMTP connections. Knows no store and not what mails say."""

from __future__ import annotations

import logging
import smtplib
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.message import EmailMessage
from email.utils import formatdate

from kafka_sla.errors import MailRefused
from kafka_sla.ledger.notices.incidents import IncidentNotice
from kafka_sla.ledger.notices.outbox import Notice
from kafka_sla.model.entities import Connection, Sla, SlaWindow
from kafka_sla.notifications import incident_email
from kafka_sla.notifications.miss_context import Surroundings
from kafka_sla.notifications.miss_email import compose

log = logging.getLogger(__name__)
_NOTHING = Surroundings()


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
    """Hand a message to the server; MailRefused when it refuses all recipients or is not there.

    A server that takes the mail for some recipients only has sent it: the others are named in the log.
    """
    message["Date"] = formatdate()
    with _server(smtp) as server:
        refused = server.send_message(message)
    for address, (code, reason) in refused.items():
        log.warning("%s refused %s: %s %s", _address(smtp), address, code, reason.decode(errors="replace"))


def probe(smtp: Connection) -> None:
    """Connect and log in, send nothing; MailRefused when a mail could not be sent."""
    sender_of(smtp)
    with _server(smtp) as server:
        server.noop()


@contextmanager
def _server(smtp: Connection) -> Iterator[smtplib.SMTP]:
    """A server that is ready to take mail."""
    try:
        with _connect(smtp) as server:
            yield server
    except (smtplib.SMTPException, OSError) as error:
        raise MailRefused(
            f"mail server {_address(smtp)} of connection {smtp.id!r}: {_reason(error)}; "
            "check host, port, login, and disable_ssl and disable_tls in its extra"
        ) from error


def _connect(smtp: Connection) -> smtplib.SMTP:
    """TLS from the first byte, or STARTTLS with `disable_ssl`, or neither with `disable_tls` too; then the login."""
    timeout, implicit = float(smtp.extra.get("timeout", 30)), not _flag(smtp, "disable_ssl")
    if implicit:
        server: smtplib.SMTP = smtplib.SMTP_SSL(smtp.host or "", _port(smtp), timeout=timeout, context=_tls(smtp))
    else:
        server = smtplib.SMTP(smtp.host or "", _port(smtp), timeout=timeout)
    try:
        if not implicit and not _flag(smtp, "disable_tls"):
            server.starttls(context=_tls(smtp))
        if smtp.login and smtp.password:
            server.login(smtp.login, smtp.password)
    except (smtplib.SMTPException, OSError):
        server.close()
        raise
    return server


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
    return str(error) or type(error).__name__
