"""Spark drivers that run elsewhere while their task waits in no worker: a real YARN, and a real triggerer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from demo.imported_history import import_history
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval
from kafka_sla.spark import submission
from kafka_sla.spark.submission import Submission
from kafka_sla.tasks.driver_trigger import DriverTrigger
from tests.airflow_home import ROOT
from tests.dags.conftest import DAGS
from tests.dags.test_sampling import triggerer, wait_until
from tests.dags.yarn_cluster import Yarn, yarn_cluster

pytestmark = pytest.mark.slow

HOUR = Interval(datetime(2026, 11, 1, 10, tzinfo=UTC), datetime(2026, 11, 1, 11, tzinfo=UTC))
CONFIGURATION = """
clusters: {old: {}}
slas: [{name: orders, cluster: old, group: keeps-up, topic: orders, max_latency: 5m}]
"""
_DRIVER = """
import sys, time
from pathlib import Path
from kafka_sla.spark.submission import Submission

with Submission(sys.argv[1], sys.argv[2]).reported():
    while not Path(sys.argv[1], "work-is-done").exists():
        time.sleep(0.1)
"""


@dataclass(frozen=True)
class World:
    """Imported facts of an hour, and an Airflow whose Spark is that of the connection."""

    store: Store
    patch: pytest.MonkeyPatch

    def run(self, spark: dict[str, Any]) -> dict[str, str]:
        """The states of the tasks of a run over the hour."""
        from airflow.dag_processing.dagbag import DagBag

        self.patch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))
        form = {"from": HOUR.start.isoformat(), "to": HOUR.end.isoformat(), "facts": "stored"}
        dag = DagBag(dag_folder=str(DAGS / "kafka_sla_history.py")).dags["kafka_sla_history"]
        dag.get_task("measure").retries = 0
        return {task.task_id: str(task.state) for task in dag.test(run_conf=form).get_task_instances()}

    def wait_for(self, submission: Submission) -> None:
        """A task `measure` is left to its trigger, as the worker leaves it."""
        from airflow.dag_processing.dagbag import DagBag
        from airflow.models.trigger import Trigger
        from airflow.utils.session import create_session

        future = {"from": "2999-01-01T00:00:00+00:00", "to": "2999-01-02T00:00:00+00:00"}  # so that no task runs
        DagBag(dag_folder=str(DAGS / "kafka_sla_history.py")).dags["kafka_sla_history"].test(run_conf=future)
        soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        trigger = DriverTrigger(
            store="kafka_sla_store",
            output=submission.output,
            submission=submission.id,
            name="application_1",
            begin_by=soon,
            until=soon,
        )
        with create_session() as session:
            session.add(row := Trigger.from_object(trigger))
            session.flush()
            number = row.id
        self.change_measure(state="deferred", trigger_id=number, next_method="ended")

    def measure(self) -> Any:
        """The newest task of that name."""
        from airflow.utils.session import create_session

        with create_session() as session:
            session.expire_on_commit = False
            return session.scalars(_newest_measure()).first()

    def change_measure(self, **changes: Any) -> None:
        """As Airflow's own processes change it."""
        from airflow.utils.session import create_session

        with create_session() as session:
            task = session.scalars(_newest_measure()).first()
            for name, value in changes.items():
                setattr(task, name, value)

    def published(self) -> list[list[dict[str, Any]]]:
        return [Lake(self.store).published(name, HOUR).to_pylist() for name in ("consumer_latency", "steady_state")]


def _newest_measure() -> Any:
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy import select

    mine = TaskInstance.dag_id == "kafka_sla_history", TaskInstance.task_id == "measure"
    return select(TaskInstance).where(*mine).order_by(TaskInstance.id.desc())


@pytest.fixture
def world(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    (tmp_path / "kafka_sla.yml").write_text(CONFIGURATION)
    monkeypatch.setenv("KAFKA_SLA_CONFIG", str(tmp_path / "kafka_sla.yml"))
    monkeypatch.setenv("KAFKA_SLA_STORE", str(tmp_path / "store"))
    store = Store.embedded(tmp_path / "store")
    minutes = [HOUR.start + timedelta(minutes=m) for m in range(60)]
    import_history(Lake(store), tmp_path, minutes, {"keeps-up": None})
    return World(store, monkeypatch)


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    """A YARN that workers know as one usually does: by Hadoop's configuration and a spark-submit on the path."""
    with yarn_cluster(tmp_path_factory.mktemp("yarn")) as started, pytest.MonkeyPatch.context() as environment:
        environment.setenv("HADOOP_CONF_DIR", str(started.configuration))
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        yield started


def test_yarn_measures_what_local_spark_measures_and_says_why_it_could_not(world: World, yarn: Yarn) -> None:
    on_yarn, rows = world.run(yarn.connection), world.published()
    here = world.run({"conn_type": "spark", "host": "local[2]"})

    assert (on_yarn["measure"], on_yarn["watcher"], here["watcher"]) == ("success", "success", "success")
    assert rows[0]
    assert world.published() == rows

    for path in Path(world.store.warehouse).rglob("facts/**/*.parquet"):
        path.write_bytes(b"overwritten")
    tasks = world.run(yarn.connection)

    assert tasks["measure"] == "failed"
    (failure,) = Ledger(world.store).failures.within(HOUR)
    assert (failure.step, "parquet" in failure.reason) == ("measure", True)


def test_an_application_whose_driver_is_killed_fails_its_task(world: World, yarn: Yarn) -> None:
    world.patch.setattr(submission, "SILENT_AFTER", timedelta(seconds=20))
    with ThreadPoolExecutor(1) as somebody:
        killing = somebody.submit(kill_the_driver, world, yarn)
        tasks = world.run(yarn.connection)
        killing.result()

    assert tasks["measure"] == "failed"
    (failure,) = Ledger(world.store).failures.within(HOUR)
    assert failure.reason.startswith("application_")
    assert "has left no sign of life for 20 s" in failure.reason
    wait_until(lambda: not drivers_of(yarn))


def kill_the_driver(world: World, yarn: Yarn) -> None:
    """As a node that runs out of memory does, once it has begun."""
    wait_until(lambda: any(Path(world.store.warehouse).rglob("driver-*.txt")))
    for process in map(psutil.Process, drivers_of(yarn)):
        process.kill()


def drivers_of(yarn: Yarn) -> list[int]:
    """Processes in YARN's containers."""
    of_yarn = str(yarn.folder / "local")
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if any(of_yarn in word for word in process.info["cmdline"] or [])
    ]


def test_a_triggerer_that_is_killed_keeps_no_driver_from_being_heard(world: World) -> None:
    with driver(submission := Submission.new(f"{world.store.warehouse}/staging/1")) as process:
        world.wait_for(submission)
        with triggerer():
            wait_until(lambda: world.measure().state == "deferred" and is_waited_for(submission))

        Path(submission.output, "work-is-done").touch()
        assert process.wait(600) == 0
        with triggerer():
            wait_until(lambda: world.measure().state != "deferred")

    assert world.measure().state == "scheduled"
    assert "'event': ''" in str(world.measure().next_kwargs)


def test_a_driver_ends_when_its_task_is_cleared(world: World) -> None:
    with driver(submission := Submission.new(f"{world.store.warehouse}/staging/1")) as process:
        world.wait_for(submission)
        with triggerer():
            wait_until(lambda: is_waited_for(submission))
            world.change_measure(state=None, trigger_id=None)

            assert process.wait(600) == 1


@contextmanager
def driver(submission: Submission) -> Iterator[subprocess.Popen[bytes]]:
    """One that does nothing but leave its signs until it is let go, in the `with` block; nobody waits for it yet."""
    process = subprocess.Popen([sys.executable, "-c", _DRIVER, submission.output, submission.id], cwd=ROOT)
    try:
        wait_until(lambda: submission.sign() is not None)
        yield process
    finally:
        process.kill()
        process.wait()


def is_waited_for(submission: Submission) -> bool:
    """Whether a trigger has said so since the submission was made."""
    made, waits = (Path(submission.output, name) for name in ("submitted.txt", f"waits-{submission.id}.txt"))
    return waits.stat().st_mtime > made.stat().st_mtime
