"""Mending the files of a damaged store: what is damaged leaves its table for the trash, and a table that cannot be read
is made anew from its files. Measures nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table import Transaction
from sqlalchemy import select
from sqlalchemy.orm import Session

from kafka_sla.config.store import Store
from kafka_sla.errors import DamagedFile, StoreError
from kafka_sla.files import has_rows, move_files, reached, rows_in
from kafka_sla.lake.catalogs import own_catalog
from kafka_sla.lake.fact_days import files_of_day, pieces_of, rewritten
from kafka_sla.lake.iceberg import Iceberg, planned_files, replace_files
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.published_view import PublishedView
from kafka_sla.lake.recovery.damage import Damage
from kafka_sla.lake.recovery.relocation import MOVING, forget_interrupted, switch
from kafka_sla.lake.staging import folder_of, parquet_below
from kafka_sla.lake.table_layout import NAMESPACE, branch_of, location_of, new_table, with_loads
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.storage.database import telling
from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import EVERYTHING, Interval
from kafka_sla.model.tables import METRICS, TABLES, Table
from kafka_sla.parquet_files import batches, damaged, parquet_file


class Repair:
    """What mends one store. Nobody else may use it meanwhile; each step may be killed and repeated."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ledger = Ledger(store)
        self._iceberg = Iceberg(store, self._ledger.open)
        self._trash = f"{store.warehouse}/trash/{datetime.now(UTC):%Y%m%dT%H%M%SZ}"

    def tables(self, damages: Iterable[Damage]) -> int:
        """Make unreadable tables anew and take damaged facts out of theirs; answers how many of those facts could still
        be read, and are kept."""
        kept = 0
        for damage in sorted(damages, key=lambda one: one.kind != "catalog"):
            if damage.kind == "catalog":
                self._rebuild(TABLES[damage.table])
            elif damage.kind == "facts":
                kept += self._replace_facts(TABLES[damage.table], damage.where)
        self._show()
        self._ledger.advance()
        return kept

    def drop_loads(self, load_ids: Collection[str]) -> None:
        """Take the files of these loads out of their tables, into the trash. What of them is still shown, because it
        was not measured again, is published no more."""
        self._ledger.publications.withdraw(load_ids)
        self._show()
        folders = [folder_of(self._store, load_id) for load_id in load_ids]
        for table in METRICS if folders else ():
            self._take_out(table, tuple(f"{folder}/" for folder in folders))
        self._to_trash(path for folder in folders for path in parquet_below(folder))
        self._ledger.load_sums.drop(load_ids)
        self._ledger.advance()

    def _show(self) -> None:
        PublishedView(self._store, self._iceberg, self._ledger).update()

    def _replace_facts(self, table: Table, path: str) -> int:
        """Take a damaged file out of its table, and put in again what of it can still be read."""
        rows = _readable_rows(table, path)
        self._take_out(table, (path,))
        self._to_trash([path])
        return Lake(self._store).append_facts(table, rows) if rows is not None else 0

    def _rebuild(self, table: Table) -> None:
        """Make a table anew that names the readable files of its folder; switched in one statement."""
        files = self._facts_anew(table) if table.kind == "fact" else self._published(table)
        with telling(self._store.url), reached(self._store.warehouse):
            catalog = own_catalog(self._store)
            forget_interrupted(catalog)
            name = (NAMESPACE, table.name + MOVING)
            made = new_table(catalog, name, table, location_of(self._store.warehouse, table))
            if files:
                with with_loads(made, table).transaction() as transaction:
                    transaction.add_files(files, check_duplicate_files=False, branch=branch_of(table))
            new = catalog.load_table(name).metadata_location
            switch(catalog, NAMESPACE, table.name, _location(catalog, table), new)

    def _facts_anew(self, table: Table) -> list[str]:
        """All facts that lie in the table's folder, few files a day, each once: the folder also holds files that others
        took the place of."""
        folder, days = f"{self._store.warehouse}/facts/{table.name}", defaultdict(list)
        for path in parquet_below(folder):
            days[path.removeprefix(folder).split("/")[1]].append(path)
        written = []
        for day in sorted(days):
            readable = sorted(set(days[day]) - set(damaged(days[day])))
            pieces = [*pieces_of(_day(day), files_of_day(sum(map(rows_in, readable))))]
            pieces[0] = replace(
                pieces[0], start=EVERYTHING.start
            )  # whoever put a file there may have taken the wrong day
            pieces[-1] = replace(pieces[-1], end=EVERYTHING.end)
            written += rewritten(table, folder, pieces, _always(readable))
        return written

    def _published(self, table: Table) -> list[str]:
        """The files of the loads that are shown; a damaged one is found by the next look."""
        loads = {one.load_id for one in self._ledger.publications.slices(None, EVERYTHING)}
        files = [path for load_id in sorted(loads) for path in parquet_below(folder_of(self._store, load_id, table))]
        wrong = set(damaged(files))
        there = [path for path in files if path not in wrong and has_rows(path)]
        return sorted(set(there))

    def _take_out(self, table: Table, beginnings: tuple[str, ...]) -> None:
        """Take the files whose paths begin so out of the table."""

        def change(current: IcebergTable, transaction: Transaction) -> None:
            branch = branch_of(table)
            files = [f for f in planned_files(current, branch=branch) if f.file_path.startswith(beginnings)]
            replace_files(transaction, files, [], branch)

        self._iceberg.commit(table, change)

    def _to_trash(self, files: Iterable[str]) -> None:
        move_files(files, self._store.warehouse, self._trash)


def _location(catalog: SqlCatalog, table: Table) -> str:
    """Where the catalog's row of the table leads to."""
    row = select(IcebergTables.metadata_location).where(
        IcebergTables.catalog_name == catalog.name, IcebergTables.table_name == table.name
    )
    with Session(catalog.engine) as session:
        found = session.execute(row).scalar_one_or_none()
    if found is None:
        raise StoreError(f"the catalog has no row of the table {table.name}: restore a backup of the database")
    return str(found)


def _readable_rows(table: Table, path: str) -> pa.Table | None:
    """The rows of the row groups that are as they were written; None where not even the footer can be read."""
    found: list[pa.RecordBatch] = []
    group, groups = 0, 1
    while group < groups:
        try:
            with parquet_file(path) as file:
                groups = file.num_row_groups
                found += list(batches(file, groups=[group]))
        except (DamagedFile, StoreError):
            pass
        group += 1
    if not found:
        return None
    rows = pa.Table.from_batches(found)
    return pa.concat_tables([arrow_schema(table).empty_table(), rows], promote_options="default")


def _day(folder: str) -> Interval:
    """What a folder of facts may have rows of, by its name."""
    try:
        start = datetime.fromisoformat(folder).replace(tzinfo=UTC)
    except ValueError:  # nobody of us gave it that name
        return EVERYTHING
    return Interval(start, start + timedelta(days=1))


def _always(files: Sequence[str]) -> Callable[[Interval], Sequence[str]]:
    """Of no file there is known of which time it has rows."""
    return lambda _: files
