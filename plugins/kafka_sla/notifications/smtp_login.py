"""How to log in to a mail server, as the extra of Airflow's SMTP connections says: with the password, or with a token
of OAuth 2.0 where the server takes no passwords. Never shows a token or a secret."""

from __future__ import annotations

import smtplib
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, Protocol

from kafka_sla.errors import MailRefused, MailServerUnavailable
from kafka_sla.model.entities import Connection
from kafka_sla.network.token_endpoint import AccessToken, NoToken, Renewed, issued

_AUTH_TYPES = ("basic", "oauth2")
_MICROSOFT = "https://login.microsoftonline.com/{}/oauth2/v2.0/token"
_SCOPE_OF_MICROSOFT = "https://outlook.office.com/.default"
_PLACES = "host, port, login, and disable_ssl and disable_tls in its extra"


class Login(Protocol):
    """A way in."""

    to_check: ClassVar[str]
    """What to look at where the server lets nobody in."""

    def into(self, server: smtplib.SMTP) -> None:
        """Log in; smtplib's errors where the server refuses."""


@dataclass(frozen=True, slots=True)
class _Password:
    user: str | None
    password: str | None = field(repr=False)
    to_check: ClassVar[str] = _PLACES

    def into(self, server: smtplib.SMTP) -> None:
        if self.user and self.password:
            server.login(self.user, self.password)


@dataclass(frozen=True, slots=True)
class _Token:
    user: str
    token: str = field(repr=False)
    to_check: ClassVar[str] = "that the login is the mailbox, and that the client may send as it; " + _PLACES

    def into(self, server: smtplib.SMTP) -> None:
        """By XOAUTH2, which Microsoft and Google speak, or by RFC 7628."""
        server.ehlo_or_helo_if_needed()
        offered = server.esmtp_features.get("auth", "").upper().split()
        if "XOAUTH2" in offered or "OAUTHBEARER" not in offered:
            self._by(server, "XOAUTH2", f"user={self.user}", "")
        else:
            name = self.user.replace("=", "=3D").replace(",", "=2C")
            self._by(server, "OAUTHBEARER", f"n,a={name},", "\x01")

    def _by(self, server: smtplib.SMTP, mechanism: str, who: str, understood: str) -> None:
        """`understood` answers the challenge in which a server says why it refuses."""

        def say(challenge: bytes | None = None) -> str:
            return f"{who}\x01auth=Bearer {self.token}\x01\x01" if challenge is None else understood

        server.auth(mechanism, say)


def login(smtp: Connection) -> Login:
    """How the connection logs in; MailServerUnavailable when a token is needed and none can be had."""
    kind = smtp.extra.get("auth_type") or "basic"
    if kind not in _AUTH_TYPES:
        allowed = ", ".join(_AUTH_TYPES)
        raise MailRefused(f"connection {smtp.id!r}: auth_type in its extra is {kind!r}; allowed: {allowed}")
    if kind == "basic":
        return _Password(smtp.login, smtp.password)
    return _Token(smtp.login or str(smtp.extra.get("from_email") or ""), _token(smtp))


def _token(smtp: Connection) -> str:
    """The one that the extra holds, or one of the endpoint that it names: Microsoft's, or `token_url`."""
    extra = {key: str(value) for key, value in smtp.extra.items() if value}
    if token := extra.get("access_token"):
        return token
    endpoint, scope = extra.get("token_url"), extra.get("scope")
    if not endpoint and "tenant_id" in extra:
        endpoint, scope = _MICROSOFT.format(extra["tenant_id"]), scope or _SCOPE_OF_MICROSOFT
    if not endpoint or "client_id" not in extra or "client_secret" not in extra:
        raise MailRefused(
            f"connection {smtp.id!r}: auth_type oauth2 needs in its extra client_id and client_secret with tenant_id"
            " (Microsoft 365) or token_url, or an access_token"
        )
    grant = {"grant_type": "client_credentials"}
    if "refresh_token" in extra:
        grant = {"grant_type": "refresh_token", "refresh_token": extra["refresh_token"]}
    if scope:
        grant["scope"] = scope
    try:
        return _tokens(endpoint, tuple(grant.items()), extra["client_id"], extra["client_secret"]).current().text
    except NoToken as error:
        check = "client_id, client_secret, refresh_token and scope" if error.answered else "token_url or tenant_id"
        raise MailServerUnavailable(f"connection {smtp.id!r}: {error}; check {check} in its extra") from None


@cache
def _tokens(endpoint: str, grant: tuple[tuple[str, str], ...], client_id: str, secret: str) -> Renewed[AccessToken]:
    """All mails of a process log in with the same token while it lives."""
    return Renewed(lambda: issued(endpoint, dict(grant), client_id, secret))
