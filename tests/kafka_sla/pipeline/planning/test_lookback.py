"""Points are read as far back as the records are old that groups read, and no further."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.tables import COMMITTED_OFFSETS
from kafka_sla.pipeline.planning.lookback import read_since
from kafka_sla.spark.job_spec import Carried
from tests.kafka_sla.loads import at, load, points, span

INTERVAL = span("14:00", "14:05")
HALF_HOURS = [f"{hour}:{minute:02}" for hour in range(1, 15) for minute in (0, 30)]
"""When the log was looked at; the end offset is the minute of the day."""


@pytest.fixture
def since(lake: Lake, ledger: Ledger) -> Any:
    """From when on the points are read, when groups commit what is given in the interval."""
    load(lake, ledger, "before", span("13:59", "14:00"))
    lake.land({"log_offsets": points(*HALF_HOURS)})

    def asked(*commits: tuple[str, int]) -> datetime | None:
        rows = [
            {
                "cluster": "a",
                "group": "new",
                "topic": "orders",
                "partition": 0,
                "at": at(clock),
                "committed_offset": offset,
                "source": "commits",
            }
            for clock, offset in commits
        ]
        lake.land({"committed_offsets": arrow_rows(COMMITTED_OFFSETS, rows)})
        return read_since(lake, "a", Carried(at("14:00"), "before"), INTERVAL, 60_000, at("13:30"))

    return asked


def test_a_group_that_reads_what_is_new_asks_for_nothing_more(since: Any) -> None:
    assert since(("14:01", 815), ("14:02", 835)) == at("13:30")


def test_a_group_that_begins_with_old_records_asks_for_the_points_before_them(since: Any) -> None:
    assert since(("14:01", 9 * 60 + 10)) == at("7:30")


def test_records_older_than_every_point_ask_for_all_there_are(since: Any) -> None:
    assert since(("14:01", 3)) is None


def test_a_commit_ahead_of_the_last_point_asks_for_the_slope_before_it(since: Any) -> None:
    """The point at 13:30 alone tells no rate."""
    assert since(("13:00", 800), ("14:01", 842)) == at("13:30")
    assert since(("14:02", 815), ("14:03", 843)) == at("7:30")


def test_commits_count_from_the_carried_rows_on(since: Any) -> None:
    assert since(("13:30", 9 * 60 + 10)) == at("13:30")
    assert since(("14:01", 9 * 60 + 10)) == at("7:30")
