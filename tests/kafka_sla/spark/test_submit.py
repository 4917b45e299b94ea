"""Local Spark that cannot do its work says why."""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from kafka_sla.errors import SparkFailed
from kafka_sla.model.entities import Interval
from kafka_sla.spark.failures import left
from kafka_sla.spark.job_spec import Job
from kafka_sla.spark.submit import run_spark


def test_without_java_nothing_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SparkFailed, match="Spark needs Java 17, and there is none on the path"):
        run_spark(str(tmp_path / "job.json"))


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_command_leaves_no_process_and_no_file(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "kafka_sla.yml").write_text("clusters: {a: {}}\nslas: []\n")
    (tmp_path / "tmp").mkdir()
    words = [sys.executable, "-c", "import sys; from kafka_sla.cli.main import main; sys.exit(main())", "run"]
    words += ["--from", "2026-03-02T10:00Z", "--to", "2026-03-02T10:05Z", "--store", "store"]
    with subprocess.Popen(words, cwd=tmp_path, env=os.environ | {"TMPDIR": str(tmp_path / "tmp")}) as command:
        family = with_driver(psutil.Process(command.pid))
        command.send_signal(how)

        assert command.wait() == (-signal.SIGKILL if how == signal.SIGKILL else 130)
    _, left = psutil.wait_procs(family, timeout=120)
    assert not [process for process in left if process.status() != psutil.STATUS_ZOMBIE]
    assert not list((tmp_path / "tmp").glob("kafka_sla-spark-*"))


def test_a_killed_task_leaves_no_process(tmp_path: Path) -> None:
    job(tmp_path).write(str(tmp_path / "job.json"))
    code = f"""
import signal
from kafka_sla.tasks.measure_operator import measure
task = measure({str(tmp_path / "job.json")!r}, "kafka_sla_store")
task.conf = {{}}
signal.signal(signal.SIGTERM, lambda *_: task.on_kill())
task.execute({{}})
"""
    spark = json.dumps({"conn_type": "spark", "host": "local[1]"})
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"AIRFLOW_CONN_SPARK_DEFAULT": spark, "KAFKA_SLA_STORE": str(tmp_path)},
    ) as task:
        family = with_driver(psutil.Process(task.pid))
        task.terminate()
        _, left = psutil.wait_procs(family, timeout=120)

        assert not [process for process in left if process.status() != psutil.STATUS_ZOMBIE]
        task.wait()


def with_driver(started: psutil.Process) -> list[psutil.Process]:
    """Its children, once the Python driver is among them."""
    while True:
        family = started.children(recursive=True)
        if any(runs_python(process) for process in family):
            return family
        assert started.is_running() and started.status() != psutil.STATUS_ZOMBIE
        time.sleep(0.1)


def runs_python(process: psutil.Process) -> bool:
    try:
        return "python" in process.name()
    except psutil.NoSuchProcess:  # one of the scripts that start Java, which has ended since it was listed
        return False


def job(folder: Path) -> Job:
    interval = Interval(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 1, 0, 5, tzinfo=UTC))
    facts = {"log_offsets": [str(folder / "removed.parquet")], "committed_offsets": []}
    return Job("1", interval, 60_000, (), (), facts, {}, str(folder / "out"), {}, 0, 0)


def test_a_failed_application_names_the_cause_in_a_sentence_and_where_all_of_its_output_is(tmp_path: Path) -> None:
    job(tmp_path).write(str(tmp_path / "job.json"))
    with pytest.raises(SparkFailed, match=r"Spark failed with exit code 1: .+; all it printed is in (\S+)") as caught:
        run_spark(str(tmp_path / "job.json"))
    assert "removed.parquet" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not re.search(r"\bat [\w.$]+\(|Traceback", str(caught.value))
    found = re.search(r"is in (\S+)", str(caught.value))
    assert found
    log = Path(found[1])
    assert "removed.parquet" in log.read_text()
    assert "removed.parquet" in (left(str(tmp_path / "out")) or "")
    log.unlink()


def test_a_user_without_a_name_is_told_before_spark_starts_that_hadoop_wants_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)

    with pytest.raises(SparkFailed, match=f"user {os.getuid()}, whom this machine has no name for: add a line for it"):
        run_spark(str(tmp_path / "job.json"))
