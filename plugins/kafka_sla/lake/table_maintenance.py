"""Tidying the table store: what no reader can need any more goes, small fact files become large ones. Never touches
what a reader who began within the grace period may still open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table import Transaction
from pyiceberg.table.update.snapshot import ExpireSnapshots

from kafka_sla.config.store import Store
from kafka_sla.files import files_below
from kafka_sla.lake.fact_days import day_of, files_of_day, pieces_of, rewritten
from kafka_sla.lake.iceberg import Iceberg, between, paths, planned_files, replace_files
from kafka_sla.lake.load_merging import LoadMerging
from kafka_sla.lake.published_view import PublishedView
from kafka_sla.lake.sweep import Sweep
from kafka_sla.lake.table_layout import LOADS, MAIN
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, floor_time
from kafka_sla.model.tables import FACTS, METRICS, Table
from kafka_sla.sla.rollups import DAY_MS

_SMALL_FILES = 8
"""A day of facts in at least so many files is rewritten as one; of more rows than one should have, as few."""
_WINDOWS_KEPT = timedelta(days=40)
"""How long judged windows are rows before their days are packed: a report of last month reads rows."""


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """What one maintenance did."""

    merged_loads: int
    dropped_loads: int
    compacted_files: int
    expired_snapshots: int
    trashed_files: int
    deleted_files: int
    packed_days: int


@dataclass(frozen=True, slots=True)
class TableMaintenance:
    """A load retired or a snapshot replaced before `readers_gone` has no reader any more; a load that was never
    published and not written to since `abandoned` never will be; trash older than `unmissed` is deleted."""

    store: Store
    iceberg: Iceberg
    ledger: Ledger
    now: datetime
    readers_gone: datetime
    abandoned: datetime
    unmissed: datetime
    fewest: int
    """Loads of a day that become one."""
    rows_a_file: int
    """Of a day's facts."""

    def run(self) -> MaintenanceResult:
        """Show what is published, merge and drop loads, compact facts, expire snapshots, pack
        judged windows, sweep files: in this order;
        each may be killed and repeated."""
        self.ledger.ingestions.renumber_stale(self.abandoned)
        PublishedView(self.store, self.iceberg, self.ledger).update()
        merged = LoadMerging(self.store, self.iceberg, self.ledger, self.fewest).run(self.readers_gone)
        dead = self._dead_loads()
        dropped = sum(self._drop(table, dead) for table in METRICS)
        self.ledger.load_sums.drop(dead)
        compacted = sum(self._compact(table) for table in FACTS)
        expired = sum(self._expire(table) for table in (*FACTS, *METRICS))
        self._forget()
        packed = self.ledger.verdicts.pack(floor_time(self.now, DAY_MS) - _WINDOWS_KEPT)
        self.ledger.advance()
        return MaintenanceResult(merged, len(dead) if dropped else 0, compacted, expired, *self._sweep(), packed)

    def _dead_loads(self) -> set[str]:
        staged = self._staged_loads()
        unpublished = set(staged) - self.ledger.publications.known_loads(list(staged))
        return set(self.ledger.publications.retired_loads(self.readers_gone)) & set(staged) | {
            load_id for load_id in unpublished if staged[load_id] < self.abandoned
        }

    def _forget(self) -> None:
        """Loads whose files are gone, and that their expectations held."""
        staged = self._staged_loads()
        self.ledger.validations.forget_held(self.ledger.publications.forget_retired(self.unmissed, staged))

    def _staged_loads(self) -> dict[str, datetime]:
        """Loads that have a folder, and when it was last written to."""
        written: dict[str, datetime] = {}
        for path, at in files_below(self._staging).items():
            load_id = self._load_of(path)
            written[load_id] = max(at, written.get(load_id, at))
        return written

    def _drop(self, table: Table, load_ids: Collection[str]) -> int:
        """Take the files of these loads out of the table."""
        folders = tuple(f"{self._staging}{load_id}/" for load_id in load_ids)

        def change(current: IcebergTable, transaction: Transaction) -> int:
            dead = [f for f in planned_files(current, branch=LOADS) if f.file_path.startswith(folders)]
            replace_files(transaction, dead, [], LOADS)
            return len(dead)

        return self.iceberg.commit(table, change) if folders else 0

    def _compact(self, table: Table) -> int:
        days: dict[Interval | None, list[DataFile]] = defaultdict(list)
        for file in planned_files(self.iceberg.table(table)):
            days[day_of(file.partition[0])].append(file)
        return sum(
            self._compact_day(table, day)
            for day, files in days.items()
            if day and len(files) - self._few(files) >= _SMALL_FILES - 1
        )

    def _few(self, files: Sequence[DataFile]) -> int:
        """As many files as their rows need."""
        return files_of_day(sum(file.record_count for file in files), self.rows_a_file)

    def _compact_day(self, table: Table, day: Interval) -> int:
        """Rewrite one day as few files, without repeated rows; answers how many files it replaced."""

        def change(current: IcebergTable, transaction: Transaction) -> int:
            def of_day(*wanted: str) -> list[DataFile]:
                return [file for file in planned_files(current, *wanted) if day_of(file.partition[0]) == day]

            def of_piece(piece: Interval) -> list[str]:
                return paths(of_day(between(table.time, piece.start, piece.end)))

            old, folder = of_day(), f"{self.store.warehouse}/facts/{table.name}"
            new = rewritten(table, folder, pieces_of(day, self._few(old)), of_piece)
            replacing = [parquet_file_to_data_file(current.io, current.metadata, path) for path in new]
            replace_files(transaction, old, replacing, MAIN)
            return len(old)

        return self.iceberg.commit(table, change)

    def _expire(self, table: Table) -> int:
        """Forget snapshots that were replaced long enough ago; when they were made does not matter to a reader."""

        def change(current: IcebergTable, transaction: Transaction) -> int:
            kept = {id for ref in current.metadata.refs.values() for id in self._still_read(current, ref.snapshot_id)}
            gone = [s.snapshot_id for s in current.snapshots() if s.snapshot_id not in kept]
            if gone:
                ExpireSnapshots(transaction).by_ids(gone).commit()
            return len(gone)

        return self.iceberg.commit(table, change)

    def _still_read(self, table: IcebergTable, head: int) -> Iterator[int]:
        """The newest snapshot of a branch, and those before it that were replaced too recently. Where these end all of
        a day more: commits may have forgotten some between."""
        snapshot, recent = table.snapshot_by_id(head), True
        while snapshot and recent:
            yield snapshot.snapshot_id
            recent = _utc(snapshot.timestamp_ms) >= self.readers_gone
            snapshot = table.snapshot_by_id(snapshot.parent_snapshot_id or 0)
        if recent:
            since = self.readers_gone - timedelta(days=1)
            yield from (one.snapshot_id for one in table.snapshots() if _utc(one.timestamp_ms) >= since)

    def _sweep(self) -> tuple[int, int]:
        """Move files that no table refers to and that nobody is about to add to the trash, and empty that in time."""
        alive = [f"{self._staging}{load}/" for load, at in self._staged_loads().items() if at >= self.abandoned]
        self.ledger.verify()
        needed = {path for table in (*FACTS, *METRICS) for path in _referenced(self.iceberg.table(table))}
        sweep = Sweep(self.store.warehouse, self.now)
        moved = sweep.trash(needed, tuple(alive), min(self.readers_gone, self.abandoned))
        return moved, sweep.delete_trash(self.unmissed)

    @property
    def _staging(self) -> str:
        return f"{self.store.warehouse}/staging/"

    def _load_of(self, path: str) -> str:
        return path.removeprefix(self._staging).split("/", 1)[0]


def _referenced(table: IcebergTable) -> set[str]:
    """Every file that the table's metadata leads to: of all its snapshots, not the current one only."""
    log = [entry.metadata_file for entry in table.metadata.metadata_log]
    found = {table.metadata_location, *log}
    manifests = {}
    for snapshot in table.snapshots():
        found.add(snapshot.manifest_list)
        manifests.update({manifest.manifest_path: manifest for manifest in snapshot.manifests(table.io)})
    for path, manifest in manifests.items():
        found.add(path)
        found.update(entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io))
    return found


def _utc(epoch_ms: int) -> datetime:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC)
