"""Where a store is: embedded, and as connections name it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.lake.files.durable_io import DurableFileIO
from kafka_sla.model.entities import Connection
from kafka_sla.object_stores import located


def connection(**fields: Any) -> Connection:
    return Connection(**{"id": "kafka_sla_store", "extra": {"warehouse": "/lake"}, **fields})


def test_the_standard_uri_of_azure_names_container_and_account() -> None:
    warehouse = "abfss://lake@contoso.dfs.core.windows.net/kafka-sla"
    extra = {"warehouse": warehouse, "adls.account-key": "c2VjcmV0"}
    store = Store.from_connection(Connection("kafka_sla_store", host="/shared/k.db", conn_type="sqlite", extra=extra))

    assert (store.warehouse, dict(store.properties)["adls.account-name"]) == (warehouse, "contoso")
    assert located(f"{warehouse}/facts/a@b")[1] == "lake/kafka-sla/facts/a@b"
    assert DurableFileIO.parse_location(f"{warehouse}/t/a@b")[2] == "lake/kafka-sla/t/a@b"


def test_an_embedded_store_is_one_folder(tmp_path: Path) -> None:
    store = Store.embedded(tmp_path)
    assert store == Store(f"{tmp_path}/warehouse", f"sqlite:///{tmp_path}/kafka_sla.db")


def test_a_postgres_connection_becomes_a_url_with_its_password_kept_out_of_sight() -> None:
    store = Store.from_connection(
        connection(conn_type="postgres", host="db", port=5433, login="sla", password="p@ss/word", schema="lake")
    )
    assert store.database_url == "postgresql+psycopg2://sla:p%40ss%2Fword@db:5433/lake"
    assert store.url.password == "p@ss/word"
    assert "word" not in repr(store) + repr(store.url)


def test_a_postgres_connection_keeps_what_libpq_shall_know() -> None:
    options = {"options": "-c search_path=kafka_sla", "target_session_attrs": "read-write", "application_name": "sla"}
    store = Store.from_connection(
        connection(
            conn_type="postgres", host="db1,db2", extra={"warehouse": "/lake", "cursor": "dictcursor", **options}
        )
    )
    assert store.url.host == "db1,db2"
    assert dict(store.url.query) == options


@pytest.mark.parametrize(("key", "whose"), [("iam", "AWS"), ("azure_conn_id", "Azure")])
def test_a_token_that_the_store_cannot_get_is_refused_in_words(key: str, whose: str) -> None:
    asked = connection(conn_type="postgres", host="db", extra={"warehouse": "/lake", key: "true"})
    with pytest.raises(StoreError, match=f"wants to log in with a token of {whose} .'{key}' in its extra."):
        Store.from_connection(asked)
    assert Store.from_connection(connection(conn_type="postgres", host="db", extra={"warehouse": "/lake", key: False}))


def test_a_postgres_connection_keeps_its_tls_settings() -> None:
    store = Store.from_connection(
        connection(
            conn_type="postgres",
            host="db",
            extra={"warehouse": "s3://bucket/lake/", "sslmode": "verify-full", "keepalives_idle": 5},
        )
    )
    assert store == Store("s3://bucket/lake", "postgresql+psycopg2://db/postgres?keepalives_idle=5&sslmode=verify-full")


def test_endpoint_region_and_credentials_come_from_the_extra_and_are_kept_out_of_sight() -> None:
    extra = {
        "warehouse": "s3://lake/kafka-sla",
        "s3.endpoint": "http://minio.example:9000",
        "s3.secret-access-key": "hush",
        "s3.force-virtual-addressing": False,
        "sslmode": "require",
    }
    store = Store.from_connection(connection(conn_type="postgres", host="db", extra=extra))
    assert dict(store.properties) == {
        "s3.endpoint": "http://minio.example:9000",
        "s3.secret-access-key": "hush",
        "s3.region": "us-east-1",
        "s3.force-virtual-addressing": "false",
    }
    assert "hush" not in repr(store)


def test_a_folder_that_is_written_as_a_uri_is_the_folder(tmp_path: Path) -> None:
    extra = {"warehouse": f"file://{tmp_path}/an%20old/warehouse/"}
    store = Store.from_connection(connection(conn_type="sqlite", host=f"{tmp_path}/sla.db", extra=extra))
    assert store.warehouse == f"{tmp_path}/an old/warehouse"


def test_a_sqlite_connection_needs_only_its_file(tmp_path: Path) -> None:
    store = Store.from_connection(connection(conn_type="sqlite", host=f"{tmp_path}/sla.db", extra={}))
    assert store == Store(f"{tmp_path}/warehouse", f"sqlite:///{tmp_path}/sla.db")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_a_generic_connection_gives_the_url_in_its_extra(scheme: str) -> None:
    extra = {"warehouse": "/lake", "database_url": f"{scheme}://sla:secret@db/lake"}
    store = Store.from_connection(connection(conn_type="generic", extra=extra))
    assert store.url.render_as_string() == "postgresql+psycopg2://sla:***@db/lake"


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"conn_type": "postgres"}, "'kafka_sla_store' has no host: set the host of the Postgres server"),
        ({"conn_type": "sqlite"}, "'kafka_sla_store' has no host: set it to the path of the SQLite file"),
        ({"conn_type": "http"}, "'kafka_sla_store' of type 'http' names no database: use type postgres or sqlite"),
        ({"conn_type": "postgres", "host": "db", "extra": {}}, 'names no warehouse: set "warehouse" in its extra'),
        (
            {"conn_type": "postgres", "host": "db", "extra": {"warehouse": "s3://key:secret@bucket/lake"}},
            "holds a key of the object store, .* s3.access-key-id",
        ),
        ({"extra": {"database_url": "mysql://db/lake"}}, "names a mysql database: use Postgres or SQLite"),
        ({"extra": {"database_url": "secret@db"}}, "is no SQLAlchemy URL: write postgresql://"),
    ],
)
def test_a_connection_that_names_no_store_says_what_to_set(fields: dict[str, Any], wrong: str) -> None:
    with pytest.raises(StoreError, match=wrong) as caught:
        Store.from_connection(connection(**fields))
    assert "secret" not in str(caught.value)
