"""Creates and upgrades the SQL tables of a store with Alembic. The revisions are in `migrations/versions`."""

from __future__ import annotations

import threading

from sqlalchemy import Connection, inspect, text

from kafka_sla.errors import StoreError

HEAD = "0001"
"""The newest revision. A test compares it with the newest file in `migrations/versions`."""
VERSION_TABLE = "kafka_sla_schema_version"
"""Airflow keeps its own revision in `alembic_version`; both may share a database."""
_MIGRATING = threading.Lock()
"""Alembic keeps the environment of a migration in a global variable."""


def is_current(connection: Connection) -> bool:
    """Whether the database has the tables of this version. Does not import Alembic, which takes a tenth of a second."""
    return read_revision(connection) == HEAD


def read_revision(connection: Connection) -> str | None:
    """The revision of the tables in the database; None if it has no tables of a store."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one_or_none()


def upgrade_schema(connection: Connection) -> None:
    """Create the tables, or upgrade them to the newest revision, in the transaction of the connection.

    Raises:
        StoreError: A newer version of kafka-sla wrote the tables.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", "kafka_sla.ledger.storage:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        with _MIGRATING:
            command.upgrade(config, "head")
    except CommandError as error:
        raise StoreError(
            f"the tables in {connection.engine.url.render_as_string(hide_password=True)} have revision"
            f" {read_revision(connection)}, which this version of kafka-sla does not know: a newer version wrote them;"
            " install that version, or restore a backup"
        ) from error
