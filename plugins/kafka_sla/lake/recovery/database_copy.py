"""All rows of one store's database in another one, of one moment, whether these are SQLite or Postgres."""

from __future__ import annotations

from sqlalchemy import Connection, MetaData, Table, func, insert, inspect, select

from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.ledger.storage.database import Database
from kafka_sla.ledger.storage.schema import METADATA, STORE_STATES
from kafka_sla.ledger.storage.store_identity import StoreDatabase

_ROWS = 10_000


def copy_database(source: Store, target: Store, catalog: MetaData) -> None:
    """Copy every table of the ledger, and those of the `catalog` beside it; StoreError where the target holds a store.
    The rows appear in the target all at once."""
    there, here = StoreDatabase(source), Database(target)
    with there.reading() as rows, here.writing() as made:
        if inspect(made).has_table(STORE_STATES.name) and made.execute(select(STORE_STATES).limit(1)).first():
            address = target.url.render_as_string(hide_password=True)
            raise StoreError(f"the database {address} holds a store already: name an empty one for the copy")
        catalog.create_all(made)
        present = set(inspect(rows).get_table_names())
        for table in (*METADATA.sorted_tables, *catalog.sorted_tables):
            if table.name in present:
                _copy(table, rows, made)


def _copy(table: Table, rows: Connection, made: Connection) -> None:
    found = rows.execution_options(yield_per=_ROWS).execute(select(table))
    for some in found.partitions(_ROWS):
        made.execute(insert(table), [dict(row._mapping) for row in some])
    if made.dialect.name == "postgresql":
        _number_on(table, made)


def _number_on(table: Table, made: Connection) -> None:
    """Postgres numbers new rows by a sequence, which copied rows do not move."""
    number = table.autoincrement_column
    if number is None:
        return
    newest = made.execute(select(func.max(number))).scalar_one()
    if newest is not None:
        sequence = func.pg_get_serial_sequence(table.name, number.name)
        made.execute(select(func.setval(sequence, newest)))
