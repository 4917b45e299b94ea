"""An empty store for each test that asks for one, in SQLite; in `ledger`, which writes the SQL, and where a module asks
for it, in Postgres too. Rows that a query puts into no order come from SQLite in the opposite of the usual one."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event, make_url, text
from sqlalchemy.pool import NullPool

from demo.postgres import postgres
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from tests.kafka_sla import own_folder

_NUMBERS = itertools.count(1)
_SEND_AWAY = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name")


@pytest.fixture(autouse=True, scope="session")
def no_order_by_chance() -> Iterator[None]:
    """What depends on an order that no query asks for fails."""

    def reverse(connection: Any, _: Any) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA reverse_unordered_selects = ON")

    event.listen(Engine, "connect", reverse)
    yield
    event.remove(Engine, "connect", reverse)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Not below pytest's own folder: where root tests, Postgres runs as another user, from whom the next session of
    pytest takes the right to look into it."""
    with TemporaryDirectory() as folder, postgres(Path(folder) / "data", durable=False) as urls:
        yield urls["kafka_sla"]


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder is empty, and the environment names no configuration, no store and no connection."""
    own_folder.enter(tmp_path, monkeypatch)


@pytest.fixture
def database() -> str:
    """Of the store: `databases.in_each` takes each of those that there are."""
    return "sqlite"


@pytest.fixture
def store(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Its warehouse is a folder."""
    if database == "sqlite":
        yield Store.embedded(tmp_path)
        return
    server = request.getfixturevalue("postgres_url")
    with _empty_database(server) as url:
        yield Store(str(tmp_path / "warehouse"), url)


@pytest.fixture
def ledger(store: Store) -> Ledger:
    opened = Ledger(store)
    opened.open(writing=True)
    return opened


@pytest.fixture
def lake(store: Store, ledger: Ledger) -> Lake:
    return Lake(store)


@contextmanager
def _empty_database(server: str) -> Iterator[str]:
    """Its address. Whoever is connected to it in the end is sent away: pools that nobody has collected yet would hold
    connections until the server has none left for the tests to come."""
    name = f"test_{next(_NUMBERS)}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield make_url(server).set(database=name).render_as_string(hide_password=False)
    with engine.connect() as connection:
        connection.execute(_SEND_AWAY, {"name": name})
