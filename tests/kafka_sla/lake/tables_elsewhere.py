"""`make engines`: DuckDB and Polars, each in an environment of its own, read what is published, and that once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_sla.config.store import Store
from kafka_sla.lake.iceberg import Iceberg
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.tables import CONSUMER_LATENCY
from tests.kafka_sla.loads import load, span

DUCKDB = ("duckdb==1.5.5", "duckdb-extension-avro==1.5.5", "duckdb-extension-iceberg==1.5.5", "pytz")
POLARS = ("polars", "pyiceberg[pyarrow]", "sqlalchemy", "pytz")
_BY_DUCKDB = """
import glob, importlib, json, os, sys, duckdb
database = duckdb.connect(config={"allow_unsigned_extensions": "true"})
for name in ("avro", "iceberg"):
    folder = os.path.dirname(importlib.import_module(f"duckdb_extension_{name}").__file__)
    for path in glob.glob(f"{folder}/**/*.duckdb_extension", recursive=True):
        database.execute(f"LOAD '{path}'")
rows = database.execute(
    "SELECT epoch_ms(window_start), load_id, records_consumed, map_values(latency_histogram) FROM iceberg_scan(?)"
    " ORDER BY window_start", [sys.argv[1]]
).fetchall()
print(json.dumps(rows))
"""
_BY_POLARS = """
import json, sys, polars
found = polars.scan_iceberg(sys.argv[1]).sort("window_start").collect()
starts = found["window_start"].dt.epoch("ms").to_list()
counts = [[of for _, of in sorted(dict(buckets).items())] for buckets in found["latency_histogram"].to_list()]
print(json.dumps(list(zip(starts, found["load_id"], found["records_consumed"], counts))))
"""


@pytest.mark.parametrize(("packages", "program"), [(DUCKDB, _BY_DUCKDB), (POLARS, _BY_POLARS)])
def test_each_published_row_is_read_once_and_none_that_was_replaced(
    store: Store, lake: Lake, ledger: Ledger, packages: tuple[str, ...], program: str
) -> None:
    load(lake, ledger, "first", span("10:00", "11:00"))
    load(lake, ledger, "again", span("10:20", "10:30"), records_consumed=7)
    lake.show(span("0:00", "24:00"), (CONSUMER_LATENCY.name,))
    place = Iceberg(store, ledger.open).table(CONSUMER_LATENCY).metadata_location

    uv = Path(sys.executable).with_name("uv")
    wanted = [part for package in packages for part in ("--with", package)]
    command = [uv, "run", "--quiet", "--isolated", "--no-project", "--python", sys.executable, *wanted, "python", "-c"]
    said = subprocess.run([*command, program, place], capture_output=True, text=True, check=True).stdout

    published = lake.published(CONSUMER_LATENCY.name, span("10:00", "11:00")).to_pylist()
    expected = [
        [
            int(row["window_start"].timestamp() * 1_000),
            "again" if 20 <= row["window_start"].minute < 30 else "first",
            row["records_consumed"],
            [count for _, count in row["latency_histogram"]],
        ]
        for row in published
    ]
    assert json.loads(said.splitlines()[-1]) == expected
