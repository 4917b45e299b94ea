"""Warehouses in a real object store: the same rows as on disk, and credentials that stay out of sight."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import pytest

from demo.object_store import BUCKET, ObjectStore, object_store
from demo.spark_cluster import spark_cluster
from kafka_sla import object_stores
from kafka_sla.cli.main import main
from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.errors import StoreError
from kafka_sla.files import create_text, entries_of, files_below, move_files, read_text, remove_files, write_text
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Connection, Interval
from kafka_sla.model.tables import CONSUMER_LATENCY, LOG_OFFSETS
from kafka_sla.pipeline import steps
from kafka_sla.text.timestamps import instant_text
from tests.kafka_sla.loads import points, span

pytestmark = pytest.mark.slow

START = datetime(2026, 11, 1, 8, tzinfo=UTC)
CONFIG = """\
clusters: {eu-west: {}}
slas:
  - name: alerts within 30 s
    group: billing.alerts
    topic: billing.alerts-authorised-v2
    max_latency: 30s
    for: 2m
    objective: 99%
"""
TEN_MINUTES = Interval(START, START + timedelta(minutes=10))
MEASURE = """
import sys
from kafka_sla.tasks.measure_operator import measure
task = measure(sys.argv[1], "kafka_sla_store")
task.conf, task.name = {}, "kafka_sla"
task.execute({})
"""
TABLES = ("consumer_latency", "consumer_status", "steady_state", "sla_windows", "sla_misses")


class Server(Protocol):
    """An object store that runs."""

    @property
    def uri(self) -> str:
        """Of its bucket."""

    @property
    def properties(self) -> dict[str, str]:
        """How it is reached, as the extra of the store's connection names it."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("object-store")) as store:
        yield store


def connection_to(server: Server, folder: Path, **properties: str) -> Connection:
    """A store whose database lies in the folder, with a warehouse of the folder's name."""
    extra = {"warehouse": f"{server.uri}/{folder.name}/warehouse", **server.properties, **properties}
    return Connection("kafka_sla_store", host=str(folder / "kafka_sla.db"), conn_type="sqlite", extra=extra)


def as_json(connection: Connection) -> str:
    """As Airflow reads it from the environment."""
    return json.dumps({"conn_type": connection.conn_type, "host": connection.host, "extra": connection.extra})


@pytest.fixture
def store(server: Server, tmp_path: Path) -> Store:
    return Store.from_connection(connection_to(server, tmp_path))


def test_files_of_an_object_store_are_written_listed_moved_and_removed_like_those_of_a_folder(store: Store) -> None:
    folder = f"{store.warehouse}/notes"
    write_text(f"{folder}/a/first", "one")
    write_text(f"{folder}/a/first", "two")
    create_text(f"{folder}/a/first", "three")
    create_text(f"{folder}/b", "four")

    assert read_text(f"{folder}/a/first") == "two"
    assert sorted(files_below(folder)) == [f"{folder}/a/first", f"{folder}/b"]
    assert entries_of(folder) == [f"{folder}/a", f"{folder}/b"]
    assert move_files([f"{folder}/b", f"{folder}/gone"], folder, f"{store.warehouse}/trash") == 1
    assert remove_files([f"{folder}/a/first", f"{folder}/gone"]) == 1
    assert (sorted(files_below(folder)), read_text(f"{store.warehouse}/trash/b")) == ([], "four")


def test_facts_land_once_and_are_tidied(store: Store) -> None:
    lake = Lake(store)
    for minute in range(9):
        lake.append_facts(LOG_OFFSETS, points(f"10:0{minute}"))
    assert lake.append_facts(LOG_OFFSETS, points("10:03")) == 0
    later = datetime.now(UTC) + timedelta(days=2)
    found = lake.maintain(later)

    assert found.compacted_files == 9 and found.trashed_files >= 9
    assert lake.maintain(later + timedelta(days=10)).deleted_files >= 9
    assert files_below(f"{store.warehouse}/trash") == {}
    assert lake.read_facts(LOG_OFFSETS, span("10:00", "11:00")).num_rows == 9


def test_a_database_of_another_store_is_refused(server: Server, store: Store, tmp_path: Path) -> None:
    Ledger(store).open(writing=True)
    other = Store(store.warehouse, f"sqlite:///{tmp_path}/another.db", store.properties)
    with pytest.raises(StoreError, match="belongs to the store"):
        Ledger(other).open(writing=True)


def test_a_wrong_key_is_an_error_that_names_the_warehouse_and_not_the_key(server: ObjectStore, tmp_path: Path) -> None:
    wrong = Store.from_connection(connection_to(server, tmp_path, **{"s3.secret-access-key": "not-the-key"}))
    with pytest.raises(StoreError, match=f"{BUCKET}/{tmp_path.name}.* cannot be read or written") as caught:
        Ledger(wrong).open(writing=True)
    assert "not-the-key" not in str(caught.value)


def stamp(seconds: float) -> str:
    return instant_text(START + timedelta(seconds=seconds))


def write_history() -> None:
    """Ten records a second for ten minutes, polled every ten seconds; a consumer that stops for four of them."""
    topic = "billing.alerts-authorised-v2"
    polls = [f"eu-west,{topic},0,{stamp(s)},0,{s * 10},exporter" for s in range(0, 601, 10)]
    Path("log.csv").write_text("\n".join(["cluster,topic,partition,at,log_start_offset,log_end_offset,source", *polls]))
    seconds = [s for s in range(1, 600, 5) if not 240 < s < 480]
    commits = [f"eu-west,billing.alerts,{topic},0,{stamp(s)},{(s - 1) * 10},commit_log" for s in seconds]
    Path("commits.csv").write_text("\n".join(["cluster,group,topic,partition,at,committed_offset,source", *commits]))


def measured() -> dict[str, str]:
    """SHA-256 of the rows of each table, after an import, a run and half of it again."""
    assert main(["import", "--log-offsets", "log.csv", "--committed-offsets", "commits.csv"]) == 0
    for start, end in (("08:00", "08:10"), ("08:05", "08:10")):
        assert main(["run", "--from", f"2026-11-01T{start}Z", "--to", f"2026-11-01T{end}Z"]) == 0
    assert main(["report", "--from", "2026-11-01T08:00Z", "--to", "2026-11-01T08:10Z", "--output", "report.html"]) == 0
    for table in TABLES:
        assert main(["export", table, "--output", f"{table}.csv"]) == 0
    return {table: hashlib.sha256(Path(f"{table}.csv").read_bytes()).hexdigest() for table in TABLES}


def test_an_object_store_holds_the_rows_that_a_folder_holds_and_no_credentials(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kafka_sla.yml").write_text(CONFIG)
    write_history()
    on_disk = measured()
    assert Path("consumer_latency.csv").read_text().count("\n") == 11

    connection = connection_to(server, tmp_path)
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_SLA_STORE", as_json(connection))
    assert measured() == on_disk

    warehouse = Store.from_connection(connection).warehouse
    jobs = [path for path in files_below(warehouse) if path.endswith("/job.json")]
    assert len(jobs) == 2 and not Path("s3:").exists()
    assert not any(secret in read_text(job) for job in jobs for secret in server.properties.values())
    assert CONSUMER_LATENCY.name in " ".join(files_below(f"{warehouse}/kafka_sla"))


def test_executors_of_a_spark_cluster_need_nothing_but_their_tasks(
    server: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kafka_sla.yml").write_text(CONFIG)
    write_history()
    connection = connection_to(server, tmp_path)
    with spark_cluster(tmp_path) as spark:  # it starts before the connection is there
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_SLA_STORE", as_json(connection))
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark.connection))
        assert main(["import", "--log-offsets", "log.csv", "--committed-offsets", "commits.csv"]) == 0
        store = Store.from_connection(connection)
        job = steps.prepare(load_settings("kafka_sla.yml"), store, TEN_MINUTES, ["eu-west"])
        subprocess.run([sys.executable, "-c", MEASURE, job], check=True)
    steps.publish(store, job)

    assert Lake(store).published(CONSUMER_LATENCY.name, TEN_MINUTES).num_rows == 10


def test_a_process_is_given_what_it_needs_for_one_warehouse_only(server: ObjectStore, tmp_path: Path) -> None:
    Store.from_connection(connection_to(server, tmp_path / "other", **{"s3.secret-access-key": "of-somebody-else"}))
    store = Store.from_connection(connection_to(server, tmp_path))

    assert "of-somebody-else" not in json.dumps(object_stores.environment(f"{store.warehouse}/staging/1/job.json"))
    assert object_stores.environment(str(tmp_path / "job.json")) == {}
