"""What the expectations said of each load, and the rows that broke them. Expects nothing itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Table, and_, delete, insert, select

from kafka_sla.ledger.storage.database import Database, delete_each
from kafka_sla.ledger.storage.schema import QUARANTINE, VALIDATION_RESULTS
from kafka_sla.model import tables
from kafka_sla.model.entities import Interval

RowValues = Mapping[str, Any]


class ValidationResults:
    """The validation results and the quarantine of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def store(
        self, results: Sequence[RowValues], quarantine: Sequence[RowValues] = (), *, load_id: str | None = None
    ) -> None:
        """Keep what was said of these loads, in the place of what was said of them before."""
        loads = {str(row["load_id"]) for row in (*results, *quarantine)} | ({load_id} if load_id else set())
        with self._database.writing("validation") as connection:
            for table, rows in ((VALIDATION_RESULTS, results), (QUARANTINE, quarantine)):
                connection.execute(delete(table).where(table.c.load_id.in_(loads)))
                if rows:
                    connection.execute(insert(table), _distinct(tables.TABLES[table.name], rows))

    def merge(self, load_ids: Collection[str], load_id: str, interval: Interval) -> None:
        """Say once of the load that was made of these what held in each of them. What did not stays as it is."""
        t = VALIDATION_RESULTS.c
        held = and_(t.load_id.in_(load_ids), t.success)
        with self._database.writing("validation") as connection:
            columns = (t.table_name, t.expectation_id, t.expectation, t.severity)
            found = connection.execute(select(*columns).where(held).order_by(t.interval_start)).all()
            counts = Counter(row[:2] for row in found)
            connection.execute(delete(VALIDATION_RESULTS).where(held))
            rows = [
                {
                    "load_id": load_id,
                    "interval_start": interval.start,
                    "interval_end": interval.end,
                    "success": True,
                    "observed": f"held in {counts[row[:2]]} of {len(load_ids)} loads",
                    **row._mapping,
                }
                for row in found
            ]
            if rows:
                connection.execute(insert(VALIDATION_RESULTS), _distinct(tables.VALIDATION_RESULTS, rows))

    def forget_held(self, load_ids: Collection[str]) -> None:
        """Forget what held in these loads, of which nothing is left."""
        t = VALIDATION_RESULTS.c
        with self._database.writing("validation") as connection:
            delete_each(connection, delete(VALIDATION_RESULTS).where(t.success), t.load_id, load_ids)

    def results(self, interval: Interval) -> list[dict[str, Any]]:
        """What was said of the loads whose interval overlaps this one."""
        return self._of_interval(VALIDATION_RESULTS, interval)

    def quarantine(self, interval: Interval) -> list[dict[str, Any]]:
        """The rows put aside from the loads whose interval overlaps this one."""
        return self._of_interval(QUARANTINE, interval)

    def _of_interval(self, table: Table, interval: Interval) -> list[dict[str, Any]]:
        contract = tables.TABLES[table.name]
        rows = (
            select(*(table.c[name] for name in contract.names))
            .where(table.c.interval_start < interval.end, table.c.interval_end > interval.start)
            .order_by(table.c.interval_start, *(table.c[name] for name in contract.key))
        )
        return [dict(row._mapping) for row in self._database.rows(rows)]


def _distinct(table: tables.Table, rows: Sequence[RowValues]) -> list[dict[str, Any]]:
    """Rows by key, with every column named: one statement inserts them all."""
    return list(
        {tuple(row[k] for k in table.key): {name: row.get(name) for name in table.names} for row in rows}.values()
    )
