from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.airflow_home import ROOT
from tests.dags.conftest import DAGS

PARSED = (
    "dags/kafka_sla_watch.py",
    "dags/kafka_sla_history.py",
    "dags/kafka_sla_report.py",
    "dags/kafka_sla_sample.py",
    "plugins/kafka_sla_plugin.py",
)
HEAVY = ("pyspark", "great_expectations", "pyiceberg", "duckdb", "matplotlib", "kafka", "pandas")


def test_all_dags_are_imported_without_errors(parsed: Any) -> None:
    assert parsed.import_errors == {}
    assert sorted(parsed.dags) == ["kafka_sla", "kafka_sla_history", "kafka_sla_report", "kafka_sla_sample"]


def test_all_dags_survive_serialization(parsed: Any) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    for dag in parsed.dags.values():
        copy = DagSerialization.from_dict(DagSerialization.to_dict(dag))
        assert sorted(copy.task_ids) == sorted(dag.task_ids)


def seconds_of(dag: Any) -> float | None:
    """How long the interval of a run by hand is."""
    from airflow.serialization.encoders import coerce_to_core_timetable
    from pendulum import datetime

    asked = coerce_to_core_timetable(dag.timetable).infer_manual_data_interval(run_after=datetime(2026, 11, 21, 3))
    return asked and (asked.end - asked.start).total_seconds()


def test_intervals_are_five_minutes_a_day_and_an_hour_long(parsed: Any) -> None:
    assert {name: seconds_of(dag) for name, dag in parsed.dags.items()} == {
        "kafka_sla": 300,
        "kafka_sla_history": 86_400,
        "kafka_sla_report": 3_600,
        "kafka_sla_sample": 900,
    }


@pytest.mark.parametrize(("interval", "seconds"), [("1m", 60), ("15m", 900)])
def test_the_configuration_says_how_often_is_measured(
    airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interval: str, seconds: int
) -> None:
    from airflow.dag_processing.dagbag import DagBag

    (tmp_path / "kafka_sla.yml").write_text(f"clusters: {{prod-eu.payments: {{}}}}\ninterval: {interval}\n")
    monkeypatch.setenv("KAFKA_SLA_CONFIG", str(tmp_path / "kafka_sla.yml"))
    dag = DagBag(dag_folder=str(DAGS)).dags["kafka_sla"]

    assert dag.description == f"Latency of Kafka consumers against their SLAs, every {interval}"
    assert seconds_of(dag) == seconds


def test_nothing_is_caught_up_by_itself(parsed: Any) -> None:
    assert not any(dag.catchup for dag in parsed.dags.values())


def test_clusters_and_slas_are_named_in_the_grid(parsed: Any) -> None:
    for dag in (parsed.dags["kafka_sla"], parsed.dags["kafka_sla_history"]):
        assert "op_kwargs['cluster']" in dag.get_task("snapshot").partial_kwargs["map_index_template"]
        assert "op_kwargs['batch']['label']" in dag.get_task("evaluate").partial_kwargs["map_index_template"]


def test_history_mails_nobody_and_settles(parsed: Any) -> None:
    assert "notify" not in parsed.dags["kafka_sla_history"].task_ids
    assert "maintain_tables" in parsed.dags["kafka_sla_history"].task_ids


def test_the_runbook_is_shown_in_the_ui(parsed: Any) -> None:
    assert parsed.dags["kafka_sla"].doc_md.startswith("# kafka_sla: did Kafka's consumers meet")


def test_a_broken_configuration_is_shown_and_the_dags_stay(airflow_database: None, broken_configuration: Path) -> None:
    from airflow.dag_processing.dagbag import DagBag

    found = DagBag(dag_folder=str(DAGS))

    assert found.import_errors == {}
    for dag in found.dags.values():
        assert dag.doc_md.startswith("## The configuration cannot be used")
        assert str(broken_configuration) in dag.doc_md


@pytest.fixture(scope="module")
def imported() -> dict[str, list[str]]:
    """What a process holds of heavy modules after each file that is parsed, then after the pages."""
    code = f"""
import json, runpy, sys
import tests.airflow_home
found = {{}}
for name in {PARSED}:
    runpy.run_path(name)
    found[name] = [m for m in {HEAVY} if m in sys.modules]
import kafka_sla.web.app
found["pages"] = [m for m in ("great_expectations", "matplotlib") if m in sys.modules]
print(json.dumps(found))
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    held: dict[str, list[str]] = json.loads(ended.stdout.splitlines()[-1])
    return held


@pytest.mark.parametrize("name", PARSED)
def test_parsing_imports_nothing_heavy(imported: dict[str, list[str]], name: str) -> None:
    assert imported[name] == []


def test_pages_import_nothing_that_only_workers_install(imported: dict[str, list[str]]) -> None:
    assert imported["pages"] == []


def test_below_a_path_prefix_the_menu_leads_there() -> None:
    code = "from kafka_sla_plugin import KafkaSlaPlugin as p; print(*[view['href'] for view in p.external_views])"
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"AIRFLOW__API__BASE_URL": "https://airflow.example/my-deployment/"},
    ).stdout
    assert answer.splitlines()[-1].split() == [
        "/my-deployment/kafka-sla/",
        "/my-deployment/kafka-sla/dags/{DAG_ID}",
        "/my-deployment/kafka-sla/dags/{DAG_ID}/runs/{RUN_ID}",
    ]
