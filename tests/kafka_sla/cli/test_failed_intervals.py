"""An interval that cannot be measured is named with its reason, and with what takes it up again, until it is there."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kafka_sla.cli.main import main
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval

CONFIGURATION = """
clusters: {prod-eu.payments: {}}
slas:
  - {name: billing.alerts-in-time, cluster: prod-eu.payments, group: billing.alerts-v2, topic: orders, max_latency: 2m}
"""
FIVE_MINUTES = Interval(datetime(2026, 11, 1, 10, tzinfo=UTC), datetime(2026, 11, 1, 10, 5, tzinfo=UTC))
TIMES = ("--from", "2026-11-01T10:00Z", "--to", "2026-11-01T10:05Z")


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    config = tmp_path / "kafka_sla.yml"
    config.write_text(CONFIGURATION)
    monkeypatch.setenv("KAFKA_SLA_CONFIG", str(config))
    monkeypatch.setenv("KAFKA_SLA_STORE", str(tmp_path / "store"))
    return Store.embedded(tmp_path / "store")


def test_what_cannot_be_measured_is_named_until_it_is_published(
    configured: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *TIMES, "--driver-memory", "200000g"]) != 0
    capsys.readouterr()

    assert main(["status"]) == 0
    said = capsys.readouterr().out
    assert "1 interval could not be measured:" in said
    assert f"prod-eu.payments, {FIVE_MINUTES}: measure: Spark failed with exit code 1: " in said
    assert (
        "kafka-sla run --from 2026-11-01T10:00:00.000Z --to 2026-11-01T10:05:00.000Z --cluster prod-eu.payments" in said
    )

    Ledger(configured).publications.publish(["prod-eu.payments"], FIVE_MINUTES, "another-load", 0)
    main(["status", "--json"])
    assert json.loads(capsys.readouterr().out)["failed_intervals"] == []


def test_the_last_reason_of_an_interval_counts_and_a_published_one_is_forgotten(configured: Store) -> None:
    failures = Ledger(configured).failures
    failures.add(["prod-eu.payments", "dr"], FIVE_MINUTES, "measure", "the disk is full")
    failures.add(["dr"], FIVE_MINUTES, "validate", "two rows have one key")

    assert [(one.cluster, one.step, one.reason) for one in failures.within(FIVE_MINUTES)] == [
        ("dr", "validate", "two rows have one key"),
        ("prod-eu.payments", "measure", "the disk is full"),
    ]

    failures.forget(["dr"], Interval(FIVE_MINUTES.start, FIVE_MINUTES.end))
    assert [one.cluster for one in failures.within(FIVE_MINUTES)] == ["prod-eu.payments"]
