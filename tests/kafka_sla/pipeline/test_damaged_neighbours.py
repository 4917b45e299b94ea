"""A damaged file costs its own interval: those after it are measured, judged and added up."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.config.store import Store
from kafka_sla.files import write_rows
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE
from kafka_sla.pipeline import steps
from kafka_sla.sla.rollups import HOUR_MS, SLOT_MS
from kafka_sla.spark.job_spec import Carried, read_job
from tests.kafka_sla.loads import at, load, metric_row, span, write

BEFORE, FIRST, SECOND = span("08:50", "09:00"), span("09:00", "09:10"), span("09:10", "09:20")
HOUR = span("09:00", "10:00")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    config = tmp_path / "kafka_sla.yml"
    config.write_text("""
clusters: {a: {}}
slas:
- {name: payments, cluster: a, group: payments, topic: orders, max_latency: 30s, for: 5m}
- {name: billing, cluster: a, group: billing, topic: orders, max_latency: 40s, for: 5m}
""")
    return load_settings(config)


def tear(lake: Lake, load_id: str) -> list[str]:
    """Damage the latencies of the load; answers which files these are."""
    files = lake.metric_files([load_id], CONSUMER_LATENCY)
    for path in files:
        Path(path).write_bytes(b"torn")
    return files


def flip(path: str, column: str) -> None:
    """Damage the last page of a column, which nobody notices who does not read it."""
    columns = pq.read_metadata(path).row_group(0).to_dict()["columns"]
    pages = next(one for one in columns if one["path_in_schema"] == column)
    content = bytearray(Path(path).read_bytes())
    content[pages["dictionary_page_offset"] + pages["total_compressed_size"] - 2] ^= 0xFF
    Path(path).write_bytes(content)


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

    (miss_id,) = steps.evaluate(settings, store, "payments", SECOND)["misses"]["open"]

    (miss,) = ledger.verdicts.misses("payments", HOUR)
    assert (miss.id, miss.start) == (miss_id, at("09:00"))
    assert miss.evidence["damaged_files"] == torn
    assert "1 damaged file of that time could not be read: run kafka-sla store check." in miss.evidence["sentence"]


def test_slas_that_are_explained_together_lack_only_what_is_their_own(
    settings: Settings, store: Store, lake: Lake, ledger: Ledger
) -> None:
    steps.prepare(settings, store, BEFORE, ["a"])
    late = {"records_consumed": 0, "records_lag": 40}
    late |= dict.fromkeys(["backlog_age_max_ms", "backlog_age_max_low_ms", "backlog_age_max_high_ms"], 90_000.0)
    for number, interval in enumerate((FIRST, SECOND)):
        files: dict[str, list[str]] = {}
        for group in ("payments", "billing"):
            for table in (CONSUMER_LATENCY, STEADY_STATE):
                own = {"group": group} | (late if table is CONSUMER_LATENCY else {"sla": group})
                rows = [metric_row(table, "a", 0, window) | own for window in interval.windows(60_000)]
                written = write(lake, f"load{number}", interval, table, rows)
                path = str(Path(written).with_name(f"{group}.parquet"))
                write_rows(path, pq.read_table(written))
                files.setdefault(table.name, []).append(path)
        lake.add_load(f"load{number}", interval, files)
        ledger.publications.publish(["a"], interval, f"load{number}", {"a": 0})
        if number == 0:
            first = dict(steps.evaluate_all(settings, store, ["payments", "billing"], interval))
            torn = next(path for path in files[CONSUMER_LATENCY.name] if path.endswith("billing.parquet"))
            flip(torn, "backlog_age_max_ms")

    second = dict(steps.evaluate_all(settings, store, ["payments", "billing"], SECOND))

    assert [found["damaged_files"] for found in first.values()] == [[], []]
    (payments,), (billing,) = (ledger.verdicts.misses(name, HOUR) for name in second)
    assert (payments.worst_group, billing.worst_group) == ("payments", "billing")
    assert "damaged_files" not in payments.evidence
    assert billing.evidence["damaged_files"] == [torn]
    alone = steps.evaluate(settings, store, "payments", SECOND)
    assert alone == second["payments"]
    assert ledger.verdicts.misses("payments", HOUR) == [payments]


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
