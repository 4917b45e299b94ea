"""Example rows of the suites, for tests: the good row of every validated table, and the rows that break each rule.

They stand in `expectations/<table>.json` (`good_row`, `broken_rows`), times as seconds after START; rows that break the
rules of the contract follow from it here.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import TABLES
from kafka_sla.validation import suites

START = datetime(2026, 11, 1, 10, tzinfo=UTC)
INTERVAL = Interval(START, START + timedelta(minutes=5))
WINDOW_MS = 60_000
Row = dict[str, Any]

VALIDATED = sorted(table.name for table in TABLES.values() if table.kind != "ledger")
_OF_CONTRACT: dict[str, list[Row]] = {
    "keys_unique": [{}, {}],
    "windows_aligned": [{"window_start": 30, "window_end": 90}, {"window_end": 120}],
    "windows_in_interval": [{"window_start": -60, "window_end": 0}, {"window_start": 300, "window_end": 360}],
    "windows_at_most": [{"window_start": 60 * i, "window_end": 60 * i + 60, "last_commit_at": 0} for i in range(6)],
}


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def identity(table: str) -> str:
    """The key column that tests give another value to tell rows apart."""
    return next(name for name in ("flow", "group", "topic", "cluster") if name in TABLES[table].key)


def good(table: str, name: str = "good", **more: Any) -> Row:
    """A row that breaks nothing, known by `name`, save for what `more` says."""
    return _typed(table, suites.suite(table)["meta"]["good_row"]) | {identity(table): name} | more


def broken(table: str) -> dict[str, list[Row]]:
    """By rule, what differs from the good row in rows that break it; rules over the whole table have none."""
    rules = suites.suite(table)["expectations"]
    required = next(c.name for c in TABLES[table].columns if not c.nullable and c.name != identity(table))
    of_contract = _OF_CONTRACT | {"required_known": [{required: None}]}
    examples = {r["id"]: of_contract.get(r["id"]) or r.get("meta", {}).get("broken_rows", []) for r in rules}
    return {rule: [_typed(table, row) for row in rows] for rule, rows in examples.items() if rows}


def _typed(table: str, row: Row) -> Row:
    types = {column.name: column.type for column in TABLES[table].columns}
    return {name: _value(types[name], value) for name, value in row.items() if name in types}


def _value(kind: str, value: Any) -> Any:
    if value is None or isinstance(value, datetime):
        return value
    if kind == "TIMESTAMP":
        return at(value)
    if kind == "ARRAY<TIMESTAMP>":
        return [at(seconds) for seconds in value]
    return {int(bucket): records for bucket, records in value.items()} if kind.startswith("MAP") else value
