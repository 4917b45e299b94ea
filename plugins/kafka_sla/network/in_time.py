"""What others answer in time or not at all."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def in_time(ask: Callable[[], T], seconds: float) -> T:
    """What `ask` returns or raises; TimeoutError when it is not done after so many seconds.

    The time-outs of sockets begin anew with each byte, and none is for looking up a name: who answers a byte every few
    seconds is waited for without end.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, name="in time", daemon=True).start()  # what nobody waits for any more ends with the process
    wait([answer], seconds)
    if not answer.done():
        raise TimeoutError(f"no whole answer within {seconds:.0f} s")
    return answer.result()
