"""The door to the table store: facts are appended, loads are staged and added, rows are read by interval."""

from __future__ import annotations

import copy
import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table import Transaction

from kafka_sla.config.store import Store
from kafka_sla.errors import DamagedFile, StoreError
from kafka_sla.files import check_writable, write_days
from kafka_sla.lake.duckdb_reader import empty, fact_rows, new_rows, slice_count, slice_rows
from kafka_sla.lake.fact_days import MOST_ROWS
from kafka_sla.lake.iceberg import FileRows, Iceberg, between, counted, paths, planned_files
from kafka_sla.lake.load_merging import FEWEST
from kafka_sla.lake.loads import Loads
from kafka_sla.lake.staging import folder_of
from kafka_sla.lake.table_maintenance import MaintenanceResult, TableMaintenance
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.observed_time import VOUCHED
from kafka_sla.ledger.publications import Slice
from kafka_sla.model.arrow_schemas import arrow_rows, arrow_schema
from kafka_sla.model.entities import EVERYTHING, Interval, ceil_time, floor_time, hull
from kafka_sla.model.tables import GROUP_STATES, METRICS, TABLES, Table
from kafka_sla.sla.rollups import HOUR_MS

_MICROSECOND = timedelta(microseconds=1)
_MOST_REMEMBERED = 12
"""Answers: of one interval, evaluating the SLAs of a cluster asks for fewer."""
_LARGEST_REMEMBERED = 64_000_000
"""Bytes of an answer; a larger one is a piece of what is too much to hold."""
T = TypeVar("T")


class Lake:
    """The tables of one store. `ledger`: where it is open already."""

    def __init__(self, store: Store, ledger: Ledger | None = None) -> None:
        self._store = store
        self._ledger = ledger or Ledger(store)
        self._iceberg = Iceberg(store, self._ledger.open)
        self._loads = Loads(store, self._iceberg, self._ledger)
        self._left_out: frozenset[str] = frozenset()
        self._remembered: dict[Any, Any] | None = None
        self._tables: dict[str, tuple[IcebergTable | None, frozenset[str]]] = {}

    def check_writable(self) -> None:
        """StoreError at once where only reading is possible, for who has much to do before it writes."""
        self._ledger.check_writable()
        check_writable(self._store.warehouse)

    def make_tables(self) -> None:
        """Make the tables of metrics that nobody has used yet: who reads one while it writes to the database cannot."""
        for table in METRICS:
            self._iceberg.table(table)

    def without(self, files: Iterable[str]) -> Lake:
        """The same tables without these files: for who says that they are left out."""
        other = copy.copy(self)
        other._left_out = self._left_out.union(files)
        return other if self._remembered is None else other.remembering()

    def spared(self, read: Callable[[Lake], T]) -> tuple[T, tuple[str, ...]]:
        """What `read` makes of the tables without the files that turn out to be damaged, and which those are."""
        lake, left_out = self, set[str]()
        while True:
            try:
                return read(lake), tuple(sorted(left_out))
            except DamagedFile as error:
                if left_out.issuperset(error.files):
                    raise
                left_out.update(error.files)
                lake = lake.without(error.files)

    def remembering(self) -> Lake:
        """The same tables as they are now: what was read of metrics once is not read again."""
        other = copy.copy(self)
        other._remembered, other._tables = {}, {}
        return other

    # facts

    def append_facts(self, table: Table, rows: pa.Table) -> int:
        """Append the rows that are not there yet, by key; answers how many. Safe to repeat and to race."""
        added = self._append(table, _fitting(table, rows))
        if added:
            self._ledger.advance()
        return added

    def land(
        self, facts: Mapping[str, pa.Table], interval: Interval | None = None, vouched: timedelta = VOUCHED
    ) -> dict[str, int]:
        """Append facts of several tables and record the landing of each cluster that got new rows; answers new rows per
        table. `interval` is the time that the landing may change; without it, the time of the new rows. `vouched`: the
        longest time that a snapshot of states speaks for."""
        new = {name: self._not_there(TABLES[name], _fitting(TABLES[name], rows)) for name, rows in facts.items()}
        spans = {cluster: interval or span for cluster, span in _spans(new).items()}
        landings = {cluster: self._ledger.ingestions.begin(cluster, span) for cluster, span in sorted(spans.items())}
        landed = {name: self._append(TABLES[name], rows) for name, rows in new.items()}
        for cluster, seq in landings.items():
            self._ledger.ingestions.confirm(cluster, seq)
        for cluster, snapshots in _snapshots(facts.get(GROUP_STATES.name)).items():
            self._ledger.observed_time.add(cluster, snapshots, vouched)
        if landings:
            self._ledger.advance()
        return landed

    def fact_files(self, table: Table, start: datetime | None, end: datetime) -> list[str]:
        """Files whose rows may have start <= at <= end; None: from the beginning."""
        return list(self.counted_fact_files(table, start, end))

    def counted_fact_files(self, table: Table, start: datetime | None, end: datetime) -> dict[str, FileRows]:
        """The same, and how many rows each has."""
        if not (current := self._iceberg.readable_table(table)):
            return {}
        files = self._planned_in(current, between(table.time, start, end, inclusive=True))
        return counted(current, table.time, files, start, end)

    def read_facts(
        self,
        table: Table,
        interval: Interval,
        clusters: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Facts of the interval, by key; None: of all clusters, with all columns."""
        files = self._planned(table, between(table.time, interval.start, interval.end))
        return fact_rows(table, files, interval, clusters, columns or table.names)

    # metrics

    def stage_dir(self, load_id: str) -> str:
        """Where the files of a load are written, one folder a table, before and after it is published."""
        return folder_of(self._store, load_id)

    def add_load(self, load_id: str, interval: Interval, files: Mapping[str, Sequence[str]]) -> list[str]:
        """Add a load's staged files to their tables, and keep what they add up to; nobody sees them until the load is
        published. Safe to repeat. Answers which tables have rows of it."""
        return self._loads.add(load_id, interval, files)

    def show(self, interval: Interval, names: Collection[str]) -> None:
        """Show other engines, which read the tables as Iceberg has them, what is published of the interval. `names`:
        tables that have rows of the newest load; unless it replaces another one, there is nothing to do in others."""
        self._loads.show(interval, names)

    def metric_files(self, load_ids: Sequence[str], table: Table, within: Interval | None = None) -> list[str]:
        """The files of these loads, published or not; only those that may have rows of a time, or all."""
        return list(self.counted_metric_files(load_ids, table, within))

    def counted_metric_files(
        self, load_ids: Sequence[str], table: Table, within: Interval | None = None
    ) -> dict[str, FileRows]:
        """The same, and how many rows each has."""
        if not (current := self._opened(table, load_ids)):
            return {}
        loads, span = (
            between("interval_start", self._ledger.publications.start_of(load_ids), None),
            within or EVERYTHING,
        )
        of_time = between(table.time, span.start, span.end) if within else ""
        return counted(current, table.time, self._files_in(current, load_ids, loads, of_time), span.start, span.end)

    def published_files(self, table: Table, slices: Sequence[Slice]) -> list[str]:
        """Files that hold the rows of these slices; each may also hold rows of other clusters and times."""
        return paths(self._published(table, slices))

    def counted_published_files(self, table: Table, slices: Sequence[Slice]) -> dict[str, FileRows]:
        """The same, and how many rows each has."""
        files = self._published(table, slices)
        current = self._opened(table, sorted({s.load_id for s in slices})) if files else None
        span = hull(s.interval for s in slices) if slices else EVERYTHING
        return counted(current, table.time, files, span.start, span.end) if current else {}

    def _published(self, table: Table, slices: Sequence[Slice]) -> list[DataFile]:
        return self._once((table.name, *slices), lambda: self._planned_of(table, slices)) if slices else []

    def _planned_of(self, table: Table, slices: Sequence[Slice]) -> list[DataFile]:
        """Of whole hours: misses that began at other minutes of an hour are read from the same plan."""
        shown = hull(s.interval for s in slices)
        shown = Interval(floor_time(shown.start, HOUR_MS), ceil_time(shown.end, HOUR_MS))
        load_ids = sorted({s.load_id for s in slices})
        loads = between("interval_start", self._ledger.publications.start_of(load_ids), shown.end)
        current = self._opened(table, load_ids)
        return self._files_in(current, load_ids, loads, between(table.time, shown.start, shown.end)) if current else []

    def newest_slices(self, table: Table, slices: Sequence[Slice], most_rows: int) -> list[Slice]:
        """What of these slices may be summed up within so many rows: all, or the newest part of them, cut at one time
        for all clusters. What ends last is there in any case."""
        sizes: dict[str, int] = defaultdict(int)
        for file in self._published(table, slices):
            sizes[file.file_path.removeprefix(self.stage_dir("")).partition("/")[0]] += file.record_count
        kept: set[Slice] = set()
        for end, same in itertools.groupby(sorted(slices, key=_end, reverse=True), key=_end):
            more = kept | set(same)
            if kept and sum(sizes[load_id] for load_id in {s.load_id for s in more}) > most_rows:
                return [_since(s, end) for s in slices if s in kept]
            kept = more
        return list(slices)

    def in_pieces(
        self, table: Table, interval: Interval, cluster: str, step_ms: int, most_rows: int
    ) -> Iterator[Interval]:
        """The interval in pieces of whole steps, a step each, or as many as have about so many published rows, taken to
        be spread evenly."""
        slices = self._ledger.publications.slices([cluster], interval)
        step, shown = timedelta(milliseconds=step_ms), sum((_length(s) for s in slices), timedelta())
        rows, whole = self.rows_shown(table, interval, cluster, most_rows), -((interval.start - interval.end) // step)
        steps = int(most_rows * (shown / step) / rows) if rows else whole
        return interval.pieces(min(max(1, steps), whole) * step)

    def rows_shown(self, table: Table, interval: Interval, cluster: str, many: int) -> int:
        """At most so many rows are published of the cluster: those of all files that hold one. Where these are more
        than `many`, what is published is counted, because most of a long load's may be of other times."""
        slices = self._ledger.publications.slices([cluster], interval)
        files = self._published(table, slices)
        found = sum(file.record_count for file in files)
        return slice_count(table, paths(files), slices) if found > many else found

    # reading

    def published(
        self,
        name: str,
        interval: Interval,
        clusters: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        groups: Collection[str] | None = None,
        *,
        in_order: bool = True,
    ) -> pa.Table:
        """Rows of any table whose time is in the interval, by key; of metrics the published ones. None: all clusters,
        all columns, all consumer groups (only some: of metrics alone). Not `in_order`: a metric's rows as they come,
        which spares the time and memory of sorting many."""
        table = TABLES[name]
        if table.kind == "fact":
            return self.read_facts(table, interval, clusters, columns)
        if table.kind == "metric":
            names = columns or table.names
            slices = self._ledger.publications.slices
            wanted = (
                name,
                interval,
                tuple(clusters or ()),
                None if groups is None else tuple(sorted(groups)),
                in_order,
            )
            return self._once(
                wanted,
                lambda: self.read(table, slices(clusters, interval), names, groups, in_order=in_order),
                lambda known: set(names) <= set(known.column_names),
            ).select(list(names))
        rows = self._ledger.declared_rows(table, interval, clusters)
        return arrow_rows(table, rows).select(list(columns or table.names))

    def read(
        self,
        table: Table,
        slices: Sequence[Slice],
        columns: Sequence[str] | None = None,
        groups: Collection[str] | None = None,
        *,
        in_order: bool = True,
    ) -> pa.Table:
        """The rows of a metric table that these slices show, by key or as they come; of these consumer groups, or of
        all."""
        names = columns or table.names
        files = self.published_files(table, slices)
        return slice_rows(table, files, slices, names, groups, in_order=in_order) if files else empty(table, names)

    def maintain(
        self,
        now: datetime | None = None,
        *,
        grace_period: timedelta = timedelta(days=1),
        orphan_age: timedelta = timedelta(days=1),
        trash_age: timedelta = timedelta(days=7),
        fewest: int = FEWEST,
        rows_a_file: int = MOST_ROWS,
    ) -> MaintenanceResult:
        """Tidy up: see `table_maintenance`. `fewest`: so many loads of a day, or more, become one; `rows_a_file`: so
        many rows of a day's facts, or fewer, are one file."""
        now = now or datetime.now(UTC)
        self._ledger.open(True)
        self._ledger.verify()
        ages = (now - grace_period, now - orphan_age, now - trash_age)
        maintenance = TableMaintenance(self._store, self._iceberg, self._ledger, now, *ages, fewest, rows_a_file)
        return maintenance.run()

    # inside

    def _once(self, wanted: Any, read: Callable[[], T], is_enough: Callable[[T], bool] = lambda known: True) -> T:
        if self._remembered is None:
            return read()
        found: T | None = self._remembered.pop(wanted, None)
        if found is None or not is_enough(found):
            found = read()
        if not (isinstance(found, pa.Table) and found.nbytes > _LARGEST_REMEMBERED):
            self._remembered[wanted] = found  # what was asked for last is forgotten last
        while len(self._remembered) > _MOST_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        return found

    def _opened(self, table: Table, load_ids: Sequence[str]) -> IcebergTable | None:
        """The table with the files of these loads, which are in it before they are published; while answers are
        remembered as it was when it first had them: opening one takes longer than reading a little of it, and hundreds
        of SLAs ask."""
        if self._remembered is None:
            return self._iceberg.readable_table(table)
        current, there = self._tables.get(table.name, (None, frozenset()))
        if current is None or not there.issuperset(load_ids):
            current, there = self._iceberg.readable_table(table), there.union(load_ids)
            self._tables[table.name] = (current, there)
        return current

    def _planned(self, table: Table, *wanted: str) -> list[str]:
        current = self._iceberg.readable_table(table)
        return paths(self._planned_in(current, *wanted)) if current else []

    def _planned_in(self, current: IcebergTable, *wanted: str) -> list[DataFile]:
        return [file for file in self._iceberg.planned_of(current, *wanted) if file.file_path not in self._left_out]

    def _files_in(self, current: IcebergTable, load_ids: Sequence[str], *wanted: str) -> list[DataFile]:
        folders = tuple(self.stage_dir(load_id) + "/" for load_id in load_ids)
        return [file for file in self._planned_in(current, *wanted) if file.file_path.startswith(folders)]

    def _not_there(self, table: Table, rows: pa.Table, current: IcebergTable | None = None) -> pa.Table:
        if not rows.num_rows:
            return rows
        first, last = _extent(table, rows)
        there = planned_files(current or self._iceberg.table(table), between(table.time, first, last, inclusive=True))
        return new_rows(table, rows, paths(there))

    def _append(self, table: Table, rows: pa.Table) -> int:
        if not rows.num_rows:
            return 0

        def change(current: IcebergTable, transaction: Transaction) -> int:
            new = self._not_there(table, rows, current)
            if new.num_rows:
                files = write_days(f"{self._store.warehouse}/facts/{table.name}", new, table.time)
                transaction.add_files(files, check_duplicate_files=False)
            return int(new.num_rows)

        return self._iceberg.commit(table, change)


def _fitting(table: Table, rows: pa.Table) -> pa.Table:
    """The rows with the contract's columns and types; null where one may not be is refused."""
    if missing := [name for name in table.names if name not in rows.column_names]:
        raise StoreError(f"rows for {table.name} lack the columns {', '.join(missing)}")
    try:
        return rows.select(list(table.names)).cast(arrow_schema(table))
    except ValueError as error:
        raise StoreError(f"rows for {table.name} do not fit its columns: {error}") from error


def _extent(table: Table, rows: pa.Table) -> tuple[datetime, datetime]:
    """The first and the last time of the rows."""
    bounds = pc.min_max(rows[table.time]).as_py()
    return bounds["min"], bounds["max"]


def _length(one: Slice) -> timedelta:
    return one.interval.end - one.interval.start


def _end(one: Slice) -> datetime:
    return one.interval.end


def _since(one: Slice, at: datetime) -> Slice:
    return one._replace(interval=Interval(max(one.interval.start, at), one.interval.end))


def _snapshots(states: pa.Table | None) -> dict[str, list[datetime]]:
    """When each cluster was looked at: nothing but a snapshot knows the states of groups."""
    found: dict[str, list[datetime]] = defaultdict(list)
    for row in states.group_by(["cluster", "at"]).aggregate([]).to_pylist() if states else []:
        found[row["cluster"]].append(row["at"])
    return found


def _spans(facts: Mapping[str, pa.Table]) -> dict[str, Interval]:
    """The time that the rows of each cluster cover."""
    spans: dict[str, Interval] = {}
    for name, rows in facts.items():
        for cluster in pc.unique(rows["cluster"]).to_pylist():
            first, last = _extent(TABLES[name], rows.filter(pc.equal(rows["cluster"], cluster)))
            known = spans.get(cluster, Interval(first, last + _MICROSECOND))
            spans[cluster] = Interval(min(first, known.start), max(last + _MICROSECOND, known.end))
    return spans
