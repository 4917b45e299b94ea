"""The SQL table of unjudged partitions describes the newest judged window of each SLA."""

from __future__ import annotations

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.sla.unjudged_partitions import UnjudgedPartitions
from tests.kafka_sla.loads import at


def part(sla: str, topic: str = "orders") -> UnjudgedPartitions:
    return UnjudgedPartitions(sla, "billing", topic, "rewind", (1, 7), at("9:00"))


def test_a_later_window_replaces_the_entries_of_its_slas_only(store: Store) -> None:
    table = Ledger(store).unjudged_partitions
    table.replace(["payments", "audit"], at("10:00"), [part("payments"), part("audit")])
    table.replace(["payments"], at("10:05"), [])

    assert Ledger(store).unjudged_partitions.of(["payments", "audit"]) == {"audit": [part("audit")]}


def test_judging_an_earlier_window_again_changes_nothing(store: Store) -> None:
    table = Ledger(store).unjudged_partitions
    table.replace(["payments"], at("10:05"), [part("payments")])
    table.replace(["payments"], at("10:00"), [part("payments", "refunds")])

    assert table.of(["payments"]) == {"payments": [part("payments")]}
