from __future__ import annotations

import threading

import pytest
import requests

from kafka_sla.http_answers import in_time


def test_an_answer_that_is_there_is_returned_and_an_error_raised() -> None:
    answer = requests.Response()

    def refuse() -> requests.Response:
        raise requests.ConnectionError("refused")

    assert in_time(lambda: answer, 60) is answer
    with pytest.raises(requests.ConnectionError, match="refused"):
        in_time(refuse, 60)


def test_an_answer_that_does_not_come_is_a_timeout() -> None:
    over = threading.Event()

    def late() -> requests.Response:
        over.wait()
        return requests.Response()

    with pytest.raises(requests.Timeout, match="no whole answer within 0 s"):
        in_time(late, 0.05)
    over.set()
