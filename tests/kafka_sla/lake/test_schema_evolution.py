"""A later version adds a column to an Iceberg table: existing rows have null in it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_sla.config.store import Store
from kafka_sla.lake.iceberg import Iceberg
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.tables import CONSUMER_LATENCY, LOG_OFFSETS, Table
from tests.kafka_sla.loads import load, points, span, stage


def remove_column(table: Table, name: str) -> Table:
    return replace(table, columns=tuple(column for column in table.columns if column.name != name))


def test_existing_facts_have_null_in_a_new_column(store: Store) -> None:
    before = remove_column(LOG_OFFSETS, "log_start_offset")
    Lake(store).append_facts(before, points("10:00").select(before.names))

    newer = points("10:01").set_column(4, "log_start_offset", pa.array([7], pa.int64())).select(LOG_OFFSETS.names)
    assert Lake(store).append_facts(LOG_OFFSETS, newer) == 1

    rows = Lake(store).read_facts(LOG_OFFSETS, span("10:00", "10:02"))
    assert rows["log_start_offset"].to_pylist() == [None, 7]
    assert rows["log_end_offset"].to_pylist() == [600, 601]


def test_a_table_without_the_new_column_can_be_read(store: Store) -> None:
    before = remove_column(LOG_OFFSETS, "log_start_offset")
    Lake(store).append_facts(before, points("10:00").select(before.names))

    assert Lake(store).read_facts(LOG_OFFSETS, span("10:00", "10:02")).equals(points("10:00"))


def test_existing_loads_have_null_in_a_new_required_column(store: Store) -> None:
    before = remove_column(CONSUMER_LATENCY, "records_consumed")
    lake, ledger = Lake(store), Ledger(store)
    Iceberg(store, ledger.open).table(before)
    (path,) = stage(lake, "old", span("10:00", "10:02"))[CONSUMER_LATENCY.name]
    pq.write_table(pq.ParquetFile(path).read().drop_columns(["records_consumed"]), path)
    lake.add_load("old", span("10:00", "10:02"), {CONSUMER_LATENCY.name: [path]})
    ledger.publications.publish(["a"], span("10:00", "10:02"), "old", 0)
    load(lake, ledger, "new", span("10:02", "10:04"))

    rows = Lake(store).published(CONSUMER_LATENCY.name, span("10:00", "10:04"))

    assert rows["records_consumed"].to_pylist() == [None, None, 602, 603]
