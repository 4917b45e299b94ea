"""Verdicts and misses, through `judge` and `misses`, over rows that show only what matters."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime, timedelta
from datetime import time as clock
from typing import Any

import pytest

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import (
    Interval,
    Maintenance,
    Patterns,
    Sla,
    SlaWindow,
    SteadyState,
    Verdict,
    WeeklyMaintenance,
    WhenUncertain,
)
from kafka_sla.model.tables import CONSUMER_LATENCY, NON_CONSUMED, STEADY_STATE
from kafka_sla.sla.evaluate import expiry, judge, judge_together
from kafka_sla.sla.miss_rule import judge_misses
from kafka_sla.sla.rollups import sums_of

MINUTE = timedelta(minutes=1)
START = datetime(2026, 3, 2, 10, tzinfo=UTC)
WINDOW_MS = 60_000


def promise(**changes: Any) -> Sla:
    """Within 30 s, bad for 2 minutes is a miss."""
    fields: dict[str, Any] = {
        "name": "payments-30s",
        "cluster": "main",
        "groups": Patterns(("pay.*",)),
        "topics": Patterns(("orders.*",)),
        "max_latency_ms": 30_000,
        "for_ms": 120_000,
        "objective": 0.999,
        "steady_state": SteadyState(30_000),
    }
    return Sla(**{**fields, **changes})


def minutes(count: int) -> Interval:
    return Interval(START, START + count * MINUTE)


def latency(minute: int = 0, **changes: Any) -> dict[str, Any]:
    """A partition that is 1 s late, within [0.5 s, 2 s]."""
    at = START + minute * MINUTE
    row = {
        "cluster": "main",
        "group": "pay",
        "topic": "orders",
        "partition": 0,
        "window_start": at,
        "window_end": at + MINUTE,
        "records_consumed": 100,
        "negative_latency_records": 0,
        "unknown_latency_records": 0,
        "records_latency_max_ms": 1_000.0,
        "records_latency_max_low_ms": 500.0,
        "records_latency_max_high_ms": 2_000.0,
        "backlog_age_max_ms": 800.0,
        "backlog_age_max_low_ms": 400.0,
        "backlog_age_max_high_ms": 900.0,
    }
    return {**row, **changes}


def late(minute: int = 0, **changes: Any) -> dict[str, Any]:
    """A partition whose backlog is 60 s old, within [50 s, 70 s]."""
    backlog = {"backlog_age_max_ms": 60_000.0, "backlog_age_max_low_ms": 50_000.0, "backlog_age_max_high_ms": 70_000.0}
    return latency(minute, **{**backlog, **changes})


def state(row: dict[str, Any], throughout: bool = True, **changes: Any) -> dict[str, Any]:
    keys = {name: row[name] for name in ("cluster", "group", "topic", "partition", "window_start", "window_end")}
    found = {"sla": "payments-30s", "state": "steady", "since": START, "reason": "caught_up"}
    return {
        **keys,
        **found,
        "steady_whole_window": throughout,
        "records_due": 100,
        "records_late": 0,
        "records_late_low": 0,
        "records_late_high": 0,
        **changes,
    }


def judged(
    sla: Sla, count: int, rows: list[dict[str, Any]], states: list[dict[str, Any]] | None = None, **arguments: Any
) -> tuple[SlaWindow, ...]:
    """Verdicts over `count` minutes; every row is steady unless `states` says otherwise."""
    states = [state(row) for row in rows] if states is None else states
    tables = arrow_rows(CONSUMER_LATENCY, rows), arrow_rows(STEADY_STATE, states)
    if "unread" in arguments:
        arguments["unread"] = arrow_rows(NON_CONSUMED, arguments["unread"])
    return judge(sla, minutes(count), WINDOW_MS, *tables, **arguments)


def unread(row: dict[str, Any], expires_in_s: float | None, **changes: Any) -> dict[str, Any]:
    """What non_consumed says of the partition of a row: 7 records wait, and expire so soon."""
    keys = {name: row[name] for name in ("cluster", "group", "topic", "partition", "window_start", "window_end")}
    expires = (
        {}
        if expires_in_s is None
        else {
            "unread_expires_in_ms": expires_in_s * 1_000,
            "retention_ms": 3_600_000,
            "oldest_unread_at": row["window_end"] + timedelta(seconds=expires_in_s - 3_599),
        }
    )
    return {**keys, "unread_records": 7, "cleanup_policy": "delete", **expires, **changes}


def verdicts(windows: tuple[SlaWindow, ...]) -> list[Verdict]:
    return [w.verdict for w in windows]


def window(minute: int, verdict: Verdict, worst: float = 60_000.0, is_certain: bool = True) -> SlaWindow:
    at = START + minute * MINUTE
    return SlaWindow(
        "payments-30s",
        Interval(at, at + MINUTE),
        verdict,
        is_certain,
        "",
        worst,
        worst - 10_000,
        worst + 10_000,
        "pay",
        "orders",
        0,
        max_latency_ms=30_000,
    )


def run(letters: str) -> list[SlaWindow]:
    """Windows from letters: g good, b bad, e excluded, u unknown."""
    names: dict[str, Verdict] = {"g": "good", "b": "bad", "e": "excluded", "u": "unknown"}
    return [window(minute, names[letter]) for minute, letter in enumerate(letters)]


# Verdicts


def test_a_window_within_the_threshold_is_good_and_says_what_was_worst_and_where() -> None:
    rows = [
        latency(),
        latency(
            partition=7,
            records_latency_max_ms=3_000.0,
            records_latency_max_low_ms=2_500.0,
            records_latency_max_high_ms=4_000.0,
        ),
    ]

    assert judged(promise(), 1, rows) == (
        SlaWindow(
            "payments-30s",
            Interval(START, START + MINUTE),
            "good",
            True,
            "",
            3_000.0,
            2_500.0,
            4_000.0,
            "pay",
            "orders",
            7,
            steady_partitions=2,
            records_due=200,
            records_late_low=0,
            records_late_high=0,
            records_of_unknown_state=0,
            max_latency_ms=30_000,
        ),
    )


def test_a_latency_of_exactly_the_threshold_keeps_the_promise() -> None:
    assert verdicts(judged(promise(), 1, [latency(records_latency_max_ms=30_000.0)])) == ["good"]


def test_one_steady_partition_above_the_threshold_makes_the_window_bad() -> None:
    assert verdicts(judged(promise(), 1, [latency(), late(partition=1)])) == ["bad"]


def test_a_stopped_consumer_is_bad_by_its_backlog_though_it_consumed_nothing() -> None:
    stopped = late(
        records_consumed=0,
        records_latency_max_ms=None,
        records_latency_max_low_ms=None,
        records_latency_max_high_ms=None,
    )

    (found,) = judged(promise(), 1, [stopped])

    assert (
        found.verdict,
        found.is_certain,
        found.worst_latency_ms,
        found.worst_latency_low_ms,
        found.worst_latency_high_ms,
    ) == ("bad", True, 60_000.0, 50_000.0, 70_000.0)


def test_a_bad_window_is_certain_only_when_a_low_bound_is_above_the_threshold_too() -> None:
    doubtful = late(backlog_age_max_low_ms=29_000.0)
    sure = late(partition=1, backlog_age_max_ms=40_000.0, backlog_age_max_low_ms=31_000.0)

    estimated = promise(when_uncertain="estimate")
    assert [judged(estimated, 1, rows)[0].is_certain for rows in ([doubtful], [doubtful, sure])] == [False, True]
    states = [state(doubtful), state(sure, throughout=False)]
    assert [window.is_certain for window in judged(estimated, 1, [doubtful, sure], states)] == [False]


@pytest.mark.parametrize("high", [30_001.0, None])
def test_a_good_window_is_not_certain_when_a_high_bound_is_above_the_threshold_or_unbounded(high: float | None) -> None:
    rows = [latency(), latency(partition=1, records_latency_max_high_ms=high)]

    (found,) = judged(promise(when_uncertain="estimate"), 1, rows)

    assert (found.verdict, found.is_certain) == ("good", False)


@pytest.mark.parametrize(
    ("asked", "verdict"), [("unknown", "unknown"), ("bad", "bad"), ("good", "good"), ("estimate", "bad")]
)
def test_a_window_whose_bounds_allow_both_is_what_the_sla_asks_for(asked: WhenUncertain, verdict: Verdict) -> None:
    doubtful = late(backlog_age_max_low_ms=0.0, backlog_age_max_high_ms=70_000.0)

    (found,) = judged(promise(when_uncertain=asked), 1, [doubtful])

    assert (found.verdict, found.is_certain, found.worst_latency_high_ms) == (verdict, False, 70_000.0)


def test_a_window_whose_bounds_allow_both_says_so_and_is_never_good() -> None:
    bounded = latency(records_latency_max_low_ms=0.0, records_latency_max_high_ms=30_001.0)
    unbounded = latency(records_latency_max_high_ms=None)

    assert [
        (w.verdict, w.reason, w.unknown_partitions) for row in (bounded, unbounded) for w in judged(promise(), 1, [row])
    ] == [
        ("unknown", "1 of 1 partitions: pay orders-0: the bounds of its latency, 0.4 s to 30.0 s, allow both", 1),
        ("unknown", "1 of 1 partitions: pay orders-0: the bounds of its latency, 0.5 s to any time, allow both", 1),
    ]


def test_what_is_certain_of_one_partition_outweighs_what_is_not_of_another() -> None:
    doubtful = latency(partition=1, records_latency_max_high_ms=None)

    assert verdicts(judged(promise(when_uncertain="good"), 1, [late(), doubtful])) == ["bad"]
    assert verdicts(judged(promise(), 1, [late(), doubtful])) == ["bad"]


def test_bootstrapping_partitions_cannot_make_a_window_bad() -> None:
    rows = [latency(), late(partition=1)]

    (found,) = judged(promise(), 1, rows, [state(rows[0]), state(rows[1], throughout=False)])

    counts = (found.steady_partitions, found.bootstrapping_partitions, found.unknown_partitions)
    assert (found.verdict, counts, found.records_due) == ("good", (1, 1, 0), 100)


def test_a_window_with_nothing_but_bootstrapping_partitions_is_excluded() -> None:
    (found,) = judged(promise(), 1, [late()], [state(late(), throughout=False, state="bootstrapping")])

    assert (found.verdict, found.reason, found.is_certain) == ("excluded", "bootstrapping: the only partition", False)
    assert (found.records_late_low, found.records_late_high) == (0, 0)


def test_the_worst_partition_is_a_steady_one() -> None:
    rows = [latency(), late(partition=1)]

    (found,) = judged(promise(), 1, rows, [state(rows[0]), state(rows[1], throughout=False, state="bootstrapping")])

    assert (found.verdict, found.worst_latency_ms, found.worst_partition) == ("good", 1_000.0, 0)


def test_bounds_that_allow_both_are_told_as_they_are() -> None:
    row = late(backlog_age_max_low_ms=29_949.0, backlog_age_max_high_ms=31_049.0)

    (found,) = judged(promise(when_uncertain="unknown"), 1, [row])

    assert found.reason.endswith("the bounds of its latency, 29.9 s to 31.0 s, allow both")
    row = late(backlog_age_max_low_ms=29_999.9, backlog_age_max_high_ms=31_049.0)
    assert "30.0 s to 31.0 s" in judged(promise(when_uncertain="unknown"), 1, [row])[0].reason


def test_weekly_maintenance_excuses_its_hours_by_the_clock_of_its_time_zone() -> None:
    weekly = WeeklyMaintenance((0,), clock(11, 1), clock(11, 3), "Europe/Berlin", "deployments")  # 10:01 to 10:03 UTC

    found = judged(promise(maintenance=(weekly,)), 4, [late(minute) for minute in range(4)])

    assert verdicts(found) == ["bad", "excluded", "excluded", "bad"]


def test_maintenance_excuses_every_window_that_it_touches_whatever_happens_in_them() -> None:
    span = Interval(START + timedelta(seconds=90), START + timedelta(seconds=121))
    sla = promise(maintenance=(Maintenance(span, "broker upgrade"),))

    found = judged(sla, 4, [late(minute) for minute in range(4)])

    assert verdicts(found) == ["bad", "excluded", "excluded", "bad"]
    assert found[1].reason == "maintenance: broker upgrade"
    assert found[1].worst_latency_ms == 60_000.0
    assert [window.is_certain for window in found] == [True, False, False, True]


def test_unknown_partitions_are_never_counted_as_good() -> None:
    rows = [latency(), latency(partition=1, unknown_reason="no end offset", backlog_age_max_ms=None)]

    (found,) = judged(promise(), 1, rows)

    assert (found.verdict, found.reason, found.unknown_partitions) == (
        "unknown",
        "1 of 2 partitions: pay orders-1: no end offset",
        1,
    )


def test_records_without_a_produced_time_make_a_steady_partition_unknown() -> None:
    (found,) = judged(promise(), 1, [latency(unknown_latency_records=3)])

    assert (found.verdict, found.reason) == (
        "unknown",
        "1 of 1 partitions: pay orders-0: 3 records without a produced time",
    )


def test_a_row_whose_steady_state_is_missing_is_unknown_even_when_it_is_late() -> None:
    (found,) = judged(promise(), 1, [late()], [])

    assert (found.verdict, found.reason) == ("unknown", "1 of 1 partitions: pay orders-0: no steady state")


def test_records_of_partitions_of_unknown_state_are_counted_apart_and_may_have_been_late() -> None:
    known, other = latency(), latency(partition=1, records_consumed=900)
    (unknown,) = judged(promise(), 1, [known, other], [state(known)])
    (bad,) = judged(promise(), 1, [late(), other], [state(late(), records_late=1)])
    (good,) = judged(promise(), 1, [known, other])

    figures = [(w.verdict, w.records_due, w.records_of_unknown_state) for w in (unknown, bad, good)]
    assert figures == [("unknown", 100, 900), ("bad", 100, 900), ("good", 200, 0)]
    assert [sums_of([w]).records_in_unknown_time for w in (unknown, bad, good)] == [1000, 900, 0]


def test_records_due_on_a_partition_without_a_known_position_may_have_been_late() -> None:
    rows = [late(), latency(partition=1, unknown_reason="the topic was created again")]
    states = [state(rows[0], records_late=7), state(rows[1], records_due=40, records_late=40, records_late_high=40)]

    (found,) = judged(promise(), 1, rows, states)

    assert (found.records_due, found.records_late, found.records_of_unknown_state) == (100, 7, 40)


def test_records_due_while_positions_contradict_each_other_may_have_been_late() -> None:
    rows = [late(), latency(partition=1)]
    states = [state(rows[0], records_late=7), state(rows[1], False, state="contradictory", records_due=40)]

    (found,) = judged(promise(), 1, rows, states)

    assert (found.records_due, found.records_late, found.records_of_unknown_state) == (100, 7, 40)


def test_records_of_a_stopped_consumer_are_late_though_it_read_none() -> None:
    stopped = late(records_consumed=0, records_latency_max_ms=None)
    counts = {"records_due": 600, "records_late": 600, "records_late_low": 590, "records_late_high": 610}

    (found,) = judged(promise(), 1, [stopped], [state(stopped, **counts)])

    assert {name: getattr(found, name) for name in counts} == counts


def test_a_bad_partition_outweighs_an_unknown_one() -> None:
    unknown = latency(partition=1, unknown_reason="no end offset", backlog_age_max_ms=None)

    assert verdicts(judged(promise(), 1, [late(), unknown])) == ["bad"]


@pytest.mark.parametrize("broken", ["latency", "expiry"])
def test_a_partition_that_is_bad_is_steady_whatever_else_of_it_is_unknown(broken: str) -> None:
    row = late(unknown_latency_records=1) if broken == "latency" else latency(unknown_latency_records=1)
    soon = [unread(row, 1 if broken == "expiry" else 7_200)]

    (found,) = judged(promise(min_time_to_expiry_ms=600_000), 1, [row], unread=soon)

    assert (found.verdict, found.steady_partitions, found.unknown_partitions) == ("bad", 1, 0)


def test_the_first_unknown_partition_is_named_and_one_that_has_a_row_before_one_that_has_none() -> None:
    unknown = [latency(partition=partition, unknown_reason="no end offset") for partition in (1, 2)]

    (found,) = judged(promise(), 1, unknown, expected=[("pay", "orders", 0)])

    assert found.reason == "3 of 3 partitions: pay orders-1: no end offset"


def test_a_partition_whose_rows_end_is_gone_not_unknown_wherever_the_interval_begins() -> None:
    rows = [latency(0), latency(0, partition=1), latency(1), latency(2)]

    assert verdicts(judged(promise(), 3, rows)) == ["good", "good", "good"]


def test_a_partition_given_as_expected_is_unknown_from_the_start() -> None:
    found = judged(
        promise(),
        2,
        [latency(0), latency(1), latency(1, partition=1)],
        expected=[("pay", "orders", 1), ("other", "orders", 0)],
    )

    assert verdicts(found) == ["unknown", "good"]


def test_without_any_row_every_window_is_unknown() -> None:
    found = judged(promise(), 3, [])

    assert verdicts(found) == ["unknown"] * 3
    assert found[0].reason == "no data: no group and topic of this SLA has been seen"


def test_names_that_the_sla_spells_out_are_unknown_until_they_have_rows() -> None:
    sla = promise(groups=Patterns(("pay", r"audit\-log")), topics=Patterns(("orders", r"orders\..*")))

    found = judged(sla, 2, [latency(0), latency(1), latency(1, group="audit-log")])

    assert [(w.verdict, w.reason) for w in found] == [("unknown", "no data for group audit-log"), ("good", "")]


def test_all_spelled_out_names_that_have_no_rows_are_named() -> None:
    sla = promise(groups=Patterns(("pay",)), topics=Patterns(("orders",)))

    assert judged(sla, 1, [])[0].reason == "no data for group pay, topic orders"


def test_rows_of_other_clusters_slas_groups_topics_and_times_are_ignored() -> None:
    ours = latency()
    others = [late(cluster="other"), late(group="audit"), late(topic="clicks"), late(1), late(-1)]
    states = [state(ours), *map(state, others), state(ours, throughout=False, sla="another")]

    (found,) = judged(promise(), 1, [ours, *others], states)

    assert (found.verdict, found.steady_partitions) == ("good", 1)


def test_a_name_that_is_spelled_out_and_excluded_is_not_missed() -> None:
    sla = promise(groups=Patterns(("pay", r"audit\-log"), exclude=(r"audit-.*",)))

    assert verdicts(judged(sla, 1, [latency()])) == ["good"]


def test_excluded_groups_are_no_part_of_the_promise() -> None:
    sla = promise(groups=Patterns(("pay.*",), exclude=("pay-test",)))

    assert verdicts(judged(sla, 1, [latency(), late(group="pay-test")])) == ["good"]


def test_a_window_is_bad_too_when_unread_records_expire_sooner_than_promised_and_says_which() -> None:
    rows = [latency(), latency(partition=1), latency(partition=2)]
    soon = [unread(rows[0], 700), unread(rows[1], 500), unread(rows[2], 590)]
    (found,) = judged(promise(min_time_to_expiry_ms=600_000), 1, rows, unread=soon)
    assert (found.verdict, found.is_certain) == ("bad", True)
    assert found.reason == "unread records of pay in orders-1 expire in 8 min 20 s"
    assert (found.worst_latency_ms, found.worst_partition) == (1_000.0, 0)


def test_exactly_the_promised_time_before_expiry_keeps_the_promise() -> None:
    (found,) = judged(promise(min_time_to_expiry_ms=600_000), 1, [latency()], unread=[unread(latency(), 600)])
    assert (found.verdict, found.reason) == ("good", "")


def test_records_that_are_due_are_said_to_be() -> None:
    due = [unread(latency(), 0)]
    (found,) = judged(promise(min_time_to_expiry_ms=600_000), 1, [latency()], unread=due)
    assert found.reason == "unread records of pay in orders-0 are due to expire"


@pytest.mark.parametrize(
    ("worst_s", "changes", "is_certain"),
    [(598.5, {}, True), (599, {}, False), (599.5, {}, False), (598.5, {"oldest_unread_at": None}, False)],
    ids=["a second later too", "a second later just not", "a second later not", "estimate unknown"],
)
def test_a_window_is_certain_when_the_records_expire_too_soon_by_their_estimated_age_too(
    worst_s: float, changes: dict[str, Any], is_certain: bool
) -> None:
    at_worst = unread(latency(), worst_s, **changes)
    (found,) = judged(promise(min_time_to_expiry_ms=600_000), 1, [latency()], unread=[at_worst])
    assert (found.verdict, found.is_certain) == ("bad", is_certain)


def test_without_that_promise_nothing_depends_on_when_records_expire() -> None:
    assert verdicts(judged(promise(), 1, [latency()], unread=[unread(latency(), 1)])) == ["good"]


def test_records_that_expire_while_bootstrapping_break_no_promise() -> None:
    sla, rows = promise(min_time_to_expiry_ms=600_000), [latency()]
    found = judged(sla, 1, rows, [state(rows[0], throughout=False)], unread=[unread(rows[0], 1)])
    assert verdicts(found) == ["excluded"]


@pytest.mark.parametrize(
    "rows", [[], [unread(latency(), None, cleanup_policy=None)]], ids=["not measured", "topic not seen"]
)
def test_where_nobody_knows_when_records_expire_the_window_is_unknown(rows: list[dict[str, Any]]) -> None:
    (found,) = judged(promise(min_time_to_expiry_ms=600_000), 1, [latency()], unread=rows)
    assert found.verdict == "unknown"
    assert found.reason == "1 of 1 partitions: pay orders-0: when its unread records expire is not known"


def test_records_kept_for_ever_and_partitions_without_unread_ones_keep_the_promise() -> None:
    sla = promise(min_time_to_expiry_ms=600_000)
    for row in (unread(latency(), None), unread(latency(), None, cleanup_policy=None, unread_records=0)):
        assert verdicts(judged(sla, 1, [latency()], unread=[row])) == ["good"]


def test_a_miss_tells_what_its_last_window_says_of_records_that_expire() -> None:
    windows = judged(
        promise(min_time_to_expiry_ms=600_000),
        4,
        [latency(m) for m in range(4)],
        unread=[unread(latency(m), 500 - 60 * m if m < 3 else 900) for m in range(4)],
    )
    (miss,) = judge_misses(promise(), windows)
    assert (miss.bad_windows, miss.end) == (3, START + 3 * MINUTE)
    assert expiry(miss, windows) == "unread records of pay in orders-0 expire in 6 min 20 s"
    (late_miss,) = judge_misses(promise(), run("bbg"))
    assert expiry(late_miss, run("bbg")) == ""


def test_late_records_are_counted_over_steady_partitions_only() -> None:
    rows = [late(), late(partition=1), late(partition=2)]
    states = [
        state(rows[0], records_late=40),
        state(rows[1], records_late=2),
        state(rows[2], False, records_late=9),
    ]

    (found,) = judged(promise(), 1, rows, states)

    assert (found.records_late, found.records_due) == (42, 200)


def test_bounds_of_late_records_are_added_up() -> None:
    rows = [late(), late(partition=1), late(partition=2)]
    known = {"records_late_low": 10, "records_late_high": 60}
    states = [state(rows[0], **known), state(rows[1], **known), state(rows[2], False, **known)]

    (found,) = judged(promise(), 1, rows, states)

    assert (found.records_late_low, found.records_late_high) == (20, 120)


def test_rows_in_any_order_give_the_same_verdicts_and_of_equally_bad_partitions_the_first() -> None:
    places = itertools.product(range(3), ("pay", "pay-b"), range(9))
    rows = [late(minute, group=group, partition=partition) for minute, group, partition in places]
    shuffled = random.Random(4).sample(rows, len(rows))

    found = judged(promise(), 3, shuffled)

    assert judged(promise(), 3, rows) == found
    assert (found[0].worst_group, found[0].worst_partition) == ("pay", 0)


def test_a_day_gives_the_same_verdicts_as_its_five_minute_runs() -> None:
    rows = [(late if minute % 7 == 0 else latency)(minute) for minute in range(30)]
    tables = arrow_rows(CONSUMER_LATENCY, rows), arrow_rows(STEADY_STATE, map(state, rows))
    parts = [Interval(START + n * MINUTE, START + (n + 5) * MINUTE) for n in range(0, 30, 5)]

    whole = judge(promise(), minutes(30), WINDOW_MS, *tables)

    assert whole == tuple(itertools.chain(*(judge(promise(), part, WINDOW_MS, *tables) for part in parts)))


# Several SLAs


def many(dice: random.Random) -> list[Sla]:
    """SLAs of one cluster that select, limit and doubt differently, some of them what is not there."""
    names = ["pay.*", "pay", "pay\\-eu\\.west", "shop", "gone"]
    return [
        promise(
            name=f"sla {number}",
            groups=Patterns((dice.choice(names),)),
            topics=Patterns((dice.choice(["orders.*", "orders", "orders\\.v2", "absent"]),)),
            max_latency_ms=dice.choice([600, 1_500, 30_000]),
            when_uncertain=dice.choice(["unknown", "bad", "good", "estimate"]),
            min_time_to_expiry_ms=dice.choice([None, None, 90_000]),
            maintenance=dice.choice([(), (Maintenance(minutes(2), "upgrade"),)]),
        )
        for number in range(12)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_slas_that_are_judged_together_get_the_verdicts_that_each_gets_alone(seed: int) -> None:
    dice = random.Random(seed)
    slas, rows, states, waiting = many(dice), [], [], []
    for group in ("pay", "pay-eu.west", "shop"):
        for topic in ("orders", "orders.v2"):
            for partition, minute in itertools.product(range(2), range(4)):
                if dice.random() < 0.2:
                    continue
                place = {"group": group, "topic": topic, "partition": partition}
                row = dice.choice([latency, late])(minute, **place)
                rows.append(row | dice.choice([{}, {}, {"unknown_reason": "no points"}]))
                waiting.append(unread(row, dice.choice([None, 60, 7_200])))
                states += [
                    state(row, dice.random() < 0.8, sla=sla.name, records_late=dice.randrange(9))
                    for sla in slas
                    if dice.random() < 0.9
                ]
    tables = arrow_rows(CONSUMER_LATENCY, rows), arrow_rows(STEADY_STATE, states)
    named = {"expected": [("shop", "orders", 7)], "unread": arrow_rows(NON_CONSUMED, waiting)}

    together = judge_together(slas, minutes(4), WINDOW_MS, *tables, **named)

    assert list(together) == [sla.name for sla in slas]
    for sla in slas:
        own = arrow_rows(STEADY_STATE, [row for row in states if row["sla"] == sla.name])
        assert together[sla.name] == judge(sla, minutes(4), WINDOW_MS, tables[0], own, **named), sla
    assert len({w.verdict for windows in together.values() for w in windows}) > 2


def test_slas_of_two_clusters_are_not_judged_together() -> None:
    nothing = arrow_rows(CONSUMER_LATENCY, []), arrow_rows(STEADY_STATE, [])
    with pytest.raises(ValueError, match="SLAs of main, other cannot be judged together"):
        judge_together([promise(), promise(cluster="other")], minutes(1), WINDOW_MS, *nothing)


# At the threshold


@pytest.mark.parametrize(("low", "is_certain"), [(30_000.0, False), (30_000.5, True)])
def test_a_bad_window_whose_low_bound_is_the_threshold_is_not_certain(low: float, is_certain: bool) -> None:
    (found,) = judged(promise(when_uncertain="bad"), 1, [late(backlog_age_max_low_ms=low)])

    assert (found.verdict, found.is_certain) == ("bad", is_certain)


@pytest.mark.parametrize(("high", "is_certain"), [(30_000.0, True), (30_000.5, False)])
def test_a_good_window_whose_high_bound_is_the_threshold_is_certain(high: float, is_certain: bool) -> None:
    (found,) = judged(promise(when_uncertain="good"), 1, [latency(records_latency_max_high_ms=high)])

    assert (found.verdict, found.is_certain) == ("good", is_certain)


@pytest.mark.parametrize(("latency_ms", "verdict"), [(30_000.0, "good"), (30_000.5, "bad")])
def test_an_estimate_of_exactly_the_threshold_is_good(latency_ms: float, verdict: Verdict) -> None:
    row = latency(records_latency_max_ms=latency_ms, records_latency_max_high_ms=40_000.0)

    assert verdicts(judged(promise(when_uncertain="estimate"), 1, [row])) == [verdict]


@pytest.mark.parametrize("unbounded", ["records_latency_max_high_ms", "backlog_age_max_high_ms"])
def test_a_latency_or_backlog_without_high_bound_leaves_the_partition_without_one(unbounded: str) -> None:
    (found,) = judged(promise(when_uncertain="good"), 1, [latency(**{unbounded: None})])

    assert (found.verdict, found.is_certain, found.worst_latency_high_ms) == ("good", False, None)


def test_one_record_is_enough_to_be_unknown() -> None:
    (timeless,) = judged(promise(), 1, [latency(unknown_latency_records=1)])
    waiting = unread(latency(), None, cleanup_policy=None, unread_records=1)
    (unread_one,) = judged(promise(min_time_to_expiry_ms=600_000), 1, [latency()], unread=[waiting])

    assert timeless.reason == "1 of 1 partitions: pay orders-0: 1 records without a produced time"
    assert unread_one.reason == "1 of 1 partitions: pay orders-0: when its unread records expire is not known"


def test_a_window_without_rows_names_the_first_partition_that_is_expected() -> None:
    (found,) = judged(promise(), 1, [], expected=[("pay", "orders", 1), ("pay", "orders", 0)])

    assert (found.verdict, found.steady_partitions, found.bootstrapping_partitions, found.unknown_partitions) == (
        "unknown",
        0,
        0,
        2,
    )
    assert found.reason == "2 of 2 partitions: pay orders-0: no data"
    assert (found.records_due, found.records_late, found.records_late_high) == (0, 0, 0)


def test_a_partition_that_is_expected_twice_and_has_no_row_is_one() -> None:
    (found,) = judged(promise(), 1, [], expected=[("pay", "orders", 1)] * 2)

    assert (found.verdict, found.reason) == ("unknown", "1 of 1 partitions: pay orders-1: no data")


def test_a_latency_without_low_bound_is_not_over_the_threshold_for_certain() -> None:
    unknown = {"backlog_age_max_low_ms": None, "records_latency_max_low_ms": None}
    (found,) = judged(promise(when_uncertain="bad"), 1, [late(**unknown)])

    assert (found.verdict, found.is_certain, found.worst_latency_low_ms) == ("bad", False, None)


def test_positions_that_contradict_each_other_make_a_window_unknown_and_say_why() -> None:
    row = late()
    (window,) = judged(promise(), 1, [row], [state(row, False, state="contradictory", reason="rewind")])
    assert ("unknown", 1) == (window.verdict, window.unknown_partitions)
    assert "pay orders-0: positions contradict each other; do two programs use this group?" in window.reason


def test_a_group_that_stopped_catching_up_is_judged() -> None:
    row = late()
    assert ["bad"] == verdicts(judged(promise(), 1, [row], [state(row, reason="not_catching_up")]))


@pytest.mark.parametrize(("allowed_lag", "waiting", "verdict"), [(0, 1, "bad"), (1, 1, "good"), (1, 2, "bad")])
def test_as_many_records_as_the_sla_allows_may_wait_for_as_long_as_they_like(
    allowed_lag: int, waiting: int, verdict: str
) -> None:
    nothing_read = {f"records_latency_max{bound}_ms": None for bound in ("", "_low", "_high")}
    row = late(records_lag=waiting, records_consumed=0, **nothing_read)
    assert [verdict] == verdicts(judged(promise(allowed_lag=allowed_lag), 1, [row]))


def test_records_that_were_read_late_count_although_some_may_wait() -> None:
    latency_ms = {f"records_latency_max{bound}_ms": 60_000.0 for bound in ("", "_low", "_high")}
    assert ["bad"] == verdicts(judged(promise(allowed_lag=1), 1, [late(records_lag=1, **latency_ms)]))


def test_a_partition_without_a_committed_offset_counts_if_the_sla_is_of_all_partitions() -> None:
    rows = [latency(assumed_offset=None), late(partition=1, assumed_offset=7)]
    assert ["bad"] == verdicts(judged(promise(), 1, rows))
    assert ["good"] == verdicts(judged(promise(partitions="committed"), 1, rows))


def test_a_partition_without_a_committed_offset_does_not_count_once_the_group_has_no_offset_on_the_topic() -> None:
    rows = [latency(), late(partition=1, assumed_offset=7), late(1, partition=1, assumed_offset=7)]
    assert ["bad", "unknown"] == verdicts(judged(promise(), 2, rows))
