"""The door to DuckDB: what goes in by name comes out as rows, and its errors are ours."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_sla.errors import StoreError
from kafka_sla.files import write_rows
from kafka_sla.sql import database

LAGS = pa.table({"topic": ["payments.orders-created", "billing.alerts"], "lag": [7, 0]})


def test_values_that_a_query_does_not_name_are_left_out() -> None:
    with database(lags=LAGS) as db:
        assert db.rows("SELECT topic FROM lags WHERE lag > $least", least=5, unused=1) == [
            {"topic": "payments.orders-created"}
        ]


def test_times_are_utc() -> None:
    at = datetime(2026, 11, 1, 12, tzinfo=UTC)

    with database() as db:
        db.set(at=at)
        assert db.rows("SELECT strftime(getvariable('at'), '%H:%M') AS clock, $at AS at", at=at) == [
            {"clock": "12:00", "at": at}
        ]


def test_no_variable_of_python_is_taken_for_a_table() -> None:
    query = LAGS  # noqa: F841

    with database() as db, pytest.raises(StoreError, match="query"):
        db.rows("SELECT * FROM query")


def test_a_file_that_is_gone_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with database() as db, pytest.raises(StoreError, match=r"gone\.parquet cannot be read.+`kafka-sla store check`"):
        db.add_files("files", [str(tmp_path / "gone.parquet")])


def test_a_column_that_no_file_has_is_named_and_one_that_the_schema_declares_is_unknown(tmp_path: Path) -> None:
    write_rows(path := str(tmp_path / "lags.parquet"), LAGS)

    with database() as db:
        db.add_files("files", [path])
        with pytest.raises(StoreError, match="age_ms"):
            db.rows("SELECT age_ms FROM files")
        db.add_files("declared", [path], LAGS.schema.append(pa.field("age_ms", pa.float64())))
        assert [None, None] == [row["age_ms"] for row in db.rows("SELECT age_ms FROM declared")]
