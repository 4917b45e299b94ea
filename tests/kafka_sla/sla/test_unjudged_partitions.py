"""Partitions that an SLA does not judge, from rows of `steady_state` of one window."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from kafka_sla.sla.unjudged_partitions import STEADY_COLUMNS, find_unjudged_partitions, summarize_unjudged

NINE, TEN = (datetime(2026, 11, 28, hour, tzinfo=UTC) for hour in (9, 10))


def steady_rows(*rows: tuple[object, ...]) -> pa.Table:
    return pa.table({name: [row[n] for row in rows] for n, name in enumerate(STEADY_COLUMNS)})


def test_partitions_with_the_same_reason_are_one_entry_and_steady_ones_are_none() -> None:
    rows = steady_rows(
        ("payments", "billing", "orders", 2, "bootstrapping", TEN, "rewind"),
        ("payments", "billing", "orders", 0, "steady", NINE, "caught_up"),
        ("payments", "billing", "orders", 1, "bootstrapping", NINE, "rewind"),
        ("payments", "billing", "orders", 3, "bootstrapping", NINE, "no_position"),
    )

    no_position, rewind = find_unjudged_partitions(rows)

    assert (rewind.partitions, rewind.since) == ((1, 2), NINE)
    assert rewind.text == (
        "orders partitions 1, 2 of billing since 2026-11-28 09:00:00 UTC:"
        " the group went back and has not caught up again"
    )
    assert no_position.text == (
        "orders-3 of billing since 2026-11-28 09:00:00 UTC: the group has never committed an offset there"
    )
    assert summarize_unjudged([no_position, rewind]) == "3 partitions not judged since 2026-11-28 09:00:00 UTC"


def test_contradictory_positions_are_named_whatever_the_reason_column_says() -> None:
    (part,) = find_unjudged_partitions(steady_rows(("p", "g", "t", 0, "contradictory", NINE, "caught_up")))

    assert part.text.endswith("positions contradict each other; do two programs use this group?")


def test_nothing_is_summarized_where_everything_is_judged() -> None:
    assert summarize_unjudged(find_unjudged_partitions(steady_rows(("p", "g", "t", 0, "steady", NINE, "")))) == ""
