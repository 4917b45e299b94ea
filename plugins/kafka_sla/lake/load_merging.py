"""Many small loads of a day become one: what is published of them is written anew, and published in their place. No row
changes; a year of five-minute runs is some hundred loads, not a hundred thousand, also where no nightly run measures
the days anew.

The loads that were merged are retired like any others that newer ones replaced: who reads them goes on reading, and
maintenance drops them in time.
"""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyiceberg.manifest import DataFile

from kafka_sla.config.store import Store
from kafka_sla.files import write_rows
from kafka_sla.lake.duckdb_reader import slice_rows
from kafka_sla.lake.files.file_damage import holds_rows, problem_of
from kafka_sla.lake.iceberg import Iceberg, between
from kafka_sla.lake.loads import Loads
from kafka_sla.lake.staging import folder_of, load_of, parquet_below, table_of
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.publications import Slice, clipped
from kafka_sla.model.arrow_schemas import of_load
from kafka_sla.model.entities import EVERYTHING, Interval, ceil_time, floor_time, hull
from kafka_sla.model.tables import METRICS, Table
from kafka_sla.sla.rollups import DAY_MS, HOUR_MS

FEWEST = 8
"""Loads that follow each other: fewer stay as they are, unless one asks otherwise."""
_MOST_ROWS = 10_000_000
"""Of one table, in one load."""
_MOST_DAYS = 7
"""Days merged in one maintenance run; the next run continues."""

_Files = Mapping[Table, Sequence[DataFile]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadMerging:
    """The merging of one store's loads."""

    store: Store
    iceberg: Iceberg
    ledger: Ledger
    fewest: int

    def run(self, before: datetime) -> int:
        """Merge the loads of days that ended before then, the oldest first; answers how many there were. A day with a
        damaged file stays as it is, until that is repaired."""
        merged: list[int] = []
        for slices in self._days(before):
            files = self._files(slices)
            merged.append(sum(self._merge(batch, files) for batch in self._batches(slices, _rows_of_loads(files))))
            if sum(map(bool, merged)) == _MOST_DAYS:
                break
        return sum(merged)

    def _days(self, before: datetime) -> Iterator[list[Slice]]:
        """What is published of loads that lie within one day, by day."""
        extents = self.ledger.publications.extents(EVERYTHING)
        days: dict[datetime, list[Slice]] = defaultdict(list)
        for one in self.ledger.publications.slices(None, EVERYTHING):
            day = floor_time(one.interval.start, DAY_MS)
            extent = extents[one.load_id].interval
            if extent.start >= day and extent.end <= ceil_time(one.interval.end, DAY_MS) <= before:
                days[day].append(one)
        return (days[day] for day in sorted(days) if any(map(self._many, _runs(days[day], {}))))

    def _batches(self, slices: Sequence[Slice], rows: Mapping[str, int]) -> Iterator[list[Slice]]:
        """What is worth being one load: no gap, no more rows than one should have; clusters together where they cover
        the same time."""
        same: dict[Interval, list[Slice]] = defaultdict(list)
        for batch in _runs(slices, rows):
            same[Interval(batch[0].interval.start, batch[-1].interval.end)] += batch
        return (batch for batch in same.values() if self._many(batch))

    def _many(self, slices: Sequence[Slice]) -> bool:
        return len({one.load_id for one in slices}) >= self.fewest

    def _files(self, slices: Sequence[Slice]) -> _Files:
        """The files of these loads, which may begin before what is shown of them does."""
        load_ids, end = {s.load_id for s in slices}, max(s.interval.end for s in slices)
        near = between("interval_start", self.ledger.publications.start_of(sorted(load_ids)), end)
        return _of_loads({table: self.iceberg.planned(table, near) for table in METRICS}, load_ids)

    def _merge(self, slices: Sequence[Slice], of_day: _Files) -> int:
        """Make one load of these slices, and publish it unless something else was published there meanwhile."""
        span, load_ids = hull(s.interval for s in slices), {s.load_id for s in slices}
        files = _of_loads(of_day, load_ids)
        if wrong := self._wrong(load_ids, files):
            log.warning("%s stays %d loads: %s; run kafka-sla store check", span, len(load_ids), wrong)
            return 0
        merged = uuid.uuid4().hex
        written = {t.name: self._write(t, of_table, slices, span, merged) for t, of_table in files.items() if of_table}
        loads = Loads(self.store, self.iceberg, self.ledger)
        names = loads.add(merged, span, written)
        if not self.ledger.publications.merge(slices, merged):
            return 0
        self.ledger.validations.merge(load_ids, merged, span)
        loads.show(span, names)
        return len(load_ids)

    def _wrong(self, load_ids: set[str], files: _Files) -> str | None:
        """What is damaged, or named by no table: once it was left out of a copy, nobody would find it any more."""
        known = {file.file_path: (table, file) for table, of_table in files.items() for file in of_table}
        for path, (table, file) in sorted(known.items()):
            if problem := problem_of(table, file):
                return f"{path} {problem}"
        for load_id in sorted(load_ids):
            for path in parquet_below(folder_of(self.store, load_id)):
                if path not in known and table_of(path) in METRICS and holds_rows(path):
                    return f"no table names {path}"
        return None

    def _write(
        self, table: Table, files: Sequence[DataFile], slices: Sequence[Slice], span: Interval, merged: str
    ) -> list[str]:
        """A file for each hour of what these slices show: who reads an hour reads nothing else."""
        written = []
        for hour in Interval(floor_time(span.start, HOUR_MS), span.end).windows(HOUR_MS):
            shown = clipped(slices, hour)
            of_hour = {s.load_id for s in shown}
            paths = [file.file_path for file in files if load_of(file.file_path) in of_hour]
            if (rows := slice_rows(table, paths, shown, table.names)).num_rows:
                written.append(f"{folder_of(self.store, merged, table)}/{hour.start:%H}.parquet")
                write_rows(written[-1], of_load(table, rows, merged, span.start))
        return written


def _of_loads(files: _Files, load_ids: set[str]) -> dict[Table, list[DataFile]]:
    return {table: [file for file in of if load_of(file.file_path) in load_ids] for table, of in files.items()}


def _rows_of_loads(files: _Files) -> dict[str, int]:
    """How many rows each load has in the table where it has most."""
    most: dict[str, int] = defaultdict(int)
    for of_table in files.values():
        rows: dict[str, int] = defaultdict(int)
        for file in of_table:
            rows[load_of(file.file_path)] += file.record_count
        for load_id, count in rows.items():
            most[load_id] = max(most[load_id], count)
    return most


def _runs(slices: Sequence[Slice], rows: Mapping[str, int]) -> Iterator[list[Slice]]:
    """The slices of each cluster that follow each other without a gap, cut before they have too many rows."""
    run: list[Slice] = []
    for one in sorted(slices):
        follows = run and (run[-1].cluster, run[-1].interval.end) == (one.cluster, one.interval.start)
        if run and not (follows and sum(rows.get(i, 0) for i in {s.load_id for s in (*run, one)}) <= _MOST_ROWS):
            yield run
            run = []
        run.append(one)
    if run:
        yield run
