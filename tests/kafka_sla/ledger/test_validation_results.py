"""What expectations said, kept by load."""

from __future__ import annotations

from typing import Any

from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from tests.kafka_sla.loads import at, span


def result(load_id: str = "one", **changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "load_id": load_id,
        "interval_start": at("10:00"),
        "interval_end": at("10:05"),
        "table_name": "log_offsets",
        "expectation_id": "unique",
        "expectation": "keys are unique",
        "severity": "critical",
        "success": False,
        "observed": "2 repeated",
        "unexpected_rows": 2,
    }
    return row | changes


def bad_row(load_id: str = "one", row: str = '{"partition": 0}') -> dict[str, Any]:
    kept = {
        k: v for k, v in result(load_id).items() if k not in ("expectation", "success", "observed", "unexpected_rows")
    }
    return kept | {"row": row}


def test_results_and_bad_rows_are_found_by_interval(ledger: Ledger) -> None:
    ledger.validations.store([result()], [bad_row()])
    assert ledger.validations.results(span("10:04", "11:00")) == [result()]
    assert ledger.validations.quarantine(span("10:04", "11:00")) == [bad_row()]
    assert ledger.validations.results(span("10:05", "11:00")) == []


def test_validating_a_load_again_replaces_what_was_said(ledger: Ledger) -> None:
    ledger.validations.store([result(), result("two")], [bad_row()])
    ledger.validations.store([result(success=True, observed=None, unexpected_rows=0)], [])
    found = ledger.validations.results(span("10:00", "10:05"))
    assert [(row["load_id"], row["success"]) for row in found] == [("one", True), ("two", False)]
    assert ledger.validations.quarantine(span("10:00", "10:05")) == []


def test_a_row_of_any_length_is_kept_once(ledger: Ledger) -> None:
    long = '{"group": "' + "g" * 10_000 + '"}'
    ledger.validations.store([result()], [bad_row(row=long), bad_row(row=long), bad_row()])
    assert ledger.validations.quarantine(span("10:00", "10:05")) == sorted(
        [bad_row(row=long), bad_row()], key=lambda r: r["row"]
    )


def test_they_are_published_tables_like_any_other(lake: Lake, ledger: Ledger) -> None:
    ledger.validations.store([result()], [bad_row()])
    assert lake.published("validation_results", span("10:00", "10:05")).to_pylist() == [result()]
    assert lake.published("quarantine", span("10:00", "10:05"), ["a"]).to_pylist() == [bad_row()]
