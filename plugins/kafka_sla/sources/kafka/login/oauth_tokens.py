"""Tokens of OAUTHBEARER logins: issued by a token endpoint, an own function or AWS's signer, and renewed in time.

Knows no Kafka request. Never shows a token or a secret.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests
from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from kafka_sla.http_answers import in_time

_TIMEOUT_S, _ALL_S = 10, 45
"""Until an endpoint answers, and until it has answered: it is asked four times at most."""
_RETRIES = Retry(
    3,
    backoff_factor=0.2,
    status_forcelist=(429, 500, 502, 503, 504),
    allowed_methods=None,
    raise_on_status=False,
    respect_retry_after_header=False,
)
"""An endpoint may ask to wait for hours: a snapshot fails instead, and the next run asks again."""
_REUSED = 0.8
"""Share of its life for which a token serves new logins. A broker that limits sessions ends them with the token, and
logins are renewed after 85 to 95 % of it: by then there must be a new one."""


class TokenRefused(SaslAuthenticationFailedError):  # type: ignore[misc]
    """No token could be had: `message` says why and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Token(NamedTuple):
    """`expires`: epoch seconds; None: nobody says. `extensions` go to the broker with the token."""

    text: str
    expires: float | None
    extensions: Mapping[str, str]


Issue = Callable[[], Token]


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """What kafka-python asks at each login; a new token is issued when the last one has nearly had its time."""

    def __init__(self, issue: Issue) -> None:
        super().__init__()
        self._issue = issue
        self._token: Token | None = None
        self._renew_at = 0.0

    def token(self) -> str:
        return self._current().text

    def extensions(self) -> dict[str, str]:
        return dict(self._current().extensions)

    def _current(self) -> Token:
        now = time.time()
        if self._token is None or now >= self._renew_at:
            self._token = self._issue()
            self._renew_at = now + ((self._token.expires or now) - now) * _REUSED
        return self._token


def client_credentials(
    endpoint: str,
    client_id: str,
    secret: str,
    *,
    scope: str | None = None,
    authority: str | None = None,
    extensions: Mapping[str, str] | None = None,
) -> Issue:
    """Tokens of an endpoint's client credentials grant; `authority`: the file of those who signed its certificate."""
    place = urlsplit(endpoint).hostname

    def issue() -> Token:
        grant = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
        asked_at = time.time()

        def ask() -> requests.Response:
            with requests.Session() as session:
                session.mount(endpoint, HTTPAdapter(max_retries=_RETRIES))
                return session.post(
                    endpoint,
                    grant,
                    auth=(client_id, secret),
                    timeout=_TIMEOUT_S,
                    verify=authority or True,
                    allow_redirects=False,
                )

        try:
            answer = in_time(ask, _ALL_S)
        except requests.RequestException as error:
            raise TokenRefused(
                f"the token endpoint at {place} does not answer ({type(error).__name__});"
                " check sasl.oauthbearer.token.endpoint.url and https.ca.location"
            ) from None
        return _issued(answer, f"the token endpoint at {place}", client_id, asked_at, extensions or {})

    return issue


def _issued(
    answer: requests.Response, endpoint: str, client_id: str, asked_at: float, extensions: Mapping[str, str]
) -> Token:
    """The token of an answer; its life counts from before the request, to be on the safe side."""
    content = _content(answer)
    if answer.status_code == 200 and isinstance(text := content.get("access_token"), str):
        life = content.get("expires_in")
        return Token(text, asked_at + float(life) if life is not None else None, extensions)
    reason = f"{answer.status_code} {content.get('error', '')}".strip()
    raise TokenRefused(
        f"{endpoint} issued no token to client {client_id!r} ({reason}); check sasl.oauthbearer.client.id,"
        " sasl.oauthbearer.client.secret and sasl.oauthbearer.scope of the connection"
    )


def _content(answer: requests.Response) -> dict[str, Any]:
    try:
        content = answer.json()
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def own_function(path: str, config: str) -> Issue:
    """Tokens of the function at a dotted path, called as confluent-kafka calls `oauth_cb`: it is given the text of
    `sasl.oauthbearer.config` and returns the token and its expiry in epoch seconds, and may add a principal, which
    means nothing here, and extensions."""
    module, _, name = path.rpartition(".")

    def issue() -> Token:
        try:
            text, expires, *more = getattr(importlib.import_module(module), name)(config)
            return Token(text, float(expires), more[1] if len(more) > 1 else {})
        except Exception as error:  # whatever other people's code raises
            raise TokenRefused(
                f"oauth_cb {path} returned no token ({type(error).__name__}); it is called with one text and must"
                " return (token, expiry in epoch seconds)"
            ) from error

    return issue


def msk_iam(region: str) -> Issue:
    """Tokens signed with the AWS credentials of this process, for Amazon MSK."""

    def issue() -> Token:
        try:
            from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
        except ImportError:
            raise TokenRefused("logins by AWS IAM need AWS's signer: pip install 'kafka-sla[msk]'") from None
        try:
            text, expires_ms = MSKAuthTokenProvider.generate_auth_token(region)
        except Exception as error:  # botocore's many errors, and an AttributeError where there are no credentials
            raise TokenRefused(
                f"no AWS credentials were found for MSK in {region} ({type(error).__name__}); set AWS_ACCESS_KEY_ID and"
                " AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or give this machine a role"
            ) from error
        return Token(text, expires_ms / 1000, {})

    return issue
