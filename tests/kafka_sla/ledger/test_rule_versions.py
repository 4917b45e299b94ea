"""Steady states are carried over only while the rules that made them stand: those of an SLA, and those of all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_sla.ledger.configurations import Rules
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Patterns, Sla, StatusRules, SteadyState
from kafka_sla.pipeline.planning.load_plan import rules_of
from tests.kafka_sla.loads import at, span

CLUSTER = Cluster("a", None)
PROMISE = Sla("payments", "a", Patterns(), Patterns(), 30_000, 60_000, 0.99, SteadyState(30_000))


def rules(shared: str = "shared", **slas: str) -> Rules:
    return Rules(f"{shared} {sorted(slas.items())}", shared, slas)


def published(ledger: Ledger, load_id: str, start: str, end: str, cluster: str = "a") -> None:
    seq = ledger.ingestions.readable_seq(cluster)
    ledger.publications.publish([cluster], span(start, end), load_id, seq)


def unknown(ledger: Ledger, end: str) -> frozenset[str]:
    """SLAs that what is carried over at that time does not know; all where nothing is."""
    carried = ledger.publications.carry("a", at(end))
    return ledger.rule_versions.unknown_to("a", carried[1]) if carried else frozenset("everything")


def test_the_same_rules_keep_what_was_measured(ledger: Ledger) -> None:
    assert ledger.rule_versions.adopt("a", rules(payments="30 s"))
    published(ledger, "one", "0:00", "1:00")
    assert not ledger.rule_versions.adopt("a", rules(payments="30 s"))
    assert ledger.publications.carry("a", at("1:00")) == (at("1:00"), 0)
    assert unknown(ledger, "1:00") == set()


def test_other_rules_of_all_carry_nothing_over_until_something_is_measured_by_them(ledger: Ledger) -> None:
    for cluster in ("a", "b"):
        ledger.rule_versions.adopt(cluster, rules(payments="30 s"))
        published(ledger, f"old {cluster}", "0:00", "1:00", cluster)
    ledger.rule_versions.adopt("a", rules("other", payments="30 s"))
    assert ledger.publications.carry("a", at("1:00")) is None
    assert ledger.publications.carry("b", at("1:00")) == (at("1:00"), 0)
    published(ledger, "new", "0:00", "1:00")
    assert ledger.publications.carry("a", at("1:00")) == (at("1:00"), 1)
    assert unknown(ledger, "1:00") == set()


@pytest.mark.parametrize("other", [{"payments": "30 s", "orders": "5 s"}, {"payments": "10 s"}])
def test_what_was_measured_before_does_not_know_an_sla_that_is_new_or_has_other_rules(
    ledger: Ledger, other: dict[str, str]
) -> None:
    ledger.rule_versions.adopt("a", rules(payments="30 s"))
    published(ledger, "before", "0:00", "1:00")
    ledger.rule_versions.adopt("a", rules(**other))
    published(ledger, "since", "1:00", "2:00")
    assert unknown(ledger, "1:00") == {list(other)[-1]}
    assert unknown(ledger, "2:00") == set()


def test_an_sla_that_was_gone_for_a_while_is_new_again_and_the_others_are_not(ledger: Ledger) -> None:
    both = rules(payments="30 s", orders="5 s")
    ledger.rule_versions.adopt("a", both)
    published(ledger, "with both", "0:00", "1:00")
    ledger.rule_versions.adopt("a", rules(payments="30 s"))
    published(ledger, "without", "1:00", "2:00")
    ledger.rule_versions.adopt("a", both)
    published(ledger, "with both again", "2:00", "3:00")
    assert [unknown(ledger, end) for end in ("1:00", "2:00", "3:00")] == [{"orders"}, {"orders"}, set()]


def test_loads_that_become_one_know_only_what_each_of_them_knew(ledger: Ledger) -> None:
    ledger.rule_versions.adopt("a", rules(payments="30 s"))
    published(ledger, "before", "0:00", "1:00")
    ledger.rule_versions.adopt("a", rules(payments="30 s", orders="5 s"))
    published(ledger, "since", "1:00", "2:00")
    assert ledger.publications.merge(ledger.publications.slices(["a"], span("0:00", "2:00")), "merged")
    assert unknown(ledger, "2:00") == {"orders"}


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
def test_whatever_may_change_a_steady_state_changes_the_digest_of_its_sla(changed: Sla) -> None:
    other, known = rules_of(CLUSTER, [changed]), rules_of(CLUSTER, [PROMISE])
    assert other.digest != known.digest
    assert other.slas != known.slas


def test_only_the_longest_expiry_of_an_sla_concerns_all() -> None:
    shorter, longer = (replace(PROMISE, name="b", steady_state=SteadyState(1, None, ms)) for ms in (1, 10**10))
    shared = [rules_of(CLUSTER, slas).shared for slas in ([PROMISE], [PROMISE, shorter], [PROMISE, longer])]
    assert shared[0] == shared[1] != shared[2]


@pytest.mark.parametrize(
    "changed",
    [
        replace(CLUSTER, status=StatusRules(commits=20)),
        replace(CLUSTER, status=StatusRules(expire_group_ms=60_000)),
        replace(CLUSTER, non_consumed_offsets_groups=(("orders", ("billing",)),)),
    ],
)
def test_whatever_may_change_evaluated_commits_or_totals_changes_the_digest(changed: Cluster) -> None:
    other, known = rules_of(changed, [PROMISE]), rules_of(CLUSTER, [PROMISE])
    assert other.digest != known.digest
    assert other.shared != known.shared


def test_what_changes_nothing_that_is_carried_over_keeps_the_digest() -> None:
    known = rules_of(CLUSTER, [PROMISE])
    assert rules_of(CLUSTER, [replace(PROMISE, for_ms=120_000, recipients=("a@example.com",))]) == known
    assert rules_of(CLUSTER, [PROMISE, replace(PROMISE, name="other", cluster="b")]) == known
    assert rules_of(replace(CLUSTER, status=StatusRules(allowed_lag=5, min_complete=0.5)), [PROMISE]) == known
