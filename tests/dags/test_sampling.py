"""Sampling by Airflow: a real broker that hides its commit log, runs whose task waits for its trigger, and a real
triggerer that is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from demo.broker import Cluster as Broker
from demo.degraded_broker import DegradedBroker
from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from tests.dags.conftest import DAGS
from tests.kafka_sla.pipeline.test_sampling import a_topic, positions
from tests.kafka_sla.sources.kafka.traffic import commit

pytestmark = pytest.mark.slow

CONFIGURATION = """
clusters:
  payments-eu: {connection: kafka_eu, sample_every: 1s, groups: [billing.TOPIC], topics: [TOPIC]}
  payments-us: {connection: kafka_eu}
"""
HIDDEN = """
clusters:
  payments-eu: {connection: kafka_eu, sample_every: 1s, groups: [billing.*], topics: [prod-eu.*]}
slas:
- {name: named, group: billing.alerts-authorised-v2, topic: prod-eu.payments, max_latency: 30s}
"""
_TRIGGERER = [sys.executable, "-c", "from airflow.__main__ import main; main()", "triggerer", "--skip-serve-logs"]


@dataclass(frozen=True)
class World:
    """A configuration of two clusters, of which one is sampled."""

    store: Store
    kafka: Broker
    topic: str
    configuration: Path

    def commit(self, position: int) -> None:
        commit(self.kafka, f"billing.{self.topic}", self.topic, position)

    def run(self, lasting: timedelta) -> tuple[str, dict[str, str]]:
        """State of a run that has so much time left, and of its tasks by id or cluster."""
        from airflow.dag_processing.dagbag import DagBag

        dag = DagBag(dag_folder=str(DAGS / "kafka_sla_sample.py")).dags["kafka_sla_sample"]
        run_after = datetime.now(UTC) + lasting - timedelta(minutes=16)
        ended = dag.test(run_after=run_after, logical_date=run_after)
        return str(ended.state), {t.rendered_map_index or t.task_id: str(t.state) for t in ended.get_task_instances()}


@pytest.fixture
def world(airflow_database: None, kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    topic = a_topic(kafka)
    (tmp_path / "kafka_sla.yml").write_text(CONFIGURATION.replace("TOPIC", topic))
    monkeypatch.setenv("KAFKA_SLA_CONFIG", str(tmp_path / "kafka_sla.yml"))
    monkeypatch.setenv("KAFKA_SLA_STORE", str(tmp_path / "store"))
    with DegradedBroker(kafka.bootstrap, hidden=frozenset({"__consumer_offsets"})) as broker:
        connection = {"conn_type": "kafka", "extra": broker.client()}
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_EU", json.dumps(connection))
        yield World(Store.embedded(tmp_path / "store"), kafka, topic, tmp_path / "kafka_sla.yml")


def test_clusters_that_say_so_are_sampled_while_their_task_waits_and_no_others(world: World) -> None:
    state, tasks = world.run(lasting=timedelta(seconds=40))

    assert (state, tasks) == ("success", {"find_sampled_clusters": "success", "payments-eu": "success"})
    assert set(positions(world.store)) == {4}


def test_a_configuration_without_such_a_cluster_samples_nothing(world: World) -> None:
    world.configuration.write_text("clusters: {payments-us: {connection: kafka_eu}}")

    state, tasks = world.run(lasting=timedelta(minutes=15))

    assert (state, tasks) == ("success", {"find_sampled_clusters": "skipped", "sample": "skipped"})


def test_the_past_cannot_be_sampled(world: World) -> None:
    state, tasks = world.run(lasting=-timedelta(minutes=1))

    assert (state, tasks["payments-eu"]) == ("failed", "failed")


def test_a_login_that_may_not_see_what_an_sla_names_fails_its_task_in_the_words_of_a_run(
    world: World, kafka_sasl: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world.configuration.write_text(HIDDEN)
    monkeypatch.setenv(
        "AIRFLOW_CONN_KAFKA_EU", json.dumps({"conn_type": "kafka", "extra": kafka_sasl.client("reader")})
    )

    state, tasks = world.run(lasting=timedelta(minutes=10))

    assert (state, tasks["payments-eu"]) == ("failed", "failed")
    assert "no topic is seen" in caplog.text and "the topic 'prod-eu.payments'" in caplog.text
    assert "DESCRIBE on the topics" in caplog.text


def test_a_triggerer_that_is_killed_loses_one_batch_at_most_and_another_goes_on(world: World) -> None:
    wait_for_its_trigger(world, datetime.now(UTC) + timedelta(minutes=10))
    with triggerer():
        wait_until(lambda: 4 in positions(world.store))

    world.commit(7)
    with triggerer():
        wait_until(lambda: 7 in positions(world.store))


def wait_for_its_trigger(world: World, until: datetime) -> None:
    """A task is left to its trigger, as the worker leaves it."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.trigger import Trigger
    from airflow.utils.session import create_session
    from sqlalchemy import select

    from kafka_sla.tasks.sampling import SampleTrigger

    kept = Ledger(world.store).configurations.freeze(load_settings(world.configuration))
    trigger = SampleTrigger(store="kafka_sla_store", configuration=kept, cluster="payments-eu", until=until.isoformat())
    world.run(lasting=-timedelta(minutes=2))
    with create_session() as session:
        row = Trigger.from_object(trigger)
        session.add(row)
        session.flush()
        newest = TaskInstance.start_date.desc()
        sample = TaskInstance.dag_id == "kafka_sla_sample", TaskInstance.task_id == "sample"
        task = session.scalars(select(TaskInstance).where(*sample).order_by(newest)).first()
        assert task is not None
        task.state, task.trigger_id, task.next_method = "deferred", row.id, "landed"


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 600
    while not true():
        assert time.monotonic() < deadline
        time.sleep(1)


@contextmanager
def triggerer() -> Iterator[None]:
    """A triggerer that is killed, with its children, at the end of the block."""
    from airflow.configuration import conf

    environment = os.environ | {"AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1"}
    environment |= {"AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "2"}
    environment |= {"AIRFLOW__CORE__FERNET_KEY": conf.get("core", "fernet_key")}  # unit tests invent one
    process = subprocess.Popen(_TRIGGERER, env=environment, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
