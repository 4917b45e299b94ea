"""Real runs of the DAGs: a real broker with consumers that keep up and stop, real Spark, a real mail server."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from demo.broker import Cluster
from demo.flows import Flow, steady
from demo.load import Load
from demo.mailbox import Mailbox, mailbox
from demo.spark_cluster import spark_cluster
from demo.standing_spark import standing_spark
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, floor_time
from tests.dags.conftest import DAGS

WINDOW = timedelta(seconds=5)
STOPS, FIRST_LOOK, RETURNS, SECOND_LOOK = 6, 28, 30, 48
FLOWS = (
    Flow("kept", "dag-kept", "dag-keeps-up", steady(20)),
    Flow("stopped", "dag-stopped", "dag-stops", steady(20), absent=(STOPS, RETURNS)),
)
CONFIGURATION = """
clusters:
  real: {connection: kafka_real, groups: ["dag-*"], topics: ["dag-*"]}
  gone: {connection: kafka_gone}
window: 5s
defaults: {cluster: real, max_latency: 4s, for: 10s, recipients: [on-call@example.com]}
slas:
  - {name: kept, group: dag-keeps-up, topic: dag-kept, on_miss: fail}
  - name: stopped
    group: dag-stops
    topic: dag-stopped
    on_miss: fail
    notifiers: [{path: tests.dags.chat.Chat, kwargs: {text: "{{ kind }} {{ miss.sla }}", file: CHAT}}]
  - {name: also stopped, group: dag-stops, topic: dag-stopped, on_miss: notify}
"""


@dataclass(frozen=True)
class Run:
    """How a run ended. `tasks`: states by task id, or `task id [cluster or SLA]`."""

    state: str
    tasks: dict[str, str]


@dataclass(frozen=True)
class World:
    """What the runs of this module work on."""

    store: Store
    mailbox: Mailbox
    chat: Path
    configuration: Path
    bad: Interval
    """Ends while the consumer is stopped."""
    good: Interval
    """The consumer is back and has caught up."""

    def run(self, dag_id: str = "kafka_sla", **form: Any) -> Run:
        """One run of a DAG, parsed now, with this form."""
        from airflow.dag_processing.dagbag import DagBag

        ended = DagBag(dag_folder=str(DAGS)).dags[dag_id].test(run_conf=form)
        return Run(str(ended.state), {task_name(t): str(t.state) for t in ended.get_task_instances()})


@pytest.fixture(scope="module")
def world(airflow_database: None, kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    (folder / "kafka_sla.yml").write_text(CONFIGURATION.replace("CHAT", str(folder / "chat.txt")))
    with pytest.MonkeyPatch.context() as patch, mailbox(folder / "mail") as box:
        patch.setenv("KAFKA_SLA_CONFIG", str(folder / "kafka_sla.yml"))
        patch.setenv("KAFKA_SLA_STORE", str(folder / "store"))
        for name, connection in connections(kafka, box.port).items():
            patch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(connection))
        bad, good = traffic(kafka)
        yield World(Store.embedded(folder / "store"), box, folder / "chat.txt", folder / "kafka_sla.yml", bad, good)


def connections(kafka: Cluster, mail_port: int) -> dict[str, dict[str, Any]]:
    mail = {"from_email": "sla@example.com", "disable_ssl": True, "disable_tls": True}
    return {
        "kafka_real": {"conn_type": "kafka", "extra": kafka.client()},
        "spark_default": {"conn_type": "spark", "host": "local[2]"},
        "smtp_default": {"conn_type": "smtp", "host": "127.0.0.1", "port": mail_port, "extra": mail},
    }


def traffic(kafka: Cluster) -> tuple[Interval, Interval]:
    """Let the consumers run, stop and come back; the intervals before and after the return."""
    width = round(WINDOW.total_seconds() * 1000)
    with Load(kafka.client(), FLOWS) as load:
        start = floor_time(datetime.now(UTC), width)
        while load.seconds < FIRST_LOOK:
            time.sleep(0.1)
        middle = floor_time(datetime.now(UTC), width)
        while load.seconds < SECOND_LOOK:
            time.sleep(0.1)
    return Interval(start, middle), Interval(middle, floor_time(datetime.now(UTC), width))


def task_name(task: Any) -> str:
    return str(task.task_id) if task.map_index < 0 else f"{task.task_id} [{task.rendered_map_index}]"


def form_of(interval: Interval, clusters: Sequence[str] = ("real",), **more: Any) -> dict[str, Any]:
    return {"from": interval.start.isoformat(), "to": interval.end.isoformat(), "clusters": list(clusters), **more}


def published(store: Store, interval: Interval) -> dict[str, list[dict[str, Any]]]:
    names = ("consumer_latency", "steady_state", "sla_windows", "sla_misses")
    return {name: Lake(store).published(name, interval).to_pylist() for name in names}


@pytest.fixture(scope="module")
def opened(world: World) -> Run:
    """A run over the interval in which the miss opens. Somebody breaks the configuration file after its first task."""
    text = world.configuration.read_text()
    with ThreadPoolExecutor(1) as editor:
        broken = editor.submit(break_once_read, world)
        try:
            run = world.run(**form_of(world.bad, notify="always"))
        finally:
            broken.result()
            world.configuration.write_text(text)
    return run


def break_once_read(world: World) -> None:
    """Make the configuration unreadable as soon as a run keeps it in the store."""
    database = Path(world.store.url.database or "")
    until = time.monotonic() + 600
    while time.monotonic() < until:
        if database.is_file():
            with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
                tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
                if "configurations" in tables and connection.execute("SELECT 1 FROM configurations").fetchone():
                    world.configuration.write_text("slas: [")
                    return
        time.sleep(0.05)


@pytest.fixture(scope="module")
def repeated(world: World, opened: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Any, Any]:
    """The interval once more, on a Spark cluster by another connection only; what was published before and after."""
    before = published(world.store, world.bad)
    with spark_cluster(tmp_path_factory.mktemp("spark")) as spark, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark.connection))
        again = world.run(**form_of(world.bad, notify="always"))
    return again, before, published(world.store, world.bad)


@pytest.fixture(scope="module")
def recovered(world: World, repeated: Any, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run over the interval in which the consumer comes back, on a standing Spark; another cluster cannot be reached
    in it."""
    with standing_spark(tmp_path_factory.mktemp("standing")) as spark, pytest.MonkeyPatch.context() as patch:
        spark.wait()
        patch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark.connection))
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # as its client sets it for the whole process
        return world.run(**form_of(world.good, notify="always", clusters=["real", "gone"]))


def test_a_missed_sla_fails_its_own_task_and_the_run_and_everybody_is_told(world: World, opened: Run) -> None:
    assert opened.tasks == {
        "plan": "success",
        "slas": "success",
        "snapshot [real]": "success",
        "prepare": "success",
        "measure": "success",
        "validate": "success",
        "publish": "success",
        "evaluate [kept]": "success",
        "evaluate [stopped]": "failed",
        "evaluate [also stopped]": "success",
        "notify": "success",
        "announce": "success",
        "watcher": "upstream_failed",
    }
    assert opened.state == "failed"
    assert len(Ledger(world.store).verdicts.misses(open_only=True)) == 2


def test_every_task_of_a_run_uses_the_configuration_that_its_first_task_read(opened: Run) -> None:
    after_the_file_broke = ("snapshot [real]", "prepare", "validate", "publish", "evaluate [kept]", "notify")

    assert [opened.tasks[task] for task in after_the_file_broke] == ["success"] * 6


def test_job_files_name_nobody_and_hold_no_arguments_of_notifiers(world: World, opened: Run) -> None:
    jobs = [path.read_text() for path in Path(world.store.warehouse).rglob("job.json")]

    assert jobs
    assert [word for word in ("example.com", "Chat", "kind", "kafka_real") for job in jobs if word in job] == []


def test_an_opened_miss_is_told_once_however_often_the_run_is_repeated(world: World, repeated: Any) -> None:
    again, _, _ = repeated

    assert again.tasks["notify"] == "success"
    assert subjects(world) == ["SLAs missed: 2"]
    assert world.chat.read_text() == "opened stopped\n"


def test_a_spark_cluster_measures_what_local_spark_measures(repeated: tuple[Run, Any, Any]) -> None:
    _, before, after = repeated

    assert before["consumer_latency"]
    assert after == before


def test_a_recovered_miss_is_told_once(world: World, recovered: Run) -> None:
    assert not Ledger(world.store).verdicts.misses(open_only=True)
    assert subjects(world)[1:] == ["SLAs recovered: 2 of 2"]
    assert world.chat.read_text() == "opened stopped\nrecovered stopped\n"


def test_other_dags_hear_once_of_each_opened_and_recovered_miss_and_of_every_publication(
    world: World, recovered: Run
) -> None:
    assert sorted(told["kind"] + " " + told["sla"] for told in events("kafka_sla_misses of ")) == [
        "opened also stopped",
        "opened stopped",
        "recovered also stopped",
        "recovered stopped",
    ]
    published_spans = [(told["start"], told["end"]) for told in events("kafka_sla_consumer_latency")]
    spans = [(span.start.isoformat(), span.end.isoformat()) for span in (world.bad, world.bad, world.good)]
    assert published_spans[-3:] == spans


def test_a_cluster_that_cannot_be_read_turns_the_run_red_and_stops_no_other(recovered: Run) -> None:
    assert recovered.tasks["snapshot [gone]"] == "failed"
    assert recovered.tasks["evaluate [kept]"] == "success"
    assert recovered.tasks["watcher"] == "upstream_failed"
    assert recovered.state == "failed"


def test_mails_link_to_the_run(world: World, recovered: Run) -> None:
    html = world.mailbox.mails()[0].get_body(("html",))

    assert html is not None
    assert "http://airflow.example:8080/dags/kafka_sla/runs/" in html.get_content()


def test_history_gives_the_same_figures_from_what_is_stored_without_kafka_and_tells_nobody(
    world: World, recovered: Run
) -> None:
    whole = Interval(world.bad.start, world.good.end)
    before, told = published(world.store, whole), (subjects(world), world.chat.read_text())

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "AIRFLOW_CONN_KAFKA_REAL", json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": "x:1"}})
        )
        history = world.run("kafka_sla_history", **form_of(whole, facts="stored"))

    assert history.state == "success"
    assert history.tasks["evaluate [stopped]"] == "success"
    assert published(world.store, whole) == before
    assert (subjects(world), world.chat.read_text()) == told


def events(asset: str) -> list[dict[str, Any]]:
    """What was told with the events of assets whose name begins so, oldest first."""
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        mine = AssetModel.name.startswith(asset)
        found = session.scalars(select(AssetEvent).join(AssetModel, AssetEvent.asset_id == AssetModel.id).where(mine))
        return [event.extra for event in sorted(found, key=lambda event: event.id)]


def subjects(world: World) -> list[str]:
    """What the mails say first; SLAs of one consumer group have one cause, and so one mail."""
    return [mail["Subject"].partition(", ")[0] for mail in world.mailbox.mails()]
