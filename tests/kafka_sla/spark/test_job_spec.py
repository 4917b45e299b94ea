"""The file that tells Spark what to measure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kafka_sla.errors import StoreError
from kafka_sla.model.entities import Interval
from kafka_sla.spark.job_spec import Job, RowGroup, read_job

START = datetime(2026, 3, 2, tzinfo=UTC)
JOB = Job(
    "4f1c",
    Interval(START, START + timedelta(minutes=5)),
    60_000,
    (),
    (),
    {"log_offsets": ["facts/a b.parquet"]},
    {},
    "staging/4f1c",
    {"eu-west.orders": 7},
    12,
    10,
    {"committed_offsets": [RowGroup("facts/c.parquet", 3, 1_000, 77)]},
)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    JOB.write(f"{tmp_path}/job.json")
    assert read_job(f"{tmp_path}/job.json") == JOB


@pytest.mark.parametrize(("old", "new"), [("measured_rows", "input_bytes"), ("{", ""), ("12,", "twelve,")])
def test_a_job_of_another_version_or_a_damaged_one_is_said_to_be_one(tmp_path: Path, old: str, new: str) -> None:
    JOB.write(f"{tmp_path}/job.json")
    path = tmp_path / "job.json"
    path.write_text(path.read_text().replace(old, new, 1))

    with pytest.raises(StoreError, match=r"job\.json is no job of this version.*run the interval again, from its task"):
        read_job(str(path))
