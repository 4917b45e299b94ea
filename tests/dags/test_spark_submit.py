from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred

from kafka_sla.model.entities import Interval
from kafka_sla.spark.job_spec import Job
from tests.airflow_home import ROOT

GOLDEN = Path(__file__).parent / "golden"
KUBERNETES = {"deploy-mode": "cluster", "namespace": "spark", "spark.kubernetes.container.image": "sla/spark:4.1"}
OWN = {"spark.driver.memory": "6g", "spark.local.dir": "/scratch"}


@pytest.mark.parametrize(
    ("name", "spark"),
    [
        ("local", {"conn_type": "spark", "host": "local[2]"}),
        ("standalone", {"conn_type": "spark", "host": "spark://master", "port": 7077}),
        ("own-settings", {"conn_type": "spark", "host": "local[2]", "extra": OWN}),
        ("yarn", {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster", "queue": "reports"}}),
        ("kubernetes", {"conn_type": "spark", "host": "k8s://https://kubernetes", "port": 6443, "extra": KUBERNETES}),
    ],
)
def test_spark_is_submitted_as_it_should_be(
    parsed: Any, name: str, spark: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("KAFKA_SLA_STORE", str(tmp_path))

    job = str(tmp_path / "job.json")
    a_job(tmp_path).write(job)

    line = submitted(parsed.dags["kafka_sla"].get_task("measure"), job, monkeypatch)

    assert (GOLDEN / f"spark-submit-{name}.txt").read_text() == line


def a_job(folder: Path) -> Job:
    """A job of the usual size."""
    interval = Interval(datetime(2026, 11, 21, 10, tzinfo=UTC), datetime(2026, 11, 21, 10, 5, tzinfo=UTC))
    return Job("4f1c", interval, 60_000, (), (), {}, {}, str(folder / "staging"), {}, 100_000, 100_000)


def submitted(task: Any, job: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The command that the task would start, one argument a line, without this machine's paths."""
    from airflow.providers.apache.spark.hooks import spark_submit

    commands: list[list[str]] = []
    monkeypatch.setattr(spark_submit, "kube_client", object(), raising=False)  # as if its provider were installed
    monkeypatch.setattr(
        spark_submit.SparkSubmitHook,
        "submit",
        lambda hook, application: commands.append(hook._build_spark_submit_command(application)),
    )
    context = {
        "run_id": "scheduled__2026-11-21T10:00:00+00:00",
        "params": {"driver_memory": "1g"},
        "ti": SimpleNamespace(xcom_pull=lambda task_ids, key=None: {"store": "kafka_sla_store"} if key else job),
    }
    task = task.prepare_for_execution()
    task.render_template_fields(context)
    with suppress(TaskDeferred):  # where the driver runs elsewhere
        task.execute(context)
    text = "\n".join(commands[0]) + "\n"
    text = re.sub(r"/\S+/kafka_sla-[0-9a-f]{16}\.zip", "<code>.zip", text)
    text = re.sub(r"/\S+/spark_jobs/", "<code>/spark_jobs/", text)
    text = re.sub(r"[0-9a-f]{32}", "<submission>", text)
    text = re.sub(r' ?"-XX:SharedArchiveFile=.*', "", text)
    text = text.replace(job, "<job>")
    return text.replace(str(Path(sys.executable).parent), "<bin>").replace(str(ROOT), "<root>")
