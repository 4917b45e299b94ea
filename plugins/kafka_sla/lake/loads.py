"""Loads on their way into the tables: their staged files are added, and shown to others once they are published. Knows
who publishes nothing, and reads no rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table import Transaction

from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.files import has_rows, sync
from kafka_sla.lake.iceberg import Iceberg, between, paths, planned_files
from kafka_sla.lake.load_sums import sums_of_load
from kafka_sla.lake.published_view import PublishedView
from kafka_sla.lake.staging import folder_of
from kafka_sla.lake.table_layout import LOADS
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import METRICS, TABLES, Table


@dataclass(frozen=True, slots=True)
class Loads:
    """The loads of one store."""

    store: Store
    iceberg: Iceberg
    ledger: Ledger

    def add(self, load_id: str, interval: Interval, files: Mapping[str, Sequence[str]]) -> list[str]:
        """See `Lake.add_load`."""
        with_rows = {name: [path for path in staged if has_rows(path)] for name, staged in files.items()}
        folder = folder_of(self.store, load_id)
        for name, staged in with_rows.items():
            if strangers := [path for path in staged if not path.startswith(f"{folder}/")]:
                raise StoreError(f"load {load_id}: {strangers[0]} is not in its folder {folder}")
            try:
                if staged:
                    self._add_files(TABLES[name], interval, staged)
            except ValueError as error:
                raise StoreError(
                    f"load {load_id} of {interval}: {name} does not take its staged files: {error}. Measure it again"
                ) from error
        self.ledger.load_sums.put(load_id, sums_of_load(load_id, interval, with_rows))
        return [name for name, staged in with_rows.items() if staged]

    def show(self, interval: Interval, names: Collection[str]) -> None:
        """See `Lake.show`."""
        alone = len(self.ledger.publications.extents(interval)) == 1
        tables = [table for table in METRICS if table.name in names or not alone]
        PublishedView(self.store, self.iceberg, self.ledger).update(interval, tables)

    def _add_files(self, table: Table, interval: Interval, staged: Sequence[str]) -> None:
        def change(current: IcebergTable, transaction: Transaction) -> None:
            same = between("interval_start", interval.start, interval.start, inclusive=True)
            there = set(paths(planned_files(current, same, branch=LOADS)))
            if new := [path for path in staged if path not in there]:
                for path in new:
                    sync(path)
                transaction.add_files(new, check_duplicate_files=False, branch=LOADS)

        self.iceberg.commit(table, change)
