"""Which published rows are an SLA's."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_sla.model.entities import Patterns, Sla, Stage, SteadyState
from kafka_sla.sla.windows.wanted_rows import groups_of, pair_table, wanted_pairs
from kafka_sla.text.name_patterns import parse_patterns

SEEN = [("billing", "orders"), ("billing", "payments"), ("audit", "orders"), ("audit-v2", "orders")]


def promise(groups: str = "billing", topics: str = "*", **more: Any) -> Sla:
    chosen = (Patterns(()) if not names else parse_patterns(names.split()) for names in (groups, topics))
    return Sla("one", "main", *chosen, 30_000, 0, 0.99, SteadyState(30_000), **more)


CHAIN = promise("", "", chain=(Stage("billing", "orders"), Stage("audit", "orders")))


@pytest.mark.parametrize(
    ("sla", "wanted"),
    [
        (promise(), SEEN[:2]),
        (promise("*", "orders"), [SEEN[0], *SEEN[2:]]),
        (promise("audit*", "payments"), []),
        (promise("* !audit-v2", "orders"), [SEEN[0], SEEN[2]]),
        (CHAIN, [SEEN[0], SEEN[2]]),
    ],
)
def test_pairs_are_an_slas_by_both_their_names_or_as_a_stage_of_its_chain(
    sla: Sla, wanted: list[tuple[str, str]]
) -> None:
    assert wanted_pairs(sla, SEEN) == wanted
    assert pair_table(wanted).to_pylist() == [{"group": group, "topic": topic} for group, topic in wanted]


def test_groups_are_known_before_any_row_is_read_where_all_slas_name_them() -> None:
    assert groups_of([promise("billing audit"), CHAIN, promise("refunds")]) == {"billing", "audit", "refunds"}
    assert groups_of([promise("billing"), promise("audit*")]) is None
    assert groups_of([]) == frozenset()
