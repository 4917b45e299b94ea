"""Real runs of the digest DAG: what is due is mailed once, what is asked for by hand goes where the form says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from demo.mailbox import Mailbox, mailbox
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from tests.dags.conftest import DAGS
from tests.kafka_sla.notifications.misses import promise
from tests.kafka_sla.reporting.test_digest import judged

pytestmark = pytest.mark.slow

CONFIGURATION = """
clusters: {main: {}}
slas:
  - {name: payments-30s, group: payments, topic: orders, max_latency: 30s, recipients: [ann@example.com]}
digests:
  - {name: daily, every: day, at: "07:00"}
  - {name: weekly, every: week, at: "07:00", recipients: [lead@example.com]}
"""
MONDAY_AT_EIGHT = datetime.fromisoformat("2026-03-09T08:00:00+00:00")
"""End of the hour in which the digests fall due: a run by hand is dated by the end of its interval."""


@dataclass(frozen=True)
class World:
    store: Store
    mailbox: Mailbox

    def run(self, at: datetime | None = None, **form: Any) -> tuple[str, dict[str, str]]:
        """State of a run, and of its tasks by id or by the digest that a mapped one is named after."""
        from airflow.dag_processing.dagbag import DagBag

        ended = DagBag(dag_folder=str(DAGS)).dags["kafka_sla_report"].test(logical_date=at, run_conf=form)
        return str(ended.state), {t.rendered_map_index or t.task_id: str(t.state) for t in ended.get_task_instances()}

    def readers(self) -> list[str]:
        return sorted(str(mail["To"]) for mail in self.mailbox.mails())


@pytest.fixture
def world(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    (tmp_path / "kafka_sla.yml").write_text(CONFIGURATION)
    store = Store.embedded(tmp_path / "store")
    judged(Ledger(store), promise(), as_if=lambda window: window)
    with mailbox(tmp_path / "mail") as box:
        extra = {"from_email": "sla@example.com", "disable_ssl": True, "disable_tls": True}
        smtp = {"conn_type": "smtp", "host": "127.0.0.1", "port": box.port, "extra": extra}
        monkeypatch.setenv("KAFKA_SLA_CONFIG", str(tmp_path / "kafka_sla.yml"))
        monkeypatch.setenv("KAFKA_SLA_STORE", str(tmp_path / "store"))
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(smtp))
        yield World(store, box)


def test_what_fell_due_in_the_hour_is_mailed_once_however_often_it_runs(world: World) -> None:
    for _ in range(2):
        assert world.run(MONDAY_AT_EIGHT) == (
            "success",
            {"find_due_digests": "success", "daily": "success", "weekly": "success"},
        )

    assert world.readers() == ["ann@example.com", "lead@example.com"]
    assert sorted(p.name for p in Path(world.store.warehouse, "reports").rglob("*.html")) == [
        "day-20260308T0000Z.html",
        "week-20260302T0000Z.html",
    ]


def test_a_preview_by_hand_reaches_its_address_only(world: World) -> None:
    state, _ = world.run(digest="weekly", day="2026-03-04", send_to="preview", preview_to="me@example.com")

    assert state == "success"
    assert world.readers() == ["me@example.com"]
    assert "1 missed" in str(world.mailbox.mails()[0]["Subject"])


def test_a_preview_to_nobody_is_refused_with_the_cure(world: World, caplog: pytest.LogCaptureFixture) -> None:
    state, tasks = world.run(digest="weekly", send_to="preview")

    assert (state, tasks["find_due_digests"]) == ("failed", "failed")
    assert world.readers() == []
