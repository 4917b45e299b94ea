"""The catalog that names a store's Iceberg tables: the store's own database, or another one that PyIceberg can
reach."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, OAuthError, RESTError
from requests import RequestException
from sqlalchemy import select

from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.lake.files.durable_io import DurableFileIO
from kafka_sla.lake.table_layout import NAMESPACE
from kafka_sla.ledger.storage.engine import address, notice_lost_machines
from kafka_sla.ledger.storage.store_identity import outside

_UNREACHED = (RESTError, OAuthError, NoSuchNamespaceError, RequestException)
"""What catalogs behind a server raise when they do not answer, refuse, or do not say whether they have committed."""


def connect(store: Store) -> Catalog:
    """The catalog of a store, wherever its tables are."""
    if not store.catalog:
        return own_catalog(store)
    with reached_catalog(store):
        return load_catalog(NAMESPACE, **_files(store), **dict(store.catalog))


def own_catalog(store: Store) -> SqlCatalog:
    """The one in the store's database; StoreError where the tables are in another one."""
    require_own(store)
    uri = address(store).render_as_string(hide_password=False)
    catalog = SqlCatalog(NAMESPACE, uri=uri, warehouse=store.warehouse, pool_pre_ping="true", **_files(store))
    notice_lost_machines(catalog.engine)
    return catalog


def require_own(store: Store) -> None:
    """StoreError where the tables are not in the catalog of the store's database."""
    if store.catalog:
        raise StoreError(
            f"the tables of this store are in the {store.catalog_name}: only tables whose catalog is the store's own"
            " database can be copied, moved or made anew here; do that with the catalog's own means"
        )


def elsewhere(catalog: Catalog, store: Store) -> list[str]:
    """The metadata of tables of the store's database that are not in its warehouse."""
    if not isinstance(catalog, SqlCatalog):
        return []
    ours = select(IcebergTables.metadata_location).where(IcebergTables.catalog_name == NAMESPACE)
    with catalog.engine.connect() as connection:
        places = sorted(filter(None, connection.scalars(ours.order_by(IcebergTables.table_name))))
    return outside(store.warehouse, places)


@contextmanager
def reached_catalog(store: Store) -> Iterator[None]:
    """StoreError where the catalog does not answer, or not as one does."""
    try:
        yield
    except _UNREACHED as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise StoreError(
            f"the {store.catalog_name} does not answer as it should ({said}): make it reachable, or correct `catalog`"
            " in the extra of the store's connection, and run it again"
        ) from error


def _files(store: Store) -> dict[str, str]:
    """How the files of tables are reached."""
    return {"py-io-impl": f"{DurableFileIO.__module__}.{DurableFileIO.__qualname__}", **dict(store.properties)}
