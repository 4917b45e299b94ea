"""Where tables and state are kept: a warehouse of files and a SQL database."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from kafka_sla import object_stores
from kafka_sla.errors import StoreError
from kafka_sla.model.entities import Connection

_POSTGRES = ("postgres", "postgresql")
_OF_LIBPQ = (
    *("application_name", "channel_binding", "connect_timeout", "gss", "keepalives", "krbsrvname", "load_balance"),
    *("options", "passfile", "require_auth", "ssl", "target_session_attrs", "tcp_user_timeout"),
)
"""How the settings begin that a connection's extra may have for the driver."""
_TOKENS = {"iam": "AWS", "azure_conn_id": "Azure"}
"""Keys by which Airflow's Postgres provider is told to log in with a token, and whose."""
_CATALOGS = ("rest", "glue", "hive", "dynamodb", "bigquery")
"""PyIceberg's types of catalogs that several processes may use, besides the store's own database."""


@dataclass(frozen=True, slots=True)
class Store:
    """A warehouse (folder path or URI) and the SQLAlchemy URL of the database, kept out of the repr, as are the
    properties by which the warehouse is reached (PyIceberg's names and values)."""

    warehouse: str
    database_url: str = field(repr=False)
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    catalog: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """PyIceberg's properties of the catalog that names the tables; empty: the database does."""

    @property
    def url(self) -> URL:
        """The database's URL with the driver that is installed; its own repr hides the password."""
        url = make_url(self.database_url)
        return url.set(drivername="postgresql+psycopg2") if url.drivername in _POSTGRES else url

    @property
    def archive(self) -> str:
        """Where pages are kept for people: no table refers to them, and no tidying touches them."""
        return f"{self.warehouse}/reports"

    @property
    def catalog_name(self) -> str:
        """For people; empty where it is the database."""
        known = dict(self.catalog)
        return f"{known['type']} catalog {known.get('uri', '')}".rstrip() if known else ""

    @classmethod
    def embedded(cls, folder: Path) -> Store:
        """A store in one folder, with nothing else running."""
        folder = Path(folder).absolute()
        return cls(str(folder / "warehouse"), f"sqlite:///{folder / 'kafka_sla.db'}")

    @classmethod
    def from_connection(cls, connection: Connection) -> Store:
        """The store that a connection of type postgres, sqlite or generic names; `warehouse` is in its extra, where a
        `database_url` goes before the other fields and a `catalog` may name the tables. From here on the process
        reaches the warehouse's files with the endpoint, region and credentials that the extra names."""
        url = _database_url(connection)
        warehouse = connection.extra.get("warehouse")
        if not warehouse and url.get_backend_name() == "sqlite" and url.database:
            warehouse = str(Path(url.database).absolute().parent / "warehouse")
        if not warehouse:
            raise StoreError(
                f"connection {connection.id!r} names no warehouse: "
                'set "warehouse" in its extra to a folder or URI that all workers share'
            )
        if "://" in str(warehouse) and urlsplit(str(warehouse)).password:
            raise StoreError(
                f"the warehouse of connection {connection.id!r} holds a key of the object store, which would show in"
                " paths, logs and process lists: take it out of the address, and put login and key in the extra under"
                " PyIceberg's names, such as s3.access-key-id, or give all workers a role"
            )
        place = _absolute(str(warehouse))
        properties = object_stores.completed(place, _properties(connection.extra))
        if "://" in place:
            object_stores.remember(place, properties)
        address = url.render_as_string(hide_password=False)
        return cls(place, address, tuple(sorted(properties.items())), _catalog(connection))


def _absolute(warehouse: str) -> str:
    """A folder as its path, also where it is written as a URI: paths are compared as texts."""
    if warehouse.startswith("file:"):
        warehouse = unquote(urlsplit(warehouse).path)
    return warehouse.rstrip("/") if "://" in warehouse else str(Path(warehouse).absolute())


def _properties(extra: dict[str, Any]) -> dict[str, str]:
    named = {key: value for key, value in extra.items() if key.startswith(object_stores.PROPERTIES)}
    return _texts(named)


def _catalog(connection: Connection) -> tuple[tuple[str, str], ...]:
    given = connection.extra.get("catalog")
    if not given:
        return ()
    where = f'"catalog" in the extra of connection {connection.id!r}'
    if not isinstance(given, dict) or given.get("type") not in _CATALOGS:
        raise StoreError(
            f'{where} needs a "type"; allowed: {", ".join(_CATALOGS)}; left out, the store\'s database is the catalog'
        )
    if urlsplit(str(given.get("uri", ""))).password:
        raise StoreError(
            f"{where} holds a password in its uri, which would show in logs: put it under PyIceberg's names, such as"
            " token or credential"
        )
    return tuple(sorted(_texts(given).items()))


def _texts(properties: dict[str, Any]) -> dict[str, str]:
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in properties.items()}


def _database_url(connection: Connection) -> URL:
    extra: dict[str, Any] = connection.extra
    if extra.get("database_url"):
        return _checked(connection.id, str(extra["database_url"]))
    if connection.conn_type in _POSTGRES:
        return _postgres_url(connection)
    if connection.conn_type == "sqlite":
        return _sqlite_url(connection)
    raise StoreError(
        f"connection {connection.id!r} of type {connection.conn_type!r} names no database: "
        'use type postgres or sqlite, or set "database_url" in its extra to a SQLAlchemy URL'
    )


def _postgres_url(connection: Connection) -> URL:
    if not connection.host:
        raise StoreError(f"connection {connection.id!r} has no host: set the host of the Postgres server")
    for key in _TOKENS.keys() & {name for name, value in connection.extra.items() if _is_on(value)}:
        raise StoreError(
            f"connection {connection.id!r} wants to log in with a token of {_TOKENS[key]} ({key!r} in its extra), which"
            " the store cannot get: give it a login with a password or a certificate, and take this key out"
        )
    return URL.create(
        "postgresql+psycopg2",
        username=connection.login,
        password=connection.password,
        host=connection.host,
        port=connection.port,
        database=connection.schema or "postgres",
        query={k: str(v) for k, v in connection.extra.items() if k.startswith(_OF_LIBPQ)},
    )


def _is_on(value: Any) -> bool:
    return bool(value) and str(value).lower() not in ("false", "0", "no", "off")


def _sqlite_url(connection: Connection) -> URL:
    path = connection.host or connection.schema
    if not path:
        raise StoreError(f"connection {connection.id!r} has no host: set it to the path of the SQLite file")
    return URL.create("sqlite", database=str(Path(path).absolute()))


def _checked(connection_id: str, text: str) -> URL:
    """The URL as SQLAlchemy wants it; the text itself may hold a password and is not repeated in the error."""
    try:
        url = make_url(text)
    except ArgumentError:
        raise StoreError(
            f'"database_url" in the extra of connection {connection_id!r} is no SQLAlchemy URL: '
            "write postgresql://login:password@host:5432/database or sqlite:////path/file.db"
        ) from None
    if url.drivername == "postgres":
        url = url.set(drivername="postgresql")
    if url.get_backend_name() not in ("postgresql", "sqlite"):
        raise StoreError(
            f"connection {connection_id!r} names a {url.get_backend_name()} database: use Postgres or SQLite"
        )
    return url
