"""The HTTP client against servers that send too much, too slowly, something else, or somewhere else."""

from __future__ import annotations

import gzip
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest

from kafka_sla.network.http_answers import NoAnswer, request_answer
from tests.kafka_sla.network.served import served

SECRET = "s3cret-path"


class Site(BaseHTTPRequestHandler):
    """Answers as its path says."""

    seen: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers.get("X-Secret")))
        getattr(self, self.path.split("/")[1])()

    def hello(self) -> None:
        self.send_response(200)
        self.send_header("X-Name", "value")
        self.end_headers()
        self.wfile.write(b"hello")

    def refused(self) -> None:
        self.send_response(418)
        self.end_headers()
        self.wfile.write(b"no")

    def endless(self) -> None:
        self.send_response(200)
        self.end_headers()
        with_patience(self, b"x" * 65_536, 0.0)

    def slow(self) -> None:
        self.send_response(200)
        self.end_headers()
        with_patience(self, b"x", 0.05)

    def packed(self) -> None:
        body = gzip.compress(b"0" * 10_000_000)
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def elsewhere(self) -> None:
        self.send_response(307)
        self.send_header("Location", f"http://localhost:{self.server.server_address[1]}/hello")
        self.end_headers()

    def cut(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"short")

    def garbage(self) -> None:
        self.wfile.write(b"\x00\xff" * 100)


def with_patience(site: BaseHTTPRequestHandler, part: bytes, pause_s: float) -> None:
    try:
        while True:
            site.wfile.write(part)
            time.sleep(pause_s)
    except OSError:
        return  # the client has left


@pytest.fixture
def site() -> Iterator[str]:
    Site.seen = []
    with served(Site) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def refused(reason: str) -> Iterator[None]:
    """The request gets no answer for this reason, and the error holds nothing secret."""
    with pytest.raises(NoAnswer, match=reason) as caught:
        yield
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_answer_comes_with_status_headers_and_body(site: str) -> None:
    answer = request_answer("GET", f"{site}/hello", (5, 60))

    assert (answer.status, answer.is_success, answer.headers["x-name"], answer.text) == (200, True, "value", "hello")
    assert not request_answer("GET", f"{site}/refused", (5, 60)).is_success


def test_an_endless_answer_is_not_read_further_than_its_limit(site: str) -> None:
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with refused("the answer has more than 1048576 bytes"):
        request_answer("GET", f"{site}/endless/{SECRET}", (5, 60))

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 50_000


def test_an_answer_may_be_as_long_as_its_limit(site: str) -> None:
    assert request_answer("GET", f"{site}/hello", (5, 60), max_bytes=5).text == "hello"
    with refused("more than 4 bytes"):
        request_answer("GET", f"{site}/hello", (5, 60), max_bytes=4)


def test_a_compressed_answer_is_refused_unread(site: str) -> None:
    with refused("the answer is compressed"):
        request_answer("GET", f"{site}/packed/{SECRET}", (5, 60))


def test_a_redirect_is_an_answer_and_no_header_goes_elsewhere(site: str) -> None:
    answer = request_answer("GET", f"{site}/elsewhere", (5, 60), headers={"X-Secret": SECRET})

    assert (answer.status, answer.is_success) == (307, False)
    assert Site.seen == [("/elsewhere", SECRET)]


def test_an_answer_that_comes_byte_by_byte_is_given_up_in_time(site: str) -> None:
    with refused("in time") as _:
        request_answer("GET", f"{site}/slow/{SECRET}", (0.5, 0.5))

    assert_no_thread_stays()


def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(NoAnswer) as caught:
        request_answer("GET", f"http://127.0.0.1:{silent.getsockname()[1]}/{SECRET}", (0.3, 0.3))

    assert not caught.value.in_time
    assert_no_thread_stays()


def assert_no_thread_stays() -> None:
    deadline = time.monotonic() + 60
    while any(thread.name == "in time" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("path", ["cut", "garbage"])
def test_half_an_answer_is_none(site: str, path: str) -> None:
    with refused("no answer"):
        request_answer("GET", f"{site}/{path}/{SECRET}", (5, 60))


@pytest.mark.parametrize(
    "address",
    [
        f"http://127.0.0.1:99999/{SECRET}",
        f"http://{'a' * 300}/{SECRET}",
        f"http://a..b/{SECRET}",
        f"http://[::1/{SECRET}",
        f"ftp://127.0.0.1/{SECRET}",
        f"/{SECRET}",
        f"http://\x00/{SECRET}",
    ],
)
def test_an_address_that_cannot_be_opened_is_no_answer(address: str) -> None:
    with refused("no answer"):
        request_answer("GET", address, (5, 60))


@pytest.mark.parametrize("value", [f"{SECRET}\nX-Other: 1", f"{SECRET}\u20ac"])
def test_a_header_that_cannot_be_sent_is_no_answer(site: str, value: str) -> None:
    with refused("no answer"):
        request_answer("GET", f"{site}/hello", (5, 60), headers={"X-Secret": value})


@pytest.mark.parametrize("body", [b"[" * 100_000, b"\xff", b"", b"7" * 5_000])
def test_an_answer_that_is_no_json_is_a_value_error(body: bytes) -> None:
    from kafka_sla.network.http_answers import Answer

    with pytest.raises(ValueError):
        Answer(200, {}, body).json()
