"""Other engines read each published row once: none that was replaced, none that was never published."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kafka_sla.config.store import Store
from kafka_sla.files import files_below
from kafka_sla.lake.iceberg import Iceberg
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE, Table
from tests.kafka_sla.loads import DAY, load, span, stage

WHOLE_DAY = span("0:00", "24:00")
NAMES = (CONSUMER_LATENCY.name, STEADY_STATE.name)


def published(lake: Lake, ledger: Ledger, load_id: str, interval: Interval, *clusters: str) -> None:
    load(lake, ledger, load_id, interval, clusters or ("a",))
    lake.show(interval, NAMES)


def by_pyiceberg(store: Store, table: Table = CONSUMER_LATENCY) -> list[tuple[str, int, str]]:
    """Cluster, minute of the day and load of each row, as PyIceberg reads the table."""
    rows = Iceberg(store, Ledger(store).open).table(table).scan().to_arrow().to_pylist()
    minute = timedelta(minutes=1)
    return sorted((row["cluster"], int((row["window_start"] - DAY) / minute), row["load_id"]) for row in rows)


def by_us(lake: Lake, ledger: Ledger) -> list[tuple[str, int, str]]:
    """The same, as we read it."""
    slices = ledger.publications.slices(None, WHOLE_DAY)
    return sorted(
        (part.cluster, int((window.start - DAY) / timedelta(minutes=1)), part.load_id)
        for part in slices
        for window in part.interval.windows(60_000)
    )


def test_an_hour_that_is_measured_again_is_read_once(store: Store, lake: Lake, ledger: Ledger) -> None:
    published(lake, ledger, "first", span("8:00", "9:00"))
    published(lake, ledger, "second", span("8:00", "9:00"))

    assert by_pyiceberg(store) == [("a", minute, "second") for minute in range(480, 540)]
    assert len(by_pyiceberg(store, STEADY_STATE)) == 60


@pytest.mark.parametrize(
    "parts",
    [
        [("day", "0:00", "24:00"), ("again", "8:00", "9:00")],
        [("early", "8:00", "8:30"), ("late", "8:30", "9:00"), ("day", "0:00", "24:00")],
        [("day", "0:00", "24:00"), ("again", "8:00", "9:00"), ("third", "8:30", "8:35"), ("whole", "0:00", "24:00")],
        [("day", "0:00", "24:00"), ("again", "8:00", "9:00"), ("other", "8:30", "10:00")],
    ],
)
def test_what_overlaps_is_read_as_it_is_published(
    store: Store, lake: Lake, ledger: Ledger, parts: list[tuple[str, str, str]]
) -> None:
    for load_id, start, end in parts:
        published(lake, ledger, load_id, span(start, end))
        assert by_pyiceberg(store) == by_us(lake, ledger)


def test_a_load_of_two_clusters_that_is_replaced_for_one_keeps_the_rows_of_the_other(
    store: Store, lake: Lake, ledger: Ledger
) -> None:
    published(lake, ledger, "both", span("8:00", "8:03"), "a", "b")
    published(lake, ledger, "one", span("8:00", "8:03"), "a")

    assert by_pyiceberg(store) == [
        ("a", 480, "one"),
        ("a", 481, "one"),
        ("a", 482, "one"),
        ("b", 480, "both"),
        ("b", 481, "both"),
        ("b", 482, "both"),
    ]


def test_a_load_that_was_not_published_is_not_read(store: Store, lake: Lake, ledger: Ledger) -> None:
    published(lake, ledger, "first", span("8:00", "8:05"))
    lake.add_load("second", span("8:00", "8:05"), stage(lake, "second", span("8:00", "8:05")))
    lake.show(span("8:00", "8:05"), NAMES)

    assert {load_id for _, _, load_id in by_pyiceberg(store)} == {"first"}
    assert by_us(lake, ledger) == by_pyiceberg(store)


def test_a_publish_that_was_killed_before_it_showed_its_rows_is_made_up_for(
    store: Store, lake: Lake, ledger: Ledger
) -> None:
    published(lake, ledger, "first", span("8:00", "8:05"))
    load(lake, ledger, "second", span("8:00", "8:05"))
    lake.maintain()

    assert by_us(lake, ledger) == by_pyiceberg(store)


def test_showing_the_same_again_changes_nothing(store: Store, lake: Lake, ledger: Ledger) -> None:
    published(lake, ledger, "day", WHOLE_DAY)
    published(lake, ledger, "again", span("8:00", "9:00"))
    before = sorted(files_below(store.warehouse))
    lake.show(WHOLE_DAY, NAMES)

    assert sorted(files_below(store.warehouse)) == before


def test_what_is_left_of_a_load_goes_when_nothing_of_it_is_published_any_more(
    store: Store, lake: Lake, ledger: Ledger
) -> None:
    day, again = "da".ljust(32, "0"), "a9".ljust(32, "0")
    published(lake, ledger, day, WHOLE_DAY)
    published(lake, ledger, again, span("8:00", "9:00"))
    published(lake, ledger, "da1".ljust(32, "0"), WHOLE_DAY)
    lake.maintain(grace_period=-timedelta(days=1), orphan_age=-timedelta(days=1))

    assert files_below(f"{store.warehouse}/published") == {}
    assert by_us(lake, ledger) == by_pyiceberg(store)
