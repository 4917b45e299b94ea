"""The one HTTP client: answers that come whole, in time and in a limited size, or not at all."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from typing import Any

import requests
from urllib3.exceptions import HTTPError

from kafka_sla.network.addresses import split_address
from kafka_sla.network.in_time import in_time
from kafka_sla.network.trust import TrustingAdapter, causes, why_untrusted

MAX_BYTES = 1024**2
"""Size of an answer, unless a caller expects larger ones."""
_CHUNK = 64 * 1024
_REFUSED_TUNNEL = re.compile(r"Tunnel connection failed: \d+ [\w ]+")
_FAILURES = (requests.RequestException, HTTPError, HTTPException, OSError, ValueError, OverflowError)
"""What requests and the libraries below it raise, also for addresses, headers and answers that make no sense."""


class NoAnswer(Exception):
    """There is no usable answer. The message never holds the address, a header or a part of the answer, because they
    may hold a secret; `in_time` is false where the answer did not come in time."""

    def __init__(self, reason: str, *, in_time: bool = True) -> None:
        super().__init__(reason)
        self.in_time = in_time


@dataclass(frozen=True, slots=True)
class Answer:
    """The whole answer to a request."""

    status: int
    headers: Mapping[str, str]
    """Their names match in any case."""
    body: bytes

    @property
    def is_success(self) -> bool:
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        """The body as JSON; ValueError where it is none, or is nested too deeply."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("the JSON is nested too deeply") from None


def request_answer(
    method: str, address: str, times: tuple[float, float], *, max_bytes: int = MAX_BYTES, **options: Any
) -> Answer:
    """The answer to one request, whatever its status; NoAnswer without a usable one.

    `times`: seconds to connect, and until the whole answer is there. `options`: `headers`, `params`, `data`, `auth`,
    `verify`, `cert` and `proxies` as `requests.request` takes them. Redirects are not followed: they would send secret
    headers to another host. Compressed answers are refused, because a small one may unfold to gigabytes. Proxies come
    from the environment; a login never comes from a .netrc file.
    """
    deadline = time.monotonic() + times[1]
    try:
        split_address(address)
        return in_time(lambda: _read_answer(method, address, times[0], deadline, max_bytes, options), times[1])
    except TimeoutError as error:
        raise NoAnswer(f"no answer in time ({error})", in_time=False) from None
    except _FAILURES as error:
        raise NoAnswer(_reason(error), in_time=not isinstance(error, requests.Timeout)) from None


def _read_answer(
    method: str, address: str, connect_s: float, deadline: float, max_bytes: int, options: Mapping[str, Any]
) -> Answer:
    headers = {**(options.get("headers") or {}), "Accept-Encoding": "identity"}
    how = {"auth": _unchanged, **options, "headers": headers, "allow_redirects": False, "stream": True}
    left_s = max(0.1, deadline - time.monotonic())
    with requests.Session() as session:
        if address.startswith("https:") and how.get("verify", True) is True:
            session.mount("https://", TrustingAdapter())
        with session.request(method, address, timeout=(min(connect_s, left_s), left_s), **how) as response:
            if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise NoAnswer("the answer is compressed, which the request does not allow")
            return Answer(response.status_code, response.headers, _read_body(response, deadline, max_bytes))


def _read_body(response: requests.Response, deadline: float, max_bytes: int) -> bytes:
    """The body, as it comes; NoAnswer as soon as it is too long, and TimeoutError as soon as it is too late."""
    body = bytearray()
    while chunk := response.raw.read1(_CHUNK, decode_content=False):
        body += chunk
        if len(body) > max_bytes:
            raise NoAnswer(f"the answer has more than {max_bytes} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError("it comes too slowly")
    return bytes(body)


def _reason(error: BaseException) -> str:
    if untrusted := why_untrusted(error):
        return untrusted
    if isinstance(error, requests.exceptions.ProxyError):
        refused = (_REFUSED_TUNNEL.search(str(cause)) for cause in causes(error))
        name = next((match[0] for match in refused if match), type(error).__name__)
        return f"no answer through the proxy ({name})"
    return f"no answer ({type(error).__name__})"


def _unchanged(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """A login that adds nothing: without one, requests looks into a .netrc file."""
    return request
