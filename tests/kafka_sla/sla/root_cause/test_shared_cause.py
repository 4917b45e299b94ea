"""Which misses have one cause in common."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafka_sla.model.entities import Miss
from kafka_sla.sla.root_cause.shared_cause import common_words, shared_cause, shared_causes
from tests.kafka_sla.loads import at
from tests.kafka_sla.notifications.misses import EVIDENCE, miss


def missed(cause: str, group: str = "payments", topic: str = "orders", cluster: str = "main", **evidence: Any) -> Miss:
    found = {**EVIDENCE, "cause": cause, **evidence}
    return miss(worst_group=group, worst_topic=topic, cluster=cluster, evidence=found)


SLOW = {"broker_verdict": "slow_broker", "broker_verdict_before": "even"}


@pytest.mark.parametrize(
    ("cause", "evidence", "words"),
    [
        ("slow_broker", SLOW, "slow brokers of cluster main"),
        ("stopped", SLOW, "slow brokers of cluster main"),
        ("no_members", SLOW, "consumer group payments"),
        ("stopped", SLOW | {"broker_verdict_before": "slow_broker"}, "consumer group payments"),
        ("replication", {"replication_flow": "eu-to-us"}, "late replication by eu-to-us into cluster main"),
        ("produce_rate_jumped", {}, "more records produced to orders"),
        ("records_expired", {}, "expired records of orders"),
        ("too_slow", {}, "consumer group payments"),
        ("unclear", {}, "consumer group payments"),
    ],
)
def test_a_cause_is_shared_by_what_it_lies_in(cause: str, evidence: dict[str, Any], words: str) -> None:
    assert shared_cause(missed(cause, **evidence)).words == words


def test_a_group_shares_nothing_with_the_group_of_that_name_in_another_cluster() -> None:
    here, there = shared_causes([missed("stopped"), missed("stopped", cluster="backup")])

    assert here != there


def test_more_than_three_causes_at_once_in_a_cluster_are_reported_together() -> None:
    groups = [missed("too_slow", f"group-{n}") for n in range(4)]
    elsewhere = missed("too_slow", cluster="backup")

    assert len(set(shared_causes(groups[:3]))) == 3
    assert len(set(shared_causes([*groups, elsewhere]))) == 2
    assert common_words(groups) == "4 causes in cluster main"


def test_a_cause_that_comes_again_is_another_one_and_the_last_may_go_on() -> None:
    morning, noon = ("10:00", "10:20"), ("12:00", None)
    found = [between(*times) for times in (morning, noon, ("10:10", "10:15"), ("12:05", "12:10"))]
    first, last, also_first, also_last = shared_causes(found)

    assert (first, last) == (also_first, also_last)
    assert first != last
    assert [last] == shared_causes(found[1:2])


def between(start: str, end: str | None) -> Miss:
    return replace(missed("too_slow"), start=at(start), end=at(end) if end else None)


def test_a_miss_without_evidence_is_its_groups() -> None:
    assert shared_cause(miss(evidence={})).words == "consumer group payments"
