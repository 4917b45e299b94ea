"""What is said when the database or the warehouse refuses, and what is left behind: nothing half-written."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Connection, create_engine, make_url, text

from demo.postgres import with_login
from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.files import has_rows, write_rows
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.staging import staged
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.storage.database import Database
from kafka_sla.model.entities import EVERYTHING, Patterns, Sla, SteadyState
from kafka_sla.model.tables import LOG_OFFSETS
from kafka_sla.reporting.report import write_report
from kafka_sla.spark.job_spec import read_job
from tests.kafka_sla.loads import points, span, stage

SQLITE_BYTES = 40_000
"""SQLite needs a file of 32 KiB beside its own, also to read."""


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """A full disk, without root: writes beyond so many bytes fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def locked(postgres_url: str) -> str:
    """A database address whose login needs its password, which is `r1ght`."""
    return with_login(postgres_url, "locked", "r1ght")


def rows(count: int) -> pa.Table:
    return pa.table({"number": list(range(count))})


def ask_the_ledger(store: Store) -> object:
    return Ledger(store).publications.slices(None, EVERYTHING)


def ask_the_lake(store: Store) -> object:
    return Lake(store).fact_files(LOG_OFFSETS, None, EVERYTHING.end)


def test_a_wrong_database_password_is_told_at_once_and_not_shown(locked: str, tmp_path: Path) -> None:
    wrong = make_url(locked).set(password="wr0ng").render_as_string(hide_password=False)
    began = time.monotonic()

    for use in (ask_the_ledger, ask_the_lake):
        with pytest.raises(StoreError, match=r"locked:\*\*\*@.*password authentication failed.*check that") as told:
            use(Store(str(tmp_path), wrong))
        assert "wr0ng" not in str(told.value)
    assert time.monotonic() - began < 60, "it was asked again, which is done for two minutes"


def test_a_database_that_is_not_there_is_named(postgres_url: str, tmp_path: Path) -> None:
    store = Store(str(tmp_path), make_url(postgres_url).set(database="nowhere").render_as_string(hide_password=False))

    with pytest.raises(StoreError, match='database "nowhere" does not exist'):
        Ledger(store).publications.slices(None, EVERYTHING)


def test_a_database_that_goes_away_in_the_middle_is_told(postgres_url: str, tmp_path: Path) -> None:
    database = Database(Store(str(tmp_path), postgres_url))

    with pytest.raises(StoreError, match=r"cannot be used: .*(terminat|closed)"), database.writing() as connection:
        end(postgres_url, connection)
        connection.execute(text("SELECT 1"))


def end(url: str, connection: Connection) -> None:
    """What a shutdown does to a connection."""
    own = connection.scalar(text("SELECT pg_backend_pid()"))
    engine = create_engine(url)
    with engine.connect() as other:
        other.execute(text(f"SELECT pg_terminate_backend({own})"))
    engine.dispose()


def test_a_full_disk_leaves_the_old_file_and_no_half_of_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "day" / "rows.parquet"
    write_rows(str(path), rows(3))

    with no_file_larger_than(300), pytest.raises(StoreError, match=r"rows.parquet cannot be .*make room"):
        write_rows(str(path), rows(100_000))

    assert [found.name for found in path.parent.iterdir()] == ["rows.parquet"]
    assert pq.read_table(path) == rows(3)


def test_a_full_disk_leaves_the_old_report(tmp_path: Path) -> None:
    path, ledger = tmp_path / "report.html", Ledger(Store.embedded(tmp_path / "store"))
    everything = Patterns()
    slas = [Sla(f"sla {n}", "a", everything, everything, 30_000, 0, 0.99, SteadyState(30_000)) for n in range(100)]
    write_report(path, ledger, slas, span("10:00", "11:00"))
    before = path.read_text()
    assert len(before) > SQLITE_BYTES

    with no_file_larger_than(SQLITE_BYTES), pytest.raises(StoreError, match=r"report.html cannot be .*make room"):
        write_report(path, ledger, slas, span("11:00", "12:00"))

    assert path.read_text() == before
    assert sorted(found.name for found in tmp_path.iterdir()) == ["report.html"]


def test_all_that_a_publication_shows_is_safe_on_the_disk_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    safe, fsync = set(), os.fsync

    def note(handle: int) -> None:
        safe.add(os.path.realpath(f"/proc/self/fd/{handle}").partition(".parquet.")[0])
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    store = Store.embedded(tmp_path)
    lake, interval = Lake(store), span("10:00", "10:05")
    lake.append_facts(LOG_OFFSETS, points("10:00"))
    lake.add_load("load1", interval, stage(lake, "load1", interval))

    written = [path for path in Path(store.warehouse).rglob("*") if path.is_file()]
    assert {path.suffix for path in written} == {".parquet", ".avro", ".json"}
    assert not {str(path).removesuffix(".parquet") for path in written} - {p.removesuffix(".parquet") for p in safe}
    assert {str(path.parent) for path in written} <= safe


def test_a_warehouse_that_is_gone_is_told_and_works_again_when_it_is_back(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    lake = Lake(Store(str(folder / "warehouse"), f"sqlite:///{tmp_path}/kafka_sla.db"))
    folder.write_text("somebody mounted nothing here")

    with pytest.raises(StoreError, match=r"store/warehouse cannot be read or written: .*run it again"):
        lake.fact_files(LOG_OFFSETS, None, EVERYTHING.end)

    folder.unlink()
    assert lake.fact_files(LOG_OFFSETS, None, EVERYTHING.end) == []


@pytest.mark.parametrize(
    "read",
    [
        lambda folder: staged(folder, LOG_OFFSETS),
        lambda folder: read_job(f"{folder}/job.json"),
        lambda folder: has_rows(f"{folder}/rows.parquet"),
    ],
)
def test_what_spark_left_is_told_to_be_out_of_reach_while_the_warehouse_is_gone(
    tmp_path: Path, read: Callable[[str], object]
) -> None:
    folder = tmp_path / "store"
    folder.write_text("somebody mounted nothing here")

    with pytest.raises(StoreError, match=r"store/load.* is not there|store/load.* cannot be read"):
        read(f"{folder}/load")


def test_a_readers_file_stays_whole_while_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_rows(str(path), rows(10_000))

    with path.open("rb") as reading:
        write_rows(str(path), rows(1))
        assert pq.read_table(reading) == rows(10_000)
    assert pq.read_table(path) == rows(1)
