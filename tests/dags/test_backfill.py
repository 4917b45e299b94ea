"""A real Airflow with its scheduler, triggerer and Postgres: backfills of imported facts, and a run that is late; and
that none of the passwords it works with can be found anywhere afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from demo.airflow_client import AirflowClient
from demo.airflow_server import airflow
from demo.broker import Cluster
from demo.imported_history import import_history
from demo.mailbox import Mailbox, mailbox
from demo.postgres import postgres, with_login
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval
from kafka_sla.tasks import preload
from tests.airflow_home import ROOT
from tests.dags import planted
from tests.dags.planted import process_list

pytestmark = pytest.mark.slow

DAYS = Interval(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 3, tzinfo=UTC))
STOPPED = Interval(datetime(2026, 11, 2, 10, tzinfo=UTC), datetime(2026, 11, 2, 10, 20, tzinfo=UTC))
CONFIGURATION = """
clusters:
  old: {}
  secured: {connection: kafka_secured, groups: [nobody], topics: [nothing]}
  refused: {connection: kafka_refused}
freshness_alert: {recipients: [platform@example.com], after: 1s}
defaults: {cluster: old, topic: orders, max_latency: 2m, recipients: [on-call@example.com], on_miss: fail}
slas: [{name: kept, group: keeps-up}, {name: stopped, group: stops}]
"""


_AIRFLOW = [sys.executable, "-c", "from airflow.__main__ import main; main()"]


@dataclass(frozen=True)
class World:
    """A running Airflow, and the store that its DAGs fill."""

    client: AirflowClient
    store: Store
    environment: dict[str, str]
    mailbox: Mailbox
    folder: Path
    """All that Airflow, Spark, Postgres and the mail server write is below."""
    commands: set[str]
    """Command lines of all processes so far."""
    secrets: list[str]

    def backfill(self, dag_id: str, first: str, last: str, *more: str) -> None:
        """What a person types; must work at the first try."""
        dates = ["--from-date", first, "--to-date", last]
        conf = json.dumps({"clusters": ["old", "secured"], "slas": ["kept", "stopped"]})
        command = ["backfill", "create", "--dag-id", dag_id, *dates, "--dag-run-conf", conf, *more]
        subprocess.run([*_AIRFLOW, *command], env=os.environ | self.environment, check=True)

    def watch(self, over: Interval) -> str:
        """A run of the watching DAG that mails what it finds in this time; what it said."""
        form = {"from": over.start.isoformat(), "to": over.end.isoformat(), "notify": "always"}
        command = [*_AIRFLOW, "dags", "test", "kafka_sla", "--conf", json.dumps(form)]
        ended = subprocess.run(
            command, env=os.environ | self.environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        return ended.stdout.decode()

    def ended(self, dag_id: str, seconds: float = 1_800) -> list[str]:
        """States of the DAG's backfill runs, once all have ended."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            states = [state for name, state in self.client.runs(dag_id).items() if name.startswith("backfill__")]
            if set(states) <= {"success", "failed"}:
                return states
            time.sleep(1)
        raise TimeoutError(f"the backfill of {dag_id} did not end: {states}")

    def published(self) -> dict[str, list[dict[str, Any]]]:
        names = ("consumer_latency", "steady_state", "sla_windows", "sla_misses")
        return {name: Lake(self.store).published(name, DAYS).to_pylist() for name in names}


@pytest.fixture(scope="module")
def world(kafka_sasl: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("backfill")
    (folder / "kafka_sla.yml").write_text(CONFIGURATION)
    (folder / "events").mkdir()
    with (
        postgres(folder / "postgres", durable=False) as databases,
        process_list() as commands,
        mailbox(folder / "mail", authenticator=authenticate, auth_require_tls=False, auth_required=True) as box,
    ):
        store = Store(str(folder / "warehouse"), with_login(databases["kafka_sla"], "sla", planted.POSTGRES))
        minutes = [DAYS.start + timedelta(minutes=m) for m in range(2 * 24 * 60)]
        import_history(Lake(store), folder, minutes, {"keeps-up": None, "stops": STOPPED})
        found = connections(kafka_sasl, store, box, folder / "events")
        environment = {
            "KAFKA_SLA_CONFIG": str(folder / "kafka_sla.yml"),
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",  # nobody edits a DAG here
            preload.VARIABLE: "1",
        } | {f"AIRFLOW_CONN_{name.upper()}": json.dumps(one) for name, one in found.items()}
        own = {
            "AIRFLOW_HOME": str(folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
            "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": databases["airflow"],
        }
        with airflow(
            folder / "airflow",
            databases["airflow"],
            environment | {"AIRFLOW__CORE__UNIT_TEST_MODE": "False"},
            stop_seconds=0,
        ) as client:
            client.wait_until_healthy()
            secrets = [kafka_sasl.client()["sasl.password"], planted.POSTGRES, planted.SMTP, planted.OBJECTS]
            yield World(client, store, environment | own, box, folder, commands, [*secrets, planted.WRONG])


def connections(kafka: Cluster, store: Store, box: Mailbox, events: Path) -> dict[str, dict[str, Any]]:
    """Logins as people keep them, each with its secret; Spark writes what it did into the folder `events`."""
    event_log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{events}"}
    keys = {"s3.access-key-id": "sla", "s3.secret-access-key": planted.OBJECTS}
    mail = {"from_email": "sla@example.com", "disable_ssl": True, "disable_tls": True}
    return {
        "kafka_sla_store": {
            "conn_type": "generic",
            "extra": {"warehouse": store.warehouse, "database_url": store.database_url, **keys},
        },
        "spark_default": {"conn_type": "spark", "host": "local[2]", "extra": event_log},
        "kafka_secured": {"conn_type": "kafka", "extra": kafka.client()},
        "kafka_refused": {"conn_type": "kafka", "extra": kafka.client() | {"sasl.password": planted.WRONG}},
        "smtp_default": {
            "conn_type": "smtp",
            "host": "127.0.0.1",
            "port": box.port,
            "login": "sla",
            "password": planted.SMTP,
            "extra": mail,
        },
    }


def authenticate(_: SMTP, __: Session, ___: Envelope, ____: str, data: LoginPassword) -> AuthResult:
    return AuthResult(success=data.password == planted.SMTP.encode(), handled=False)


def test_days_that_have_passed_are_backfilled_at_the_first_try_and_twice_with_the_same_tables(world: World) -> None:
    world.client.unpause_alone("kafka_sla_history")
    world.backfill("kafka_sla_history", "2026-11-01", "2026-11-02")
    first = world.ended("kafka_sla_history")
    once = world.published()

    world.client.wait_for_backfills("kafka_sla_history")  # Airflow takes one backfill of a DAG at a time
    world.backfill("kafka_sla_history", "2026-11-02", "2026-11-02", "--reprocess-behavior", "completed")
    second = world.ended("kafka_sla_history")

    assert first == second == ["success", "success"]
    assert len(once["sla_windows"]) == 2 * 2 * 24 * 60
    assert [(miss["sla"], miss["state"]) for miss in once["sla_misses"]] == [("stopped", "recovered")]
    assert once["sla_misses"][0]["end_at"] == STOPPED.end + timedelta(minutes=1)  # its first commit is late
    assert world.published() == once
    assert world.mailbox.mails() == [], "history alarms nobody, however late it runs"


@pytest.mark.usefixtures("world")
def test_tasks_are_forked_from_what_imported_for_them() -> None:
    below = {child.pid for child in psutil.Process().children(recursive=True)}
    named = {one: " ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"]) if one.pid in below}
    workers = [one for one, name in named.items() if "worker -- LocalExecutor" in name]

    assert workers
    loaded = [{Path(part.path).name.partition(".")[0] for part in one.memory_maps()} for one in workers]
    assert [{"libarrow", "_duckdb"} - of_worker for of_worker in loaded] == [set() for _ in workers]


def test_no_password_can_be_found_in_any_trace_of_a_run(world: World) -> None:
    said = world.watch(Interval(STOPPED.start - timedelta(minutes=30), STOPPED.end + timedelta(minutes=30)))

    (failure,) = Ledger(world.store).failures.within(STOPPED)
    assert (failure.cluster, failure.step) == ("refused", "snapshot")
    assert "the broker refused the login of 'admin' with PLAIN" in failure.reason

    # all of them were used: a login that is refused, one that is not, mails, tables
    assert "the broker refused the login of 'admin' with PLAIN" in said
    told = [str(mail["Subject"]).split(":")[0] for mail in world.mailbox.mails()]
    assert told == ["SLA missed", "SLA recovered"]
    assert [path.name for path in (world.folder / "events").iterdir()]
    assert any("org.apache.spark.deploy.SparkSubmit" in command for command in world.commands)
    assert list((world.folder / "airflow" / "logs").rglob("*.log"))
    # and none shows
    assert [secret for secret in world.secrets if secret in said] == []
    assert [command for command in world.commands if any(secret in command for secret in world.secrets)] == []
    assert planted.in_files(world.folder, world.secrets) == []
    databases = (world.environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"], world.store.database_url)
    assert [planted.in_database(url, world.secrets) for url in databases] == [[], []]


def test_a_scheduled_run_that_is_late_is_mailed_by_scheduler_and_triggerer(world: World) -> None:
    world.client.set_slots("default_pool", 0)  # so that no task starts: the run cannot end in time
    before = len(world.mailbox.files())

    world.client.unpause("kafka_sla")
    deadline = time.monotonic() + 600
    while len(world.mailbox.files()) == before and time.monotonic() < deadline:
        time.sleep(0.5)

    mail = world.mailbox.mails()[before]
    assert (mail["To"], str(mail["Subject"])[:31]) == ("platform@example.com", "SLA measuring late: kafka_sla, ")
    body = mail.get_body(("plain",))
    assert body is not None
    named = [run for run in world.client.runs("kafka_sla") if f"Run {run}, reported by kafka_sla" in body.get_content()]
    assert [run.split("__")[0] for run in named] == ["scheduled"]
