from __future__ import annotations

import json
from pathlib import Path

import pytest
from airflow.sdk.log import redact

from kafka_sla.config.store import Store
from kafka_sla.errors import ConnectionMissing
from kafka_sla.tasks.connections import connection, store_of

KAFKA = {
    "conn_type": "kafka",
    "extra": {"bootstrap.servers": "broker:9092", "sasl.username": "sla", "sasl.password": "swordfish-7"},
}
STORE = {
    "conn_type": "generic",
    "extra": {"warehouse": "/lake", "database_url": "postgresql://sla:hunter-22@db/sla"},
}


def define(monkeypatch: pytest.MonkeyPatch, conn_id: str, value: dict[str, object]) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(value))


def test_a_connection_keeps_what_airflow_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    define(
        monkeypatch, "smtp_default", {"conn_type": "smtp", "host": "mail", "port": 25, "login": "me", "password": "x"}
    )

    found = connection("smtp_default")

    assert (found.host, found.port, found.login, found.password) == ("mail", 25, "me", "x")


def test_a_missing_connection_is_named_with_ways_to_add_it() -> None:
    with pytest.raises(ConnectionMissing, match=r"'kafka_nowhere' is not defined.*AIRFLOW_CONN_KAFKA_NOWHERE"):
        connection("kafka_nowhere")


@pytest.mark.parametrize(("value", "secret"), [(KAFKA, "swordfish-7"), (STORE, "hunter-22")])
def test_secrets_of_the_extra_never_show(
    monkeypatch: pytest.MonkeyPatch, value: dict[str, object], secret: str
) -> None:
    define(monkeypatch, "some", value)

    found = connection("some")

    assert secret not in repr(found)
    assert secret not in str(redact(f"log line: {found.extra} or only {secret}"))


def test_a_private_key_in_the_extra_never_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\n-----END PRIVATE KEY-----\n"
    define(monkeypatch, "kafka_tls", {"conn_type": "kafka", "extra": {"ssl.key.pem": key}})

    found = connection("kafka_tls")

    assert key not in str(redact(f"log line: {found.extra['ssl.key.pem']}"))


def test_a_callback_runs_only_where_airflow_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    define(monkeypatch, "kafka_oauth", {"conn_type": "kafka", "extra": {"oauth_cb": "acme.tokens.issue"}})

    with pytest.raises(ConnectionMissing, match=r"'acme.tokens.issue', which this Airflow does not allow.*allowlist"):
        connection("kafka_oauth")
    monkeypatch.setenv("AIRFLOW__APACHE_KAFKA__CALLBACK_ALLOWLIST", "acme.metrics.errors, acme.tokens.issue")
    assert connection("kafka_oauth").extra == {"oauth_cb": "acme.tokens.issue"}


def test_the_store_is_the_one_that_its_connection_names(monkeypatch: pytest.MonkeyPatch) -> None:
    define(monkeypatch, "kafka_sla_store", STORE)

    assert store_of("kafka_sla_store").warehouse == "/lake"


def test_without_that_connection_the_store_is_the_folder_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KAFKA_SLA_STORE", str(tmp_path))

    assert store_of("kafka_sla_store") == Store.embedded(tmp_path)


def test_without_either_the_connection_is_asked_for() -> None:
    with pytest.raises(ConnectionMissing, match="kafka_sla_store"):
        store_of("kafka_sla_store")
