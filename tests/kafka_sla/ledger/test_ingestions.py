"""Landings of facts and what may be claimed to be seen of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from sqlalchemy import create_engine, select

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.ledger.storage.schema import FACT_LOADS
from tests.kafka_sla.loads import at, changed_since, span


def test_landings_are_numbered_in_each_cluster(ledger: Ledger) -> None:
    assert ledger.ingestions.readable_seq("a") == 0
    assert [ledger.ingestions.record(cluster, span("0:00", "1:00")) for cluster in "aba"] == [1, 1, 2]
    assert (ledger.ingestions.readable_seq("a"), ledger.ingestions.readable_seq("b")) == (2, 1)


def test_facts_changed_when_a_later_landing_is_older_than_the_asked_time(ledger: Ledger) -> None:
    ledger.ingestions.record("a", span("1:00", "2:00"))
    assert changed_since(ledger, "a", 0, at("1:01"))
    assert not changed_since(ledger, "a", 0, at("1:00"))
    assert not changed_since(ledger, "a", 1, at("9:00"))


def test_nobody_has_seen_a_landing_until_it_is_confirmed(ledger: Ledger) -> None:
    first = ledger.ingestions.begin("a", span("0:00", "1:00"))
    second = ledger.ingestions.record("a", span("1:00", "2:00"))
    assert ledger.ingestions.readable_seq("a") == 0
    assert changed_since(ledger, "a", 0, at("0:01"))
    ledger.ingestions.confirm("a", first)
    assert ledger.ingestions.readable_seq("a") == second


def test_a_landing_under_way_holds_back_its_own_cluster_alone(ledger: Ledger) -> None:
    for cluster in "ab":
        ledger.ingestions.begin(cluster, span("0:00", "1:00"))
    ledger.ingestions.record("c", span("0:00", "1:00"))
    ledger.ingestions.confirm("a", 1)

    assert [ledger.ingestions.readable_seq(cluster) for cluster in "abc"] == [1, 0, 1]


def test_a_landing_that_was_killed_counts_as_new_once_settled(ledger: Ledger) -> None:
    ledger.ingestions.begin("a", span("0:00", "1:00"))
    ledger.ingestions.renumber_stale(datetime.now(UTC) - timedelta(hours=1))
    assert ledger.ingestions.readable_seq("a") == 0
    ledger.ingestions.renumber_stale(datetime.now(UTC) + timedelta(hours=1))
    assert ledger.ingestions.readable_seq("a") == 2
    assert changed_since(ledger, "a", 1, at("0:01"))


def test_settling_forgets_landings_that_every_publication_has_seen_but_never_the_number(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.ingestions.record("a", span("0:00", "1:00"))
    ledger.publications.publish(["a"], span("0:00", "1:00"), "load", 2)
    ledger.ingestions.renumber_stale(datetime.now(UTC))
    assert ledger.ingestions.readable_seq("a") == 3
    assert changed_since(ledger, "a", 2, at("1:00"))
    assert ledger.ingestions.record("a", span("0:00", "1:00")) == 4


def landings(store: Store) -> list[tuple[str, int, bool]]:
    engine = create_engine(store.url)
    with engine.connect() as connection:
        rows = connection.execute(select(FACT_LOADS).order_by(FACT_LOADS.c.cluster, FACT_LOADS.c.seq)).all()
    engine.dispose()
    return [(row.cluster, row.seq, row.landed) for row in rows]


def test_settling_leaves_what_some_publication_has_not_seen_and_what_is_under_way(store: Store, ledger: Ledger) -> None:
    for cluster in "aaaabb":
        ledger.ingestions.record(cluster, span("0:00", "1:00"))
    ledger.ingestions.begin("c", span("0:00", "1:00"))
    ledger.publications.publish(["a", "b"], span("0:00", "1:00"), "one", {"a": 2, "b": 2})
    ledger.publications.publish(["a", "c"], span("1:00", "2:00"), "two", {"a": 3, "c": 1})

    ledger.ingestions.renumber_stale(datetime.now(UTC) - timedelta(hours=1))

    assert landings(store) == [("a", 3, True), ("a", 4, True), ("b", 2, True), ("c", 1, False)]


def test_settling_forgets_what_limits_no_trust_however_little_old_publications_have_seen(
    store: Store, ledger: Ledger
) -> None:
    edges = [f"{hour}:00" for hour in range(9)]
    hours = [span(start, end) for start, end in pairwise(edges)]
    for number, hour in enumerate(hours, 1):
        ledger.ingestions.record("a", hour)
        if number == 5:
            ledger.ingestions.record("a", span("1:30", "4:00"))
        ledger.publications.publish(["a"], hour, f"load {number}", ledger.ingestions.readable_seq("a"))
    ledger.ingestions.record("a", span("6:30", "7:00"))
    trusted = [ledger.publications.carry("a", at(edge)) for edge in edges[1:]]

    ledger.ingestions.renumber_stale(datetime.now(UTC) - timedelta(hours=1))
    assert len(landings(store)) == 9, "who measures now may not have seen the newest"
    ledger.ingestions.renumber_stale(datetime.now(UTC) + timedelta(hours=1))

    assert landings(store) == [("a", 6, True), ("a", 10, True)]
    assert [ledger.publications.carry("a", at(edge)) for edge in edges[1:]] == trusted
    assert trusted[1:4] == [(at("1:30"), 2)] * 3, "the late landing counts"


def test_a_landing_that_was_killed_keeps_its_time_and_leaves_those_of_others_alone(
    store: Store, ledger: Ledger
) -> None:
    for cluster in "ab":
        ledger.ingestions.begin(cluster, span("1:00", "2:00"))
    ledger.ingestions.confirm("b", 1)
    ledger.ingestions.record("a", span("5:00", "6:00"))

    ledger.ingestions.renumber_stale(datetime.now(UTC) + timedelta(hours=1))

    assert landings(store) == [("a", 2, True), ("a", 3, True), ("b", 1, True)]
    assert changed_since(ledger, "a", 2, at("1:01"))
    assert not changed_since(ledger, "a", 2, at("1:00"))


def test_only_the_landing_that_is_confirmed_is_readable(store: Store, ledger: Ledger) -> None:
    for cluster in "aab":
        ledger.ingestions.begin(cluster, span("0:00", "1:00"))

    ledger.ingestions.confirm("a", 2)

    assert landings(store) == [("a", 1, False), ("a", 2, True), ("b", 1, False)]
    assert [ledger.ingestions.readable_seq(cluster) for cluster in "ab"] == [0, 0]
