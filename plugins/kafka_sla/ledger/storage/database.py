"""The SQL database as short transactions that survive other processes writing at once."""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import tenacity
from sqlalchemy import (
    URL,
    Column,
    Connection,
    DateTime,
    Delete,
    Dialect,
    Engine,
    Row,
    Select,
    bindparam,
    create_engine,
    func,
    select,
)
from sqlalchemy.exc import DatabaseError, DBAPIError, IntegrityError, InterfaceError, OperationalError, ProgrammingError
from sqlalchemy.pool import StaticPool
from sqlalchemy.types import TypeDecorator

from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.ledger.storage.engine import engine_of, is_read_only, make_folder
from kafka_sla.ledger.storage.schema_migrations import is_current, read_revision, upgrade_schema
from kafka_sla.ledger.storage.sender_lock import hold_sender_lock

_HOPELESS = (
    "authentication failed",
    "no password supplied",
    "does not exist",
    "no pg_hba.conf entry",
    "permission denied",
    "could not translate host name",
    "unable to open database file",
    "readonly database",
    "read-only transaction",
)

log = logging.getLogger(__name__)

T = TypeVar("T")
Columns = TypeVarTuple("Columns")


class UtcTime(TypeDecorator[datetime]):
    """Aware UTC times in any database: SQLite keeps no zone, Postgres answers in the session's."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Database:
    """One SQL database with the tables of a store, which are created or upgraded on first use."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ready = False
        self._views = threading.local()
        self.engine = engine_of(store)
        self._read_only = is_read_only(store)
        self.is_sqlite = self.engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A consistent view: everything that this thread reads inside it is of one moment, over one connection, also
        what functions that are called inside it read."""
        if around := getattr(self._views, "connection", None):
            yield around
            return
        with self._begin_reading() as connection:
            self._views.connection = connection
            try:
                yield connection
            finally:
                del self._views.connection

    @contextmanager
    def _begin_reading(self) -> Iterator[Connection]:
        self.open(writing=False)
        engine = self.engine if self._ready else _empty_engine()
        options = {} if engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
        with (
            self.telling(),
            engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            yield connection

    def rows(self, statement: Select[*Columns]) -> Sequence[Row[*Columns]]:
        """All that one statement finds."""
        with self.reading() as connection:
            return connection.execute(statement).all()

    @contextmanager
    def writing(self, *locks: str) -> Iterator[Connection]:
        """One transaction. Writers that name the same lock run one after the other (on SQLite all writers do); those
        that name several name them in the same order."""
        self.check_writable()
        self.open(writing=True)
        with self._transaction(*locks) as connection:
            yield connection

    @contextmanager
    def sending(self, receiver: str) -> Iterator[None]:
        """While the block runs, no other process or thread sends to this receiver. It is no transaction: everybody can
        read and write meanwhile. A holder that dies releases it."""
        self.check_writable()
        self.open(writing=True)
        with self.telling(), hold_sender_lock(self.engine, receiver):
            yield

    @contextmanager
    def _transaction(self, *locks: str) -> Iterator[Connection]:
        engine = self.engine.execution_options(writes=True)
        with self.telling(), engine.begin() as connection:
            for lock in locks:
                self._lock(connection, lock)
            yield connection

    def check_writable(self) -> None:
        """StoreError at once where only reading is possible."""
        if self._read_only:
            raise StoreError(
                f"the store is read-only here: {self.engine.url.database} or its folder may not be written; what is"
                " published can be read, all else needs a store that may be written"
            )

    def check_integrity(self) -> None:
        """StoreError where SQLite finds its file damaged; Postgres checks its pages itself, where it was told to."""
        if not self.is_sqlite:
            return
        with self.reading() as connection:
            found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        if found != ["ok"]:
            raise StoreError(
                f"the database {self.engine.url.database} is damaged: {'; '.join(found[:3])}; restore a backup of it"
            )

    def _lock(self, connection: Connection, name: str) -> None:
        if not self.is_sqlite:
            connection.execute(select(func.pg_advisory_xact_lock(zlib.crc32(f"kafka_sla {name}".encode()))))

    def telling(self) -> AbstractContextManager[None]:
        """Turns the database's own words into an error for people; see `telling`."""
        return telling(self.engine.url)

    def open(self, *, writing: bool) -> bool:
        """Create or upgrade the tables, and return whether they exist.

        Several processes may do so at once: the first one does the work. Only a writer creates a store that has not
        begun; readers see an empty one.

        Args:
            writing: The caller is about to write.
        """
        if not self._ready and (writing or self._has_tables()):
            make_folder(self._store)
            with self.telling():
                retrying(self._prepare_schema, (OperationalError, ProgrammingError, IntegrityError))
            self._ready = True
        return self._ready

    def _has_tables(self) -> bool:
        """Whether any of the tables is there. Creates nothing, not even the file of a SQLite database."""
        if self.is_sqlite and not Path(str(self._store.url.database)).exists():
            return False

        def look() -> bool:
            with self.engine.connect() as connection:
                return read_revision(connection) is not None

        with self.telling():
            return retrying(look, (OperationalError,))

    def _prepare_schema(self) -> None:
        with self.engine.connect() as connection:
            if is_current(connection):
                return  # without the writers' lock, which this process may hold
        self.check_writable()
        with self.engine.execution_options(writes=True).begin() as connection:
            self._lock(connection, "tables")
            if not is_current(connection):
                upgrade_schema(connection)


@cache
def _empty_engine() -> Engine:
    """An empty database in memory, for readers of a store that has not begun."""
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    with engine.begin() as connection:
        upgrade_schema(connection)
    return engine


def delete_each(connection: Connection, rows: Delete, column: Column[Any], values: Iterable[str | int]) -> None:
    """Delete those of the rows that have one of the values, be they more than a statement can name."""
    if asked := [{"value": value} for value in values]:
        connection.execute(rows.where(column == bindparam("value")), asked)


@contextmanager
def telling(url: URL) -> Iterator[None]:
    """A database that does not answer, refuses or is full becomes a StoreError: where, why, and what to do. Its own
    words hold no password; the statement and its values, which SQLAlchemy adds, are left out."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise StoreError(
            f"the database {url.render_as_string(hide_password=True)} cannot be used: {reason(error)};"
            " check that it runs, its address and login in the connection of the store, and its free space"
        ) from error
    except (IntegrityError, ProgrammingError):  # of a statement of ours, not of what the database holds
        raise
    except DatabaseError as error:
        raise StoreError(
            f"the database {url.render_as_string(hide_password=True)} is damaged, or its tables are of another version:"
            f" {reason(error)}; restore a backup of it"
        ) from error


def reason(error: DBAPIError) -> str:
    """The database's own words."""
    return " ".join(str(error.orig).split())


def _heals(error: BaseException) -> bool:
    """Waiting cures no wrong login and no wrong name."""
    hopeless = isinstance(error, OperationalError) and any(words in str(error.orig) for words in _HOPELESS)
    if not hopeless and isinstance(error, OperationalError):
        log.info("The database is not ready: %s", reason(error))
    return not hopeless


def retrying(attempt: Callable[[], T], errors: tuple[type[Exception], ...], seconds: float = 120) -> T:
    """The result of `attempt`, repeated while it loses races against other processes or the database restarts; twice
    also where one attempt takes longer than that, as in a slow object store."""
    retry = tenacity.Retrying(
        retry=tenacity.retry_all(tenacity.retry_if_exception_type(errors), tenacity.retry_if_exception(_heals)),
        wait=tenacity.wait_random_exponential(multiplier=0.05, max=2),
        stop=tenacity.stop_all(tenacity.stop_after_delay(seconds), tenacity.stop_after_attempt(2)),
        reraise=True,
    )
    return retry(attempt)
