"""Token endpoints that answer something else than RFC 6749 says."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from kafka_sla.network.token_endpoint import AccessToken, NoToken, issued
from tests.kafka_sla.network.served import served

SECRET = "s3cret_key"


class Endpoint(BaseHTTPRequestHandler):
    """Answers what a test gives it."""

    status: int
    body: bytes
    paths: list[str]

    def do_POST(self) -> None:
        self.paths.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.status)
        if 300 <= self.status < 400:
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(self.body)

    def do_GET(self) -> None:
        self.paths.append(self.path)


@pytest.fixture
def endpoint() -> Iterator[str]:
    Endpoint.paths = []
    with served(Endpoint) as port:
        yield f"http://127.0.0.1:{port}/token"


def issue(endpoint: str, status: int, body: Any) -> AccessToken:
    Endpoint.status, Endpoint.body = status, body if isinstance(body, bytes) else json.dumps(body).encode()
    return issued(endpoint, {"grant_type": "client_credentials"}, "me", SECRET)


@pytest.mark.parametrize("life", ['""', "[]", "{}", "NaN", "1e999", "true", '"soon"', "1" * 400, "1e30"])
def test_a_life_that_is_no_number_of_seconds_is_reported(endpoint: str, life: str) -> None:
    with pytest.raises(NoToken, match=r"at 127\.0\.0\.1 answers with an expires_in that is no number of seconds") as no:
        issue(endpoint, 200, f'{{"access_token": "t", "expires_in": {life}}}'.encode())

    assert no.value.answered


@pytest.mark.parametrize(("life", "seconds"), [(3600, 3600), ("3600", 3600), (0.5, 0.5), (-60, -60)])
def test_a_life_counts_from_before_the_request(endpoint: str, life: Any, seconds: float) -> None:
    before = time.time()

    expires = issue(endpoint, 200, {"access_token": "t", "expires_in": life}).expires

    assert expires is not None and before + seconds <= expires <= time.time() + seconds


def test_a_token_may_live_for_no_known_time(endpoint: str) -> None:
    assert issue(endpoint, 200, {"access_token": "t"}).expires is None


@pytest.mark.parametrize(
    "body", [b"", b"[1]", b"17", b"<html>", b"[" * 100_000, b"\xff", b'{"access_token": 7}', b'{"access_token": null}']
)
def test_an_answer_without_a_token_is_reported(endpoint: str, body: bytes) -> None:
    with pytest.raises(NoToken, match=r"issued no token to client 'me' \(200\)"):
        issue(endpoint, 200, body)


@pytest.mark.parametrize("error", [SECRET, f"no {SECRET}", "a" * 61, ["invalid_client"], {"code": SECRET}, "x\ny"])
def test_an_error_that_is_no_code_is_not_repeated(endpoint: str, error: Any) -> None:
    with pytest.raises(NoToken, match=r"issued no token to client 'me' \(400\)$"):
        issue(endpoint, 400, {"error": error, "error_description": f"wrong secret {SECRET}"})


def test_an_error_code_is_reported(endpoint: str) -> None:
    with pytest.raises(NoToken, match=r"\(400 invalid_scope AADSTS70011\)$"):
        issue(endpoint, 400, {"error": "invalid_scope", "error_description": "AADSTS70011: the scope"})


def test_a_redirect_is_not_followed(endpoint: str) -> None:
    with pytest.raises(NoToken, match=r"\(307\)$"):
        issue(endpoint, 307, b"")

    assert Endpoint.paths == ["/token"]


def test_a_long_answer_is_not_read(endpoint: str) -> None:
    with pytest.raises(NoToken, match="the answer has more than 1048576 bytes"):
        issue(endpoint, 200, b" " * 2_000_000)


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/", "http://[x/", "nowhere", f"http://{'a' * 300}/"])
def test_an_endpoint_that_cannot_be_opened_is_reported(url: str) -> None:
    with pytest.raises(NoToken, match="no answer") as no:
        issued(url, {"grant_type": "client_credentials"}, "me", SECRET)

    assert not no.value.answered and SECRET not in str(no.value)
