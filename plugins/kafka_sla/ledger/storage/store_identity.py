"""Which database and which warehouse belong together. The marker of the warehouse names the newest state of its store,
the database knows every state so far: an older copy of it, or one that another installation went on with, does not."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, column, delete, func, insert, inspect, select, table
from sqlalchemy.exc import DatabaseError, OperationalError

from kafka_sla.config.store import Store
from kafka_sla.config.store_marker import HELP, Marker, State
from kafka_sla.errors import StoreError
from kafka_sla.files import reached, sizes_of
from kafka_sla.ledger.storage.database import Database, reason, retrying
from kafka_sla.ledger.storage.schema import STORE_STATES

_STATES_KEPT = 1_000
"""A marker is behind by the states of those who were killed, or have yet to write it: by far fewer."""
_LOCK = "store identity"
_CATALOG = table("iceberg_tables", column("catalog_name"), column("metadata_location"))
_BELOW_WAREHOUSE = 4
"""`<namespace>/<table>/metadata/<file>`: how a table's file lies in its warehouse, wherever that was mounted then."""


class StoreDatabase(Database):
    """The database of a store, used only while it belongs to the store's warehouse."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._warehouse = store.warehouse
        self._marker = Marker(store)
        self._has_catalog = not store.catalog
        self._url = store.url
        self._file = str(store.url.database) if self.is_sqlite else None
        self._marked = False

    def open(self, *, writing: bool) -> bool:
        """Check that both belong together before anything is made, and mark both before the first write. Returns
        whether there is a store yet."""
        if self._marked:
            return True
        marked = self.verify()
        super().open(writing=writing)
        if writing and not marked:
            with self.telling():
                self._mark()
        self._marked = marked or writing
        return self._marked or self._ready

    def verify(self) -> bool:
        """StoreError unless database and warehouse belong together; answers whether both are marked. Writes nothing."""
        with self.telling():
            try:
                return retrying(self._verified, (OperationalError,))
            except OperationalError:
                raise
            except DatabaseError as error:
                raise self._refused(f"the database {self._address} cannot be read: {reason(error)}") from error

    def has_begun(self) -> bool:
        """Whether the store has a marker or table files. Writes nothing."""
        if self.verify():
            return True
        with self.telling():
            return bool(self._table_files())

    def check_place(self) -> None:
        """StoreError where the store was moved or copied, and its tables were not. Writes nothing."""
        self.verify()
        if not self._has_catalog:
            return
        with self.telling():
            files = retrying(self._table_files, (OperationalError,))
            refuse_away(self._warehouse, outside(self._warehouse, files))

    def advance(self) -> None:
        """Reach a new state: the warehouse holds files that an older database cannot know. The database reaches it
        first, so that a marker never names a state that its own database has not got."""
        self.verify()
        with self.writing(_LOCK) as connection:
            _reach(connection, _newest(connection))
        with self.telling(), self._transaction(_LOCK) as connection:
            self._verified()
            self._marker.replace(_newest(connection) or _reach(connection, None))

    def _mark(self) -> None:
        """The database, then the warehouse: killed in between, the next to write goes on there."""
        with self._transaction(_LOCK) as connection:
            state = _newest(connection) or _reach(connection, None)
        self._marker.create(state)
        self._verified()

    def _verified(self) -> bool:
        marker = self._marker.read()  # before the database: it may go on meanwhile, and always goes first
        wrong = self._wrong(marker) if marker else self._wrong_without_marker()
        if wrong and not marker:
            marker = self._marker.read()  # another process may have begun the store meanwhile
            wrong = self._wrong(marker) if marker else wrong
        if wrong:
            raise self._refused(wrong)
        return marker is not None

    def _wrong(self, marker: State) -> str | None:
        ours = f"the warehouse {self._warehouse} belongs to the store {marker.store_id}"
        if not self._exists:
            return f"the database {self._address} does not exist, but {ours}"
        with self.engine.connect() as connection:
            there = inspect(connection).has_table(STORE_STATES.name)
            if there and _knows(connection, marker):
                return None
            newest = _newest(connection) if there else None
        if newest is None:
            return f"the database {self._address} holds no store, but {ours}"
        if newest.store_id != marker.store_id:
            return f"the database {self._address} belongs to the store {newest.store_id}, but {ours}"
        return (
            f"the database {self._address} is older than the warehouse {self._warehouse}, or another installation"
            " writes there with a copy of it"
        )

    def _wrong_without_marker(self) -> str | None:
        """None for a new store, and for one whose tables all lie in the warehouse."""
        files = self._table_files()
        if not files:
            others = self._marker.strangers(*filter(None, [self._file]))
            knows_none = f"and the database {self._address} knows nothing of it"
            return (
                f"the warehouse {self._warehouse} is not empty: it holds {others[0]}, {knows_none}" if others else None
            )
        here = [f"{self._warehouse}/" + "/".join(path.split("/")[-_BELOW_WAREHOUSE:]) for path in files]
        with reached(self._warehouse):
            missing = [path for path, size in zip(here, sizes_of(here), strict=True) if not size]
        return f"the database {self._address} needs {missing[0]}, which is not there" if missing else None

    def _table_files(self) -> list[str]:
        if not self._exists:
            return []
        with self.engine.connect() as connection:
            if not inspect(connection).has_table(_CATALOG.name):
                return []
            ours = select(_CATALOG.c.metadata_location).where(_CATALOG.c.catalog_name == "kafka_sla")
            return list(filter(None, connection.execute(ours.order_by(_CATALOG.c.metadata_location)).scalars()))

    def _refused(self, wrong: str) -> StoreError:
        return StoreError(
            f"{wrong}; put the right database and warehouse together, or correct the address of one: nothing was"
            f" changed, {HELP}"
        )

    @property
    def _exists(self) -> bool:
        """Connecting to a SQLite file that is not there would make one."""
        return self._file is None or Path(self._file).exists()

    @property
    def _address(self) -> str:
        return self._url.render_as_string(hide_password=True)


def outside(warehouse: str, files: Iterable[str]) -> list[str]:
    """Those of these files of tables that are not in the warehouse: Iceberg knows full paths only."""
    return [path for path in files if not path.startswith(f"{warehouse}/")]


def refuse_away(warehouse: str, away: Sequence[str]) -> None:
    """StoreError where files of tables are not in the warehouse."""
    if away:
        raise StoreError(
            f"the tables of this store name files such as {away[0]}, and its warehouse is {warehouse}: correct the"
            " warehouse; or, if the store was moved or copied there, stop all that uses it and run"
            " `kafka-sla store move`"
        )


def _knows(connection: Connection, state: State) -> bool:
    same = (STORE_STATES.c.store_id == state.store_id, STORE_STATES.c.state == state.state)
    return connection.execute(select(STORE_STATES.c.seq).where(*same)).first() is not None


def _newest(connection: Connection) -> State | None:
    newest = select(STORE_STATES.c.store_id, STORE_STATES.c.state).order_by(STORE_STATES.c.seq.desc()).limit(1)
    row = connection.execute(newest).first()
    return State(*row) if row else None


def _reach(connection: Connection, before: State | None) -> State:
    """A new state, of a new store where there is none before it."""
    new = State(before.store_id if before else str(uuid.uuid4()), uuid.uuid4().hex)
    connection.execute(insert(STORE_STATES).values(**new._asdict(), reached_at=datetime.now(UTC)))
    newest = select(func.max(STORE_STATES.c.seq)).scalar_subquery()
    connection.execute(delete(STORE_STATES).where(STORE_STATES.c.seq <= newest - _STATES_KEPT))
    return new
