"""Consumer latency per topic and per group."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kafka_sla.lake.queries.aggregate import By, rolled_up
from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.tables import CONSUMER_LATENCY

START = datetime(2026, 11, 1, tzinfo=UTC)


def latency(**columns: Any) -> dict[str, Any]:
    minute = columns.pop("minute", 0)
    window = {
        "window_start": START + timedelta(minutes=minute),
        "window_end": START + timedelta(minutes=minute + 1),
    }
    defaults = {"cluster": "prod", "group": "g", "topic": "t", "partition": 0, "records_consumed": 1}
    return {**window, **defaults, "negative_latency_records": 0, "unknown_latency_records": 0, **columns}


def summed(by: By, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rolled_up(arrow_rows(CONSUMER_LATENCY, rows), by).to_pylist()
    return found


def test_partitions_stay_as_they_are() -> None:
    table = arrow_rows(CONSUMER_LATENCY, [latency()])
    assert rolled_up(table, "partition") is table


def test_a_topic_has_maxima_sums_of_counts_and_one_histogram_per_window() -> None:
    slow = {"records_latency_max_ms": 90.0, "records_latency_max_low_ms": 80.0, "records_latency_max_high_ms": 95.0}
    fast = {"records_latency_max_ms": 5.0, "records_latency_max_low_ms": 1.0, "records_latency_max_high_ms": 99.0}
    one, next_minute = summed(
        "topic",
        latency(**slow, records_lag=3, latency_histogram={1: 2, 5: 1}),
        latency(partition=1, **fast, records_lag=4, records_consumed=7, latency_histogram={5: 6}),
        latency(minute=1),
    )
    assert (one["partitions"], one["unknown_partitions"], one["records_consumed"], one["records_lag"]) == (2, 0, 8, 7)
    assert (one["records_latency_max_ms"], one["records_latency_max_low_ms"]) == (90.0, 80.0)
    assert one["records_latency_max_high_ms"] == 99.0
    assert one["latency_histogram"] == [(1, 2), (5, 7)]
    assert (next_minute["window_start"], next_minute["latency_histogram"]) == (START + timedelta(minutes=1), None)
    assert not {"records_latency_avg_ms", "records_latency_ms", "partition"} & set(one)


def test_a_group_sums_up_its_topics_and_no_other_group() -> None:
    mine, other = summed("group", latency(), latency(topic="u"), latency(group="h"))
    assert [(row["group"], row["partitions"]) for row in (mine, other)] == [("g", 2), ("h", 1)]
    assert "topic" not in mine


def test_an_unbounded_maximum_stays_unbounded_and_an_idle_partition_does_not_unbound_it() -> None:
    bounded = {"backlog_age_max_ms": 9.0, "backlog_age_max_low_ms": 8.0, "backlog_age_max_high_ms": 10.0}
    (unbounded,) = summed("topic", latency(**bounded), latency(partition=1, backlog_age_max_ms=1.0))
    (known,) = summed("topic", latency(**bounded), latency(partition=1))
    assert (unbounded["backlog_age_max_ms"], unbounded["backlog_age_max_high_ms"]) == (9.0, None)
    assert known["backlog_age_max_high_ms"] == 10.0


def test_the_lag_is_unknown_when_one_partition_is() -> None:
    (row,) = summed("group", latency(records_lag=5), latency(partition=1, unknown_reason="no log end known"))
    assert (row["records_lag"], row["unknown_partitions"]) == (None, 1)
