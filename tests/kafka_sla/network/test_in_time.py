from __future__ import annotations

import threading

import pytest
import requests

from kafka_sla.network.in_time import in_time


def test_an_answer_that_is_there_is_returned_and_an_error_raised() -> None:
    answer = requests.Response()

    def refuse() -> requests.Response:
        raise TimeoutError("it gave up itself")

    assert in_time(lambda: answer, 60) is answer
    with pytest.raises(TimeoutError, match="it gave up itself"):
        in_time(refuse, 60)


def test_an_answer_that_does_not_come_is_a_timeout() -> None:
    over = threading.Event()
    with pytest.raises(TimeoutError, match="no whole answer within 0 s"):
        in_time(over.wait, 0.05)
    over.set()
