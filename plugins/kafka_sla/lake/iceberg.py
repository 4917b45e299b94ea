"""Iceberg tables of one store: made on first use, changed by commits that other processes cannot spoil, planned into
lists of files. Knows neither what a table looks like nor what is published."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from typing import NamedTuple, TypeVar

from pyiceberg.catalog import Catalog
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    ValidationException,
)
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.manifest import DataFile
from pyiceberg.table import ManifestGroupPlanner, Transaction
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import ExpireSnapshots
from pyiceberg.types import TimestamptzType
from pyiceberg.utils.datetime import datetime_to_micros
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError, SQLAlchemyError

from kafka_sla.config.store import Store
from kafka_sla.errors import DamagedTable, KafkaSlaError, StoreError
from kafka_sla.files import not_written, reached
from kafka_sla.lake.catalogs import connect, elsewhere, reached_catalog
from kafka_sla.lake.table_layout import (
    LOADS,
    MAIN,
    NAMESPACE,
    location_of,
    new_table,
    with_all_columns,
    with_loads,
    with_properties,
)
from kafka_sla.ledger.storage.database import retrying, telling
from kafka_sla.ledger.storage.engine import is_read_only
from kafka_sla.ledger.storage.store_identity import refuse_away
from kafka_sla.model.tables import Table

_MOST_PLANS, _MOST_FILES = 20, 500
"""Plans that are remembered, and files of each: of one state of a table a question has the same answer for ever."""
T = TypeVar("T")

MOST_SNAPSHOTS, _KEPT_SNAPSHOTS = 200, 50
"""More of a table are too many; so many of each branch stay, those of four hours where runs come every five minutes."""
_LOST_RACES = (CommitFailedException, ValidationException, OperationalError)
"""What a commit meets when another one came first."""
_REPLACED_SECONDS = 1
"""How long a metadata file may be missing because a newer one has just replaced it."""


class _Transaction(Transaction):
    """PyIceberg copies all metadata of a table each time it looks at them, fifteen times a commit, which was half of
    its processor time. They change with the staged updates only."""

    _looked_at: tuple[object, object, TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        state = (self._table.metadata, self._updates)
        if self._looked_at is None or any(now is not then for now, then in zip(state, self._looked_at, strict=False)):
            self._looked_at = (*state, super().table_metadata)
        return self._looked_at[2]


class Iceberg:
    """The catalog of one store."""

    def __init__(self, store: Store, admit: Callable[[bool], bool]) -> None:
        """`admit` refuses a database and a warehouse that do not belong together, and returns whether there is a store
        yet; True: before something is written."""
        self._store = store
        self._admit = admit
        self._catalog: Catalog | None = None
        self._plans: dict[tuple[str, ...], list[DataFile]] = {}

    def table(self, table: Table) -> IcebergTable:
        """The table as it is now; it is made where nobody has made it yet."""
        self._admit(True)
        return self._retrying_open(table, create=True)

    def _retrying_open(self, table: Table, *, create: bool) -> IcebergTable:
        with telling(self._store.url), readable(table.name), reached_catalog(self._store):
            return retrying(
                lambda: _replaced(lambda: self._open(table, create=create)),
                (CommitFailedException, OperationalError, ProgrammingError, IntegrityError),
            )

    def planned(self, table: Table, *wanted: str, branch: str = LOADS) -> list[DataFile]:
        """Its data files that may hold rows which fit all these filters; none where nobody has made the table yet.
        Facts have but one branch, whichever is given."""
        current = self.readable_table(table)
        return self.planned_of(current, *wanted, branch=branch) if current else []

    def readable_table(self, table: Table) -> IcebergTable | None:
        """The table as it is now; None where nobody has made it yet. Creates nothing."""
        if not self._admit(False):
            return None
        try:
            return self._retrying_open(table, create=False)
        except NoSuchTableError:
            return None

    def planned_of(self, current: IcebergTable, *wanted: str, branch: str = LOADS) -> list[DataFile]:
        """The same of a table as it was opened before."""
        asked = (current.metadata_location, branch, *wanted)
        found = self._plans.get(asked)
        if found is None:
            found = planned_files(current, *wanted, branch=branch)
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            if len(found) <= _MOST_FILES:
                self._plans[asked] = found
        return list(found)

    def commit(self, table: Table, change: Callable[[IcebergTable, Transaction], T]) -> T:
        """What `change` answers once committed; called again, on the newer table, when another commit came first."""

        def attempt() -> T:
            current = self.table(table)
            with _overtaken(), _Transaction(current) as transaction:
                found = change(current, transaction)
                _forget_appended(current, transaction)
                return found

        self._admit(True)
        with telling(self._store.url), reached(self._store.warehouse), reached_catalog(self._store):
            return retrying(lambda: _replaced(attempt), _LOST_RACES)

    def _open(self, table: Table, *, create: bool) -> IcebergTable:
        catalog = self._connect()
        name, place = (NAMESPACE, table.name), location_of(self._store.warehouse, table)
        if is_read_only(self._store):
            return catalog.load_table(name)
        try:
            there = catalog.load_table(name)
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            if not create:
                raise NoSuchTableError(table.name) from error
            return with_loads(with_properties(new_table(catalog, name, table, place)), table)
        if self._store.catalog and not there.metadata_location.startswith(f"{place}/"):
            raise StoreError(
                f"the {self._store.catalog_name} has a table {NAMESPACE}.{table.name} of another store, at"
                f" {there.location()}: give each store a catalog of its own"
            )
        return with_loads(with_properties(with_all_columns(there, table)), table)

    def _connect(self) -> Catalog:
        if self._catalog is None:
            catalog = connect(self._store)
            refuse_away(self._store.warehouse, elsewhere(catalog, self._store))
            self._catalog = catalog
        return self._catalog


@contextmanager
def readable(name: str) -> Iterator[None]:
    """DamagedTable where metadata cannot be decoded: decoders of JSON and Avro raise whatever they stumble over."""
    try:
        yield
    except (KafkaSlaError, SQLAlchemyError, NoSuchTableError, *_LOST_RACES[:2]):
        raise
    except FileNotFoundError as error:
        raise DamagedTable(name, f"{error.filename or error} is missing") from error
    except OSError as error:
        if error.errno is not None:
            raise not_written(name, error) from error
        raise DamagedTable(name, str(error)) from error
    except Exception as error:
        raise DamagedTable(name, " ".join(f"{type(error).__name__}: {error}".split())[:200]) from error


@contextmanager
def _overtaken() -> Iterator[None]:
    """A commit to another branch of the table is a lost race, too: PyIceberg notices it by the sequence number only,
    and calls that a wrong value."""
    try:
        yield
    except ValueError as error:
        if "older than last sequence number" not in str(error):
            raise
        raise CommitFailedException(str(error)) from error


def _replaced(attempt: Callable[[], T]) -> T:
    """The result of `attempt`, which may have found the metadata file of a moment ago gone."""
    return retrying(attempt, (FileNotFoundError,), _REPLACED_SECONDS)


def _forget_appended(table: IcebergTable, transaction: Transaction) -> None:
    """Once a table has many snapshots, forget those to which newer ones only added something. A table's metadata tell
    of all, and every commit and every reader reads them. Whoever is still reading one misses no file: all of them are
    in the newest one. Those before something was removed are the nightly maintenance's."""
    if len(table.metadata.snapshots) <= MOST_SNAPSHOTS:
        return
    chains = [list(_appended(table, ref.snapshot_id)) for ref in table.metadata.refs.values()]
    kept = {id for chain in chains for id in chain[:_KEPT_SNAPSHOTS]}
    gone = {id for chain in chains for id in chain[_KEPT_SNAPSHOTS:]} - kept
    if gone:
        ExpireSnapshots(transaction).by_ids(sorted(gone)).commit()


def _appended(table: IcebergTable, head: int) -> Iterator[int]:
    """The newest snapshot of a branch and those before it, back to the one that removed something."""
    snapshot = table.snapshot_by_id(head)
    while snapshot and snapshot.summary and snapshot.summary.operation is Operation.APPEND:
        yield snapshot.snapshot_id
        snapshot = table.snapshot_by_id(snapshot.parent_snapshot_id or 0)


def between(column: str, start: datetime | None, end: datetime | None, *, inclusive: bool = False) -> str:
    """Rows whose time is in [start, end), or in [start, end] when inclusive; None is unbounded."""
    bounds = [f"{column} >= '{iso(start)}'"] if start else []
    if end:
        bounds.append(f"{column} {'<=' if inclusive else '<'} '{iso(end)}'")
    return " AND ".join(bounds)


def iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def planned_files(table: IcebergTable, *wanted: str, branch: str = MAIN) -> list[DataFile]:
    """The data files of a branch that may hold rows which fit all these filters, each once, by path; of `main` where
    the table has no such branch, as facts do."""
    fits = " AND ".join(filter(None, wanted))
    snapshot = table.snapshot_by_name(branch) or table.current_snapshot()
    if snapshot is None:
        return []
    planner = ManifestGroupPlanner(table.metadata, table.io, fits or AlwaysTrue())  # a scan also weighs what rows fit
    with readable(table.name()[-1]):
        found = chain.from_iterable(planner.plan_manifest_entries(snapshot.manifests(table.io)))
        files = {entry.data_file.file_path: entry.data_file for entry in found}
    return [files[path] for path in sorted(files)]


def replace_files(transaction: Transaction, old: Sequence[DataFile], new: Sequence[DataFile], branch: str) -> None:
    """Take the old files out of a branch and put the new ones in, in one snapshot."""
    if not old and not new:
        return
    update = transaction.update_snapshot(branch=branch)
    with update.overwrite() if old else update.merge_append() as snapshot:
        for file in old:
            snapshot.delete_data_file(file)
        for file in new:
            snapshot.append_data_file(file)


class FileRows(NamedTuple):
    """How many rows a file has."""

    all: int
    inside: int
    """About how many of them are of the time that is asked for, taken to be spread evenly over the file's own; all
    where nobody knows its times."""


def counted(
    table: IcebergTable, column: str, files: Iterable[DataFile], start: datetime | None, end: datetime
) -> dict[str, FileRows]:
    """The rows of each file, by its path."""
    time = table.schema().find_field(column).field_id
    return {
        file.file_path: FileRows(file.record_count, math.ceil(file.record_count * _share(file, time, start, end)))
        for file in files
    }


def _share(file: DataFile, time: int, start: datetime | None, end: datetime) -> float:
    lowest, highest = ((known or {}).get(time) for known in (file.lower_bounds, file.upper_bounds))
    if lowest is None or highest is None:
        return 1.0
    first, last = (int(from_bytes(TimestamptzType(), bound)) for bound in (lowest, highest))
    since = max(first, datetime_to_micros(start)) if start else first
    inside = min(last, datetime_to_micros(end)) - since
    return min(1.0, max(0.0, inside / (last - first))) if last > first else 1.0


def paths(files: Iterable[DataFile]) -> list[str]:
    return [file.file_path for file in files]
