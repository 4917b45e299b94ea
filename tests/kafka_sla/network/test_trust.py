"""Whoever asks over HTTPS believes the authorities that this machine trusts, and says what to do about others."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import trustme

from kafka_sla.errors import ConnectUnreachable
from kafka_sla.model.entities import Cluster, Connection, Exporter, ReplicationFlow
from kafka_sla.network.token_endpoint import NoToken, issued
from kafka_sla.sources.connect_rest import read_flow
from kafka_sla.sources.jmx_exporters import scrape
from tests.kafka_sla.network.served import served

Asking = Callable[[str], str]


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[str, list[str]]]:
    """An address whose certificate is signed by `ca.pem`, and what was asked there: it is no service that anybody
    knows."""
    authority, asked = trustme.CA(organization_name="Example Corp"), list[str]()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    name, until = getattr(request, "param", ("localhost", None))
    authority.issue_cert(name, not_after=until).configure_cert(tls)

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def do_POST(self) -> None:
            self.do_GET()

    with served(Site, tls) as port:
        yield f"https://localhost:{port}", asked


def token_endpoint(address: str) -> str:
    with pytest.raises(NoToken) as caught:
        issued(address, {}, "kafka-sla", "s3cret")
    return str(caught.value)


def exporter(address: str) -> str:
    (note,) = scrape(Cluster("prod", "kafka_prod", jmx_exporters=(Exporter(1, address),))).notes
    return note


def worker(address: str) -> str:
    with pytest.raises(ConnectUnreachable) as caught:
        read_flow(ReplicationFlow("copies", "backup", None, "connect", "copy"), Connection("connect", address))
    return str(caught.value)


@pytest.mark.parametrize("ask", [token_endpoint, exporter, worker])
def test_authorities_of_the_machine_are_believed_and_others_named(
    site: tuple[str, list[str]], ask: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, asked = site
    told = ask(address)
    assert "its certificate is not trusted (unable to get local issuer certificate): install the authority" in told
    assert not asked

    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert "404" in ask(address)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("site", "told"),
    [
        (("kafka.example.com", None), "not valid for 'localhost'): use a name that it holds"),
        (("localhost", datetime(2020, 1, 1, tzinfo=UTC)), "expired): have it renewed, or correct the clock"),
    ],
    indirect=["site"],
)
def test_of_a_trusted_authority_the_name_and_the_time_must_fit(
    site: tuple[str, list[str]], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))

    assert told in worker(site[0])
