"""Steady states are carried over only while the rules that made them stand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Patterns, Sla, StatusRules, SteadyState
from kafka_sla.pipeline.load_plan import rules_digest
from tests.kafka_sla.loads import at, span

CLUSTER = Cluster("a", None)
PROMISE = Sla("payments", "a", Patterns(), Patterns(), 30_000, 60_000, 0.99, SteadyState(30_000))


def test_the_same_rules_keep_what_was_measured(ledger: Ledger) -> None:
    for _ in range(2):
        ledger.rule_versions.adopt("a", "rules")
        ledger.publications.publish(["a"], span("0:00", "1:00"), "one", ledger.ingestions.readable_seq("a"))
    assert ledger.publications.carry("a", at("1:00")) == (at("1:00"), 0)


def test_other_rules_carry_nothing_over_until_something_is_measured_by_them(ledger: Ledger) -> None:
    for cluster in ("a", "b"):
        ledger.rule_versions.adopt(cluster, "rules")
        ledger.publications.publish(
            [cluster], span("0:00", "1:00"), f"old {cluster}", ledger.ingestions.readable_seq(cluster)
        )
    ledger.rule_versions.adopt("a", "other rules")
    assert ledger.publications.carry("a", at("1:00")) is None
    assert ledger.publications.carry("b", at("1:00")) == (at("1:00"), 0)
    ledger.publications.publish(["a"], span("0:00", "1:00"), "new", ledger.ingestions.readable_seq("a"))
    assert ledger.publications.carry("a", at("1:00")) == (at("1:00"), 1)


@pytest.mark.parametrize(
    "changed",
    [
        replace(PROMISE, groups=Patterns(("billing",))),
        replace(PROMISE, topics=Patterns(("orders",))),
        replace(PROMISE, max_latency_ms=10_000),
        replace(PROMISE, steady_state=SteadyState(10_000)),
        replace(PROMISE, steady_state=SteadyState(30_000, grace_period_ms=60_000)),
        replace(PROMISE, steady_state=SteadyState(30_000, expire_group_ms=60_000)),
    ],
)
def test_whatever_may_change_a_steady_state_changes_the_digest(changed: Sla) -> None:
    assert rules_digest(CLUSTER, [changed]) != rules_digest(CLUSTER, [PROMISE])


@pytest.mark.parametrize(
    "changed",
    [
        replace(CLUSTER, status=StatusRules(commits=20)),
        replace(CLUSTER, status=StatusRules(expire_group_ms=60_000)),
        replace(CLUSTER, non_consumed_offsets_groups=(("orders", ("billing",)),)),
    ],
)
def test_whatever_may_change_evaluated_commits_or_totals_changes_the_digest(changed: Cluster) -> None:
    assert rules_digest(changed, [PROMISE]) != rules_digest(CLUSTER, [PROMISE])


def test_what_changes_nothing_that_is_carried_over_keeps_the_digest() -> None:
    known = rules_digest(CLUSTER, [PROMISE])
    assert rules_digest(CLUSTER, [replace(PROMISE, for_ms=120_000, recipients=("a@example.com",))]) == known
    assert rules_digest(CLUSTER, [PROMISE, replace(PROMISE, name="other", cluster="b")]) == known
    assert rules_digest(replace(CLUSTER, status=StatusRules(allowed_lag=5, min_complete=0.5)), [PROMISE]) == known


def test_stores_know_these_rules_by_this_digest() -> None:
    """Under another one, everything that a store holds would be measured anew by the next run."""
    rules = replace(PROMISE, steady_state=SteadyState(30_000, grace_period_ms=60_000))
    assert rules_digest(CLUSTER, [rules]) == "42fadfebf9fe73b07f1a414d52c6e02a07235269edb708c0f4e1d445a86bcaa9"
