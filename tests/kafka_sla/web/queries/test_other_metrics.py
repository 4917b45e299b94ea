"""Brokers, replication, unread records and consumer status: answers and pages."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.kafka_sla.web.conftest import Asker
from tests.kafka_sla.web.world import UNPUBLISHED


def test_the_slow_brokers_pairs_are_told_from_the_others(reader: Asker) -> None:
    rows = reader.json("/api/v1/brokers")

    slow = {(row["leader"], row["follower"]) for row in rows if row["slow_windows"] == row["windows"]}
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

    assert "clicks.sessionizer" == rows[0]["group"]
    (orders,) = [row for row in rows if row["group"] == "orders"]
    assert (3 * 180, 5 * 180) == (orders["lost_low"], orders["lost_high"])


def test_the_worst_status_of_the_partitions_is_told_step_by_step(reader: Asker) -> None:
    line = reader.json("/api/v1/slas/orders within 5 minutes/status")

    (row,) = line["rows"]
    assert "orders orders" == row["name"]
    known = [status for status in row["statuses"] if status]
    assert ("OK", "STOPPED") == (known[0], known[-1])
    assert len(line["at_ms"]) == len(row["statuses"])


def test_years_of_short_windows_are_told_in_few_steps(reader: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Path(os.environ["KAFKA_SLA_CONFIG"])
    mine = config.with_name("short_windows.yml")
    mine.write_text(config.read_text() + "window: 10s\n")
    monkeypatch.setenv("KAFKA_SLA_CONFIG", str(mine))
    years = {"from": f"{datetime.now(UTC) - timedelta(days=5 * 365):%Y-%m-%d}", "steps": "10"}

    line = reader.json("/api/v1/slas/orders within 5 minutes/status", **years)

    assert 2 <= len(line["at_ms"]) <= 11


@pytest.fixture
def without_sums() -> Iterator[None]:
    """The store as a version left it that kept no sums of loads."""
    database = sqlite3.connect(Path(os.environ["KAFKA_SLA_CONFIG"]).parent / "store" / "kafka_sla.db")
    kept = database.execute("SELECT * FROM load_sums").fetchall()
    with database:
        database.execute("DELETE FROM load_sums")
    yield
    with database:
        database.executemany("INSERT INTO load_sums VALUES (?, ?, ?, ?, ?)", kept)
    database.close()


@pytest.mark.parametrize("path", ["/api/v1/brokers", "/api/v1/replication", "/api/v1/unread"])
@pytest.mark.parametrize("since", [timedelta(minutes=37), timedelta(hours=2), timedelta(days=365)])
def test_figures_are_the_same_from_the_sums_of_loads_and_from_rows(
    reader: Asker, request: pytest.FixtureRequest, path: str, since: timedelta
) -> None:
    span = {"from": f"{datetime.now(UTC) - since:%Y-%m-%dT%H:%MZ}"}
    from_sums = reader.json(path, **span)

    request.getfixturevalue("without_sums")

    assert from_sums
    assert from_sums == [
        {name: pytest.approx(value, 1e-9) if isinstance(value, float) else value for name, value in row.items()}
        for row in reader.json(path, **span)
    ]


@pytest.mark.usefixtures("without_sums")
def test_a_damaged_file_costs_its_rows_and_the_page_and_the_answer_say_so(reader: Asker) -> None:
    store = Path(os.environ["KAFKA_SLA_CONFIG"]).parent / "store"
    path = store / "warehouse" / "staging" / "load0000" / "non_consumed" / "part-00000.parquet"
    content = path.read_bytes()
    path.write_bytes(b"something else")
    try:
        page, answer = reader.get("/unread"), reader.get("/api/v1/unread")
    finally:
        path.write_bytes(content)

    assert (200, 200) == (page.status_code, answer.status_code)
    assert f"damaged: {path}" in page.text
    assert ("1", {"dr"}) == (answer.headers["Kafka-Sla-Damaged-Files"], {row["cluster"] for row in answer.json()})
    assert "Kafka-Sla-Damaged-Files" not in reader.get("/api/v1/unread").headers


def test_any_period_is_summed_up(reader: Asker) -> None:
    year = {"from": f"{datetime.now(UTC) - timedelta(days=365):%Y-%m-%d}"}

    assert [row | {"covered_from": None} for row in reader.json("/api/v1/brokers")] == [
        row | {"covered_from": None} for row in reader.json("/api/v1/brokers", **year)
    ]
    assert {row["covered_from"][:10] for row in reader.json("/api/v1/unread", **year)} == {year["from"]}
    assert "Shortened" not in reader.get("/brokers", **year).text


@pytest.mark.usefixtures("without_sums")
def test_more_rows_than_one_answer_adds_up_leave_the_newest_part(
    reader: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_sla.web.queries.other_metrics.MOST_ROWS", 1)
    known = datetime.fromisoformat(reader.json("/api/v1/slas/clicks in Berlin")["as_of"])

    rows = reader.json("/api/v1/unread")
    page = reader.get("/unread").text

    assert known - timedelta(minutes=UNPUBLISHED[0]) == datetime.fromisoformat(rows[0]["covered_from"])
    assert "Shortened" in page


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
