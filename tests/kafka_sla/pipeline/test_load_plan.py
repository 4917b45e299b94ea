"""What a load reads of what was published before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE
from kafka_sla.pipeline import steps
from kafka_sla.spark.job_spec import Job, read_job
from tests.kafka_sla.loads import MINUTE, at, load, span


def measured_again(tmp_path: Path, store: Store, start: str, end: str) -> Job:
    config = tmp_path / "kafka_sla.yml"
    config.write_text("clusters: {a: {}}\nslas: []\n")
    return read_job(steps.prepare(load_settings(config), store, span(start, end), ["a"]))


@pytest.fixture
def merged(store: Store, lake: Lake, ledger: Ledger) -> Lake:
    """What was published from 8:00 to 10:00 is one load."""
    for number, interval in enumerate(span("8:00", "10:00").pieces(10 * MINUTE)):
        load(lake, ledger, f"load{number}", interval)
    assert lake.maintain().merged_loads == 12
    return lake


def test_of_a_load_of_many_hours_the_one_that_is_carried_over_is_read(
    tmp_path: Path, store: Store, merged: Lake
) -> None:
    job = measured_again(tmp_path, store, "9:30", "9:40")
    assert [one.carried.at for one in job.replays if one.carried] == [at("9:30")]
    assert {name: [Path(file).name for file in files] for name, files in job.carry.items() if files} == {
        CONSUMER_LATENCY.name: ["09.parquet"],
        STEADY_STATE.name: ["09.parquet"],
    }
    at_nine = measured_again(tmp_path, store, "9:00", "9:10")
    assert [Path(file).name for file in at_nine.carry[STEADY_STATE.name]] == ["08.parquet"]


def test_only_the_hour_that_is_carried_over_must_be_whole(
    tmp_path: Path, store: Store, merged: Lake, ledger: Ledger
) -> None:
    first, _ = merged.published_files(CONSUMER_LATENCY, ledger.publications.slices(["a"], span("8:00", "10:00")))
    Path(first).write_bytes(b"torn")
    assert measured_again(tmp_path, store, "9:30", "9:40").replays[0].carried
    assert measured_again(tmp_path, store, "8:30", "8:40").replays[0].carried is None
