"""Chains in the configuration: what they mean, and how their mistakes are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kafka_sla.config.settings import json_schema
from kafka_sla.model.entities import Stage
from tests.kafka_sla.config.test_settings import document, load, mistakes

STAGES = [
    {"group": "order-enricher", "topic": "orders.placed.v2"},
    {"group": "billing.alerts-authorised", "topic": "orders.enriched.v1"},
]
SLA = {"name": "orders are billed", "chain": STAGES, "max_latency": "1m"}


def chained(**keys: Any) -> dict[str, Any]:
    return document(slas=[{**SLA, **keys}])


def one_mistake(tmp_path: Path, content: dict[str, Any]) -> str:
    (text,) = mistakes(tmp_path, content)
    return text


def test_a_chain_is_its_stages_in_order_and_selects_their_groups_and_topics(tmp_path: Path) -> None:
    (sla,) = load(tmp_path, chained()).slas

    assert sla.chain == tuple(Stage(**stage) for stage in STAGES)
    assert [sla.groups.matches(stage.group) and sla.topics.matches(stage.topic) for stage in sla.chain] == [True] * 2
    assert not sla.topics.matches("orders-placed-v2")
    jsonschema.validate(chained(), json_schema())


def test_groups_and_topics_of_the_defaults_are_not_of_chains(tmp_path: Path) -> None:
    (sla,) = load(tmp_path, chained() | {"defaults": {"group": "others", "topics": ["others"]}}).slas

    assert not sla.groups.matches("others")
    assert not sla.topics.matches("others")


def test_other_slas_have_no_chain(tmp_path: Path) -> None:
    (sla,) = load(tmp_path, document()).slas

    assert sla.chain == ()


@pytest.mark.parametrize(("key", "value"), [("group", "x"), ("groups", ["x"]), ("topic", "x"), ("topics", ["x"])])
def test_a_chain_names_its_groups_and_topics_itself(key: str, value: object, tmp_path: Path) -> None:
    assert f"slas[0].{key}" in (text := one_mistake(tmp_path, chained(**{key: value})))
    assert "given together with 'chain', which names its groups and topics; allowed: one of the two" in text


def test_a_chain_of_one_stage_is_none(tmp_path: Path) -> None:
    assert "slas[0].chain" in one_mistake(tmp_path, chained(chain=STAGES[:1]))


def test_a_stage_has_a_group_and_a_topic_and_nothing_else(tmp_path: Path) -> None:
    wrong = [{"group": "order-enricher"}, {**STAGES[1], "partition": 3}]

    found = mistakes(tmp_path, chained(chain=wrong))

    assert [where in text for where, text in zip(("chain[0]", "chain[1]"), found, strict=True)] == [True, True]


@pytest.mark.parametrize(("key", "value"), [("group", "billing-*"), ("group", "/billing/"), ("topic", "orders.*")])
def test_a_stage_is_no_pattern(key: str, value: str, tmp_path: Path) -> None:
    assert f"chain[1].{key}" in one_mistake(tmp_path, chained(chain=[STAGES[0], {**STAGES[1], key: value}]))


def test_a_topic_stands_once_in_a_chain(tmp_path: Path) -> None:
    text = one_mistake(tmp_path, chained(chain=[*STAGES, {"group": "archiver", "topic": "orders.placed.v2"}]))

    assert "slas[0].chain[2].topic" in text
    assert "'orders.placed.v2' is the topic of stage 1, too; allowed: a topic once" in text


@pytest.mark.parametrize(
    ("key", "value"), [("min_time_to_expiry", "6h"), ("allowed_lag", 1), ("partitions", "committed")]
)
def test_a_chain_refuses_keys_that_apply_to_the_partitions_of_one_group(
    key: str, value: object, tmp_path: Path
) -> None:
    text = one_mistake(tmp_path, chained(**{key: value}))

    assert f"slas[0].{key}" in text
    assert "not for a chain; allowed: without it, and an SLA of its own for each stage that needs it" in text


def test_a_stage_that_the_cluster_does_not_select_could_never_have_data(tmp_path: Path) -> None:
    content = chained() | {"clusters": {"prod": {"topics": ["*", "!orders.placed.v2"]}}}

    text = one_mistake(tmp_path, content)

    assert "slas[0].chain[0].topic" in text
    assert "'orders.placed.v2' is not selected by clusters.prod.topics" in text
