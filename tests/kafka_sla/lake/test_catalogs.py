"""Tables that another catalog than the store's database names: a real one behind REST, the same rows, no confusion."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from demo.broker import free_ports
from kafka_sla.cli.main import main
from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Connection
from kafka_sla.model.tables import CONSUMER_LATENCY, LOG_OFFSETS
from tests.kafka_sla.lake.rest_catalog import rest_catalog
from tests.kafka_sla.loads import load, points, span

HOUR = span("10:00", "11:00")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with rest_catalog(tmp_path_factory.mktemp("catalog")) as found:
        yield found


def connection_to(folder: Path, catalog: Any) -> Connection:
    extra = {"warehouse": str(folder / "warehouse"), "catalog": catalog}
    return Connection("kafka_sla_store", host=str(folder / "kafka_sla.db"), conn_type="sqlite", extra=extra)


def store_at(folder: Path, address: str, **catalog: str) -> Store:
    return Store.from_connection(connection_to(folder, {"type": "rest", "uri": address, **catalog}))


@pytest.fixture
def store(tmp_path: Path, address: str) -> Iterator[Store]:
    """A store whose tables are dropped again: a catalog is that of one store."""
    yield store_at(tmp_path, address)
    catalog = load_catalog("kafka_sla", type="rest", uri=address)
    for name in catalog.list_tables("kafka_sla") if catalog.namespace_exists("kafka_sla") else ():
        catalog.drop_table(name)


@pytest.mark.slow
def test_rows_are_published_replaced_and_tidied_as_with_the_catalog_of_the_database(
    store: Store, tmp_path: Path
) -> None:
    own = Store.embedded(tmp_path / "own")
    for one in (store, own):
        lake, ledger = Lake(one), Ledger(one)
        ledger.open(writing=True)
        assert lake.land({LOG_OFFSETS.name: points("10:03", "10:04")})[LOG_OFFSETS.name] == 2
        assert lake.land({LOG_OFFSETS.name: points("10:04", "10:05")})[LOG_OFFSETS.name] == 1
        load(lake, ledger, "first", HOUR)
        load(lake, ledger, "second", span("10:30", "11:00"), partitions=2)
        lake.maintain(datetime.now(UTC) + timedelta(days=30))

    there, here = (Lake(one).published(CONSUMER_LATENCY.name, HOUR) for one in (store, own))
    assert there.num_rows == 30 + 60
    assert there.sort_by([("window_start", "ascending"), ("partition", "ascending")]).equals(
        here.sort_by([("window_start", "ascending"), ("partition", "ascending")])
    )


def test_another_engine_reads_what_is_published_through_the_catalog(store: Store, address: str) -> None:
    lake, ledger = Lake(store), Ledger(store)
    load(lake, ledger, "first", HOUR)
    lake.show(HOUR, [CONSUMER_LATENCY.name])

    table = load_catalog("anybody", type="rest", uri=address).load_table(f"kafka_sla.{CONSUMER_LATENCY.name}")

    assert table.scan().to_arrow().num_rows == 60
    assert table.metadata_location.startswith(f"{store.warehouse}/kafka_sla/{CONSUMER_LATENCY.name}/metadata/")


def test_commands_work_and_say_which_cannot(
    store: Store, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load(Lake(store), Ledger(store), "first", HOUR, ["prod"])
    connection = connection_to(tmp_path, {"type": "rest", "uri": address})
    as_json = {"conn_type": connection.conn_type, "host": connection.host, "extra": connection.extra}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_SLA_STORE", json.dumps(as_json))
    monkeypatch.chdir(tmp_path)
    Path("kafka_sla.yml").write_text("clusters: {prod: {}}\nslas: []\n")

    assert main(["export", CONSUMER_LATENCY.name, "--output", "rows.csv"]) == 0
    assert len(Path("rows.csv").read_text().splitlines()) == 61
    assert main(["store", "check"]) == 0
    capsys.readouterr()
    assert main(["store", "copy", str(tmp_path / "copy")]) != 0
    assert f"the tables of this store are in the rest catalog {address}" in " ".join(capsys.readouterr().err.split())


def test_writers_that_race_lose_and_repeat_nothing(store: Store) -> None:
    minutes = [f"10:{minute:02}" for minute in range(12)]
    Ledger(store).open(writing=True)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda minute: Lake(store).land({LOG_OFFSETS.name: points(minute, "10:30")}), minutes))

    assert Lake(store).read_facts(LOG_OFFSETS, HOUR).num_rows == 13


def test_a_store_does_not_change_its_catalog_unnoticed(store: Store, tmp_path: Path, address: str) -> None:
    load(Lake(store), Ledger(store), "first", HOUR)
    (port,) = free_ports(1)

    for other in (Store(store.warehouse, store.database_url), store_at(tmp_path, f"http://127.0.0.1:{port}")):
        with pytest.raises(StoreError, match=f"are named by the rest catalog {address}, not by the") as caught:
            Lake(other).published(CONSUMER_LATENCY.name, HOUR)
        assert "nothing was changed" in str(caught.value)


def test_two_stores_cannot_share_a_catalog(store: Store, tmp_path: Path, address: str) -> None:
    Lake(store).land({LOG_OFFSETS.name: points("10:03")})
    other = store_at(tmp_path / "other", address)

    with pytest.raises(StoreError, match=r"has a table kafka_sla.log_offsets of another store, at .*/warehouse/"):
        Lake(other).land({LOG_OFFSETS.name: points("10:03")})


def test_a_catalog_that_does_not_answer_is_an_error_that_names_it(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    store = store_at(tmp_path, f"http://127.0.0.1:{port}", token="not-to-be-shown")

    with pytest.raises(StoreError, match=f"the rest catalog http://127.0.0.1:{port} does not answer") as caught:
        Lake(store).land({LOG_OFFSETS.name: points("10:03")})
    assert "not-to-be-shown" not in f"{caught.value} {store!r}"


@pytest.mark.parametrize(
    ("catalog", "problem"),
    [
        ("lake", 'needs a "type"; allowed: rest, glue'),
        ({"type": "sql", "uri": "sqlite://"}, 'needs a "type"; allowed: rest, glue'),
        ({"type": "rest", "uri": "https://me:secret@catalog"}, "holds a password in its uri"),
    ],
)
def test_a_catalog_that_cannot_be_used_is_refused(tmp_path: Path, catalog: Any, problem: str) -> None:
    with pytest.raises(StoreError, match=problem) as caught:
        Store.from_connection(connection_to(tmp_path, catalog))
    assert "secret" not in str(caught.value)
