"""Rows of `sla_misses` and the misses that they hold."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Row

from kafka_sla.ledger.storage.schema import SLA_MISSES
from kafka_sla.model.entities import Miss

_RENAMED = {"miss_id": "id", "start_at": "start", "end_at": "end"}
_FIELDS = {c.name: _RENAMED.get(c.name, c.name) for c in SLA_MISSES.c}
"""Column of the table and field of the miss."""


def row_of_miss(miss: Miss) -> dict[str, Any]:
    """The values of all columns, by name."""
    row = {column: getattr(miss, name) for column, name in _FIELDS.items()}
    return row | {"end_reason": miss.end_reason or None, "evidence": json.dumps(miss.evidence, sort_keys=True)}


def miss_of_row(row: Row[Any]) -> Miss:
    """The miss of a row with all columns."""
    values = {name: row._mapping[column] for column, name in _FIELDS.items()}
    return Miss(**values | {"end_reason": row.end_reason or "", "evidence": json.loads(row.evidence)})
