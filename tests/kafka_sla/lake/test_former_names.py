"""Files in the words of an earlier version: they are read in today's, and nothing of them is landed twice."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_sla.config.store import Store
from kafka_sla.files import write_rows
from kafka_sla.lake.catalogs import connect
from kafka_sla.lake.iceberg import Iceberg
from kafka_sla.lake.import_files import read_rows
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.recovery.damage import Damage, Inspection
from kafka_sla.lake.recovery.relocation import move
from kafka_sla.lake.recovery.repair import Repair
from kafka_sla.lake.table_layout import NAMESPACE, location_of, new_table
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.arrow_schemas import arrow_rows, arrow_schema
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_LATENCY, REPLICA_FETCHES, STEADY_STATE, Column, Table
from tests.kafka_sla.loads import at, load, span, stage

HOUR = span("10:00", "11:00")
FORMER = {
    "fetcher_thread": "fetcher",
    "steady_whole_window": "steady_throughout",
    "records_over_threshold": "records_over",
}


def former(table: Table) -> Table:
    """The table as it was before its columns were renamed."""
    names = {name: FORMER.get(name, name) for name in table.names}
    columns = tuple(Column(names[c.name], c.type, c.nullable, c.comment) for c in table.columns)
    return replace(table, columns=columns, key=tuple(names[name] for name in table.key))


def fetches(table: Table, clock: str) -> pa.Table:
    rows = [{"cluster": "a", "follower": 1, "leader": 0, "at": at(clock), "responses": 10, "io_wait_ms": 5.0}]
    return arrow_rows(table, [row | {table.names[3]: 3} for row in rows])


@pytest.fixture
def lake(store: Store) -> Lake:
    """With a fact and a published load that an earlier version wrote."""
    lake = Lake(store)
    Ledger(store).open(writing=True)
    facts = f"{store.warehouse}/facts/replica_fetches/before.parquet"
    write_rows(facts, fetches(former(REPLICA_FETCHES), "10:00"))
    added(store, former(REPLICA_FETCHES), facts)
    staged = stage(lake, "old", span("10:00", "10:02"))
    Path(staged[CONSUMER_LATENCY.name][0]).unlink()
    (load_file,) = staged[STEADY_STATE.name]
    rows = pq.ParquetFile(load_file).read()
    rows = rows.set_column(rows.column_names.index("reason"), "reason", pa.array(["grace_over"] * rows.num_rows))
    pq.write_table(rows.rename_columns([FORMER.get(name, name) for name in rows.column_names]), load_file)
    added(store, former(STEADY_STATE), load_file)
    Ledger(store).publications.publish(["a"], span("10:00", "10:02"), "old", 0)
    return lake


def added(store: Store, table: Table, file: str) -> None:
    """As that version did: all loads of a table were on its one branch."""
    place = location_of(store.warehouse, table)
    with new_table(connect(store), (NAMESPACE, table.name), table, place).transaction() as transaction:
        transaction.add_files([file])


def test_facts_of_both_versions_are_read_together_and_landed_once(lake: Lake) -> None:
    assert lake.append_facts(REPLICA_FETCHES, fetches(REPLICA_FETCHES, "10:00")) == 0, "it is there already"
    assert lake.append_facts(REPLICA_FETCHES, fetches(REPLICA_FETCHES, "10:01")) == 1

    assert lake.read_facts(REPLICA_FETCHES, HOUR)["fetcher_thread"].to_pylist() == [3, 3]


def test_loads_of_both_versions_are_read_together(lake: Lake, store: Store) -> None:
    load(lake, Ledger(store), "new", span("10:02", "10:04"))

    rows = lake.published(STEADY_STATE.name, HOUR)
    assert rows["steady_whole_window"].to_pylist() == [True] * 4
    assert rows["records_over_threshold"].to_pylist() == [0] * 4
    assert rows["reason"].to_pylist() == ["grace_period_over"] * 2 + ["caught_up"] * 2


def test_other_readers_of_iceberg_see_one_column_too(lake: Lake, store: Store) -> None:
    lake.append_facts(REPLICA_FETCHES, fetches(REPLICA_FETCHES, "10:01"))

    rows = Iceberg(store, Ledger(store).open).table(REPLICA_FETCHES).scan().to_arrow()
    assert rows.column_names == list(REPLICA_FETCHES.names)
    assert rows["fetcher_thread"].to_pylist() == [3, 3]


def test_a_store_of_both_versions_is_moved(lake: Lake, store: Store, tmp_path: Path) -> None:
    load(lake, Ledger(store), "new", span("10:02", "10:04"))
    lake.append_facts(REPLICA_FETCHES, fetches(REPLICA_FETCHES, "10:01"))
    before = [lake.published(STEADY_STATE.name, HOUR), lake.read_facts(REPLICA_FETCHES, HOUR)]
    there = replace(store, warehouse=str(tmp_path / "there"))
    shutil.copytree(store.warehouse, there.warehouse)

    assert move(there).files == 5
    moved = Lake(there)
    assert [moved.published(STEADY_STATE.name, HOUR), moved.read_facts(REPLICA_FETCHES, HOUR)] == before
    by_others = Iceberg(there, Ledger(there).open).table(REPLICA_FETCHES).scan().to_arrow()
    assert by_others["fetcher_thread"].to_pylist() == [3, 3]


def test_a_table_of_both_versions_is_made_anew(lake: Lake, store: Store) -> None:
    load(lake, Ledger(store), "new", span("10:02", "10:04"))
    before = lake.published(STEADY_STATE.name, HOUR)
    Path(Iceberg(store, Ledger(store).open).table(STEADY_STATE).metadata_location).write_text("{}")

    for _ in range(2):
        Repair(store).tables([Damage("catalog", STEADY_STATE.name, "", STEADY_STATE.name)])
        assert Lake(store).published(STEADY_STATE.name, HOUR) == before
    assert list(Inspection(store).damages()) == []


def test_a_position_under_the_former_source_is_not_landed_again(store: Store) -> None:
    lake = Lake(store)
    row = {
        "cluster": "a",
        "group": "billing",
        "topic": "orders",
        "partition": 0,
        "at": at("10:00"),
        "committed_offset": 5,
    }
    lake.append_facts(COMMITTED_OFFSETS, arrow_rows(COMMITTED_OFFSETS, [row | {"source": "unchanged"}]))

    today = arrow_rows(COMMITTED_OFFSETS, [row | {"source": "poll_confirmed"}])
    assert lake.append_facts(COMMITTED_OFFSETS, today) == 0
    assert lake.read_facts(COMMITTED_OFFSETS, HOUR).equals(today)


def test_an_exported_file_is_imported_with_todays_source(tmp_path: Path) -> None:
    file = tmp_path / "committed.csv"
    names = ",".join(arrow_schema(COMMITTED_OFFSETS).names)
    file.write_text(f"{names}\na,billing,orders,0,2026-03-02T10:00:00Z,5,unchanged\n")

    assert read_rows(COMMITTED_OFFSETS, file, ["a"])["source"].to_pylist() == ["poll_confirmed"]
