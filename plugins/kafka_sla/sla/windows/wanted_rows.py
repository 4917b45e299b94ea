"""Which published rows are an SLA's, and what of them is compared with its threshold. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa

from kafka_sla.model.entities import Sla
from kafka_sla.text.name_patterns import plain_names, selected

PAIR = pa.schema([("group", pa.string()), ("topic", pa.string())])


def wanted_pairs(sla: Sla, seen: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of these groups and topics that are the SLA's."""
    if sla.chain:
        stages = {(stage.group, stage.topic) for stage in sla.chain}
        return [pair for pair in seen if pair in stages]
    groups = set(selected(sla.groups, {group for group, _ in seen}))
    topics = set(selected(sla.topics, {topic for _, topic in seen}))
    return [(group, topic) for group, topic in seen if group in groups and topic in topics]


def groups_of(slas: Iterable[Sla]) -> frozenset[str] | None:
    """The groups that these SLAs name; None where one of them selects by a pattern."""
    found: set[str] = set()
    for sla in slas:
        names = [stage.group for stage in sla.chain] if sla.chain else plain_names(sla.groups)
        if names is None:
            return None
        found |= set(names)
    return frozenset(found)


def pair_table(pairs: Sequence[tuple[str, str]]) -> pa.Table:
    return pa.table({"group": [g for g, _ in pairs], "topic": [t for _, t in pairs]}, PAIR)


def latency_sql(bound: str = "") -> str:
    """What an SLA compares with its threshold, or its `_low` or `_high` bound: the latency of a partition in a window
    is that of its slowest record, read or waiting."""
    return f"greatest(records_latency_max{bound}_ms, backlog_age_max{bound}_ms)"
