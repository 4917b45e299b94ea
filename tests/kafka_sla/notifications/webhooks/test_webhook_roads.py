"""Webhooks in other people's networks: certificates of a company's own authority, of clients, and proxies."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from kafka_sla.errors import WebhookRefused, WebhookUnavailable
from kafka_sla.model.entities import Connection, Webhook
from kafka_sla.notifications.webhooks import webhook as door
from tests.kafka_sla.network.proxy import proxy_to
from tests.kafka_sla.notifications.receivers import Receiver, serving
from tests.kafka_sla.notifications.webhooks.test_webhook import event

WEBHOOK = Webhook("receiver", "json")


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA(organization_name="Example Corp")


@pytest.fixture
def ca(authority: trustme.CA, tmp_path: Path) -> str:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return str(tmp_path / "ca.pem")


@pytest.fixture
def tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "hooks.corp.example").configure_cert(context)
    return context


@pytest.fixture
def receiver() -> Receiver:
    return Receiver(lambda *_: 200)


def came(receiver: Receiver) -> int:
    return len(receiver.bodies)


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_an_authority_that_the_machine_trusts_is_believed(
    receiver: Receiver, tls: ssl.SSLContext, ca: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, ca)
    with serving(receiver, tls) as connection:
        door.send(connection, WEBHOOK, event())

    assert came(receiver) == 1


@pytest.mark.parametrize("verify", ["the file", False, "false"])
def test_the_connection_says_whom_to_believe_as_in_airflows_http_provider(
    receiver: Receiver, tls: ssl.SSLContext, ca: str, verify: Any
) -> None:
    with serving(receiver, tls, extra={"verify": ca if verify == "the file" else verify}) as connection:
        door.send(connection, WEBHOOK, event())

    assert came(receiver) == 1


def test_a_certificate_that_nobody_vouches_for_is_named_with_what_to_do(
    receiver: Receiver, tls: ssl.SSLContext
) -> None:
    with serving(receiver, tls) as connection, pytest.raises(WebhookUnavailable) as caught:
        door.send(connection, WEBHOOK, event())

    assert "its certificate is not trusted (unable to get local issuer certificate)" in str(caught.value)
    assert "name its file in SSL_CERT_FILE" in str(caught.value)
    assert not came(receiver)


def test_a_receiver_that_wants_a_certificate_gets_that_of_the_connection(
    receiver: Receiver, tls: ssl.SSLContext, authority: trustme.CA, ca: str, tmp_path: Path
) -> None:
    authority.configure_trust(tls)
    tls.verify_mode = ssl.CERT_REQUIRED
    mine = authority.issue_cert("kafka-sla@corp.example")
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    mine.private_key_pem.write_to_path(key)
    mine.cert_chain_pems[0].write_to_path(certificate)
    with serving(receiver, tls, extra={"verify": ca, "cert": [certificate, key]}) as connection:
        door.send(connection, WEBHOOK, event())

    assert came(receiver) == 1


@pytest.mark.parametrize("by", ["the environment", "the connection", "the connection, for one scheme"])
def test_a_proxy_leads_to_a_receiver_that_only_it_knows(
    receiver: Receiver, tls: ssl.SSLContext, ca: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", ca)
    with serving(receiver, tls) as there, proxy_to(there.port or 0) as (proxy, asked):
        extra: dict[str, Any] = {}
        if by == "the environment":
            monkeypatch.setenv("HTTPS_PROXY", proxy)
        else:
            extra = {"proxies": proxy if by == "the connection" else {"https": proxy}}
        door.send(Connection("receiver", "https://hooks.corp.example", extra=extra), WEBHOOK, event())

    assert asked == ["hooks.corp.example:443"]
    assert came(receiver) == 1


def test_a_proxy_that_wants_a_login_is_told_from_a_receiver_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with proxy_to(0, status=407) as (proxy, _):
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        with pytest.raises(WebhookUnavailable, match=r"through the proxy \(Tunnel connection failed: 407 Proxy Auth"):
            door.send(Connection("receiver", "https://hooks.corp.example/s3cret"), WEBHOOK, event())


def test_what_is_no_option_in_the_extra_is_a_header_as_in_airflows_http_provider(receiver: Receiver) -> None:
    extra = {"X-Tenant": "payments", "headers": {"X-Zone": "eu"}, "timeout": 60, "trust_env": True, "odd": {"a": 1}}
    with serving(receiver, extra=extra) as connection:
        door.send(connection, WEBHOOK, event())

    (got,) = receiver.headers
    assert (got["x-tenant"], got["x-zone"]) == ("payments", "eu")
    assert not {"timeout", "trust_env", "odd", "headers"} & set(got)


def test_a_login_of_a_netrc_file_is_nobodys_here(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("default login me password mine\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serving(receiver, password="s3cret") as connection:
        door.send(connection, WEBHOOK, event())

    (got,) = receiver.headers
    assert got["authorization"] == "Bearer s3cret"


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        ({"verify": "/no/such/ca.pem"}, "verify in its extra names '/no/such/ca.pem', and there is no such file"),
        ({"cert": ["/no/such/cert.pem", "/no/such/key.pem"]}, "cert in its extra names '/no/such/cert.pem'"),
        ({"cert": [7]}, "cert in its extra names 7"),
        ({"cert": 7}, "cert in its extra must be one file, or two"),
        ({"cert": ["/etc", "/etc", "/etc"]}, "cert in its extra must be one file, or two"),
        ({"proxies": ["http://proxy:3128"]}, "proxies in its extra must be an address, or an object"),
        ({"proxy": {"https": 3128}}, "proxies in its extra must be an address, or an object"),
        ({"headers": "X-Tenant: payments"}, "headers in its extra must be an object"),
    ],
)
def test_an_extra_that_cannot_work_is_refused_by_the_check_and_before_anything_is_sent(
    receiver: Receiver, extra: dict[str, Any], why: str
) -> None:
    with serving(receiver, extra=extra) as connection:
        with pytest.raises(WebhookRefused, match=why):
            door.check(connection)
        with pytest.raises(WebhookRefused, match=why):
            door.send(connection, WEBHOOK, event())

    assert not came(receiver)
