"""Steady states are carried over only while the rules that made them stand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_sla.ledger import Ledger
from kafka_sla.model import Patterns, Sla, SteadyState
from kafka_sla.preparation import rules_digest
from tests.kafka_sla.loads import at, span

PROMISE = Sla("payments", "a", Patterns(), Patterns(), 30_000, 60_000, 0.99, SteadyState(30_000))


def test_the_same_rules_keep_what_was_measured(ledger: Ledger) -> None:
    for _ in range(2):
        ledger.adopt_rules("a", "rules")
        ledger.publish(["a"], span("0:00", "1:00"), "one", ledger.facts_seq("a"))
    assert ledger.carry("a", at("1:00")) == (at("1:00"), 0)


def test_other_rules_carry_nothing_over_until_something_is_measured_by_them(ledger: Ledger) -> None:
    for cluster in ("a", "b"):
        ledger.adopt_rules(cluster, "rules")
        ledger.publish([cluster], span("0:00", "1:00"), f"old {cluster}", ledger.facts_seq(cluster))
    ledger.adopt_rules("a", "other rules")
    assert ledger.carry("a", at("1:00")) is None
    assert ledger.carry("b", at("1:00")) == (at("1:00"), 0)
    ledger.publish(["a"], span("0:00", "1:00"), "new", ledger.facts_seq("a"))
    assert ledger.carry("a", at("1:00")) == (at("1:00"), 1)


@pytest.mark.parametrize(
    "changed",
    [
        replace(PROMISE, groups=Patterns(("billing",))),
        replace(PROMISE, topics=Patterns(("orders",))),
        replace(PROMISE, max_latency_ms=10_000),
        replace(PROMISE, steady_state=SteadyState(10_000)),
        replace(PROMISE, steady_state=SteadyState(30_000, grace_ms=60_000)),
        replace(PROMISE, steady_state=SteadyState(30_000, expire_group_ms=60_000)),
    ],
)
def test_whatever_may_change_a_steady_state_changes_the_digest(changed: Sla) -> None:
    assert rules_digest([changed]) != rules_digest([PROMISE])


def test_what_changes_no_steady_state_keeps_the_digest() -> None:
    assert rules_digest([replace(PROMISE, for_ms=120_000, recipients=("a@example.com",))]) == rules_digest([PROMISE])
