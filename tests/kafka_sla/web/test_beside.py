"""Brokers, replication, unread records and consumer status: answers and pages."""

from __future__ import annotations

import pytest

from tests.kafka_sla.web.conftest import Asker


def test_the_slow_brokers_pairs_are_told_from_the_others(reader: Asker) -> None:
    rows = reader.json("/api/v1/brokers")

    slow = {(row["leader"], row["fetcher"]) for row in rows if row["slow_windows"] == row["windows"]}
    assert {(1, "2"), (3, "2"), (2, "1"), (2, "3"), (2, "consumers")} == slow
    assert 9 == len(rows)
    assert {104.0, 3.2} == {round(row["latency_ms"], 1) for row in rows}
    assert "slow_broker" == rows[0]["verdict"]


def test_a_topic_that_is_not_copied_is_behind(reader: Asker) -> None:
    flows = {row["topic"]: row for row in reader.json("/api/v1/replication")}

    assert {"payments": 0, "orders": 12_400} == {topic: row["lag"] for topic, row in flows.items()}
    assert 12_700 == flows["orders"]["worst_lag"]


def test_lost_records_are_added_up_and_the_soonest_to_expire_is_first(reader: Asker) -> None:
    rows = reader.json("/api/v1/unread")

    assert "clicks" == rows[0]["group"]
    (orders,) = [row for row in rows if row["group"] == "orders"]
    assert (3 * 180, 5 * 180) == (orders["lost_low"], orders["lost_high"])


def test_the_worst_status_of_the_partitions_is_told_step_by_step(reader: Asker) -> None:
    line = reader.json("/api/v1/slas/orders within 5 minutes/status")

    (row,) = line["rows"]
    assert "orders orders" == row["name"]
    known = [status for status in row["statuses"] if status]
    assert ("OK", "STOPPED") == (known[0], known[-1])
    assert len(line["at_ms"]) == len(row["statuses"])


def test_a_span_that_is_too_long_is_refused_with_what_is_possible(reader: Asker) -> None:
    answer = reader.get("/api/v1/brokers", **{"from": "2026-01-01"})

    assert (400, True) == (answer.status_code, "four days" in answer.json()["detail"])


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/brokers", ["Broker 2 is slow", "▲ slow 104 ms", "broker 1"]),
        ("/replication", ["prod to dr", "12,400", "behind", "all copied"]),
        ("/unread", ["expires soon", "540 to 900", "lost"]),
    ],
)
def test_the_pages_say_it_in_words(reader: Asker, path: str, words: list[str]) -> None:
    page = reader.get(path).text

    assert [] == [word for word in words if word not in page]


@pytest.mark.parametrize("path", ["/brokers", "/replication", "/unread"])
def test_a_time_without_rows_says_what_is_missing(reader: Asker, path: str) -> None:
    page = reader.get(path, **{"from": "2026-01-01", "to": "2026-01-02"}).text

    assert "in this time" in page or "for this time" in page
