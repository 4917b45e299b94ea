"""Connections from environment variables, as Airflow writes them."""

from __future__ import annotations

import json
import re

import pytest

from kafka_sla.config.env_connections import Kind, environment_connection
from kafka_sla.errors import ConnectionMissing, SettingsError
from kafka_sla.model.entities import Connection


def read(text: str) -> Connection:
    return environment_connection("kafka_prod", {"AIRFLOW_CONN_KAFKA_PROD": text})


def test_json_gives_every_field() -> None:
    text = (
        '{"conn_type": "kafka", "host": "broker", "port": "9092", "login": "me", "password": "pw", "schema": "s",'
        ' "extra": {"security.protocol": "SSL"}}'
    )
    assert read(text) == Connection(
        "kafka_prod", "broker", 9092, "me", "pw", "s", "kafka", {"security.protocol": "SSL"}
    )


def test_json_may_hold_its_extra_as_text() -> None:
    assert read('{"conn_type": "kafka", "extra": "{\\"a\\": 1}"}').extra == {"a": 1}


def test_a_uri_gives_every_field_decoded() -> None:
    found = read("postgresql://me%40home:p%2Fw@Host.example:5432/db?sslmode=require")
    assert found == Connection(
        "kafka_prod", "Host.example", 5432, "me@home", "p/w", "db", "postgres", {"sslmode": "require"}
    )


def test_a_uri_may_hold_its_extra_as_json() -> None:
    assert read("kafka://broker:9092/?__extra__=%7B%22bootstrap.servers%22%3A+%22a%3A1%2Cb%3A2%22%7D").extra == {
        "bootstrap.servers": "a:1,b:2"
    }


def test_a_uri_keeps_the_case_of_a_file() -> None:
    found = read("sqlite://%2FData%2FSla.db?warehouse=%2FData%2Ftables")
    assert (found.conn_type, found.host, found.extra) == ("sqlite", "/Data/Sla.db", {"warehouse": "/Data/tables"})


def test_a_connection_that_is_not_defined_names_the_variable_to_set() -> None:
    with pytest.raises(ConnectionMissing, match="set the environment variable AIRFLOW_CONN_KAFKA_PROD, as JSON"):
        environment_connection("kafka_prod", {})


@pytest.mark.parametrize(
    "text",
    [
        '{"password": "hunter2"',
        '{"port": "hunter2"}',
        '{"extra": "hunter2"}',
        '{"extra": ["hunter2"]}',
        "hunter2",
        "kafka://me:hunter2@a:1,b:2",
        "kafka://me:hunter2@host:port",
        "kafka://me:hunter2@[::1",
    ],
)
def test_a_connection_that_cannot_be_read_says_how_to_write_it_and_keeps_its_secret(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(text)
    assert "AIRFLOW_CONN_KAFKA_PROD holds no connection: write JSON" in str(caught.value)
    assert "hunter2" not in str(caught.value) and caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("kind", "conn_type"), [("brokers", "kafka"), ("http", "http"), ("mail", "smtp"), ("store", "postgres")]
)
def test_a_connection_that_is_missing_is_shown_by_an_example_of_its_kind_whatever_its_id(
    kind: Kind, conn_type: str
) -> None:
    with pytest.raises(ConnectionMissing, match="AIRFLOW_CONN_SMTP_OUT, as JSON such as") as caught:
        environment_connection("smtp_out", {}, kind=kind)
    assert re.findall(r'"conn_type": "(\w+)"', str(caught.value)) == [conn_type]


def test_a_connection_of_a_kind_that_nobody_said_is_shown_by_an_example_for_each() -> None:
    with pytest.raises(ConnectionMissing) as caught:
        environment_connection("mail_out", {})
    examples = re.findall(r'"conn_type": "(\w+)".*? for (.*?)(?:;|$)', str(caught.value))
    assert examples == [
        ("kafka", "Kafka brokers"),
        ("http", "a webhook or Kafka Connect"),
        ("smtp", "a mail server"),
        ("postgres", "a store"),
    ]


@pytest.mark.parametrize("kind", ["brokers", "http", "mail", "store"])
def test_each_example_is_a_connection(kind: Kind) -> None:
    with pytest.raises(ConnectionMissing) as caught:
        environment_connection("kafka_prod", {}, kind=kind)
    shown = str(caught.value).partition("as JSON such as ")[2].partition(" or as a URI")[0]
    assert read(shown).conn_type == json.loads(shown)["conn_type"]
