"""Series as Prometheus' own parser reads them, and what partitions add up to, from columns made by hand."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from prometheus_client.parser import text_string_to_metric_families

from kafka_sla.model.entities import MOST
from kafka_sla.web.api.exposition import Gauge, text, written
from kafka_sla.web.api.group_series import groups

HOSTILE = 'a "quoted" \\name\nof two lines'


def parsed(answer: str) -> dict[str, list[Any]]:
    return {family.name: family.samples for family in text_string_to_metric_families(answer)}


def test_labels_may_hold_anything_and_stand_in_the_order_of_their_names() -> None:
    answer = text([Gauge("lag", "Records", written(topic=["orders"], group=[HOSTILE]), [3.0])])

    assert 'lag{group="a \\"quoted\\" \\\\name\\nof two lines",topic="orders"} 3.0' == answer.splitlines()[2]
    assert {"group": HOSTILE, "topic": "orders"} == parsed(answer)["lag"][0].labels


def test_what_is_unknown_is_left_out_and_what_is_unbounded_is_infinite() -> None:
    answer = text([Gauge("late", "Seconds", written(sla=["a", "b", "c"]), [None, math.inf, 0.25])])

    assert ['late{sla="b"} +Inf', 'late{sla="c"} 0.25'] == answer.splitlines()[2:]


def test_a_gauge_without_series_still_says_what_it_is() -> None:
    assert "# HELP lag Records\n# TYPE lag gauge\n" == text([Gauge("lag", "Records", written(group=[]), [])])


def rows(*lags: tuple[str, int | None, float | None]) -> pa.Table:
    """Group, lag and age of a partition each."""
    return pa.table(
        {
            "cluster": ["prod"] * len(lags),
            "group": [group for group, _, _ in lags],
            "topic": ["orders"] * len(lags),
            "records_lag": pa.array([lag for _, lag, _ in lags], pa.int64()),
            "backlog_age_ms": pa.array([age for _, _, age in lags], pa.float64()),
        }
    )


STATUSES = pa.table({"cluster": ["prod"], "group": ["payments"], "group_status": ["WARNING"]})


def test_the_lag_of_a_group_is_unknown_where_that_of_a_partition_is_and_its_age_is_the_largest_known() -> None:
    found = parsed(text(groups(rows(("payments", 5, 500.0), ("payments", None, None), ("audit", 7, None)), STATUSES)))

    assert [("audit", 7)] == [(s.labels["group"], s.value) for s in found["kafka_consumergroup_group_sum_lag"]]
    assert [("audit", 7)] == [(s.labels["group"], s.value) for s in found["kafka_consumergroup_group_max_lag"]]
    ages = found["kafka_consumergroup_group_max_lag_seconds"]
    assert [("payments", 0.5)] == [(s.labels["group"], s.value) for s in ages]
    assert [2] == [s.value for s in found["burrow_kafka_consumer_status"]]


def test_groups_stand_in_the_order_of_their_rows_and_the_largest_lags_add_up() -> None:
    names = [f"group-{number:04d}" for number in range(1_000)]
    found = parsed(text(groups(rows(*((name, MOST, None) for name in names for _ in range(3))), STATUSES)))

    sums = found["kafka_consumergroup_group_topic_sum_lag"]
    assert names == [s.labels["group"] for s in sums]
    assert {3.0 * MOST} == {s.value for s in sums}
