"""SQL tables that an earlier version made, copied into tables with today's names and values. Opens no database."""

from __future__ import annotations

from sqlalchemy import Connection, MetaData, Table, inspect, text
from sqlalchemy.schema import DropIndex

from kafka_sla.model import former_names


def former_tables(connection: Connection, metadata: MetaData) -> list[Table]:
    """The tables of `metadata` that the database knows under a former name, or with a column under one."""
    columns = _columns(connection)
    return [table for table in metadata.tables.values() if _is_former(table.name, columns)]


def _columns(connection: Connection) -> dict[str, set[str]]:
    found = inspect(connection).get_multi_columns()
    return {name: {column["name"] for column in columns} for (_, name), columns in found.items()}


def _is_former(name: str, columns: dict[str, set[str]]) -> bool:
    if name in columns:
        return any(
            old in columns[name] and new not in columns[name] for new, old in former_names.COLUMNS.get(name, {}).items()
        )
    return former_names.TABLES.get(name) in columns


def replace_table(connection: Connection, table: Table) -> None:
    """Make the table anew, with its rows. A new one instead of an altered one: SQLite cannot alter a CHECK."""
    source = former_names.TABLES.get(table.name, table.name)
    if source == table.name:
        source = f"former_{table.name}"
        connection.execute(text(f'ALTER TABLE "{table.name}" RENAME TO "{source}"'))
        for index in table.indexes:
            connection.execute(DropIndex(index, if_exists=True))
    there = _columns(connection)[source]
    table.create(connection)
    values = {name: f'"{name}"' for name in table.c.keys() if name in there}  # noqa: SIM118
    values |= former_names.expressions(table.name, there)
    values = former_names.UNKNOWN_THEN.get(table.name, {}) | values
    names = ", ".join(f'"{name}"' for name in values)
    connection.execute(
        text(f'INSERT INTO "{table.name}" ({names}) SELECT {", ".join(values.values())} FROM "{source}"')
    )
    connection.execute(text(f'DROP TABLE "{source}"'))
