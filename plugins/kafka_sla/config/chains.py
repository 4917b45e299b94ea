"""Chains as the configuration names them: their stages, and what makes one of no use. Reads no file."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from kafka_sla.config.field_types import mappings
from kafka_sla.config.reading.yaml_lines import KeyPath
from kafka_sla.config.schema import StageKeys
from kafka_sla.model.entities import Stage

_OF_ONE_STAGE = ("min_time_to_expiry", "allowed_lag", "partitions")
"""Keys of an SLA that apply to the partitions of one group, not to a chain."""


def stages_of(keys: list[StageKeys] | None) -> tuple[Stage, ...]:
    """The stages in their order; none without a chain."""
    return tuple(Stage(stage.group, stage.topic) for stage in keys or ())


def chained(sla: dict[str, Any], key: str) -> list[tuple[int, str]]:
    """The groups or topics of a raw SLA's stages, and the number of each."""
    stages = enumerate(mappings(sla.get("chain")))
    return [(number, stage[key]) for number, stage in stages if isinstance(stage.get(key), str)]


def chain_rules(sla: dict[str, Any], selecting: Collection[str]) -> Iterator[tuple[KeyPath, str]]:
    """What makes a chain of an SLA, as raw values, impossible; `selecting`: keys that name groups and topics."""
    if sla.get("chain") is None:
        return
    for key in selecting:
        if sla.get(key) is not None:
            yield (key,), "given together with 'chain', which names its groups and topics; allowed: one of the two"
    for key in _OF_ONE_STAGE:
        if sla.get(key) is not None:
            yield (key,), "not for a chain; allowed: without it, and an SLA of its own for each stage that needs it"
    seen: dict[str, int] = {}
    for number, topic in chained(sla, "topic"):
        if topic in seen:
            yield (
                ("chain", number, "topic"),
                f"{topic!r} is the topic of stage {seen[topic] + 1}, too; allowed: a topic once, in the order in which"
                " records pass",
            )
        seen.setdefault(topic, number)
