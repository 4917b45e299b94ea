"""Looking for damage: every file of a store's tables is read, and compared with what the catalog and the ledger say of
it. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from pyiceberg.manifest import DataFile

from kafka_sla.config.store import Store
from kafka_sla.errors import DamagedTable, DamagedWindows
from kafka_sla.lake.fact_days import day_of
from kafka_sla.lake.files.file_damage import holds_rows, problem_of
from kafka_sla.lake.iceberg import Iceberg, paths
from kafka_sla.lake.staging import folder_of, load_of, parquet_below
from kafka_sla.lake.table_layout import MAIN
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.publications import Slice, by_load
from kafka_sla.model.entities import EVERYTHING, Interval, hull
from kafka_sla.model.tables import FACTS, METRICS, SLA_WINDOWS, Table
from kafka_sla.sla.rollups import DAY_MS

Kind = Literal["catalog", "facts", "metrics", "load", "windows", "sums"]


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing in a store that is not as it was written."""

    kind: Kind
    where: str
    """A file, the name of a table (`catalog`), of a load (`load`) or of an SLA (`windows`, `sums`)."""
    problem: str
    table: str = ""
    interval: Interval | None = None
    """The time that it touches; None: all of the table's, or nothing that is shown."""
    clusters: tuple[str, ...] = ()
    """Whose published rows it touches."""
    rows: int = 0
    """How many rows the file held."""
    load_id: str = ""


class Inspection:
    """One look at all of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ledger = Ledger(store)
        self._iceberg = Iceberg(store, self._ledger.open)
        self._shown: dict[str, list[Slice]] = {}
        self.files = self.rows = 0

    def damages(self, progress: Callable[[str], None] = lambda _: None) -> Iterator[Damage]:
        """All that is damaged, tables first. StoreError where the database itself cannot be read: without it nothing
        says what a file is."""
        self._ledger.check_integrity()
        self._shown = by_load(self._ledger.publications.slices(None, EVERYTHING))
        known: set[str] = set()
        for table in (*FACTS, *METRICS):
            progress(table.name)
            try:
                files = self._iceberg.planned(table)
                self._iceberg.planned(table, branch=MAIN)
            except DamagedTable as error:
                known.update(self._beside(table))
                yield Damage("catalog", table.name, str(error), table.name)
                continue
            known.update(paths(files))
            yield from self._of_files(table, files)
            if not files and table in FACTS and self._beside(table):
                yield Damage("catalog", table.name, f"the table {table.name} names none of its files", table.name)
        yield from self._torn(known)
        yield from self._sums()

    def _of_files(self, table: Table, files: list[DataFile]) -> Iterator[Damage]:
        for file in files:
            self.files += 1
            self.rows += file.record_count
            if problem := problem_of(table, file):
                yield self._damage(table, file, problem)

    def _damage(self, table: Table, file: DataFile, problem: str) -> Damage:
        if table.kind == "fact":
            return Damage(
                "facts", file.file_path, problem, table.name, day_of(file.partition[0]), (), file.record_count
            )
        load_id = load_of(file.file_path)
        interval, clusters = _reach(self._shown.get(load_id, []))
        return Damage("metrics", file.file_path, problem, table.name, interval, clusters, file.record_count, load_id)

    def _beside(self, table: Table) -> list[str]:
        """The Parquet files of a table as they lie in the warehouse."""
        if table.kind == "fact":
            return parquet_below(f"{self._store.warehouse}/facts/{table.name}")
        return [path for load_id in self._shown for path in parquet_below(folder_of(self._store, load_id, table))]

    def _torn(self, known: set[str]) -> Iterator[Damage]:
        """Loads that are published and whose files no table names."""
        for load_id, slices in sorted(self._shown.items()):
            staged = [path for table in METRICS for path in parquet_below(folder_of(self._store, load_id, table))]
            missing = [path for path in staged if path not in known and holds_rows(path)]
            if missing:
                problem = f"load {load_id} is published, and no table names {len(missing)} of its files"
                yield Damage("load", load_id, problem, "", *_reach(slices), load_id=load_id)

    def _sums(self) -> Iterator[Damage]:
        for sla, judged in sorted(self._ledger.queries.judged_slas().items()):
            try:
                windows = self._ledger.verdicts.sums(sla, EVERYTHING)
            except DamagedWindows:
                for day in self._ledger.verdicts.damaged_days(sla):
                    problem = f"the packed windows of the SLA {sla!r} of {day.start:%Y-%m-%d} cannot be read"
                    yield Damage("windows", sla, problem, SLA_WINDOWS.name, day)
                continue
            added_up = self._ledger.rollups.sums([sla], DAY_MS, EVERYTHING).get(sla)
            if added_up != windows:
                yield Damage("sums", sla, f"the sums of the SLA {sla!r} differ from its judged windows", "", judged)


def _reach(slices: list[Slice]) -> tuple[Interval | None, tuple[str, ...]]:
    if not slices:
        return None, ()
    return hull(s.interval for s in slices), tuple(sorted({s.cluster for s in slices}))
