"""Answers over HTTP that come in time or not at all. Knows no service."""

from __future__ import annotations

import re
from typing import Any

import requests

from kafka_sla.network.in_time import in_time
from kafka_sla.network.trust import TrustingAdapter, causes, why_untrusted

_REFUSED_TUNNEL = re.compile(r"Tunnel connection failed: \d+ [\w ]+")


def requested(method: str, address: str, times: tuple[float, float], **how: Any) -> requests.Response:
    """The whole answer to one request. `times`: seconds to connect, and until all of the answer is there; `how` as
    `requests.request` takes it, whose errors are raised. Proxies are those of the environment; a login is never taken
    from a .netrc file."""

    def ask() -> requests.Response:
        with requests.Session() as session:
            if address.startswith("https:") and how.get("verify", True) is True:
                session.mount("https://", TrustingAdapter())
            return session.request(method, address, timeout=times, **({"auth": _as_it_is} | how))

    try:
        return in_time(ask, times[1])
    except TimeoutError as error:
        raise requests.Timeout(str(error)) from None


def why_no_answer(error: requests.RequestException) -> str:
    """In words that hold no address, which may hold a secret."""
    if untrusted := why_untrusted(error):
        return untrusted
    if isinstance(error, requests.exceptions.ProxyError):
        refused = (_REFUSED_TUNNEL.search(str(one)) for one in causes(error))
        return f"no answer through the proxy ({next((found[0] for found in refused if found), type(error).__name__)})"
    return f"no answer ({type(error).__name__})"


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request
