"""Late runs in a real Airflow database: which runs have a deadline, what Airflow's callback mails, and how often."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from demo.broker import free_ports
from demo.mailbox import Mailbox, mailbox
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval
from tests.dags.conftest import DAGS

CONFIGURATION = """
clusters: {eu: {}, us: {}}
base_url: https://airflow.example.com
freshness_alert: {recipients: [platform@example.com], after: 15m}
"""
START = datetime(2026, 11, 21, 10, tzinfo=UTC)
FIVE_MINUTES = timedelta(minutes=5)


def five_minutes(number: int) -> Interval:
    """The interval of the run with that number."""
    return Interval(START + number * FIVE_MINUTES, START + (number + 1) * FIVE_MINUTES)


@dataclass(frozen=True)
class World:
    """A configured Airflow whose scheduler and triggerer are played by the test, with their own code."""

    box: Mailbox
    store: Store
    dag: Any

    def run(self, number: int, kind: str = "scheduled", state: str = "running") -> Any:
        """A run of the DAG as Airflow makes it; its id."""
        from airflow.utils.session import create_session
        from airflow.utils.types import DagRunTriggeredByType, DagRunType

        interval = five_minutes(number)
        with create_session() as session:
            made = self.dag.create_dagrun(
                run_id=f"{kind}__{interval.start.isoformat()}",
                run_type=DagRunType(kind),
                logical_date=interval.start,
                data_interval=(interval.start, interval.end),
                run_after=interval.end,
                triggered_by=DagRunTriggeredByType.TEST,
                state=state,
                session=session,
            )
            return made.id

    def deadlines(self, run: Any) -> list[datetime]:
        from airflow.models.deadline import Deadline
        from airflow.utils.session import create_session
        from sqlalchemy import select

        with create_session() as session:
            return list(session.scalars(select(Deadline.deadline_time).where(Deadline.dagrun_id == run)))

    def miss(self, run: Any) -> list[Any]:
        """What the scheduler does when the run's deadline has passed, and then the triggerer; the events."""
        from airflow.models.deadline import Deadline
        from airflow.utils.session import create_session
        from sqlalchemy import select

        with create_session() as session:
            (deadline,) = session.scalars(select(Deadline).where(Deadline.dagrun_id == run))
            deadline.handle_miss(session)
            stored = deadline.callback.trigger
            path, kwargs = stored.classpath, dict(stored.kwargs)
        return asyncio.run(_events(path, kwargs))

    def publish(self, number: int, *clusters: str) -> None:
        Ledger(self.store).publications.publish(clusters, five_minutes(number), f"load {number} {clusters}", 0)


async def _events(path: str, kwargs: dict[str, Any]) -> list[Any]:
    from airflow._shared.module_loading import import_string

    return [event.payload async for event in import_string(path)(**kwargs).run()]


@pytest.fixture
def world(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    (tmp_path / "kafka_sla.yml").write_text(CONFIGURATION)
    monkeypatch.setenv("KAFKA_SLA_CONFIG", str(tmp_path / "kafka_sla.yml"))
    monkeypatch.setenv("KAFKA_SLA_STORE", str(tmp_path / "store"))
    with mailbox(tmp_path / "mail") as box:
        mail_goes_to(box.port, monkeypatch)
        yield World(box, Store.embedded(tmp_path / "store"), stored_dag())
        forget_runs()


def mail_goes_to(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"from_email": "sla@example.com", "disable_ssl": True, "disable_tls": True}
    smtp = {"conn_type": "smtp", "host": "127.0.0.1", "port": port, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(smtp))


def stored_dag() -> Any:
    """The DAG as the scheduler reads it from the database, after the DAG processor wrote it there."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.models.serialized_dag import SerializedDagModel

    DagBundlesManager().sync_bundles_to_db()
    found = DagBag(dag_folder=str(DAGS / "kafka_sla_watch.py"), bundle_path=DAGS)
    assert found.import_errors == {}
    sync_bag_to_db(found, "dags-folder", None)
    stored = SerializedDagModel.get("kafka_sla")
    assert stored is not None
    return stored.dag


def forget_runs() -> None:
    """A run's interval is its own in Airflow's database, which all tests share."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import delete

    with create_session() as session:
        session.execute(delete(DagRun).where(DagRun.dag_id == "kafka_sla"))


def text(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    assert body is not None
    return str(body.get_content()).replace("\r\n", "\n")


def test_only_scheduled_runs_have_a_deadline(world: World) -> None:
    runs = {kind: world.run(i, kind) for i, kind in enumerate(("scheduled", "backfill", "manual"))}

    assert {kind: world.deadlines(run) for kind, run in runs.items()} == {
        "scheduled": [START + FIVE_MINUTES + timedelta(minutes=15)],
        "backfill": [],
        "manual": [],
    }


def test_the_operators_are_mailed_once_until_something_is_published_again(world: World) -> None:
    world.publish(0, "eu", "us")
    for number in (1, 2, 3):
        world.miss(world.run(number, state="failed"))
    world.publish(20, "eu", "us")
    world.miss(world.run(21, state="failed"))

    first, second = world.box.mails()
    assert (first["To"], first["Subject"]) == (
        "platform@example.com",
        "SLA measuring late: kafka_sla, 2026-11-21 10:05:00 UTC to 2026-11-21 10:10:00 UTC",
    )
    assert "eu: published until 2026-11-21 10:05:00 UTC\nus: published until 2026-11-21 10:05:00 UTC" in text(first)
    assert "2026-11-21 10:25:00 UTC, 15 min after its interval ended. It has failed." in text(first)
    assert "https://airflow.example.com/dags/kafka_sla/runs/scheduled__" in text(first)
    assert "11:45:00 UTC to 2026-11-21 11:50:00 UTC" in str(second["Subject"])


def test_a_slow_pipeline_mails_no_more_than_hourly(world: World) -> None:
    for number in range(14):
        world.miss(world.run(number))
        world.publish(number, "eu", "us")

    assert [text(mail).splitlines()[2] for mail in world.box.mails()] == [
        "The run for 2026-11-21 10:00:00 UTC to 2026-11-21 10:05:00 UTC should have been done by",
        "The run for 2026-11-21 11:00:00 UTC to 2026-11-21 11:05:00 UTC should have been done by",
    ]


def test_a_run_that_failed_after_publishing_is_not_late(world: World) -> None:
    """An SLA whose task turns red on a miss ends the run as failed, in time and as it should be."""
    world.publish(0, "eu", "us")

    (_, ended) = world.miss(world.run(0, state="failed"))

    assert "not late" in ended["body"]
    assert world.box.mails() == []


def test_a_cluster_that_is_late_is_named_without_the_others(world: World) -> None:
    world.publish(0, "eu")

    world.miss(world.run(0, state="failed"))

    (mail,) = world.box.mails()
    assert "us: nothing was ever published" in text(mail)
    assert "eu:" not in text(mail)


def test_a_mail_that_could_not_be_sent_is_sent_for_the_next_late_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail_goes_to(free_ports(1)[0], monkeypatch)
    (_, ended) = world.miss(world.run(0, state="failed"))
    mail_goes_to(world.box.port, monkeypatch)
    world.miss(world.run(1, state="failed"))

    assert (ended["state"], len(world.box.mails())) == ("failed", 1)
    assert "mail server 127.0.0.1" in ended["body"]


@pytest.mark.parametrize("folder", ["in the way/store", ""], ids=["no folder", "no connection"])
def test_a_store_that_cannot_be_asked_is_told_with_the_reason(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / "in the way").write_text("a file where the store should be")
    monkeypatch.setenv("KAFKA_SLA_STORE", folder and str(tmp_path / folder))

    world.miss(world.run(0, state="failed"))

    (mail,) = world.box.mails()
    warehouse = f"{tmp_path}/in the way/store/warehouse"
    reason = f"{warehouse} cannot be" if folder else "the Airflow connection 'kafka_sla_store' is not defined"
    assert f"What is published is not known: {reason}" in text(mail)


def test_without_recipients_nothing_is_watched(parsed: Any) -> None:
    assert not parsed.dags["kafka_sla"].deadline
