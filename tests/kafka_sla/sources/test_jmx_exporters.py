"""What brokers' exporters show as facts, and notes on those that show nothing. Real HTTP on loopback."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from threading import Event
from urllib.parse import parse_qs, urlsplit

import pytest

from demo.broker import free_ports
from kafka_sla.model.entities import Cluster, Exporter
from kafka_sla.sources.jmx_exporters import Scraped, scrape
from tests.kafka_sla.network.served import served

SHOWN = """\
# TYPE kafka_request_time_requests gauge
kafka_request_time_requests{part="Total",request="FetchFollower"} 200.0
kafka_request_time_requests{part="Remote",request="FetchFollower"} 200.0
kafka_request_time_requests{part="Local",request="FetchFollower"} 200.0
kafka_request_time_mean_ms{part="Total",request="FetchFollower"} 501.5
kafka_request_time_mean_ms{part="Remote",request="FetchFollower"} 500.0
kafka_request_time_mean_ms{part="Local",request="FetchFollower"} 0.25
kafka_request_time_requests{part="Total",request="FetchConsumer"} 0.0
kafka_request_time_mean_ms{part="Total",request="FetchConsumer"} NaN
kafka_replica_fetcher_responses{fetcher="0",leader="2"} 120.0
kafka_replica_fetcher_io_wait_ns{fetcher="0",leader="2"} 6.1E10
process_start_time_seconds 1.7952723845E9
some_other_metric{with="label"} 1.0
"""
Site = Callable[[dict[str, tuple[int, str | list[str]]]], str]


@pytest.fixture
def site() -> Iterator[Site]:
    """Serves what it is given, by path: status and text, or texts in turn; answers its address. `/slow` is given away
    a line a second."""
    pages: dict[str, tuple[int, str | list[str]]] = {}

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = pages[urlsplit(self.path).path]
            asked.extend(parse_qs(urlsplit(self.path).query).get("name[]", []))
            self.send_response(status)
            self.end_headers()
            shown, slow = text if isinstance(text, str) else text.pop(0), self.path.startswith("/slow")
            for part in shown.splitlines(keepends=True) if slow else [shown]:
                self.wfile.write(part.encode())
                over.wait(slow)

    asked: list[str] = []
    over = Event()
    with served(Pages) as port:

        def serve(given: dict[str, tuple[int, str | list[str]]]) -> str:
            pages.update(given)
            return f"http://127.0.0.1:{port}"

        yield serve
        over.set()
    assert "process_start_time_seconds" in asked, "only what is read is asked for"


def _scraped(*urls: str) -> Scraped:
    return scrape(Cluster("prod", None, jmx_exporters=tuple(Exporter(i, url) for i, url in enumerate(urls))))


ODD = {
    "a leader that is no number": SHOWN.replace('leader="2"', 'leader="broker-2"'),
    "a leader with 20 digits": SHOWN.replace('leader="2"', 'leader="99999999999999999999"'),
    "a leader in digits of another script": SHOWN.replace('leader="2"', 'leader="²"'),
    "no label of the fetcher": SHOWN.replace('fetcher="0",', ""),
    "one more label": SHOWN.replace('fetcher="0",', 'fetcher="0",zone="a",'),
    "1e300 requests": SHOWN.replace(" 200.0", " 1e300"),
    "1e17 requests": SHOWN.replace(" 200.0", " 1e17"),
    "less than no requests": SHOWN.replace(" 200.0", " -1"),
    "a mean of 1e300": SHOWN.replace(" 501.5", " 1e300"),
    "1e300 responses": SHOWN.replace(" 120.0", " 1e300"),
    "1e300 ns of waiting": SHOWN.replace("6.1E10", "1e300"),
    "a start in seconds of 1e18": SHOWN.replace("1.7952723845E9", "1e18"),
    "a start in milliseconds": SHOWN.replace("1.7952723845E9", "1.7952723845E12"),
    "a start before 1970": SHOWN.replace("1.7952723845E9", "-1e300"),
    "a page of a proxy": "<html>\x00{{{{" * 100,
    "half a sample": 'kafka_request_time_requests{part="To',
    "a sample without a value": 'kafka_request_time_requests{part="Total"}',
    "no text": "\ufffd\x00\ud7ff",
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_whatever_an_exporter_shows_costs_only_its_own_rows(site: Site, text: str) -> None:
    root = site({"/odd": (200, text), "/metrics": (200, SHOWN.replace('leader="2"', 'leader="3"'))})

    found = _scraped(f"{root}/odd", f"{root}/metrics")

    assert [row["broker"] for row in found.broker_requests.to_pylist()] == [1]
    assert [row["follower"] for row in found.replica_fetches.to_pylist()] == [1]
    (note,) = found.notes
    assert note.startswith(f"the JMX exporter of broker 0 at {root}/odd shows ")


def test_running_totals_become_rows_of_one_round(site: Site) -> None:
    root = site({"/metrics": (200, SHOWN)})

    found = _scraped(f"{root}/metrics")

    (requests,), (fetches,) = found.broker_requests.to_pylist(), found.replica_fetches.to_pylist()
    at, started = requests.pop("at"), datetime.fromtimestamp(1795272384.5, UTC)
    assert {
        "cluster": "prod",
        "broker": 0,
        "request": "FetchFollower",
        "started_at": started,
        "requests": 200,
        "total_ms": 100_300.0,
        "remote_ms": 100_000.0,
        "local_ms": 50.0,
    } == requests
    assert {
        "cluster": "prod",
        "follower": 0,
        "leader": 2,
        "fetcher_thread": 0,
        "at": at,
        "started_at": started,
        "responses": 120,
        "io_wait_ms": 61_000.0,
    } == fetches
    assert () == found.notes


def test_exporters_that_tell_nothing_are_named_and_the_others_are_read(site: Site) -> None:
    (closed,) = free_ports(1)
    root = site(
        {
            "/good": (200, SHOWN),
            "/gone": (404, ""),
            "/page": (200, "<html>Please log in</html>"),
            "/rules": (200, "jvm_threads 12\n"),
            "/moved": (302, ""),
            "/swapped": (200, SHOWN.replace('"2"', '"6"')),
            "/slow": (200, SHOWN),
        }
    )

    found = _scraped(
        *(f"{root}/{page}" for page in ("good", "gone", "page", "rules", "moved")),
        f"http://127.0.0.1:{closed}/metrics",
        f"{root}/swapped",
        f"{root}/slow",
    )

    assert [0] == found.broker_requests["broker"].to_pylist()
    expected = (
        "1 .*answers 404",
        "2 .*no Prometheus metrics",
        "3 .*give it the rules",
        "4 .*answers 302",
        "5 .*cannot be reached",
        "6 .*another broker",
        "7 .*does not answer in time",
    )
    assert len(expected) == len(found.notes)
    for words, note in zip(expected, found.notes, strict=True):
        assert re.search(f"of broker {words}", note), note


def test_a_broker_that_says_not_when_it_started_is_read_too(site: Site) -> None:
    root = site({"/metrics": (200, SHOWN.replace("process_start_time_seconds", "another_name"))})

    assert [None] == _scraped(f"{root}/metrics").broker_requests["started_at"].to_pylist()


def test_an_exporter_that_shows_a_request_in_some_totals_only_is_read_again(site: Site) -> None:
    """Read while a request ended, which had waited 500 ms: it would seem to have waited longer than it took."""
    torn = SHOWN.replace(
        'requests{part="Remote",request="FetchFollower"} 200', 'requests{part="Remote",request="FetchFollower"} 201'
    )
    root = site({"/metrics": (200, [torn, torn, SHOWN])})

    assert [100_000.0] == _scraped(f"{root}/metrics").broker_requests["remote_ms"].to_pylist()


def test_an_exporter_whose_totals_never_agree_is_taken_by_one_count(site: Site) -> None:
    """Thousands of requests a second: every answer counts some more in what is read last."""
    torn = SHOWN.replace(
        'requests{part="Remote",request="FetchFollower"} 200', 'requests{part="Remote",request="FetchFollower"} 203'
    )
    root = site({"/metrics": (200, [torn] * 4)})

    (row,) = _scraped(f"{root}/metrics").broker_requests.to_pylist()
    assert (200, 100_300.0, 100_000.0) == (row["requests"], row["total_ms"], row["remote_ms"])
