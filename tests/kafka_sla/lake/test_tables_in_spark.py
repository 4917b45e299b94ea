"""A real Spark with Iceberg's own reader reads what is published, as we read it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from demo.jars import ICEBERG_SPARK, fetch_jars
from kafka_sla.config.store import Store
from kafka_sla.lake.iceberg import Iceberg
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.tables import CONSUMER_LATENCY, LOG_OFFSETS, Table
from tests.kafka_sla.loads import load, points, span

pytestmark = pytest.mark.slow

_READ = """
import json, sys
from pyspark.sql import SparkSession
jars, *tables = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").config("spark.jars", jars).config("spark.ui.enabled", "false")
spark = spark.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
spark = spark.config("spark.sql.session.timeZone", "UTC").getOrCreate()
rows = [spark.read.format("iceberg").load(place).toJSON().collect() for place in tables]
print(json.dumps([[json.loads(row) for row in table] for table in rows]))
"""


def by_spark(store: Store, ledger: Ledger, *tables: Table) -> list[list[dict[str, object]]]:
    """The rows of these tables."""
    places = [Iceberg(store, ledger.open).table(table).metadata_location for table in tables]
    jars = ",".join(str(path) for path in Path(fetch_jars(jars=ICEBERG_SPARK)).glob("*.jar"))
    command = [sys.executable, "-c", _READ, jars, *places]
    own = {"SPARK_LOCAL_IP": "127.0.0.1", "TZ": "UTC"}
    ended = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3_000:]
    found: list[list[dict[str, object]]] = json.loads(ended.stdout.splitlines()[-1])
    return found


def test_spark_reads_facts_and_what_is_published_and_none_of_what_was_replaced(
    store: Store, lake: Lake, ledger: Ledger
) -> None:
    lake.land({LOG_OFFSETS.name: points(*(f"10:{minute:02}" for minute in range(60)))})
    load(lake, ledger, "first", span("10:00", "11:00"))
    load(lake, ledger, "again", span("10:20", "10:30"), records_consumed=7)
    lake.show(span("0:00", "24:00"), (CONSUMER_LATENCY.name,))

    facts, latency = by_spark(store, ledger, LOG_OFFSETS, CONSUMER_LATENCY)

    kept = lake.read_facts(LOG_OFFSETS, span("10:00", "11:00"))
    assert sorted(row["log_end_offset"] for row in facts) == kept["log_end_offset"].to_pylist()
    published = lake.published(CONSUMER_LATENCY.name, span("10:00", "11:00"))
    columns = ("records_consumed", "records_latency_ms", "latency_histogram", "committed_offset")
    by_time = sorted(latency, key=lambda row: str(row["window_start"]))
    assert [[_plain(row.get(name)) for name in columns] for row in by_time] == _rows(published, columns)


def _rows(table: pa.Table, columns: tuple[str, ...]) -> list[list[object]]:
    return [[_plain(row[name]) for name in columns] for row in table.to_pylist()]


def _plain(value: object) -> object:
    """A map as JSON has it."""
    return {str(key): count for key, count in value} if isinstance(value, list) else value
