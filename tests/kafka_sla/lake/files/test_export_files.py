"""Rows as files that other programs read."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_sla.lake.files.export_files import Format, write_file, write_stream
from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.tables import CONSUMER_LATENCY, SLA_WINDOWS

AT = datetime(2026, 11, 1, 2, 0, 0, 123456, tzinfo=UTC)


def latency(**columns: Any) -> dict[str, Any]:
    defaults = {"cluster": "prod", "group": "g", "topic": "t", "partition": 0, "window_start": AT, "window_end": AT}
    counts = {"records_consumed": 3, "negative_latency_records": 0, "unknown_latency_records": 0, "polled_only": False}
    return {**defaults, **counts, **columns}


def rows(*given: dict[str, Any]) -> pa.Table:
    return arrow_rows(CONSUMER_LATENCY, given)


def text(table: pa.Table, form: Format) -> str:
    stream = io.BytesIO()
    write_stream(table, form, stream)
    return stream.getvalue().decode()


def test_csv_has_times_in_utc_milliseconds_maps_as_json_and_nothing_for_null() -> None:
    header, line = text(rows(latency(latency_histogram={0: 1, 12: 2}, group='a,"b"')), "csv").splitlines()
    assert header == ",".join(CONSUMER_LATENCY.names)
    assert line.startswith('prod,"a,""b""",t,0,2026-11-01T02:00:00.123Z,2026-11-01T02:00:00.123Z,3,,,')
    assert '"{""0"":1,""12"":2}"' in line


def test_json_is_one_array_with_objects_for_maps() -> None:
    found = json.loads(text(rows(latency(latency_histogram={0: 1, 12: 2}), latency(group="é")), "json"))
    assert [row["group"] for row in found] == ["g", "é"]
    assert found[0]["latency_histogram"] == {"0": 1, "12": 2}
    assert (found[0]["window_start"], found[0]["records_latency_ms"]) == ("2026-11-01T02:00:00.123Z", None)
    assert list(found[0]) == list(CONSUMER_LATENCY.names)


def test_no_rows_are_a_header_in_csv_and_an_empty_array_in_json() -> None:
    assert text(rows(), "csv") == ",".join(CONSUMER_LATENCY.names) + "\n"
    assert json.loads(text(rows(), "json")) == []


def test_truth_is_written_in_small_letters() -> None:
    window = {"sla": "s", "cluster": "c", "window_start": AT, "window_end": AT, "verdict": "good", "is_certain": True}
    counts = (
        "steady_partitions",
        "bootstrapping_partitions",
        "unknown_partitions",
        "records_due",
        "records_late",
        "records_late_low",
        "records_late_high",
        "records_of_unknown_state",
    )
    table = arrow_rows(SLA_WINDOWS, [{**window, "max_latency_ms": 1, **dict.fromkeys(counts, 0)}])
    assert ",good,true," in text(table, "csv")


def test_parquet_keeps_the_contract(tmp_path: Path) -> None:
    table = rows(latency(latency_histogram={0: 1}))
    write_file(table, "parquet", tmp_path / "it's.parquet")
    assert pq.read_table(tmp_path / "it's.parquet").equals(table)


def test_a_file_is_replaced_whole_or_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    target.write_text("before")
    broken = pa.table({"at": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(pa.ArrowException):
        write_file(broken, "parquet", target)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("rows.csv", "before")]
    write_file(rows(), "csv", target)
    assert [p.name for p in tmp_path.iterdir()] == ["rows.csv"] and target.read_text() != "before"
