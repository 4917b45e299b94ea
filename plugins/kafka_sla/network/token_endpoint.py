"""Access tokens of OAuth 2.0 token endpoints (RFC 6749), used again while they live. Never shows a token or a secret.

Knows nobody who asks for tokens.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote_plus

import tenacity
from requests.auth import HTTPBasicAuth

from kafka_sla.network.addresses import split_address
from kafka_sla.network.http_answers import Answer, NoAnswer, request_answer

_TIMEOUT_S, _ALL_S = 10, 45
"""Until an endpoint answers, and until all tries have ended."""
_TRIES = 4
_BUSY = (429, 500, 502, 503, 504)
_LONGEST_LIFE_S = 10 * 365 * 86_400
_ERROR_CODE = re.compile(r"[a-z_]{1,60}")
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
    endpoints decode them: a request that is refused is sent once more with both encoded, where that makes a difference.
    """
    requested_at = time.time()
    plain = (client_id, secret)
    encoded = (quote_plus(client_id), quote_plus(secret))
    answer = _request_token(endpoint, grant, plain, authority)
    if answer.status in (400, 401) and encoded != plain:
        answer = _request_token(endpoint, grant, encoded, authority)
    content = _content(answer)
    if answer.status == 200 and isinstance(text := content.get("access_token"), str):
        return AccessToken(text, _expiry(endpoint, requested_at, content.get("expires_in")))
    reason = f"{answer.status} {_error_code(content, secret)} {_code_of_microsoft(content)}".split()
    raise NoToken(
        f"{_name(endpoint)} issued no token to client {client_id!r} ({' '.join(reason)})",
        answered=answer.status not in (404, 405),
    )


def _expiry(endpoint: str, requested_at: float, life: object) -> float | None:
    """Epoch seconds at which a token expires that lives `life` seconds; None where the endpoint does not say. A token
    that has expired already is for the broker to refuse."""
    if life is None:
        return None
    try:
        seconds = float(life) if isinstance(life, int | float | str) and not isinstance(life, bool) else math.nan
    except (ValueError, OverflowError):
        seconds = math.nan
    if not abs(seconds) < _LONGEST_LIFE_S:
        raise NoToken(f"{_name(endpoint)} answers with an expires_in that is no number of seconds", answered=True)
    return requested_at + seconds


def _name(endpoint: str) -> str:
    try:
        return f"the token endpoint at {split_address(endpoint).hostname}"
    except ValueError:
        return "the token endpoint"


def _request_token(endpoint: str, grant: Mapping[str, str], login: tuple[str, str], authority: str | None) -> Answer:
    """Its answer; NoToken without one. A busy endpoint is asked again a few times, but not after a time that it names:
    that may be hours, and the next run asks again."""
    deadline = time.monotonic() + _ALL_S
    basic = HTTPBasicAuth(*(text.encode() for text in login))
    how: dict[str, Any] = {"data": dict(grant), "auth": basic, "verify": authority or True}

    def request() -> Answer:
        left_s = max(0.1, min(_TIMEOUT_S, deadline - time.monotonic()))
        return request_answer("POST", endpoint, (left_s, left_s), **how)

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(lambda error: isinstance(error, NoAnswer) and error.in_time)
        | tenacity.retry_if_result(lambda answer: answer.status in _BUSY),
        stop=tenacity.stop_after_attempt(_TRIES),
        wait=tenacity.wait_exponential(0.2),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
    )
    try:
        answer: Answer = retrying(request)
    except NoAnswer as error:
        raise NoToken(f"{_name(endpoint)}: {error}", answered=False) from None
    return answer


def _content(answer: Answer) -> dict[str, Any]:
    try:
        content = answer.json()
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _error_code(content: Mapping[str, Any], secret: str) -> str:
    """The error by its code (RFC 6749 section 5.2); empty where it is anything else, which may repeat what was sent."""
    code = content.get("error")
    is_code = isinstance(code, str) and _ERROR_CODE.fullmatch(code) and code not in secret and secret not in code
    return str(code) if is_code else ""


def _code_of_microsoft(content: Mapping[str, Any]) -> str:
    """The number by which Microsoft documents each refusal; the sentences around it may repeat what was sent."""
    found = re.search(r"AADSTS\d+", str(content.get("error_description", "")))
    return found[0] if found else ""
