"""A store that is somewhere else than it was: told, never half-read, and moved by one command."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafka_sla.cli.main import main
from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.lake.lake import Lake
from kafka_sla.lake.recovery.relocation import Moved, move
from kafka_sla.lake.recovery.store_copy import copy_store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.tables import CONSUMER_LATENCY, LOG_OFFSETS
from tests.kafka_sla.databases import in_each
from tests.kafka_sla.loads import load, points, span

HOUR = span("10:00", "11:00")


database = in_each


def filled(store: Store) -> Store:
    """Two loads, the second in the place of half of the first, and facts in two files."""
    lake, ledger = Lake(store), Ledger(store)
    load(lake, ledger, "load1", HOUR)
    load(lake, ledger, "load2", span("10:30", "11:00"))
    lake.append_facts(LOG_OFFSETS, points("10:00"))
    lake.append_facts(LOG_OFFSETS, points("10:01"))
    return store


def content(store: Store) -> list[object]:
    lake = Lake(store)
    return [lake.published(CONSUMER_LATENCY.name, HOUR), lake.read_facts(LOG_OFFSETS, HOUR)]


def elsewhere(store: Store, folder: Path) -> Store:
    """The store with its warehouse copied to another folder; an embedded one with its database."""
    shutil.copytree(store.warehouse, folder / "warehouse")
    if store.url.get_backend_name() != "sqlite":
        return Store(str(folder / "warehouse"), store.database_url)
    for path in Path(store.warehouse).parent.glob("kafka_sla.db*"):
        shutil.copy(path, folder)
    return Store.embedded(folder)


def test_a_moved_store_is_refused_until_its_tables_are_moved_and_has_its_rows_then(
    store: Store, tmp_path: Path
) -> None:
    before = content(filled(store))
    there = elsewhere(store, tmp_path / "an other [place]")
    shutil.rmtree(store.warehouse)

    with pytest.raises(StoreError, match=r"its warehouse is .*other.*run `kafka-sla store move`"):
        content(there)
    assert move(there).files == 6
    assert content(there) == before
    assert move(there) == Moved(0, 0)


def test_a_moved_store_is_not_copied_until_its_tables_are_moved(store: Store, tmp_path: Path) -> None:
    there = elsewhere(filled(store), tmp_path / "there")
    target = Store.embedded(tmp_path / "target")

    with pytest.raises(StoreError, match=r"its warehouse is .*run `kafka-sla store move`"):
        copy_store(there, target)
    assert not (tmp_path / "target").exists()

    before = content(store)
    move(there)
    copy_store(there, target)
    assert content(target) == before


def test_a_moved_store_takes_new_rows_and_is_tidied(store: Store, tmp_path: Path) -> None:
    there = elsewhere(filled(store), tmp_path / "there")
    old = sorted(path.name for path in Path(store.warehouse).rglob("*"))
    move(there)
    lake = Lake(there)

    load(lake, Ledger(there), "load3", HOUR)
    assert lake.append_facts(LOG_OFFSETS, points("10:01", "10:02")) == 1
    lake.maintain()

    assert lake.read_facts(LOG_OFFSETS, HOUR).num_rows == 3
    assert lake.published(CONSUMER_LATENCY.name, HOUR).num_rows == 60
    assert sorted(path.name for path in Path(store.warehouse).rglob("*")) == old


def test_a_copy_that_lacks_a_file_stays_as_it_was(store: Store, tmp_path: Path) -> None:
    there = elsewhere(filled(store), tmp_path / "there")
    lost = next(Path(there.warehouse).glob("facts/*/*/*.parquet"))
    lost.rename(tmp_path / "kept")

    with pytest.raises(StoreError, match=r"\.parquet is not there, as 1 of 2 files of log_offsets: copy all of"):
        move(there)

    (tmp_path / "kept").rename(lost)
    move(there)
    assert Lake(there).read_facts(LOG_OFFSETS, HOUR).num_rows == 2


def test_the_command_says_what_it_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = elsewhere(filled(Store.embedded(tmp_path / "here")), tmp_path / "there")
    monkeypatch.chdir(tmp_path)

    assert main(["store", "move", "--store", "there"]) == 0
    assert capsys.readouterr().out == f"{there.warehouse}: 3 tables moved, 6 files in them\n"
