"""`chain_latency` of chains of which everything is known: the truth is inside the bounds, and they are narrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from kafka_sla.model.entities import Cluster, Patterns, Sla, Stage, SteadyState
from kafka_sla.model.tables import CHAIN_LATENCY, COMMITTED_OFFSETS, LOG_OFFSETS, RECORD_RANGES, Table
from kafka_sla.spark_jobs import chain_latency
from tests.spark_jobs.chain_world import MINUTE, Record, Worker, World, lived
from tests.spark_jobs.conftest import Row, at, commit, point, read
from tests.spark_jobs.measuring import Facts, Measuring, of_expressions

PLACED = Worker(Stage("order-enricher", "orders.placed.v2"), partitions=3)
ENRICHED = Worker(Stage("billing.invoice-writer", "orders.enriched.v1"), partitions=2)
BILLED = Worker(Stage("billing.alerts-authorised", "orders.billed.v1"))
MINUTES = 6
SECONDS = MINUTES * MINUTE
HOUR = 3_600


def even(every: float = 0.25) -> list[float]:
    return [number * every + 0.6 for number in range(int((SECONDS - 2) / every))]


WORLDS = {
    "as it should be": lived((PLACED, ENRICHED, BILLED), even(), SECONDS),
    "filtered": lived((replace(PLACED, copies=lambda n: int(n % 7 == 0)), ENRICHED, BILLED), even(), SECONDS),
    "fanned out": lived((PLACED, replace(ENRICHED, copies=lambda n: n % 4), BILLED), even(), SECONDS),
    "slow second stage": lived((PLACED, replace(ENRICHED, seconds_a_record=0.3, at_most=10), BILLED), even(), SECONDS),
    "second stage stops": lived((PLACED, replace(ENRICHED, absent=(100, 1e8)), BILLED), even(), SECONDS),
    "first stage pauses": lived((replace(PLACED, absent=(80, 200)), ENRICHED, BILLED), even(), SECONDS),
    "last stage pauses": lived((PLACED, ENRICHED, replace(BILLED, absent=(80, 200))), even(), SECONDS),
    "bursts": lived((PLACED, ENRICHED, BILLED), [40 * n + 0.01 * i for n in range(8) for i in range(100)], SECONDS),
    "rare": lived((PLACED, ENRICHED, BILLED), [12.3, 47.7, 130.1, 222.2, 333.3], SECONDS),
    "rare commits": lived((replace(PLACED, every=20), replace(ENRICHED, every=7), BILLED), even(), SECONDS),
    "two stages": lived((PLACED, BILLED), even(), SECONDS),
}


Measured = dict[str, list[Row]]


def of_cluster(facts: Facts, name: str) -> Facts:
    return {table: [row | {"cluster": name} for row in rows] for table, rows in facts.items()}


def together(parts: Iterable[Facts]) -> Facts:
    """Of each table the rows of all."""
    found: dict[Table, list[Row]] = {}
    for facts in parts:
        for table, rows in facts.items():
            found.setdefault(table, []).extend(rows)
    return found


def chain_of(name: str, world: World, max_latency_ms: int = 30_000) -> Sla:
    groups, topics = (
        Patterns(tuple(re.escape(getattr(stage, key)) for stage in world.stages)) for key in ("group", "topic")
    )
    steady = SteadyState(max_latency_ms)
    return Sla(name, name, groups, topics, max_latency_ms, 0, 0.99, steady, chain=world.stages)


@pytest.fixture(scope="module")
def measuring(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Measuring:
    return Measuring(CHAIN_LATENCY, of_expressions(spark, chain_latency.measure), tmp_path_factory.mktemp("facts"))


def rows_of(
    measuring: Measuring,
    worlds: Mapping[str, World],
    start: float = 0,
    end: float = SECONDS,
    facts: Facts | None = None,
) -> Measured:
    """A world is a cluster: all of them are measured by one job."""
    known = facts or together(of_cluster(world.facts(), name) for name, world in worlds.items())
    slas = tuple(chain_of(name, world).measured for name, world in worlds.items())
    rows = measuring.whole(known, start, end, tuple(Cluster(name, None) for name in worlds), slas)  # type: ignore[arg-type]
    return {name: [row for row in rows if row["cluster"] == name] for name in worlds}


@pytest.fixture(scope="module")
def measured(measuring: Measuring) -> Measured:
    return rows_of(measuring, WORLDS)


def of_stage(rows: Sequence[Row], stage: int) -> list[Row]:
    return [row for row in rows if row["stage"] == stage]


def within(row: Row, name: str, truth: float) -> bool:
    high = row[f"{name}_high_ms"]
    return bool(row[f"{name}_low_ms"] <= truth * 1_000 + 0.01 and (high is None or truth * 1_000 <= high + 0.01))


@pytest.mark.parametrize("name", WORLDS)
def test_the_truth_is_inside_the_bounds_in_every_window(name: str, measured: Measured) -> None:
    world, whole = WORLDS[name], of_stage(measured[name], 0)

    assert [row["window_start"] for row in whole] == [at(60 * n) for n in range(MINUTES)]
    for number, row in enumerate(whole):
        truth = world.latency_max(60 * number)
        assert (truth is None) == (row["records_latency_max_low_ms"] is None), (number, row)
        assert truth is None or within(row, "records_latency_max", truth), (number, truth, row)
        assert within(row, "backlog_age", world.backlog_age(60 * number + 60)), (number, row)
        assert row["records_over_threshold_low"] <= world.over(60 * number, 30) <= row["records_over_threshold_high"]


@pytest.mark.parametrize("name", WORLDS)
def test_what_a_stage_adds_is_inside_its_bounds(name: str, measured: Measured) -> None:
    world = WORLDS[name]

    for stage in range(1, len(world.stages) + 1):
        for number, row in enumerate(of_stage(measured[name], stage)):
            truth = world.added_max(stage - 1, 60 * number)
            assert truth is None or within(row, "records_latency_max", truth), (stage, number, truth, row)


def test_bounds_are_about_as_wide_as_those_of_the_stages_together(measured: Measured) -> None:
    """Log ends are known every 5 s, and three topics are passed."""
    for row in of_stage(measured["as it should be"], 0)[1:]:
        assert row["records_latency_max_high_ms"] - row["records_latency_max_low_ms"] <= 15_001
        assert row["backlog_age_high_ms"] - row["backlog_age_low_ms"] <= 15_001


def test_the_stage_that_was_late_is_named(measured: Measured) -> None:
    def named(name: str, minute: int) -> tuple[int, str, str]:
        row = of_stage(measured[name], 0)[minute]
        return row["slowest_stage"], row["group"], row["topic"]

    second = (2, "billing.invoice-writer", "orders.enriched.v1")
    assert [named("slow second stage", minute) for minute in range(2, 6)] == [second] * 4
    assert [named("second stage stops", minute) for minute in range(1, 6)] == [second] * 5
    assert named("first stage pauses", 2) == (1, "order-enricher", "orders.placed.v2")
    assert named("last stage pauses", 2) == (3, "billing.alerts-authorised", "orders.billed.v1")


def test_a_stage_that_stops_makes_the_chain_late_though_nothing_comes_out(measured: Measured) -> None:
    last = of_stage(measured["second stage stops"], 0)[-1]

    assert (last["records_consumed"], last["records_latency_max_ms"]) == (0, None)
    assert last["backlog_age_low_ms"] > 250_000


def test_a_chain_that_nothing_passes_is_not_late(measured: Measured) -> None:
    quiet = of_stage(measured["rare"], 0)[1]

    assert (quiet["records_consumed"], quiet["backlog_age_high_ms"], quiet["slowest_stage"]) == (0, 0, None)


def test_one_long_interval_gives_the_rows_of_many_short_ones(measuring: Measuring, measured: Measured) -> None:
    names = ("slow second stage", "rare commits", "last stage pauses")
    worlds = {name: WORLDS[name] for name in names}

    pieces = [rows_of(measuring, worlds, 120 * n, 120 * n + 120) for n in range(3)]

    for name in names:
        found = sorted((row for piece in pieces for row in piece[name]), key=key)
        assert found == sorted(measured[name], key=key)


def key(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in CHAIN_LATENCY.key)


def stopped_for_hours() -> World:
    births = [n * 4.0 for n in range(2_000)]
    return lived((PLACED, replace(ENRICHED, absent=(60, 2 * HOUR))), births, 2 * HOUR + 120)


def test_records_are_followed_for_an_hour(measuring: Measuring) -> None:
    """A stage that stopped two hours ago: its oldest record is an hour old at least."""
    facts = of_cluster(stopped_for_hours().facts(60), "long")

    rows = rows_of(measuring, {"long": stopped_for_hours()}, 2 * HOUR - 60, 2 * HOUR, facts)["long"]

    whole = of_stage(rows, 0)[0]
    assert whole["backlog_age_low_ms"] == pytest.approx(HOUR * 1_000)
    assert (whole["backlog_age_high_ms"], whole["unknown_reason"]) == (None, chain_latency.FURTHER_BACK)


def test_where_a_silent_stage_stands_is_carried_over(measuring: Measuring) -> None:
    """Its last commit is not among the facts that are read."""
    world, start = stopped_for_hours(), 2 * HOUR - 60.0
    facts = of_cluster(world.facts(60), "long")
    carried = [
        position(row, start)
        for row in facts[COMMITTED_OFFSETS]
        if row["at"]
        == max(
            r["at"]
            for r in facts[COMMITTED_OFFSETS]
            if r["at"] < at(start) and (r["topic"], r["partition"]) == (row["topic"], row["partition"])
        )
    ]
    recent = {table: [row for row in rows if row["at"] >= at(start - 1.25 * HOUR)] for table, rows in facts.items()}
    sla = chain_of("long", world).measured

    rows = measuring.whole(recent, start, start + 60, (Cluster("long", None),), (sla,), [], carried)  # type: ignore[arg-type]

    assert of_stage(rows, 0)[0]["backlog_age_low_ms"] == pytest.approx(HOUR * 1_000)
    assert of_stage(rows, 0)[0]["slowest_stage"] == 2


def position(row: Row, end: float) -> Row:
    """The row of consumer_latency of a window that ends then, of a group whose last commit was this."""
    names = ("cluster", "group", "topic", "partition", "committed_offset")
    nothing = dict.fromkeys(("records_consumed", "negative_latency_records", "unknown_latency_records"), 0)
    own = {"window_start": at(end - 60), "window_end": at(end), "last_commit_at": row["at"], "polled_only": False}
    return {name: row[name] for name in names} | nothing | own


def without(facts: Facts, table: Table, lost: Callable[[Row], bool]) -> Facts:
    return {of: [row for row in rows if of != table or not lost(row)] for of, rows in facts.items()}


def test_a_partition_without_a_position_leaves_the_chain_unbounded(measuring: Measuring) -> None:
    world = WORLDS["as it should be"]
    facts = without(
        of_cluster(world.facts(), "prod"),
        COMMITTED_OFFSETS,
        lambda row: row["topic"] == PLACED.stage.topic and row["partition"] == 1,
    )

    row = of_stage(rows_of(measuring, {"prod": world}, facts=facts)["prod"], 0)[2]

    assert (row["records_latency_max_high_ms"], row["backlog_age_high_ms"]) == (None, None)
    assert row["unknown_reason"] == chain_latency.NO_POSITION


def test_records_with_old_timestamps_amid_younger_ones_count(measuring: Measuring) -> None:
    """Ten records of the first topic became one of the second; by its own timestamp one of them is from second 10."""
    first, last = {"topic": "orders.placed.v2"}, {"topic": "orders.billed.v1"}
    ends = [(first, t, 10 * (t > 30)) for t in (0, 30, 60, 120)] + [(last, t, t > 62) for t in (0, 60, 62, 64, 120)]
    reads = [(PLACED, first, 0.25, 0), (BILLED, last, 0.25, 0), (PLACED, first, 65, 10), (BILLED, last, 66, 1)]
    facts: Facts = {
        LOG_OFFSETS: [point(t, int(end), source="list_offsets", **topic) for topic, t, end in ends],
        COMMITTED_OFFSETS: [commit(t, end, group=by.stage.group, **topic) for by, topic, t, end in reads],
        RECORD_RANGES: [read(60, 4, 6, 10, 50, **first)],
    }

    rows = rows_of(measuring, {"prod": WORLDS["two stages"]}, 60, 120, facts)["prod"]

    assert of_stage(rows, 0)[0]["records_latency_max_high_ms"] == 56_000


def test_a_chain_whose_groups_nobody_saw_has_no_rows(measuring: Measuring) -> None:
    facts = without(of_cluster(WORLDS["rare"].facts(), "prod"), COMMITTED_OFFSETS, lambda row: True)

    assert rows_of(measuring, {"prod": WORLDS["rare"]}, facts=facts)["prod"] == []


def test_records_that_no_stage_can_have_written_are_told(measuring: Measuring) -> None:
    """Somebody else writes to the last topic while the stage before it has nothing to read."""
    world = lived((PLACED, BILLED), [1.0], SECONDS)
    world.logs[1][0].append(Record(200.0, 200.0))
    known = world.facts()
    known[COMMITTED_OFFSETS].append(  # type: ignore[attr-defined]
        commit(203.0, 2, group=BILLED.stage.group, topic=BILLED.stage.topic)
    )

    rows = rows_of(measuring, {"prod": world}, facts=of_cluster(known, "prod"))["prod"]

    assert of_stage(rows, 0)[3]["unknown_reason"] == chain_latency.NO_INPUT
    assert of_stage(rows, 0)[3]["records_latency_max_high_ms"] is None
    assert of_stage(rows, 0)[2]["unknown_reason"] is None
