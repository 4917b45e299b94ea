"""A task that notifies, in a run of Airflow's own, whose mail server nobody has defined."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kafka_sla.config.settings import STORE_CONNECTION, load_settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.tasks.run_plan import Frozen, Request, plan
from tests.kafka_sla.notifications import receivers
from tests.kafka_sla.notifications.incidents import INTERVAL, judged, slow
from tests.kafka_sla.notifications.receivers import Receiver, serving

CONFIGURATION = """
clusters: {main: {}}
slas:
- name: billing.alerts-authorised
  group: billing.alert-consumer-v2
  topic: prod.alerts
  max_latency: 30s
  recipients: [oncall@example.com]
  webhooks: [{connection: alarms, format: pagerduty}]
"""
DAG = """
import json, os
from airflow.sdk import DAG, get_current_context, task
from kafka_sla.tasks.steps import notify

@task
def plan():
    get_current_context()["ti"].xcom_push(key="plan", value=json.loads(os.environ["PLAN"]))

@task
def publish():
    return 1

with DAG("notifies"):
    plan() >> publish() >> notify()
"""


def test_without_a_mail_server_everybody_else_is_told_and_the_task_says_what_is_missing(
    airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db

    (tmp_path / "kafka_sla.yml").write_text(CONFIGURATION)
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "notifies.py").write_text(DAG)
    settings, ledger = load_settings(tmp_path / "kafka_sla.yml"), Ledger(Store.embedded(tmp_path))
    (sla,) = settings.slas
    judged(ledger, [sla], [replace(slow(sla, end=True), worst_group="billing.alert-consumer-v2")])
    kept = Frozen(store=STORE_CONNECTION, configuration=ledger.configurations.freeze(settings))
    asked = Request(timedelta(minutes=5), watches=True, run_after=INTERVAL.end, data_interval=INTERVAL, tell="always")
    monkeypatch.setenv("PLAN", json.dumps(plan(settings, kept, asked, datetime.now(UTC))))
    monkeypatch.setenv("KAFKA_SLA_STORE", str(tmp_path))
    receiver = Receiver(receivers.pagerduty)
    with serving(receiver) as connection:
        login = {"conn_type": "http", "host": connection.host, "port": connection.port, "password": 32 * "a"}
        monkeypatch.setenv("AIRFLOW_CONN_ALARMS", json.dumps(login | {"extra": connection.extra}))
        found = DagBag(dag_folder=str(tmp_path / "dags"), bundle_path=tmp_path / "dags")
        DagBundlesManager().sync_bundles_to_db()
        sync_bag_to_db(found, "dags-folder", None)
        ended = found.dags["notifies"].test()

    assert str(ended.state) == "failed"
    assert [body["event_action"] for body in receiver.bodies] == ["trigger", "resolve"]
    assert "the Airflow connection 'smtp_default' is not defined" in capfd.readouterr().out
    assert [report.channel for report in ledger.alert_reports.unsent([sla.name])] == ["mail"]
