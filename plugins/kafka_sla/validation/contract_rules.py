"""The expectations that follow from a table's contract: keys, NOT NULL columns, windows.

They stand before those of `expectations/<table>.json`, which says only what the contract cannot.
"""

from __future__ import annotations

from typing import Any

from kafka_sla.model.tables import Table

UNIQUE, QUERY = "expect_compound_columns_to_be_unique", "unexpected_rows_expectation"
_PREDICATE = "expect_rows_to_satisfy"
_IMPLYING = ["required_known", "keys_unique", "windows_aligned", "windows_in_interval"]


def contract_rules(table: Table) -> list[dict[str, Any]]:
    """Expectations in Great Expectations' JSON form; those about windows for tables that have windows."""
    keys = _rule(
        "keys_unique",
        f"no two rows share {', '.join(table.key)}",
        UNIQUE,
        {"column_list": list(table.key), "ignore_row_if": "never"},
    )
    # Facts are appended by racing snapshots and imports: two equal rows are noted, and measured as one.
    keys |= {"severity": "critical" if table.kind == "metric" else "warning"}
    return [keys, _required(table), *(_windows(table) if "window_end" in table.names else ())]


def _required(table: Table) -> dict[str, Any]:
    predicate = " AND ".join(f"`{column.name}` IS NOT NULL" for column in table.columns if not column.nullable)
    return _row_rule("required_known", "columns that the contract calls NOT NULL have values", predicate)


def _windows(table: Table) -> list[dict[str, Any]]:
    of_windows = ", ".join(f"`{name}`" for name in table.key if name != table.time)
    at_most = _rule(
        "windows_at_most",
        f"no {of_windows.replace('`', '')} has more rows than the interval has windows",
        QUERY,
        {
            "unexpected_rows_query": f"SELECT {of_windows}, count(*) AS rows FROM {{batch}} GROUP BY {of_windows}"
            " HAVING count(*) > max(ceil((unix_millis(interval_end) - unix_millis(interval_start)) / window_ms))"
        },
    )
    return [
        _row_rule(
            "windows_aligned",
            "windows begin at whole multiples of their width since the epoch and are one width long",
            "pmod(unix_millis(window_start), window_ms) = 0"
            " AND unix_millis(window_end) - unix_millis(window_start) = window_ms",
        ),
        _row_rule(
            "windows_in_interval",
            "windows begin inside the interval",
            "window_start >= interval_start AND window_start < interval_end",
        ),
        at_most | {"severity": "warning", "meta": {"implied_by": _IMPLYING}},
    ]


def _row_rule(name: str, description: str, predicate: str) -> dict[str, Any]:
    return _rule(name, description, _PREDICATE, {"predicate": predicate})


def _rule(name: str, description: str, kind: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "description": description, "severity": "critical", "type": kind, "kwargs": kwargs}
