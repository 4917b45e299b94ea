"""A copy of a whole store at one moment, while others go on writing to it: its database first, then the files that this
database knows. Reads no row of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyarrow.fs import copy_files
from pyiceberg.catalog.sql import IcebergTables, SqlCatalogBaseTable
from pyiceberg.table import StaticTable
from sqlalchemy import select

from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.files import bytes_of, entries_of, files_below, make_parent, reached, sync
from kafka_sla.lake.catalogs import own_catalog, require_own
from kafka_sla.lake.iceberg import planned_files, readable
from kafka_sla.lake.recovery.database_copy import copy_database
from kafka_sla.lake.recovery.relocation import move
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.storage.database import telling
from kafka_sla.object_stores import located

_BESIDE = ("reports", "commit_records", "unreadable_commit_records")
"""What lies in a warehouse and no table names."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied."""

    files: int
    bytes: int


def copy_store(source: Store, target: Store, progress: Callable[[str], None] = lambda _: None) -> Copied:
    """Copy a store to where nothing is yet, ready for use there; StoreError where something is. The copy is of the
    moment in which it began, whoever writes to the source meanwhile. Its marker is written last: a copy that was
    interrupted is refused by every command; remove it and begin again."""
    require_own(source)
    Ledger(source).check_place()  # what is elsewhere would be copied to beside its place
    if found := entries_of(target.warehouse):
        raise StoreError(f"{found[0]} is there already: name an empty place for the copy")
    progress("database")
    copy_database(source, target, SqlCatalogBaseTable.metadata)
    files = list(dict.fromkeys([*_named(source, target), *_beside(source)]))
    for number, path in enumerate(files):
        if number % 100 == 0:
            progress(f"{number} of {len(files)} files")
        _copy(path, target.warehouse + path.removeprefix(source.warehouse))
    move(target)
    Ledger(target).open(writing=True)
    return Copied(len(files), bytes_of(target.warehouse + path.removeprefix(source.warehouse) for path in files))


def _named(source: Store, target: Store) -> Iterator[str]:
    """The files that the copied catalog leads to, where they are in the source."""
    with telling(target.url):
        catalog = own_catalog(target)
        with catalog.engine.connect() as connection:
            named = select(IcebergTables.table_name, IcebergTables.metadata_location)
            rows = [(name, location) for name, location in connection.execute(named) if location]
    for name, location in rows:
        with readable(name):
            table = StaticTable.from_metadata(location, dict(source.properties))
            yield location
            for branch, ref in table.metadata.refs.items():
                if snapshot := table.snapshot_by_id(ref.snapshot_id):
                    yield snapshot.manifest_list
                    yield from (manifest.manifest_path for manifest in snapshot.manifests(table.io))
                yield from (file.file_path for file in planned_files(table, branch=branch))


def _beside(source: Store) -> Iterator[str]:
    for folder in _BESIDE:
        yield from sorted(files_below(f"{source.warehouse}/{folder}"))


def _copy(path: str, to: str) -> None:
    (there, inside), (here, place) = located(path), located(to)
    with reached(path):
        make_parent(here, place)
        copy_files(inside, place, source_filesystem=there, destination_filesystem=here)
        sync(to)
