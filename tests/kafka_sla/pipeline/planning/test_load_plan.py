"""What a load reads of what was published before it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import Cluster, Patterns, Sla, SteadyState
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_LATENCY, LOG_OFFSETS, STEADY_STATE, Table
from kafka_sla.parquet_files import parquet_file
from kafka_sla.pipeline import steps
from kafka_sla.spark.job_spec import Carried, Job, read_job
from tests.kafka_sla.loads import MINUTE, at, load, points, span


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


def test_of_an_sla_that_is_added_the_topics_are_replayed_and_all_else_is_carried_over(
    tmp_path: Path, store: Store, lake: Lake, ledger: Ledger
) -> None:
    covered = Sla("orders", "a", Patterns(("payments",)), Patterns(), 30_000, 0, 0.99, SteadyState(30_000))
    elsewhere = replace(covered, name="elsewhere", groups=Patterns(("nobody",)))
    without = Settings((Cluster("a", None),), (elsewhere,))
    for topic in ("orders", "bills"):
        for clock in ("7:00", "9:05"):
            lake.land({table.name: rows for table, rows in facts(topic, clock).items()})
    steps.prepare(without, store, span("8:00", "9:00"), ["a"])  # which rules are in force is known from here on
    load(lake, ledger, "before", span("8:00", "9:00"))

    job = read_job(steps.prepare(replace(without, slas=(covered, elsewhere)), store, span("9:00", "9:10"), ["a"]))
    later = read_job(steps.prepare(without, store, span("9:00", "9:10"), ["a"]))

    (replay,) = job.replays
    assert replay.carried == later.replays[0].carried == Carried(at("9:00"), "before")
    assert (replay.anew, later.replays[0].anew, later.older) == (("orders",), (), {})
    assert job.facts == later.facts
    (older,) = job.older[COMMITTED_OFFSETS.name]
    assert topics_in(older.path) == {"orders"}
    assert older.path not in job.facts[COMMITTED_OFFSETS.name]


def facts(topic: str, clock: str) -> dict[Table, pa.Table]:
    """A commit of a group on a topic, and the log end then."""
    place = {"cluster": "a", "topic": topic, "partition": 0, "at": at(clock)}
    commit = place | {"group": "payments" if topic == "orders" else "billing", "committed_offset": 7}
    return {
        COMMITTED_OFFSETS: arrow_rows(COMMITTED_OFFSETS, [commit | {"source": "commit_log"}]),
        LOG_OFFSETS: arrow_rows(LOG_OFFSETS, [place | {"log_end_offset": 9, "source": "snapshot"}]),
    }


def topics_in(path: str) -> set[str]:
    with parquet_file(path) as file:
        return set(file.read(["topic"])["topic"].to_pylist())


def test_a_job_is_as_large_as_it_has_rows_however_small_they_are(tmp_path: Path, store: Store, merged: Lake) -> None:
    """Positions and times that grow evenly take next to nothing in a file, and as long as any others to be measured."""
    seconds = range(40_000)
    commits = [
        {"cluster": "a", "group": "g", "topic": "t", "partition": 0, "at": at("9:50") + second * MINUTE / 60}
        | {"committed_offset": 10 * second, "source": "commit_log"}
        for second in seconds
    ]
    carried = measured_again(tmp_path, store, "9:50", "10:00")
    merged.land({COMMITTED_OFFSETS.name: arrow_rows(COMMITTED_OFFSETS, commits)})

    job = measured_again(tmp_path, store, "9:50", "24:00")

    (path,) = job.facts[COMMITTED_OFFSETS.name]
    assert Path(path).stat().st_size < len(commits)
    assert [job.input_rows, job.measured_rows] == [
        rows + len(commits) for rows in (carried.input_rows, carried.measured_rows)
    ]
    until_five_past = measured_again(tmp_path, store, "10:00", "10:05")  # and again from 9:50 on, for facts came since
    assert (until_five_past.facts, until_five_past.input_rows) == (job.facts, job.input_rows)
    assert 14 * 60 < until_five_past.measured_rows - carried.measured_rows < 16 * 60, "of the file those of this time"


@pytest.mark.parametrize(("max_latency", "read"), [("1m", ["13:50", "14:01"]), ("1h", ["13:10", "13:50", "14:01"])])
def test_log_ends_are_read_from_when_records_were_produced_that_become_due(
    max_latency: str, read: list[str], tmp_path: Path, store: Store, lake: Lake, ledger: Ledger
) -> None:
    config = tmp_path / "kafka_sla.yml"
    config.write_text(
        f"clusters: {{a: {{}}}}\nslas:\n  - {{name: orders, group: payments, max_latency: {max_latency}}}\n"
    )
    prepare = partial(steps.prepare, load_settings(config), store, span("14:00", "14:05"), ["a"])
    prepare()  # the rules are known from then on
    load(lake, ledger, "before", span("13:55", "14:00"), backlog_age_high_ms=0.0, records_lag=0, committed_offset=840)
    for clock in ("11:00", "13:10", "13:50", "14:01"):
        lake.append_facts(LOG_OFFSETS, points(clock))

    files = read_job(prepare()).facts[LOG_OFFSETS.name]

    clocks = sorted(f"{row['at']:%H:%M}" for path in files for row in pq.read_table(path).to_pylist())
    assert clocks == read
