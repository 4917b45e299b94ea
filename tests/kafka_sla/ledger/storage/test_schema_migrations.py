"""Alembic creates and upgrades the SQL tables of a store, in SQLite and in Postgres."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text

from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.storage.schema import METADATA
from kafka_sla.ledger.storage.schema_migrations import HEAD, VERSION_TABLE
from tests.kafka_sla.loads import span

STORED_1_0 = Path(__file__).with_name("database_1_0.sql")
"""A dump of the SQLite database that version 1.0 writes, with one publication."""


def publish(store: Store, load_id: str) -> None:
    Ledger(store).publications.publish(["prod"], span("10:00", "10:05"), load_id, 0)


def execute(store: Store, *statements: str) -> None:
    engine = create_engine(store.url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def schema_differences(store: Store) -> list[object]:
    """What Alembic would have to change for the database to match the declared tables."""
    engine = create_engine(store.url)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"include_object": lambda _, name, kind, *__: kind != "table" or name in METADATA.tables}
        )
        differences = compare_metadata(context, METADATA)
    engine.dispose()
    return [*differences]


def test_a_new_store_has_exactly_the_declared_tables(store: Store) -> None:
    publish(store, "load")

    assert schema_differences(store) == []


def test_the_head_constant_is_the_newest_revision() -> None:
    config = Config()
    config.set_main_option("script_location", "kafka_sla.ledger.storage:migrations")
    config.set_main_option("path_separator", "os")

    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_a_stored_1_0_database_is_upgraded_and_keeps_its_rows(tmp_path: Path) -> None:
    import sqlite3

    store = Store.embedded(tmp_path / "store")
    Path(str(store.url.database)).parent.mkdir(parents=True)
    with sqlite3.connect(str(store.url.database)) as connection:
        connection.executescript(STORED_1_0.read_text())
    connection.close()

    slices = Ledger(store).publications.slices(["prod"], span("10:00", "10:05"))

    assert [published.load_id for published in slices] == ["load-of-1.0"]
    assert schema_differences(store) == []


def test_processes_that_start_at_once_create_the_tables_once(store: Store) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: publish(store, f"load-{number}"), range(4)))

    assert schema_differences(store) == []


def test_tables_of_a_newer_version_are_refused(store: Store) -> None:
    publish(store, "load")
    execute(store, f"UPDATE {VERSION_TABLE} SET version_num = '9999'")

    with pytest.raises(StoreError, match="have revision 9999, which this version of kafka-sla does not know"):
        Ledger(store).publications.slices(None, span("10:00", "11:00"))
