"""Names that a spreadsheet would compute, in files of the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_sla.lake.files.export_files import write_file

NAMES = ["=cmd|'/c calc'!A1", "+1", "-1", "@x", "\tx", "orders", "", None]


@pytest.mark.parametrize("name", NAMES)
def test_a_csv_holds_no_formula(tmp_path: Path, name: str | None) -> None:
    target = tmp_path / "rows.csv"

    write_file(pa.table({"group": pa.array([name], pa.string()), "lag": [-1]}), "csv", target)

    with target.open(newline="") as file:
        (row,) = list(csv.DictReader(file))
    computed = bool(name) and name[0] in "=+-@\t"
    assert row == {"group": f"'{name}" if computed else name or "", "lag": "-1"}


def test_other_formats_hold_names_as_they_are(tmp_path: Path) -> None:
    rows = pa.table({"group": ["=1+1"]})
    for form in ("json", "parquet"):
        write_file(rows, form, tmp_path / f"rows.{form}")  # type: ignore[arg-type]

    assert json.loads((tmp_path / "rows.json").read_text()) == [{"group": "=1+1"}]
    assert pq.read_table(tmp_path / "rows.parquet").to_pylist() == [{"group": "=1+1"}]
