"""Access tokens of OAuth 2.0 token endpoints (RFC 6749), used again while they live. Never shows a token or a secret.

Knows nobody who asks for tokens.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote_plus, urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import HTTPBasicAuth
from urllib3.util.retry import Retry

from kafka_sla.network.in_time import in_time
from kafka_sla.network.trust import TrustingAdapter, why_untrusted

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
"""An endpoint may ask to wait for hours: who wants a token fails instead, and the next run asks again."""
_REUSED = 0.8
"""Share of its life for which a token serves new logins. A broker that limits sessions ends them with the token, and
logins are renewed after 85 to 95 % of it: by then there must be a new one."""


class NoToken(Exception):
    """An endpoint issued none; `answered`: there is one, and it said so itself."""

    def __init__(self, reason: str, *, answered: bool) -> None:
        super().__init__(reason)
        self.answered = answered


class Expiring(Protocol):
    """What lives until `expires`, epoch seconds; None: nobody says."""

    @property
    def expires(self) -> float | None: ...


E = TypeVar("E", bound=Expiring)


@dataclass(frozen=True, slots=True)
class AccessToken:
    """`expires`: epoch seconds; None: nobody says."""

    text: str = field(repr=False)
    expires: float | None


class Renewed(Generic[E]):
    """What `issue` returns, issued anew when the last one has nearly had its time."""

    def __init__(self, issue: Callable[[], E]) -> None:
        self._issue = issue
        self._last: E | None = None
        self._renew_at = 0.0

    def current(self) -> E:
        now = time.time()
        if self._last is None or now >= self._renew_at:
            self._last = self._issue()
            self._renew_at = now + ((self._last.expires or now) - now) * _REUSED
        return self._last


def issued(
    endpoint: str, grant: Mapping[str, str], client_id: str, secret: str, authority: str | None = None
) -> AccessToken:
    """The token of one request. `grant`: what the form says; `authority`: the file of those who signed the endpoint's
    certificate. Raises NoToken. The token's life counts from before the request, to be on the safe side.

    RFC 6749 wants id and secret percent-encoded (section 2.3.1). Few clients do so, librdkafka does not, and not all
    endpoints decode them: who is refused as it is asks once more encoded, where that is not the same."""
    asked_at = time.time()
    plain = (client_id, secret)
    encoded = (quote_plus(client_id), quote_plus(secret))
    answer = _asked(endpoint, grant, plain, authority)
    if answer.status_code in (400, 401) and encoded != plain:
        answer = _asked(endpoint, grant, encoded, authority)
    content = _content(answer)
    if answer.status_code == 200 and isinstance(text := content.get("access_token"), str):
        life = content.get("expires_in")
        return AccessToken(text, asked_at + float(life) if life is not None else None)
    reason = f"{answer.status_code} {content.get('error', '')} {_code_of_microsoft(content)}".split()
    raise NoToken(
        f"{_name(endpoint)} issued no token to client {client_id!r} ({' '.join(reason)})",
        answered=answer.status_code not in (404, 405),
    )


def _name(endpoint: str) -> str:
    return f"the token endpoint at {urlsplit(endpoint).hostname}"


def _asked(endpoint: str, grant: Mapping[str, str], login: tuple[str, str], authority: str | None) -> requests.Response:
    """Its answer; NoToken without one."""
    basic = HTTPBasicAuth(*(text.encode() for text in login))

    def ask() -> requests.Response:
        with requests.Session() as session:
            adapter = HTTPAdapter if authority else TrustingAdapter
            session.mount(endpoint, adapter(max_retries=_RETRIES))
            return session.post(
                endpoint,
                dict(grant),
                auth=basic,
                timeout=_TIMEOUT_S,
                verify=authority or True,
                allow_redirects=False,
            )

    try:
        return in_time(ask, _ALL_S)
    except (requests.RequestException, TimeoutError) as error:
        why = why_untrusted(error) or type(error).__name__
        raise NoToken(f"{_name(endpoint)} does not answer ({why})", answered=False) from None


def _content(answer: requests.Response) -> dict[str, Any]:
    try:
        content = answer.json()
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _code_of_microsoft(content: Mapping[str, Any]) -> str:
    """The number by which Microsoft documents each refusal; the sentences around it may repeat what was sent."""
    found = re.search(r"AADSTS\d+", str(content.get("error_description", "")))
    return found[0] if found else ""
