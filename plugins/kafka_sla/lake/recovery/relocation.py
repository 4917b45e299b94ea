"""A store that was moved or copied: Iceberg's files name each other by full paths, so its tables are made anew from the
data files where these are now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.manifest import DataFile
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import TableMetadata
from sqlalchemy import delete, update
from sqlalchemy.orm import Session

from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.files import reached
from kafka_sla.lake.catalogs import elsewhere, own_catalog
from kafka_sla.lake.files.durable_io import DurableFileIO
from kafka_sla.lake.iceberg import paths, planned_files
from kafka_sla.lake.table_layout import MAIN
from kafka_sla.ledger.storage.database import telling

_FILE_PATH = 1
"""Position of the path in a data file."""
MOVING = "_moving"
"""What the name of a table ends in until it takes the place of the old one."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved."""

    tables: int
    files: int


def move(store: Store) -> Moved:
    """Make the tables of the store name the files in its warehouse. A table is switched at once, and what was
    interrupted may be repeated; nobody else may use the store meanwhile."""
    with telling(store.url), reached(store.warehouse):
        catalog = own_catalog(store)
        forget_interrupted(catalog)
        counts = [_move(store, catalog, at) for at in elsewhere(catalog, store)]
    return Moved(len(counts), sum(counts))


def _move(store: Store, catalog: SqlCatalog, metadata_location: str) -> int:
    root, namespace, name, *_ = metadata_location.rsplit("/", 4)
    moved = _Moved(root, store)
    metadata = FromInputFile.table_metadata(moved.new_input(metadata_location))
    table = StaticTable((namespace, name), metadata, metadata_location, moved, NoopCatalog(name))
    branches = {name: moved.files_here(planned_files(table, branch=name)) for name in metadata.refs}
    files = sorted({path for files in branches.values() for path in paths(files)})
    if missing := [path for path in files if not moved.new_input(path).exists()]:
        raise StoreError(
            f"{missing[0]} is not there, as {len(missing)} of {len(files)} files of {name}: copy all of {root} to"
            f" {store.warehouse} first"
        )
    switch(catalog, namespace, name, metadata_location, _anew(store, catalog, namespace, name, metadata, branches))
    return len(files)


def _anew(
    store: Store,
    catalog: SqlCatalog,
    namespace: str,
    name: str,
    metadata: TableMetadata,
    branches: Mapping[str, Sequence[DataFile]],
) -> str:
    """The table with these files on its branches and no history, beside the old one; answers where its metadata is."""
    location = f"{store.warehouse}/{namespace}/{name}"
    empty = metadata.model_copy(
        update={
            "location": location,
            "snapshots": [],
            "current_snapshot_id": None,
            "refs": {},
            "snapshot_log": [],
            "metadata_log": [],
            "statistics": [],
            "partition_statistics": [],
        }
    )
    written = DurableFileIO(catalog.properties).new_output(f"{location}/metadata/00000-{uuid4()}.metadata.json")
    ToOutputFile.table_metadata(empty, written)
    table = catalog.register_table((namespace, name + MOVING), written.location)
    for branch in sorted(branches, key=lambda one: one != MAIN):  # without a snapshot there may be but `main`
        with table.transaction() as transaction, transaction.update_snapshot(branch=branch).fast_append() as snapshot:
            for file in branches[branch]:
                snapshot.append_data_file(file)
    return table.metadata_location


def forget_interrupted(catalog: SqlCatalog) -> None:
    """Forget tables that were to take the place of others and never did."""
    with Session(catalog.engine) as session, session.begin():
        session.execute(delete(IcebergTables).where(IcebergTables.table_name.endswith(MOVING, autoescape=True)))


def switch(catalog: SqlCatalog, namespace: str, name: str, old: str, new: str) -> None:
    """The old table's row leads to the new one's metadata from here on, unless somebody else changed it meanwhile."""
    ours = (IcebergTables.catalog_name == catalog.name, IcebergTables.table_namespace == namespace)
    with Session(catalog.engine) as session, session.begin():
        session.execute(delete(IcebergTables).where(*ours, IcebergTables.table_name == name + MOVING))
        row = (*ours, IcebergTables.table_name == name, IcebergTables.metadata_location == old)
        changed = session.execute(
            update(IcebergTables).where(*row).values(metadata_location=new, previous_metadata_location=None)
        )
        if changed.rowcount != 1:  # type: ignore[attr-defined]
            raise StoreError(f"somebody changed {name} meanwhile: stop what uses the store, and run it again")


class _Moved(PyArrowFileIO):
    """Reads files that were below `root` where they are now."""

    def __init__(self, root: str, store: Store) -> None:
        super().__init__(dict(store.properties))
        self._root, self._warehouse = root, store.warehouse

    def here(self, location: str) -> str:
        inside = location.startswith(f"{self._root}/")
        return self._warehouse + location.removeprefix(self._root) if inside else location

    def files_here(self, files: Sequence[DataFile]) -> list[DataFile]:
        """The files with their paths of now. What is known of them stays: a footer may have a column's former name."""
        for file in files:
            file[_FILE_PATH] = self.here(file.file_path)
        return list(files)

    def new_input(self, location: str) -> PyArrowFile:
        return super().new_input(self.here(location))
