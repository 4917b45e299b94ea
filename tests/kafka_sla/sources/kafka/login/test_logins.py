"""Every login that a real broker knows: snapshots through it, and what is reported when it fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from demo.broker import Cluster as Broker
from demo.token_server import TokenServer
from kafka_sla.model.entities import Cluster, Connection, OffsetLookups, Patterns
from kafka_sla.sources.kafka.probes.permissions import probe
from kafka_sla.sources.kafka.protocol.client import Client
from kafka_sla.sources.kafka.protocol.kafka_python import MetadataRequest
from kafka_sla.sources.kafka.snapshot import Snapshot, snapshot
from tests.kafka_sla.sources.kafka.traffic import admin, commit, produce, this_minute, topic

CLUSTER = Cluster("payments-eu", "kafka_eu")


@pytest.fixture
def orders(kafka_sasl: Broker) -> str:
    """A topic of which a group has read 4 of 10 records."""
    name = topic(kafka_sasl)
    produce(kafka_sasl, name, [int(time.time() * 1000) - 60_000 + second for second in range(10)])
    commit(kafka_sasl, f"billing.{name}-v2", name, 4)
    return name


@pytest.fixture
def tokens() -> Iterator[TokenServer]:
    with TokenServer(life_s=3) as server:
        yield server


def look(extra: dict[str, str], name: str) -> Snapshot:
    return snapshot(
        CLUSTER,
        Connection("kafka_eu", extra=extra),
        this_minute(),
        window_ms=60_000,
        groups=Patterns((f"billing.{name}-v2",)),
        topics=Patterns((name,)),
        live=True,
        offset_lookups=OffsetLookups(),
    )


def positions(seen: Snapshot) -> set[int]:
    assert seen.notes == ()
    return {row["committed_offset"] for row in [*seen.committed_offsets.to_pylist(), *seen.commits.to_pylist()]}


def problem(extra: dict[str, str]) -> str:
    (finding,) = probe(CLUSTER, Connection("kafka_eu", extra=extra))
    assert not finding.ok
    return finding.text


def with_tokens(broker: Broker, tokens: TokenServer, **keys: str) -> dict[str, str]:
    own = {"bootstrap.servers": broker.bootstrap, "ssl.ca.location": broker.client()["ssl.ca.location"]}
    return {**own, **tokens.client(), **keys}


def test_a_client_certificate_is_a_login(kafka_sasl: Broker, orders: str) -> None:
    assert positions(look(kafka_sasl.certified_client(), orders)) == {4}


def test_certificates_may_be_given_as_text(kafka_sasl: Broker, orders: str) -> None:
    named = kafka_sasl.certified_client()
    text = Path(named["ssl.certificate.location"]).read_text()
    key, chain = text.partition("-----BEGIN CERTIFICATE-----")[0], text[text.index("-----BEGIN CERTIFICATE-----") :]
    extra = {
        "bootstrap.servers": named["bootstrap.servers"],
        "security.protocol": "SSL",
        "ssl.ca.pem": Path(named["ssl.ca.location"]).read_text(),
        "ssl.certificate.pem": chain,
        "ssl.key.pem": key,
    }

    assert positions(look(extra, orders)) == {4}


def test_a_missing_client_certificate_is_what_is_reported(kafka_sasl: Broker) -> None:
    named = kafka_sasl.certified_client()
    extra = {key: named[key] for key in ("bootstrap.servers", "security.protocol", "ssl.ca.location")}

    reported = problem(extra)

    assert "wants a client certificate that it trusts; set ssl.certificate.location and ssl.key.location" in reported


def test_scram_sha_256_is_a_login(kafka_sasl: Broker, orders: str) -> None:
    password = kafka_sasl.client("admin")["sasl.password"]
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    upsert = UserScramCredentialUpsertion("admin", info, password.encode())
    admin(kafka_sasl).alter_user_scram_credentials([upsert])["admin"].result(120)

    assert positions(look(kafka_sasl.client("admin", "SCRAM-SHA-256"), orders)) == {4}


def test_snapshots_go_on_over_many_lives_of_tokens(kafka_sasl: Broker, orders: str, tokens: TokenServer) -> None:
    extra = with_tokens(kafka_sasl, tokens)
    end = time.monotonic() + 3 * tokens.life_s

    while time.monotonic() < end:
        assert positions(look(extra, orders)) == {4}

    assert len(tokens.issued) > 3


def test_a_pass_that_outlives_its_token_logs_in_again(kafka_sasl: Broker, tokens: TokenServer) -> None:
    """The broker ends sessions with their token; sessions that it did not limit would prove nothing."""
    with Client(CLUSTER, Connection("kafka_eu", extra=with_tokens(kafka_sasl, tokens))) as client:
        end = time.monotonic() + 3 * tokens.life_s
        while time.monotonic() < end:
            assert client.ask_one(MetadataRequest(topics=None)).brokers
            client.sleep(0.2)

    assert len(tokens.issued) >= 3


def test_a_token_that_the_broker_refuses_is_what_is_reported(kafka_sasl: Broker, tokens: TokenServer) -> None:
    tokens.life_s = -60

    reported = problem(with_tokens(kafka_sasl, tokens))

    assert "the broker refused the token; check what issues it" in reported
    assert tokens.issued[0] not in reported


def test_an_endpoint_that_issues_no_token_is_what_is_reported(kafka_sasl: Broker, tokens: TokenServer) -> None:
    reported = problem(with_tokens(kafka_sasl, tokens, **{"sasl.oauthbearer.client.secret": "not-that-one"}))

    assert "the token endpoint at 127.0.0.1 issued no token to client 'kafka-sla' (401 invalid_client)" in reported
    assert "not-that-one" not in reported


def test_kerberos_without_its_library_is_reported(kafka_sasl: Broker) -> None:
    reported = problem({**kafka_sasl.client(), "sasl.mechanism": "GSSAPI"})

    assert "does not offer the SASL mechanism GSSAPI" in reported or "install it" in reported
