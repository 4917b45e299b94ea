"""Tokens of OAUTHBEARER logins: issued by a token endpoint, an own function or AWS's signer, and renewed in time.

Never shows a token or a secret.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from kafka.net.sasl.oauth import AbstractTokenProvider

from kafka_sla.network.token_endpoint import NoToken, Renewed, issued
from kafka_sla.sources.kafka.login.unavailable import LoginUnavailable


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
        self._tokens = Renewed(issue)

    def token(self) -> str:
        return self._tokens.current().text

    def extensions(self) -> dict[str, str]:
        return dict(self._tokens.current().extensions)


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
    grant = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}

    def issue() -> Token:
        try:
            token = issued(endpoint, grant, client_id, secret, authority)
        except NoToken as error:
            keys = _OF_CLIENT if error.answered else _OF_ENDPOINT
            raise LoginUnavailable(f"{error}; check {keys}") from None
        return Token(token.text, token.expires, extensions or {})

    return issue


_OF_ENDPOINT = "sasl.oauthbearer.token.endpoint.url and https.ca.location"
_OF_CLIENT = "sasl.oauthbearer.client.id, sasl.oauthbearer.client.secret and sasl.oauthbearer.scope of the connection"


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
            raise LoginUnavailable(
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
            raise LoginUnavailable("logins by AWS IAM need AWS's signer: pip install 'kafka-sla[msk]'") from None
        try:
            text, expires_ms = MSKAuthTokenProvider.generate_auth_token(region)
        except Exception as error:  # botocore's many errors, and an AttributeError where there are no credentials
            raise LoginUnavailable(
                f"no AWS credentials were found for MSK in {region} ({type(error).__name__}); set AWS_ACCESS_KEY_ID and"
                " AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or give this machine a role"
            ) from error
        return Token(text, expires_ms / 1000, {})

    return issue
