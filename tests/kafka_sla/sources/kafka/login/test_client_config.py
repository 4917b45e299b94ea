"""Connections as people define them, turned into what the client needs."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from kafka_sla.errors import KafkaUnreachable
from kafka_sla.model.entities import Connection
from kafka_sla.sources.kafka.login.client_config import client_configuration, ignored_keys

SERVERS = {"bootstrap.servers": "broker-1.example.com:9093"}
TLS = {**SERVERS, "security.protocol": "SSL"}


def refusal(**keys: object) -> str:
    extra = {**SERVERS, **{key.replace("_", "."): value for key, value in keys.items()}}
    with pytest.raises(KafkaUnreachable) as raised:
        client_configuration("payments-eu", Connection("kafka_eu", extra=extra))
    return str(raised.value)


def test_host_and_port_are_the_bootstrap() -> None:
    assert client_configuration("c", Connection("k", host="broker", port=9093)) == {
        "bootstrap_servers": ["broker:9093"]
    }


def test_several_hosts_share_the_port_unless_they_name_their_own() -> None:
    found = client_configuration("c", Connection("k", host="one, two:9095"))

    assert found["bootstrap_servers"] == ["one:9092", "two:9095"]


def test_the_extra_has_the_names_of_librdkafka() -> None:
    extra = {
        "bootstrap.servers": "a:9092,b:9092",
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "client.dns.lookup": "resolve_canonical_bootstrap_servers_only",
    }

    assert client_configuration("c", Connection("k", login="me", password="pw", extra=extra)) == {
        "bootstrap_servers": ["a:9092", "b:9092"],
        "client_dns_lookup": "resolve_canonical_bootstrap_servers_only",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "me",
        "sasl_plain_password": "pw",
    }


@pytest.mark.parametrize(
    ("servers", "protocol"),
    [
        ("SSL://a.example.com:9092, SSL://b.example.com:9093", {}),
        ("ssl://a.example.com:9092,b.example.com:9093", {}),
        ("SSL://a.example.com:9092,b.example.com:9093", {"security.protocol": "ssl"}),
    ],
)
def test_the_scheme_of_an_address_is_the_security_protocol(servers: str, protocol: dict[str, str]) -> None:
    configuration = client_configuration("c", Connection("k", extra={"bootstrap.servers": servers, **protocol}))

    assert configuration["bootstrap_servers"] == ["a.example.com:9092", "b.example.com:9093"]
    assert (configuration["security_protocol"], type(configuration["ssl_context"])) == ("SSL", ssl.SSLContext)


@pytest.mark.parametrize(
    ("host", "address"),
    [("SASL_SSL://broker", "broker:9092"), ("SASL_SSL://broker:9095", "broker:9095")],
)
def test_the_host_of_a_connection_may_have_a_scheme_too(host: str, address: str) -> None:
    extra = {"sasl.mechanism": "PLAIN"}
    configuration = client_configuration("c", Connection("k", host=host, login="me", password="pw", extra=extra))

    assert (configuration["bootstrap_servers"], configuration["security_protocol"]) == ([address], "SASL_SSL")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (
            {"bootstrap_servers": "SASL_SSL://a:1", "security_protocol": "SSL"},
            "bootstrap.servers says SASL_SSL:// but security.protocol is 'SSL'; correct one of them",
        ),
        ({"bootstrap_servers": "SSL://a:1,PLAINTEXT://b:1"}, "PLAINTEXT and SSL contradict each other"),
        ({"bootstrap_servers": "OUT://a:1"}, "OUT:// is not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL; write"),
        ({"bootstrap_servers": "SASL_SSL://a:1"}, "sasl.mechanism is missing"),
        ({"bootstrap_servers": "SSL://a"}, "'a' is not host:port"),
    ],
)
def test_a_scheme_that_contradicts_is_refused(keys: dict[str, str], problem: str) -> None:
    assert problem in refusal(**keys)


def test_keys_that_tune_consumers_and_librdkafka_are_ignored_and_named() -> None:
    tuned = {
        "group.id": "billing",
        "session.timeout.ms": 45_000,
        "socket.timeout.ms": 60_000,
        "acks": "all",
        "socket.keepalive.enable": True,
        "error_cb": "acme.metrics.errors",
    }
    connection = Connection("k", extra={**SERVERS, **tuned})

    assert client_configuration("c", connection) == {"bootstrap_servers": ["broker-1.example.com:9093"]}
    assert ignored_keys(connection) == sorted(tuned)


def test_every_error_is_reported_at_once_and_no_secret() -> None:
    extra = {
        "bootstrap.servers": "nowhere",
        "security.protocol": "TLS",
        "sasl.mechanism": "DIGEST-MD5",
        "sasl.pasword": "secret-1",
        "ssl.key.location": "/no/such/key",
    }

    with pytest.raises(KafkaUnreachable) as raised:
        client_configuration("payments", Connection("k1", password="secret-2", extra=extra))

    reported = str(raised.value)
    for part in (
        "'payments'",
        "'k1'",
        "'nowhere' is not host:port",
        "'TLS' is not one of PLAINTEXT, SSL",
        "'DIGEST-MD5' is not one of PLAIN",
        "sasl.pasword: unknown, did you mean sasl.password?",
        "no file '/no/such/key'",
    ):
        assert part in reported
    assert "secret" not in reported


@pytest.mark.parametrize(
    ("keys", "remedy"),
    [
        ({"ssl.keystore.location": "/etc/kafka/client.p12"}, "openssl pkcs12"),
        ({"sasl.jaas.config": "org.apache.kafka...Login required password=hunter-2;"}, "write sasl.mechanism"),
        ({"sasl.oauthbearer.assertion.private.key.pem": "hunter-2"}, "as oauth_cb"),
        ({"sasl.oauthbearer.grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer"}, "is not one of client_cred"),
        ({"bootstrap.brokers": "x"}, "bootstrap.brokers: unknown, did you mean bootstrap.servers?"),
    ],
)
def test_a_key_that_cannot_be_honoured_is_refused_with_what_to_do(keys: dict[str, str], remedy: str) -> None:
    reported = refusal(**keys)

    assert remedy in reported
    assert "hunter-2" not in reported


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"sasl_mechanism": "PLAIN", "sasl_username": "a", "sasl_password": "b"}, "security.protocol is not SASL_SSL"),
        ({"security_protocol": "SASL_SSL"}, "sasl.mechanism is missing"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}, "sasl.username or sasl.password is missing"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}, "needs sasl.oauthbearer.token.endpoint"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "AWS_MSK_IAM"}, "needs bootstrap.servers of Amazon MSK"),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI", "sasl_kerberos_principal": "airflow@EU"},
            "sasl.kerberos.principal is given without the sasl.kerberos.keytab that holds its key",
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI", "sasl_kerberos_keytab": "/no/such.keytab"},
            "sasl.kerberos.keytab: there is no file '/no/such.keytab' on this machine",
        ),
        (
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_oauthbearer_token_endpoint_url": "https://sso.example.com/token",
            },
            "client.secret is missing",
        ),
    ],
)
def test_a_login_that_lacks_something_is_refused_before_anything_is_opened(keys: dict[str, str], problem: str) -> None:
    assert problem in refusal(**keys)


def test_a_connection_without_any_broker_is_refused() -> None:
    with pytest.raises(KafkaUnreachable, match=r"give host and port, or bootstrap\.servers"):
        client_configuration("c", Connection("k"))


def context_of(**keys: str) -> ssl.SSLContext:
    extra = {**TLS, **{key.replace("_", "."): value for key, value in keys.items()}}
    context = client_configuration("c", Connection("k", extra=extra))["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    return context


AUTHORITY = trustme.CA(organization_name="kafka_sla tests")
ISSUED = AUTHORITY.issue_cert("sla.example.com")
CERTIFICATE, KEY = ISSUED.cert_chain_pems[0].bytes().decode(), ISSUED.private_key_pem.bytes().decode()
CA = AUTHORITY.cert_pem.bytes().decode()


def trusted(context: ssl.SSLContext) -> list[bytes]:
    return context.get_ca_certs(binary_form=True)


def test_authorities_come_from_a_file_from_text_or_from_this_machine(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(CA)
    own = ssl.PEM_cert_to_DER_cert(CA)

    assert trusted(context_of(ssl_ca_location=str(tmp_path / "ca.pem"))) == [own]
    assert trusted(context_of(ssl_ca_pem=CA)) == [own]
    assert own not in trusted(context_of())


def test_names_are_checked_unless_the_connection_says_not_to() -> None:
    assert context_of().check_hostname
    assert not context_of(**{"ssl.endpoint.identification.algorithm": "none"}).check_hostname
    unchecked = context_of(**{"enable.ssl.certificate.verification": "false"})
    assert (unchecked.check_hostname, unchecked.verify_mode) == (False, ssl.CERT_NONE)


def test_a_key_may_be_encrypted_and_is_never_shown() -> None:
    locked = (
        load_pem_private_key(KEY.encode(), None)
        .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"open-sesame"))
        .decode()
    )

    context_of(ssl_certificate_pem=CERTIFICATE, ssl_key_pem=locked, ssl_key_password="open-sesame")
    for password in ({}, {"ssl_key_password": "not-that-one"}):
        reported = refusal(security_protocol="SSL", ssl_certificate_pem=CERTIFICATE, ssl_key_pem=locked, **password)
        assert "ssl.certificate with ssl.key cannot be used" in reported
        assert "BEGIN" not in reported and "not-that-one" not in reported


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"ssl_certificate_pem": CERTIFICATE}, "the client certificate has no key: add ssl.key.location or"),
        ({"ssl_key_pem": KEY}, "ssl.key is given without its certificate"),
        ({"ssl_ca_pem": "no PEM at all"}, "ssl.ca.location or ssl.ca.pem cannot be used"),
        (
            {
                "ssl_certificate_pem": CERTIFICATE,
                "ssl_key_pem": AUTHORITY.issue_cert("x.example.com").private_key_pem.bytes().decode(),
            },
            "key and certificate do not match",
        ),
        ({"ssl_cipher_suites": "ROT13"}, "ssl.cipher.suites cannot be used"),
    ],
)
def test_certificates_that_cannot_be_used_are_named_by_their_keys(keys: dict[str, str], problem: str) -> None:
    assert problem in refusal(security_protocol="SSL", **keys)
