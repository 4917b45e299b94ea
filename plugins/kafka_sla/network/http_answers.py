"""Answers over HTTP that come in time or not at all. Knows no service."""

from __future__ import annotations

from typing import Any

import requests

from kafka_sla.network.in_time import in_time


def requested(method: str, address: str, times: tuple[float, float], **how: Any) -> requests.Response:
    """The whole answer to one request. `times`: seconds to connect, and until all of the answer is there; `how` as
    `requests.request` takes it, whose errors are raised."""
    try:
        return in_time(lambda: requests.request(method, address, timeout=times, **how), times[1])
    except TimeoutError as error:
        raise requests.Timeout(str(error)) from None
