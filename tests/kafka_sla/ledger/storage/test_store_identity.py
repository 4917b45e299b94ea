"""A database and a warehouse that do not belong together are refused by whatever opens them, and nothing is lost."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from kafka_sla.cli.main import main
from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import EVERYTHING
from kafka_sla.model.tables import CONSUMER_LATENCY, LOG_OFFSETS
from tests.kafka_sla.loads import load, points, span

HOUR = span("10:00", "11:00")
MONTH = timedelta(days=30)
MARKER = "kafka_sla_store.json"
CONFIG = """\
clusters: {a: {}}
slas:
  - {name: payments within 30 s, group: payments, topic: orders, max_latency: 30s, objective: 99%}
digests:
  - {name: weekly, every: week, recipients: [team@example.com]}
"""
TIMES = ("--from", "2026-03-02T10:00Z", "--to", "2026-03-02T11:00Z")
COMMANDS = (
    ("check",),
    ("status",),
    ("misses",),
    ("report", *TIMES, "--output", "report.html"),
    ("run", *TIMES),
    ("export", "consumer_latency"),
    ("export", "sla_misses"),
    ("digest", "weekly", "--day", "2026-03-02"),
    ("import", "--log-offsets", "offsets.csv"),
)

_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def a_configured_folder(empty_folder: None) -> None:
    Path("kafka_sla.yml").write_text(CONFIG)
    Path("offsets.csv").write_text(
        "cluster,topic,partition,at,log_start_offset,log_end_offset,source\na,orders,0,2026-03-02T12:00:00Z,,1,x\n"
    )


def filled(store: Store, load_id: str = "1" * 32, minute: str = "10:00") -> Store:
    """The store with one more fact and one more published load."""
    Lake(store).land({LOG_OFFSETS.name: points(minute)})
    load(Lake(store), Ledger(store), load_id, HOUR)
    return store


def copied(store: Store) -> Store:
    """The same warehouse with a copy of the database, as a backup keeps it or a second installation has it."""
    name = f"copy_{next(_numbers)}"
    if store.url.get_backend_name() == "sqlite":
        path = backed_up(Path(str(store.url.database)), f"{name}.db")
        return replace(store, database_url=f"sqlite:///{path}")
    server = create_engine(store.url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:  # nobody may be connected to what is copied
        connection.execute(
            text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"),
            {"name": store.url.database},
        )
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {store.url.database}"))
    server.dispose()
    return replace(store, database_url=make_url(store.database_url).set(database=name).render_as_string(False))


def backed_up(database: Path, name: str) -> Path:
    """A copy beside it, with what is in its write-ahead log."""
    path = database.with_name(name)
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
    return path


def files_of(folder: str | Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def without_marks(store: Store) -> None:
    """A store whose process was killed before it wrote the identity to the database and the marker."""
    Path(store.warehouse, MARKER).unlink()
    engine = create_engine(store.url)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM store_states"))
    engine.dispose()


def settle(store: Store) -> object:
    return Lake(store).maintain(datetime.now(UTC) + MONTH)


def works(store: Store, rows: int = 60) -> None:
    """Reads, writes, and settles without losing anything."""
    assert Lake(store).published("consumer_latency", HOUR).num_rows == rows
    Lake(store).land({LOG_OFFSETS.name: points(f"23:{next(_numbers):02}")})
    settle(store)
    assert Lake(store).published("consumer_latency", HOUR).num_rows == rows


def refused(use: Callable[[Store], object], store: Store, words: str) -> None:
    with pytest.raises(StoreError, match=words) as caught:
        use(store)
    assert "docs/how-to/restore-a-store.md" in str(caught.value) and "\n" not in str(caught.value)


DOORS: tuple[Callable[[Store], object], ...] = (
    lambda store: Ledger(store).verdicts.misses(),
    lambda store: Ledger(store).ingestions.record("a", HOUR),
    lambda store: Ledger(store).publications.publish(["a"], HOUR, "2" * 32, 0),
    lambda store: Lake(store).published("consumer_latency", HOUR),
    lambda store: Lake(store).read_facts(LOG_OFFSETS, HOUR),
    lambda store: Lake(store).append_facts(LOG_OFFSETS, points("10:30")),
    settle,
)


def lost(database: Path) -> None:
    for path in database.parent.glob("kafka_sla.db*"):
        path.unlink()


def emptied(database: Path) -> None:
    lost(database)
    database.touch()


def of_something_else(database: Path) -> None:
    lost(database)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE invoices (number INTEGER)")


def of_another_store(database: Path) -> None:
    lost(database)
    other = filled(Store.embedded(database.parent.with_name("other")))
    backed_up(Path(str(other.url.database)), "other.db").rename(database)


def older(database: Path) -> None:
    """The backup from before the last run."""
    lost(database)
    shutil.copy(database.with_name("before.db"), database)


def torn(database: Path) -> None:
    lost(database)
    database.write_bytes(b"no database" * 1_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lost, "the database sqlite:.*kafka_sla.db does not exist, but the warehouse .* belongs to the store"),
        (emptied, "holds no store, but the warehouse"),
        (of_something_else, "holds no store, but the warehouse"),
        (of_another_store, "belongs to the store .*, but the warehouse .* belongs to the store"),
        (older, "is older than the warehouse .*, or another installation writes there with a copy"),
        (torn, "cannot be read: file is not a database"),
    ],
)
def test_every_command_refuses_a_database_that_is_not_the_warehouses_and_nothing_is_lost(
    damage: Callable[[Path], None], words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = filled(Store.embedded(tmp_path / "store"))
    database = tmp_path / "store" / "kafka_sla.db"
    backed_up(database, "before.db")
    filled(store, "3" * 32, "10:01")
    right, files = backed_up(database, "right.db"), files_of(store.warehouse)
    damage(database)
    wrong = database.exists()

    for command in COMMANDS:
        assert (command, main([*command, "--store", "store"])) == (command, 1)
        out, err = capfd.readouterr()
        said = [line for line in (out + err).splitlines() if line.startswith(("FAIL store: ", "kafka-sla: "))]
        assert len(said) == 1 and re.search(words, said[0]), (command, out, err)
        assert "Traceback" not in out + err
    refused(settle, store, words)
    assert database.exists() == wrong, "no empty database was made"
    assert files_of(store.warehouse) == files

    lost(database)
    right.rename(database)
    works(store)
    assert main(["misses", "--store", "store"]) == 0


def test_every_door_refuses_the_database_of_another_store(store: Store, tmp_path: Path) -> None:
    filled(store)
    other = filled(Store.embedded(tmp_path / "other"))
    before = files_of(store.warehouse) | files_of(other.warehouse)

    for door in DOORS:
        refused(door, replace(other, warehouse=store.warehouse), "belongs to the store .* belongs to the store")
        refused(door, replace(store, warehouse=other.warehouse), "belongs to the store .* belongs to the store")
    assert files_of(store.warehouse) | files_of(other.warehouse) == before


def test_every_door_refuses_an_older_copy_of_the_database(store: Store) -> None:
    backup = copied(filled(store))
    filled(store, "3" * 32)
    before = files_of(store.warehouse)

    for door in DOORS:
        refused(door, backup, "is older than the warehouse")
    assert files_of(store.warehouse) == before
    works(store)


def test_whatever_leaves_files_makes_an_older_copy_old(store: Store) -> None:
    filled(store)
    changes: tuple[Callable[[], object], ...] = (
        lambda: Lake(store).land({LOG_OFFSETS.name: points("10:07")}),
        lambda: Lake(store).append_facts(LOG_OFFSETS, points("10:08")),
        lambda: load(Lake(store), Ledger(store), "3" * 32, HOUR),
        lambda: Lake(store).maintain(),
    )
    for change in changes:
        backup = copied(store)
        change()
        refused(settle, backup, "is older than the warehouse")


def test_of_two_installations_on_one_warehouse_the_second_to_write_is_refused(store: Store) -> None:
    second = copied(filled(store))
    works(second)

    refused(works, store, "another installation writes there")
    works(second)


def test_a_database_lost_while_it_is_in_use_is_noticed_before_anything_is_swept(store: Store, tmp_path: Path) -> None:
    filled(store)
    lake = Lake(store)
    lake.published("consumer_latency", HOUR)
    other = filled(Store.embedded(tmp_path / "other"))
    shutil.copy(Path(other.warehouse, MARKER), Path(store.warehouse, MARKER))
    before = files_of(store.warehouse)

    refused(lambda _: lake.maintain(datetime.now(UTC) + MONTH), store, "belongs to the store")
    assert files_of(store.warehouse) == before


def test_a_store_begins_in_an_empty_folder_only(store: Store) -> None:
    Path(store.warehouse).mkdir()
    Path(store.warehouse, "thesis.tex").write_text("mine")

    for door in DOORS:
        refused(door, store, "is not empty: it holds .*thesis.tex, and the database .* knows nothing of it")
    assert files_of(store.warehouse) == {str(Path(store.warehouse, "thesis.tex")): b"mine"}


def test_who_asks_whether_there_is_a_store_makes_none() -> None:
    assert not Ledger(Store.embedded(Path("stroe"))).has_begun()
    assert not Path("stroe").exists()


@pytest.mark.parametrize("reads", ["verdicts", "publications", "exclusions", "facts", "metrics", "again"])
def test_whoever_reads_a_store_that_is_not_there_sees_none_and_makes_none(reads: str) -> None:
    store = Store.embedded(Path("stroe"))
    ledger, lake = Ledger(store), Lake(store)

    rows = {
        "verdicts": lambda: ledger.verdicts.misses(),
        "publications": lambda: ledger.publications.slices(["prod"], EVERYTHING),
        "exclusions": lambda: ledger.exclusions.listed(None, EVERYTHING),
        "facts": lambda: lake.fact_files(LOG_OFFSETS, None, EVERYTHING.end),
        "metrics": lambda: lake.published(CONSUMER_LATENCY.name, EVERYTHING, None).to_pylist(),
        "again": lambda: [row for _ in range(2) for row in ledger.verdicts.misses()],
    }[reads]()

    assert list(rows) == []
    assert not Path("stroe").exists()
    ledger.open(writing=True)
    assert ledger.has_begun()


def test_a_database_in_whose_place_something_else_lies_is_told(tmp_path: Path) -> None:
    Path("in the way").touch()
    store = Store(str(tmp_path / "warehouse"), f"sqlite:///{tmp_path}/in the way/kafka_sla.db")

    with pytest.raises(StoreError, match=r"no folder can be made .*/in the way/kafka_sla.db: .*; check it"):
        Ledger(store).open(writing=True)
    assert not Path(store.warehouse).exists()


def test_a_warehouse_that_is_not_mounted_is_refused(store: Store) -> None:
    filled(store)
    away = Path(store.warehouse).rename(Path(store.warehouse).with_name("away"))
    Path(store.warehouse).mkdir()

    for door in DOORS:
        refused(door, store, "needs .*/metadata/.*, which is not there")
    Path(store.warehouse).rmdir()
    away.rename(store.warehouse)
    works(store)


def test_a_store_whose_marker_was_never_written_is_marked_by_the_first_write(store: Store) -> None:
    without_marks(filled(store))

    assert Lake(store).published("consumer_latency", HOUR).num_rows == 60
    assert not Path(store.warehouse, MARKER).exists()
    works(store)
    assert Path(store.warehouse, MARKER).exists()


def test_a_warehouse_without_marker_is_refused_by_a_database_that_does_not_fit(store: Store, tmp_path: Path) -> None:
    without_marks(filled(store))
    files = files_of(store.warehouse)
    empty = Store(store.warehouse, f"sqlite:///{tmp_path}/empty.db")
    other = filled(Store.embedded(tmp_path / "other"))
    without_marks(other)

    for door in DOORS:
        refused(door, empty, "is not empty")
        refused(door, replace(other, warehouse=store.warehouse), "which is not there")
    assert files_of(store.warehouse) == files
    assert not (tmp_path / "empty.db").exists()


def test_an_older_copy_goes_on_once_the_marker_is_deleted_and_what_it_sweeps_can_be_put_back(store: Store) -> None:
    backup = copied(filled(store))
    filled(store, "3" * 32)
    marker, trash = Path(store.warehouse, MARKER), Path(store.warehouse, "trash")
    marker.unlink()

    works(backup)
    assert list(trash.rglob("staging/" + "3" * 32)), "the load that the copy does not know"

    refused(works, store, "another installation writes there")
    marker.unlink()
    for sweep in trash.iterdir():
        shutil.copytree(sweep, store.warehouse, dirs_exist_ok=True)
    works(store)


def test_a_damaged_marker_is_refused_and_made_anew_when_it_is_deleted(store: Store) -> None:
    filled(store)
    marker = Path(store.warehouse, MARKER)
    marker.write_text("{")

    for door in DOORS:
        refused(door, store, "kafka_sla_store.json is damaged")
    marker.unlink()
    works(store)


def test_processes_that_begin_a_store_at_once_begin_one_store(store: Store) -> None:
    def begin(minute: int) -> int:
        return Lake(store).land({LOG_OFFSETS.name: points(f"10:{minute:02}")})[LOG_OFFSETS.name]

    with ThreadPoolExecutor(8) as several:
        assert list(several.map(begin, range(8))) == [1] * 8
    assert Lake(store).read_facts(LOG_OFFSETS, HOUR).num_rows == 8
    assert [path for path in Path(store.warehouse).iterdir() if path.suffix == ".part"] == []


KILLED = """
import os, signal, sys
from pathlib import Path
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger

left = int(sys.argv[1])

def kill(event, _):
    global left
    if event in ("sqlite3.connect", "os.link"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(kill)
Ledger(Store.embedded(Path("store"))).open(writing=True)
"""


@pytest.mark.slow
def test_a_store_whose_creation_was_killed_anywhere_is_whole_at_the_next_use(tmp_path: Path) -> None:
    halves = set()
    for steps in itertools.count():
        shutil.rmtree("store", ignore_errors=True)
        path = os.pathsep.join(sys.path)
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(steps)], check=False, env={**os.environ, "PYTHONPATH": path}
        )
        halves.add((Path("store/kafka_sla.db").exists(), Path("store/warehouse", MARKER).exists()))
        store = Store.embedded(Path("store"))
        assert Lake(store).read_facts(LOG_OFFSETS, HOUR).num_rows == 0
        works(filled(store))
        if done.returncode == 0:
            break
        assert done.returncode == -9
    assert halves == {(False, False), (True, False), (True, True)}


def test_the_marker_says_what_it_is_for(store: Store) -> None:
    filled(store)
    read = json.loads(Path(store.warehouse, MARKER).read_text())

    assert "ties the files to their database" in read["about"] and len(read["store_id"]) == 36
