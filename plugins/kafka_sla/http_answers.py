"""Answers over HTTP that come in time or not at all. Knows no service."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any

import requests


def requested(method: str, address: str, times: tuple[float, float], **how: Any) -> requests.Response:
    """The whole answer to one request. `times`: seconds to connect, and until all of the answer is there; `how` as
    `requests.request` takes it, whose errors are raised."""
    return in_time(lambda: requests.request(method, address, timeout=times, **how), times[1])


def in_time(ask: Callable[[], requests.Response], seconds: float) -> requests.Response:
    """The whole answer; `requests.Timeout` when it has not come after so many seconds.

    The time-outs of `requests` begin anew with each byte, and none is for looking up a name: who answers a byte every
    few seconds is waited for without end. What `ask` raises is raised here.
    """
    answer: Future[requests.Response] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, name="http", daemon=True).start()  # what nobody waits for any more ends with the process
    try:
        return answer.result(seconds)
    except TimeoutError:
        raise requests.Timeout(f"no whole answer within {seconds:.0f} s") from None
