"""What other engines read: the branch `main` of each metric table shows the published rows, each once. Knows which
load is published where, nothing of what the rows say.

All loads, published or not, are on a branch of their own, `loads`, from which we read by publication. A load that is
published as a whole appears on `main` by its own files; of one that newer loads replaced in part, what is left is
written anew.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table import Transaction

from kafka_sla.config.store import Store
from kafka_sla.files import sizes_of, write_rows
from kafka_sla.lake.duckdb_reader import slice_rows
from kafka_sla.lake.iceberg import Iceberg, between, paths, planned_files, replace_files
from kafka_sla.lake.staging import load_of
from kafka_sla.lake.table_layout import LOADS, MAIN
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.publications import LoadExtent, Slice, by_load
from kafka_sla.model.arrow_schemas import of_load
from kafka_sla.model.entities import EVERYTHING, Interval, hull
from kafka_sla.model.tables import METRICS, Table

_AT_ONCE = 4
"""Tables brought up to date side by side: a commit waits for disk or network most of its time."""


@dataclass(frozen=True, slots=True)
class PublishedView:
    """`main` of all metric tables of one store."""

    store: Store
    iceberg: Iceberg
    ledger: Ledger

    def update(self, interval: Interval | None = None, tables: Sequence[Table] = METRICS) -> int:
        """Make `main` show what is published of the loads that touch the interval (None: of all); answers how many
        files changed. Safe to repeat and to race: what is published is asked for anew for each commit."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return sum(pool.map(lambda table: self._update(table, interval), tables))

    def _update(self, table: Table, interval: Interval | None) -> int:
        def change(current: IcebergTable, transaction: Transaction) -> int:
            extents = self.ledger.publications.extents(interval or EVERYTHING)
            if not extents:
                return 0
            starts = [extent.interval.start for extent in extents.values()]
            near = between("interval_start", min(starts), max(starts), inclusive=True) if interval else ""
            shown = {
                file.file_path: file
                for file in planned_files(current, near)
                if interval is None or _load_of(file) in extents
            }
            wanted = self._wanted(current, table, extents, near, shown)
            gone = [file for path, file in shown.items() if path not in wanted]
            new = [file for path, file in wanted.items() if path not in shown]
            replace_files(transaction, gone, new, MAIN)
            return len(gone) + len(new)

        return self.iceberg.commit(table, change)

    def _wanted(
        self,
        current: IcebergTable,
        table: Table,
        extents: Mapping[str, LoadExtent],
        near: str,
        shown: Mapping[str, DataFile],
    ) -> dict[str, DataFile]:
        """The files that show what is published of these loads."""
        slices = by_load(self.ledger.publications.slices(None, hull(e.interval for e in extents.values())))
        staged: dict[str, list[DataFile]] = defaultdict(list)
        for file in planned_files(current, near, branch=LOADS):
            staged[_load_of(file)].append(file)
        wanted: dict[str, DataFile] = {}
        for load_id, extent in extents.items():
            visible = slices.get(load_id, [])
            if visible and extent.is_all_of(visible):
                wanted |= {file.file_path: file for file in staged[load_id]}
            elif visible and staged[load_id]:
                wanted |= self._rest(current, table, staged[load_id], visible, shown)
        return wanted

    def _rest(
        self,
        current: IcebergTable,
        table: Table,
        staged: Sequence[DataFile],
        visible: Sequence[Slice],
        shown: Mapping[str, DataFile],
    ) -> dict[str, DataFile]:
        """One file with the rows of a load that newer loads have left, named after which these are."""
        load_id = visible[0].load_id
        digest = hashlib.sha256(repr(sorted(visible)).encode()).hexdigest()[:16]
        path = f"{self.store.warehouse}/published/{table.name}/{load_id}-{digest}.parquet"
        if path in shown:
            return {path: shown[path]}
        if not any(sizes_of([path])):
            rows = slice_rows(table, paths(staged), visible, table.names)
            if not rows.num_rows:
                return {}
            write_rows(path, of_load(table, rows, load_id, _start_of(staged[0])))
        return {path: parquet_file_to_data_file(current.io, current.metadata, path)}


def _start_of(file: DataFile) -> datetime:
    """Start of the load's interval."""
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(file.partition[0]))


def _load_of(file: DataFile) -> str:
    """Of a staged file, or of `…/published/<table>/<load>-<rest>.parquet`."""
    _, folder, _, name = file.file_path.rsplit("/", 3)
    return name.rpartition("-")[0] if folder == "published" else load_of(file.file_path)
