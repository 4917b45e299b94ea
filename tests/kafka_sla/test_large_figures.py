"""Figures near the largest integer, as one imported row can make them: sums of them end no command, and one SLA that
cannot be judged keeps nobody from hearing of the others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_sla.cli.console.context import Workplace
from kafka_sla.cli.local_run import Run, judge
from kafka_sla.cli.main import main
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import MOST, Interval
from kafka_sla.pipeline import steps
from kafka_sla.sla.rollups import HOUR_MS
from tests.kafka_sla.loads import load, span
from tests.kafka_sla.notifications.misses import hour, promise

CONFIG = """\
clusters: {a: {}, b: {}}
slas:
- {name: broken, cluster: a, group: payments, topic: orders, max_latency: 30s}
- {name: payments, cluster: b, group: payments, topic: orders, max_latency: 30s}
"""
HUGE = {
    "records_consumed": MOST,
    "records_lag": MOST,
    "records_lag_max": MOST,
    "unknown_latency_records": MOST,
    "latency_histogram": [(3, MOST)],
    "log_end_offset": MOST,
    "committed_offset": MOST,
    "records_latency_max_ms": 5.0,
    "backlog_age_max_ms": 5.0,
}


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    (tmp_path / "kafka_sla.yml").write_text(CONFIG)
    return Workplace(tmp_path / "kafka_sla.yml", tmp_path / "store")


def run_of(place: Workplace, interval: Interval) -> Run:
    return Run(interval, ("a", "b"), place.settings.slas, live=False, notify=True)


def test_sums_out_of_range_end_no_command(place: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    interval = span("09:00", "10:00")
    lake, ledger = Lake(place.store), Ledger(place.store)
    load(lake, ledger, "huge", interval, ["a", "b"], partitions=3, **HUGE)

    for name in ("broken", "payments"):
        assert steps.evaluate(place.settings, place.store, name, interval)["unknown"] == 60

    (hour,) = ledger.rollups.read("payments", HOUR_MS, interval)
    assert hour.rollup.measured.records_consumed in (None, MOST)
    for command in (["status"], ["export", "consumer_latency", "--by", "group"], ["misses"]):
        assert main(["--config", str(place.config), "--store", str(place.folder), *command]) == 0
    assert str(MOST) in capsys.readouterr().out


def test_judged_time_with_records_out_of_range_can_be_added_up(ledger: Ledger) -> None:
    windows = [replace(w, records_due=MOST, records_late=MOST) for w in hour()]
    around = Interval(windows[0].window.start, windows[-1].window.end)
    ledger.verdicts.replace(promise(), around, windows, lambda *_: [])
    assert ledger.verdicts.sums(promise(), around).records_due > MOST


def test_an_sla_that_cannot_be_judged_keeps_nobody_from_hearing_of_the_others(
    place: Workplace, capsys: pytest.CaptureFixture[str]
) -> None:
    interval = span("09:00", "09:10")
    lake, ledger = Lake(place.store), Ledger(place.store)
    for cluster in ("a", "b"):
        load(lake, ledger, cluster, interval, [cluster])
    for path in Path(lake.stage_dir("a")).rglob("*.parquet"):
        path.write_bytes(b"torn")

    with pytest.raises(Exception, match=r"part-00000\.parquet"):
        judge(place, run_of(place, interval))

    assert "the SLA 'broken' was not judged" in capsys.readouterr().err
    assert len(ledger.verdicts.windows("payments", interval)) == 10


def test_an_sla_that_could_not_be_judged_is_named_with_what_takes_it_up_again_until_it_is(
    place: Workplace, capsys: pytest.CaptureFixture[str]
) -> None:
    lake, ledger, later = Lake(place.store), Ledger(place.store), span("10:00", "10:10")
    load(lake, ledger, "torn", span("09:00", "09:10"), ["a"])
    load(lake, ledger, "whole", later, ["a"])
    for path in Path(lake.stage_dir("torn")).rglob("*.parquet"):
        path.write_bytes(b"torn")
    with pytest.raises(Exception, match="torn"):
        judge(place, run_of(place, span("09:00", "09:10")))
    judge(place, run_of(place, later))

    said = status(place, capsys)
    assert f"1 interval could not be judged:\n  broken, {span('09:00', '09:10')}: " in said
    command = "kafka-sla run --from 2026-03-02T09:00:00.000Z --to 2026-03-02T09:10:00.000Z --sla broken"
    assert command in said
    (failed,) = json.loads(status(place, capsys, "--json"))["unjudged_intervals"]
    assert (failed["sla"], failed["start"]) == ("broken", "2026-03-02T09:00:00.000Z")
    assert "part-00000.parquet" in failed["reason"]

    load(lake, ledger, "measured again", span("09:00", "09:10"), ["a"])
    judge(place, run_of(place, span("09:00", "10:10")))
    assert json.loads(status(place, capsys, "--json"))["unjudged_intervals"] == []


def status(place: Workplace, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    capsys.readouterr()
    assert main(["--config", str(place.config), "--store", str(place.folder), "status", *more]) == 0
    return capsys.readouterr().out
