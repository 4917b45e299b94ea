"""A damaged file costs its own interval: those after it are measured, judged and added up."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE
from kafka_sla.pipeline import steps
from kafka_sla.sla.rollups import HOUR_MS, SLOT_MS
from kafka_sla.spark.job_spec import Carried, read_job
from tests.kafka_sla.loads import at, load, span

BEFORE, FIRST, SECOND = span("08:50", "09:00"), span("09:00", "09:10"), span("09:10", "09:20")
HOUR = span("09:00", "10:00")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    config = tmp_path / "kafka_sla.yml"
    config.write_text("""
clusters: {a: {}}
slas:
- {name: payments, cluster: a, group: payments, topic: orders, max_latency: 30s, for: 5m}
""")
    return load_settings(config)


def tear(lake: Lake, load_id: str) -> list[str]:
    """Damage the latencies of the load; answers which files these are."""
    files = lake.metric_files([load_id], CONSUMER_LATENCY)
    for path in files:
        Path(path).write_bytes(b"torn")
    return files


def test_sums_of_the_hour_keep_what_was_added_up_before_the_damage(
    settings: Settings, store: Store, lake: Lake, ledger: Ledger
) -> None:
    load(lake, ledger, "first", FIRST)
    steps.evaluate(settings, store, "payments", FIRST)
    first = ledger.rollups.whole("payments", SLOT_MS, HOUR)
    torn = tear(lake, "first")
    load(lake, ledger, "second", SECOND)

    found = steps.evaluate(settings, store, "payments", SECOND)

    assert found["damaged_files"] == torn
    slots = ledger.rollups.whole("payments", SLOT_MS, HOUR)
    assert slots[:2] == first
    (hour,) = ledger.rollups.whole("payments", HOUR_MS, HOUR)
    assert hour.measured.records_consumed == sum(range(540, 560))
    assert [slot.measured.records_consumed for slot in slots[2:]] == [sum(range(550, 555)), sum(range(555, 560))]


def test_of_a_load_that_was_never_added_up_nothing_is_known_once_it_is_damaged(
    settings: Settings, store: Store, lake: Lake, ledger: Ledger
) -> None:
    load(lake, ledger, "first", FIRST)
    tear(lake, "first")
    load(lake, ledger, "second", SECOND)

    steps.evaluate(settings, store, "payments", SECOND)

    assert [at("09:10"), at("09:15")] == [slot.span.start for slot in ledger.rollups.whole("payments", SLOT_MS, HOUR)]


def test_evidence_of_a_miss_says_that_it_lacks_what_was_damaged(
    settings: Settings, store: Store, lake: Lake, ledger: Ledger
) -> None:
    steps.prepare(settings, store, BEFORE, ["a"])  # as every run does, which makes the tables
    late = {"backlog_age_max_ms": 90_000.0, "backlog_age_max_low_ms": 80_000.0, "records_lag": 40}
    load(lake, ledger, "first", FIRST, **late)
    steps.evaluate(settings, store, "payments", FIRST)
    torn = tear(lake, "first")
    load(lake, ledger, "second", SECOND, **late)

    (miss_id,) = steps.evaluate(settings, store, "payments", SECOND)["open"]

    (miss,) = ledger.verdicts.misses("payments", HOUR)
    assert (miss.id, miss.start) == (miss_id, at("09:00"))
    assert miss.evidence["damaged_files"] == torn
    assert "1 damaged file of that time could not be read: run kafka-sla store check." in miss.evidence["sentence"]


def test_the_interval_after_a_damaged_one_carries_on_from_the_load_before(
    settings: Settings, store: Store, lake: Lake, ledger: Ledger
) -> None:
    steps.prepare(settings, store, BEFORE, ["a"])  # which rules are in force is known from here on
    for number, interval in enumerate((BEFORE, FIRST)):
        load(lake, ledger, f"load{number}", interval)
    assert carried(settings, store) == Carried(at("09:10"), "load1")

    for path in lake.metric_files(["load1"], STEADY_STATE):
        Path(path).write_bytes(Path(path).read_bytes()[:-40])
    assert carried(settings, store) == Carried(at("09:00"), "load0")

    for path in lake.metric_files(["load0"], CONSUMER_LATENCY):
        Path(path).unlink()
    assert carried(settings, store) is None


def carried(settings: Settings, store: Store) -> Carried | None:
    return read_job(steps.prepare(settings, store, SECOND, ["a"])).replays[0].carried
