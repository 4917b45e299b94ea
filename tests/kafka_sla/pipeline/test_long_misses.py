"""A miss that goes on for days: a run reads how it began and how it came to its worst, and nothing in between."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import FACTS
from kafka_sla.pipeline import steps
from kafka_sla.sla.root_cause.evidence import evidence_rows
from tests.kafka_sla.loads import DAY, load

CONFIGURATION = """
clusters: {a: {}}
slas:
- {name: payments, cluster: a, group: payments, topic: orders, max_latency: 30s, for: 2m}
"""
HOUR = timedelta(hours=1)
DAYS = [Interval(DAY + n * 24 * HOUR, DAY + (n + 1) * 24 * HOUR) for n in range(3)]


def late(lake: Lake, ledger: Ledger, load_id: str, interval: Interval, age_ms: float) -> None:
    age = {"backlog_age_max_ms": age_ms, "backlog_age_max_low_ms": age_ms, "records_lag": 7}
    load(lake, ledger, load_id, interval, records_consumed=0, **age)


def test_a_run_reads_how_it_began_and_how_it_came_to_its_worst_and_nothing_in_between(
    lake: Lake, ledger: Ledger, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "kafka_sla.yml").write_text(CONFIGURATION)
    settings = load_settings(tmp_path / "kafka_sla.yml")
    lake.make_tables()
    for table in FACTS:
        lake.fact_files(table, None, DAYS[-1].end)  # makes it, as preparing a job does
    for n, day in enumerate(DAYS[:2]):
        late(lake, ledger, f"load{n}", day, 40_000.0)
        steps.evaluate(settings, store, "payments", day)
    evening = DAYS[2].start + 18 * HOUR
    late(lake, ledger, "load2", Interval(DAYS[2].start, evening), 40_000.0)
    late(lake, ledger, "load3", Interval(evening, DAYS[2].end), 50_000.0)
    for path in Path(lake.stage_dir("load1")).rglob("*.parquet"):
        path.write_bytes(b"damaged")

    steps.evaluate(settings, store, "payments", DAYS[2])

    (miss,) = ledger.verdicts.misses("payments")
    assert (miss.state, miss.bad_windows, miss.worst_at) == ("open", 3 * 24 * 60, evening)
    assert (miss.evidence["cause"], miss.evidence["late_partitions"]) == ("stopped", 1)
    assert miss.evidence["covers"] == [
        ["2026-03-02T00:00:00.000Z", "2026-03-02T06:00:00.000Z"],
        ["2026-03-04T00:01:00.000Z", "2026-03-04T18:01:00.000Z"],
    ]
    assert "damaged_files" not in miss.evidence
    (told,) = [row for row in evidence_rows(miss.evidence) if row[0] == "Looked at"]
    assert told[2].startswith("2026-03-02 00:00:00 UTC to 2026-03-02 06:00:00 UTC and 2026-03-04 00:01:00 UTC to ")
