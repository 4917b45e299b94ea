"""What befalls the files of a store is found, and mended as far as files go; what is not damaged stays readable."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from kafka_sla.cli.main import main
from kafka_sla.config.store import Store
from kafka_sla.errors import DamagedTable, StoreError
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.recovery.damage import Damage, Inspection
from kafka_sla.lake.recovery.repair import Repair
from kafka_sla.lake.recovery.store_copy import copy_store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.storage.database import Database
from kafka_sla.model.tables import CONSUMER_LATENCY, LOG_OFFSETS, STEADY_STATE
from kafka_sla.parquet_files import write_options
from tests.kafka_sla.loads import load, points, span

FIRST, SECOND = span("10:00", "10:30"), span("10:30", "11:00")
HOUR = span("10:00", "11:00")


@pytest.fixture
def filled(store: Store) -> Store:
    """Two loads side by side, and facts in two files."""
    lake, ledger = Lake(store), Ledger(store)
    load(lake, ledger, "load1", FIRST)
    load(lake, ledger, "load2", SECOND)
    lake.append_facts(LOG_OFFSETS, points("10:00"))
    lake.append_facts(LOG_OFFSETS, points("10:01"))
    return store


def found(store: Store) -> list[Damage]:
    return list(Inspection(store).damages())


def mend(store: Store) -> None:
    """What the command does, but for measuring again."""
    for kind in ("catalog", "facts"):
        Repair(store).tables([damage for damage in found(store) if damage.kind == kind])
    Repair(store).drop_loads({damage.load_id for damage in found(store) if damage.kind in ("metrics", "load")})


def rows(store: Store) -> list[object]:
    lake = Lake(store)
    return [
        lake.published(CONSUMER_LATENCY.name, HOUR),
        lake.published(STEADY_STATE.name, HOUR),
        lake.read_facts(LOG_OFFSETS, HOUR),
    ]


def file_of(store: Store, pattern: str) -> Path:
    return sorted(Path(store.warehouse).glob(pattern))[0]


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def foreign(path: Path) -> None:
    path.write_text("this is somebody else's file\n" * 40)


def flipped(path: Path) -> None:
    """One bit of the pages: they lie before the footer."""
    content = bytearray(path.read_bytes())
    content[40] ^= 4
    path.write_bytes(content)


def deleted(path: Path) -> None:
    path.unlink()


BREAKAGES = [truncated, foreign, flipped, deleted]


def test_a_whole_store_has_no_damage(filled: Store) -> None:
    assert found(filled) == []


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_a_damaged_file_of_metrics_costs_its_load_and_nothing_else(
    filled: Store, breakage: Callable[[Path], None]
) -> None:
    breakage(file_of(filled, "staging/load1/consumer_latency/*.parquet"))

    (damage,) = found(filled)
    assert (damage.kind, damage.table, damage.interval, damage.clusters, damage.rows) == (
        "metrics",
        "consumer_latency",
        FIRST,
        ("a",),
        30,
    )
    mend(filled)

    assert found(filled) == []
    assert Lake(filled).published(CONSUMER_LATENCY.name, HOUR).num_rows == 30
    assert Ledger(filled).publications.incomplete(["a"], HOUR)


def test_a_column_that_a_flipped_bit_renamed_is_damage_and_one_that_older_files_lack_is_none(filled: Store) -> None:
    """Names stand in the footer, which has no checksum."""
    path = Path(Lake(filled).fact_files(LOG_OFFSETS, None, HOUR.end)[0].removeprefix("file://"))
    rows = pq.read_table(path)
    older = rows.drop_columns("log_start_offset")
    pq.write_table(older, path, **write_options(older.schema))
    assert list(Inspection(filled).damages()) == []

    renamed = rows.rename_columns([name.replace("cluster", "bluster") for name in rows.column_names])
    pq.write_table(renamed, path, **write_options(renamed.schema))

    (damage,) = Inspection(filled).damages()
    assert "holds a column 'bluster', which its table never had, and lacks 'cluster'" in damage.problem


@pytest.mark.slow
@pytest.mark.parametrize("breakage", BREAKAGES)
def test_a_damaged_file_of_facts_costs_its_rows(filled: Store, breakage: Callable[[Path], None]) -> None:
    breakage(file_of(filled, "facts/log_offsets/*/*.parquet"))

    (damage,) = found(filled)
    assert (damage.kind, damage.table, damage.rows) == ("facts", "log_offsets", 1)
    assert damage.interval == span("00:00", "24:00")
    mend(filled)

    assert found(filled) == []
    assert Lake(filled).read_facts(LOG_OFFSETS, HOUR).num_rows == 1
    assert Lake(filled).published(CONSUMER_LATENCY.name, HOUR).num_rows == 60


def test_row_groups_that_can_be_read_are_kept(filled: Store) -> None:
    path = file_of(filled, "facts/log_offsets/*/*.parquet")
    rows = points("10:02", "10:03", "10:04")
    pq.write_table(rows, path, row_group_size=1, **write_options(rows.schema))
    flipped(path)

    assert [damage.kind for damage in found(filled)] == ["facts"]
    mend(filled)

    assert Lake(filled).read_facts(LOG_OFFSETS, HOUR).num_rows == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "file", "breakage"),
    [
        ("consumer_latency", "*.metadata.json", truncated),
        ("log_offsets", "*.metadata.json", deleted),
        ("log_offsets", "snap-*.avro", foreign),
        ("consumer_latency", "*-m0.avro", deleted),
        ("consumer_latency", "*-m0.avro", truncated),
    ],
)
def test_a_table_whose_metadata_is_damaged_is_made_anew_with_the_same_rows(
    filled: Store, table: str, file: str, breakage: Callable[[Path], None]
) -> None:
    before = rows(filled)
    for path in Path(filled.warehouse).glob(f"kafka_sla/{table}/metadata/{file}"):
        breakage(path)

    with pytest.raises(DamagedTable, match=f"the table {table} cannot be read.*kafka-sla store repair"):
        rows(filled)
    assert [(damage.kind, damage.where) for damage in found(filled)] == [("catalog", table)]
    mend(filled)

    assert found(filled) == []
    assert rows(filled) == before
    Lake(filled).maintain()
    load(Lake(filled), Ledger(filled), "load3", FIRST)
    assert rows(filled)[:1] == before[:1]


def test_facts_that_were_compacted_are_not_there_twice_afterwards(filled: Store) -> None:
    lake = Lake(filled)
    for minute in range(2, 12):
        lake.append_facts(LOG_OFFSETS, points(f"10:{minute:02}"))
    lake.maintain()
    before = rows(filled)
    for path in Path(filled.warehouse).glob("kafka_sla/log_offsets/metadata/*.metadata.json"):
        deleted(path)

    mend(filled)

    assert rows(filled) == before


def test_a_published_load_that_no_table_names_is_found(filled: Store) -> None:
    with Database(filled).engine.begin() as connection:
        there = dict(
            connection.execute(text("SELECT table_name, previous_metadata_location FROM iceberg_tables")).all()
        )
        connection.execute(
            text("UPDATE iceberg_tables SET metadata_location = :there WHERE table_name = 'consumer_latency'"),
            {"there": there["consumer_latency"]},
        )

    assert [(damage.kind, damage.where, damage.interval) for damage in found(filled)] == [("load", "load2", SECOND)]
    mend(filled)
    assert found(filled) == []
    assert Lake(filled).published(CONSUMER_LATENCY.name, HOUR).num_rows == 30


def test_a_damaged_database_is_told_by_what_sqlite_says_of_it(tmp_path: Path) -> None:
    store = Store.embedded(tmp_path)
    lake, ledger = Lake(store), Ledger(store)
    for number in range(200):
        ledger.ingestions.record(f"cluster-{number:03}.eu-west-1", HOUR)
    load(lake, ledger, "load1", HOUR)
    path = tmp_path / "kafka_sla.db"
    with Database(store).engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    at = content.index(b"cluster-150.eu-west-1")
    content[at - 400 : at - 300] = b"\xff" * 100
    path.write_bytes(content)

    with pytest.raises(StoreError, match=r"kafka_sla\.db.* is damaged.*restore a backup"):
        found(store)


@pytest.fixture
def embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    store = Store.embedded(tmp_path / "store")
    load(Lake(store), Ledger(store), "load1", FIRST)
    load(Lake(store), Ledger(store), "load2", SECOND)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA_SLA_STORE", str(tmp_path / "store"))
    yield store


def test_the_commands_say_what_is_damaged_and_change_nothing_unless_they_may(
    embedded: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--store", "store"]
    assert main(["store", "check", *command]) == 0
    assert capsys.readouterr().out == "ok   4 files with 120 rows: all as they were written\n"

    damaged = file_of(embedded, "staging/load1/consumer_latency/*.parquet")
    truncated(damaged)
    assert main(["store", "check", *command]) == 1
    said = capsys.readouterr().out
    assert f"FAIL {damaged}: cannot be read" in said
    assert f"touches consumer_latency: {FIRST} of a\n     repair: measured again from stored facts" in said

    assert main(["store", "repair", "--without-measuring", *command]) == 2
    assert "nothing was changed: answer y, or say --yes" in capsys.readouterr().err
    assert damaged.exists()

    assert main(["store", "repair", "--without-measuring", "--yes", *command]) == 0
    assert "ok   2 files with 60 rows" in capsys.readouterr().out
    assert [path.name for path in Path(embedded.warehouse).glob("trash/*/staging/load1/consumer_latency/*")] == [
        damaged.name
    ]


def test_a_copy_is_used_like_the_store_and_knows_nothing_that_came_later(filled: Store, tmp_path: Path) -> None:
    before, there = rows(filled), Store.embedded(tmp_path / "a copy [of it]")
    copy_store(filled, there)
    load(Lake(filled), Ledger(filled), "load3", FIRST, records_consumed=7)
    shutil.move(filled.warehouse, tmp_path / "gone")

    assert rows(there) == before
    assert found(there) == []
    load(Lake(there), Ledger(there), "load4", HOUR)
    Lake(there).maintain()
    assert found(there) == []


def test_a_copy_goes_to_postgres_and_numbers_on_there(tmp_path: Path, store: Store) -> None:
    source = Store.embedded(tmp_path / "source")
    load(Lake(source), Ledger(source), "load1", HOUR)

    copy_store(source, store)
    load(Lake(store), Ledger(store), "load2", FIRST)

    assert [one.load_id for one in Ledger(store).publications.slices(["a"], HOUR)] == ["load2", "load1"]
    with pytest.raises(StoreError, match="is there already: name an empty place for the copy"):
        copy_store(source, store)
