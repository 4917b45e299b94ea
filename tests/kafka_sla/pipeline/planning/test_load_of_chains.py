"""Facts are read as far back as records of a chain are followed, also where rows are carried over."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS
from kafka_sla.pipeline.planning.load_plan import job_for
from kafka_sla.spark.job_spec import Job
from tests.kafka_sla.loads import at, load, points, span

CHAIN = "chain: [{group: payments, topic: orders}, {group: audit, topic: booked}]"
ALONE = "group: payments"


def configured(folder: Path, what: str) -> Settings:
    path = folder / "kafka_sla.yml"
    path.write_text(f"clusters: {{a: {{}}}}\nslas:\n  - {{name: orders, {what}, max_latency: 1m}}\n")
    return load_settings(path)


def planned(settings: Settings, lake: Lake, ledger: Ledger) -> Job:
    """The job of five minutes after a published load; commits landed one by one, at these times."""
    interval = span("14:00", "14:05")
    job_for(settings, lake, ledger, interval, ["a"])  # the rules are known from then on
    load(lake, ledger, "before", span("13:55", "14:00"), backlog_age_high_ms=0.0)
    for clock in ("11:00", "13:10", "14:01"):
        row = {
            "cluster": "a",
            "group": "payments",
            "topic": "orders",
            "partition": 0,
            "at": at(clock),
            "committed_offset": int(clock[:2]) * 60,
            "source": "commit_log",
        }
        lake.append_facts(COMMITTED_OFFSETS, arrow_rows(COMMITTED_OFFSETS, [row]))
        lake.append_facts(LOG_OFFSETS, points(clock))
    return job_for(settings, lake, ledger, interval, ["a"])


@pytest.mark.parametrize(("what", "files"), [(ALONE, 1), (CHAIN, 2)])
def test_commits_of_the_time_before_are_read_for_chains(
    what: str, files: int, tmp_path: Path, lake: Lake, ledger: Ledger
) -> None:
    job = planned(configured(tmp_path, what), lake, ledger)

    assert job.replays[0].carried is not None
    assert len(job.facts[COMMITTED_OFFSETS.name]) == files
