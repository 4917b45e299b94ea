from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.airflow_home import ROOT

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(
    ("name", "spark"),
    [
        ("local", {"conn_type": "spark", "host": "local[2]"}),
        ("standalone", {"conn_type": "spark", "host": "spark://master", "port": 7077}),
        ("yarn", {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster", "queue": "reports"}}),
    ],
)
def test_spark_is_submitted_as_it_should_be(
    parsed: Any, name: str, spark: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    line = submitted(parsed.dags["kafka_sla"].get_task("measure"), monkeypatch)

    assert (GOLDEN / f"spark-submit-{name}.txt").read_text() == line


def submitted(task: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The command that the task would start, one argument a line, without this machine's paths."""
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    commands: list[list[str]] = []
    monkeypatch.setattr(
        SparkSubmitHook,
        "submit",
        lambda hook, application: commands.append(hook._build_spark_submit_command(application)),
    )
    context = {
        "run_id": "scheduled__2026-11-21T10:00:00+00:00",
        "params": {"driver_memory": "1g"},
        "ti": SimpleNamespace(xcom_pull=lambda task_ids: "/warehouse/staging/4f1c/job.json"),
    }
    task = task.prepare_for_execution()
    task.render_template_fields(context)
    task.execute(context)
    text = "\n".join(commands[0]) + "\n"
    text = re.sub(r"/\S+/kafka_sla-[0-9a-f]{16}\.zip", "<code>.zip", text)
    text = re.sub(r"/\S+/spark_jobs/", "<code>/spark_jobs/", text)
    return text.replace(str(Path(sys.executable).parent), "<bin>").replace(str(ROOT), "<root>")
