"""How the store's database is connected to: waits for other writers, and ends with a machine that is lost."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.pool import NullPool

from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError

_BUSY_SECONDS = 60
"""How long a SQLite writer waits for the one before it."""
_LOST = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""Of libpq, where the store's address does not say otherwise: who is connected to a machine that was lost, or cut off,
notices within a minute. Systems take two hours, and a server keeps the locks of a lost writer as long."""
_OF_SERVER = text(
    "SELECT set_config('tcp_keepalives_idle', :keepalives_idle, true),"
    " set_config('tcp_keepalives_interval', :keepalives_interval, true),"
    " set_config('tcp_keepalives_count', :keepalives_count, true),"
    " set_config('tcp_user_timeout', :tcp_user_timeout, true)"
)
"""The same for the server's side of the connection."""


def engine_of(store: Store) -> Engine:
    """Of the database, which nobody connects to yet; StoreError where no file is named that could hold it."""
    url = address(store)
    if url.get_backend_name() != "sqlite":
        engine = create_engine(url, poolclass=NullPool)
        notice_lost_machines(engine)
        return engine
    if not url.database:
        raise StoreError("an in-memory SQLite database is lost between processes: name a file")
    engine = create_engine(url, poolclass=NullPool)
    event.listen(engine, "connect", _unguided if is_read_only(store) else _on_sqlite_connect)
    event.listen(engine, "begin", _on_sqlite_begin)
    return engine


def make_folder(store: Store) -> None:
    """The one in which SQLite makes the file of the database; StoreError where that is not possible."""
    if store.url.get_backend_name() != "sqlite":
        return
    file = Path(store.url.database or "")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"no folder can be made for the database {file}: {error.strerror}; check it") from error


def is_read_only(store: Store) -> bool:
    """Is it a SQLite file that this process may only read?"""
    if store.url.get_backend_name() != "sqlite" or not Path(store.url.database or "").exists():
        return False
    path = Path(store.url.database or "")
    return not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def address(store: Store) -> URL:
    """Of the database, with what its driver has to know."""
    url = store.url
    if url.get_backend_name() == "sqlite":
        return _sqlite_address(store)
    return url.update_query_dict({name: value for name, value in _LOST.items() if name not in url.query})


def notice_lost_machines(engine: Engine) -> None:
    """Has Postgres end the transactions of a client whose machine is lost as soon as the client would notice the loss
    of the server. Of SQLite there is no other machine."""
    if engine.dialect.name == "sqlite":
        return
    times = {name: engine.url.query[name] for name in _LOST}

    def tell(connection: Connection) -> None:
        connection.execute(_OF_SERVER, times)

    event.listen(engine, "begin", tell)


def _sqlite_address(store: Store) -> URL:
    """Waits for other writers. Read-only, SQLite cannot make the files beside that tell readers of writers, so without
    them there is none, and it reads the file as one that nobody changes."""
    url = store.url.update_query_dict({"timeout": str(_BUSY_SECONDS)})
    if not is_read_only(store):
        return url
    alone = not Path(f"{url.database}-wal").exists()
    url = url.set(database=f"file:{quote(url.database or '')}")
    return url.update_query_dict({"uri": "true", "mode": "ro"} | ({"immutable": "1"} if alone else {}))


def _unguided(connection: sqlite3.Connection, _: Any) -> None:
    """Take transactions from the driver's hands."""
    connection.isolation_level = None


def _on_sqlite_connect(connection: sqlite3.Connection, _: Any) -> None:
    """The same, and let readers go on while somebody writes."""
    _unguided(connection, _)
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:  # the switch to WAL does not wait for others, unlike every other statement
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _on_sqlite_begin(connection: Connection) -> None:
    """A writer takes the lock before it reads: a reader that turns writer later would be refused at once."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
