"""Landings of facts and what may be claimed to be seen of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kafka_sla.ledger.ledger import Ledger
from tests.kafka_sla.loads import at, changed_since, span


def test_landings_are_numbered_in_each_cluster(ledger: Ledger) -> None:
    assert ledger.ingestions.readable_seq("a") == 0
    assert [ledger.ingestions.record(cluster, span("0:00", "1:00")) for cluster in "aba"] == [1, 1, 2]
    assert (ledger.ingestions.readable_seq("a"), ledger.ingestions.readable_seq("b")) == (2, 1)


def test_facts_changed_when_a_later_landing_is_older_than_the_asked_time(ledger: Ledger) -> None:
    ledger.ingestions.record("a", span("1:00", "2:00"))
    assert changed_since(ledger, "a", 0, at("1:01"))
    assert not changed_since(ledger, "a", 0, at("1:00"))
    assert not changed_since(ledger, "a", 1, at("9:00"))


def test_nobody_has_seen_a_landing_until_it_is_confirmed(ledger: Ledger) -> None:
    first = ledger.ingestions.begin("a", span("0:00", "1:00"))
    second = ledger.ingestions.record("a", span("1:00", "2:00"))
    assert ledger.ingestions.readable_seq("a") == 0
    assert changed_since(ledger, "a", 0, at("0:01"))
    ledger.ingestions.confirm("a", first)
    assert ledger.ingestions.readable_seq("a") == second


def test_a_landing_that_was_killed_counts_as_new_once_settled(ledger: Ledger) -> None:
    ledger.ingestions.begin("a", span("0:00", "1:00"))
    ledger.ingestions.renumber_stale(datetime.now(UTC) - timedelta(hours=1))
    assert ledger.ingestions.readable_seq("a") == 0
    ledger.ingestions.renumber_stale(datetime.now(UTC) + timedelta(hours=1))
    assert ledger.ingestions.readable_seq("a") == 2
    assert changed_since(ledger, "a", 1, at("0:01"))


def test_settling_forgets_landings_that_every_publication_has_seen_but_never_the_number(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.ingestions.record("a", span("0:00", "1:00"))
    ledger.publications.publish(["a"], span("0:00", "1:00"), "load", 2)
    ledger.ingestions.renumber_stale(datetime.now(UTC))
    assert ledger.ingestions.readable_seq("a") == 3
    assert changed_since(ledger, "a", 2, at("1:00"))
    assert ledger.ingestions.record("a", span("0:00", "1:00")) == 4
