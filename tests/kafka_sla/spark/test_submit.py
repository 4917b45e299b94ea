"""Local Spark that cannot do its work says why."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kafka_sla.errors import SparkFailed
from kafka_sla.model.entities import Interval
from kafka_sla.spark.job_spec import Job
from kafka_sla.spark.submit import run_spark


def test_without_java_nothing_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SparkFailed, match="Spark needs Java 17, and there is none on the path"):
        run_spark(str(tmp_path / "job.json"))


def test_a_failed_application_tells_the_end_of_its_output_and_where_all_of_it_is(tmp_path: Path) -> None:
    interval = Interval(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 1, 0, 5, tzinfo=UTC))
    facts = {"log_offsets": [str(tmp_path / "removed.parquet")], "committed_offsets": []}
    Job("1", interval, 60_000, (), (), facts, {}, {}, str(tmp_path / "out"), {}, 0).write(tmp_path / "job.json")
    with pytest.raises(SparkFailed, match=r"Spark ended with exit code 1; all it said is in (\S+)") as caught:
        run_spark(str(tmp_path / "job.json"))
    assert "removed.parquet" in str(caught.value)
    found = re.search(r"is in (\S+)", str(caught.value))
    assert found
    log = Path(found[1])
    assert "removed.parquet" in log.read_text()
    log.unlink()
