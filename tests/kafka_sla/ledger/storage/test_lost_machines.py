"""A writer whose machine is lost holds its locks for a minute, not for hours: what both sides of a connection are told.
`docs/decisions/networks.md` describes what Linux and Postgres do then."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, text

from kafka_sla.config.store import Store
from kafka_sla.lake.catalogs import own_catalog
from kafka_sla.ledger.storage.database import Database

NAMES = ("keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")
USUAL = ("30", "10", "3", "60000")
TOLD = text("SELECT name FROM pg_settings WHERE name LIKE 'tcp\\_%' AND source = 'session'")
"""A server shows 0 for all of them to clients on its own machine."""


@pytest.fixture
def database() -> str:
    return "postgres"


def client_of(connection: Connection) -> tuple[str | None, ...]:
    """What the client's side heeds."""
    driver: Any = connection.connection.dbapi_connection
    return tuple(driver.info.dsn_parameters.get(name) for name in NAMES)


def server_of(connection: Connection) -> set[str]:
    """What the server's side was told."""
    return set(connection.scalars(TOLD))


def test_whoever_writes_or_reads_and_the_catalog_of_tables_tell_both_sides(store: Store) -> None:
    database = Database(store)
    sides = {"tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout"}

    with database.writing("a lock") as writer, database.reading() as reader, own_catalog(store).engine.begin() as other:
        assert [client_of(each) for each in (writer, reader, other)] == [USUAL] * 3
        assert [server_of(each) for each in (writer, reader, other)] == [sides] * 3


def test_what_the_address_says_holds(store: Store) -> None:
    address = store.url.update_query_dict({"keepalives_idle": "7"})
    asked = Store(store.warehouse, address.render_as_string(hide_password=False))

    with Database(asked).writing() as writer:
        assert client_of(writer) == ("7", *USUAL[1:])
