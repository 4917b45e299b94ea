"""Causes of misses, told from rows of flows whose cause is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import Interval, Miss, Patterns, Sla, SteadyState
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE
from kafka_sla.sla.root_cause.evidence import covered, evidence, evidence_times, is_explained
from kafka_sla.text.timestamps import instant_text

MINUTE = timedelta(minutes=1)
START = datetime(2026, 3, 2, 10, tzinfo=UTC)
SLA = Sla("payments-30s", "main", Patterns(), Patterns(), 60_000, 120_000, 0.999, SteadyState(30_000))


def missed(start: int, end: int | None, worst: int, **changes: Any) -> Miss:
    fields: dict[str, Any] = {
        "id": "m1",
        "sla": SLA.name,
        "cluster": "main",
        "start": START + start * MINUTE,
        "end": None if end is None else START + end * MINUTE,
        "state": "open" if end is None else "recovered",
        "bad_until": START + (end or worst + 1) * MINUTE,
        "opened_at": START + (start + 2) * MINUTE,
        "bad_windows": 5,
        "is_certain": True,
        "worst_latency_ms": 300_000.0,
        "worst_latency_low_ms": 290_000.0,
        "worst_latency_high_ms": 310_000.0,
        "worst_at": START + worst * MINUTE,
        "worst_group": "pay",
        "worst_topic": "orders",
        "worst_partition": 0,
        "max_latency_ms": 60_000,
        "for_ms": 120_000,
    }
    return Miss(**{**fields, **changes})


def flow(
    produced: list[int],
    consumed: list[int],
    *,
    behind: int = 0,
    group: str = "pay",
    partition: int = 0,
    throughout: bool = True,
    commits: Callable[[int], bool] | None = None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of a partition that gets and reads so many records a minute; its commits follow its progress."""
    rows, states, end, read, last = [], [], 1_000, 1_000 - behind, START - MINUTE
    for minute, (more, gone) in enumerate(zip(produced, consumed, strict=True)):
        at, end, read = START + minute * MINUTE, end + more, read + gone
        last = at + MINUTE / 2 if (commits or (lambda m: consumed[m] > 0))(minute) else last
        where = {
            "cluster": "main",
            "group": group,
            "topic": "orders",
            "partition": partition,
            "window_start": at,
            "window_end": at + MINUTE,
        }
        rows.append(
            {
                **where,
                "records_consumed": gone,
                "negative_latency_records": 0,
                "unknown_latency_records": 0,
                "records_lag": end - read,
                "backlog_age_max_ms": 60_000.0 * (end - read) / more,
                "log_end_offset": end,
                "committed_offset": read,
                "last_commit_at": last,
            }
        )
        states.append(
            {
                **where,
                "sla": SLA.name,
                "state": "steady",
                "since": START,
                "reason": "caught_up",
                "steady_whole_window": throughout,
                "records_due": 0,
                "records_late": 0,
                "records_late_low": 0,
                "records_late_high": 0,
            }
        )
    return rows, states


def told(miss: Miss, *flows: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> dict[str, Any]:
    rows, states = ([row for flow in flows for row in flow[i]] for i in (0, 1))
    latency, steady = arrow_rows(CONSUMER_LATENCY, rows), arrow_rows(STEADY_STATE, states)
    return evidence(miss, latency, [(latency, steady)])


def test_a_consumer_that_commits_nothing_while_records_wait_has_stopped() -> None:
    stopped = flow([600] * 15, [600] * 5 + [0] * 8 + [3_000, 3_000])

    found = told(missed(6, 15, worst=13), stopped)

    assert found["cause"] == "stopped"
    assert (
        found["sentence"]
        == "Group pay consumed nothing from orders between 2026-03-02 10:04:30 UTC and 2026-03-02 10:13:00 UTC "
        "while up to 4,800 records waited."
    )
    assert (
        found["lag_at_start"],
        found["lag_worst"],
        found["records_consumed"],
        found["commits_without_progress"],
    ) == (600, 4_800, 6_000, False)


def test_a_consumer_that_is_still_down_has_not_moved_since_its_last_commit() -> None:
    found = told(missed(6, None, worst=9), flow([600] * 10, [600] * 5 + [0] * 5))

    assert (
        (found["sentence"])
        == "Group pay consumed nothing from orders after 2026-03-02 10:04:30 UTC while up to 3,000 records waited."
    )
    assert None is found["stalled_until"]
    assert found["last_commit_at"] == "2026-03-02T10:04:30.000Z"


def test_a_consumer_that_commits_the_same_offsets_again_is_alive_but_stuck() -> None:
    found = told(missed(6, None, worst=9), flow([600] * 10, [600] * 5 + [0] * 5, commits=lambda minute: True))

    assert (found["cause"], found["commits_without_progress"]) == ("stalled", True)
    assert "Group pay kept committing on orders without progress after 2026-03-02 10:04:30 UTC" in found["sentence"]


def test_a_consumer_that_keeps_its_pace_while_the_produce_rate_jumps_is_not_blamed() -> None:
    found = told(missed(6, 12, worst=11), flow([600] * 5 + [2_400] * 7, [600] * 12))

    assert found["cause"] == "produce_rate_jumped"
    assert (
        (found["sentence"])
        == "The produce rate of orders jumped from 10/s to 40/s (4.0 times as much); group pay consumed 10/s."
    )


def test_a_consumer_that_reads_less_than_is_produced_is_too_slow() -> None:
    found = told(missed(7, 12, worst=11), flow([600] * 12, [600] * 5 + [300] * 7))

    assert found["cause"] == "too_slow"
    assert (
        found["sentence"]
        == "Group pay was too slow: it consumed 5/s (10/s before) while 10/s (10/s before) were produced to orders."
    )


def test_a_consumer_that_slows_down_while_more_is_produced_is_too_slow() -> None:
    assert told(missed(7, 12, 11), flow([600] * 5 + [1_200] * 7, [600] * 5 + [300] * 7))["cause"] == "too_slow"


def test_a_consumer_that_reads_as_much_as_is_produced_is_not_blamed_without_reason() -> None:
    found = told(missed(2, 12, worst=11), flow([600] * 12, [600] * 12, behind=900))

    assert (found["cause"], found["sentence"]) == (
        "unclear",
        "No single cause stands out: 10/s produced, 10/s consumed, up to 900 records waiting; not measured: "
        "consumer status, group members, expired records, broker pairs.",
    )


def test_without_a_time_before_the_miss_the_usual_rates_are_unknown() -> None:
    found = told(missed(0, None, worst=4), flow([600] * 5, [300] * 5))

    assert (found["produce_rate_before"], found["consume_rate_before"], found["cause"]) == (None, None, "too_slow")
    assert found["sentence"] == "Group pay was too slow: it consumed 5/s while 10/s were produced to orders."


def test_only_late_and_steady_partitions_are_looked_at_and_the_worst_are_named_first() -> None:
    stuck = [flow([600] * 10, [600] * 5 + [0] * 5, partition=p) for p in (3, 4)]
    in_time = flow([600] * 10, [600] * 10, partition=5)
    bootstrapping = flow([9_000] * 10, [600] * 10, throughout=False, partition=6)
    other_group = flow([600] * 10, [100] * 10, group="worse")

    found = told(missed(6, None, worst=9), *stuck, in_time, bootstrapping, other_group)

    assert (found["late_partitions"], found["partitions"]) == (3, ["worse orders-0", "pay orders-3", "pay orders-4"])
    assert (found["lag_worst"], found["produce_rate_during"], found["cause"]) == (6_000, 20.0, "stopped")


def test_a_recreated_topic_tells_no_rate_for_the_step_in_which_its_log_end_fell() -> None:
    rows, states = flow([600] * 12, [600] * 5 + [300] * 7)
    for row in rows[8:]:
        row["log_end_offset"] -= 5_000

    assert told(missed(7, 12, worst=11), (rows, states))["produce_rate_during"] == 10.0


def test_rows_that_tell_nothing_make_no_cause_up() -> None:
    found = told(missed(6, None, worst=9))

    assert (found["cause"], found["produce_rate_during"], found["lag_worst"], found["late_partitions"]) == (
        "unclear",
        None,
        None,
        0,
    )
    assert found["sentence"].startswith("No single cause stands out: not measured: ")
    assert found["stalled_share"] is None


def test_the_figures_can_be_written_as_json() -> None:
    found = told(missed(6, None, worst=9), flow([600] * 10, [600] * 5 + [0] * 5))

    assert found == json.loads(json.dumps(found))


def test_the_rows_wanted_reach_back_beyond_the_threshold_to_what_was_usual() -> None:
    closed, still_open = missed(60, 70, worst=65), missed(60, None, worst=65)

    now = START + 99 * MINUTE
    assert evidence_times(closed, now, 60_000) == [Interval(START + 29 * MINUTE, START + 70 * MINUTE)]
    assert evidence_times(still_open, now, 60_000) == [Interval(START + 29 * MINUTE, now)]
    assert covered(closed, now, evidence_times(closed, now, 60_000)) == {}


@pytest.mark.parametrize(
    ("worst", "of_open", "of_ended"),
    [
        (65, [(1, 7)], [(1, 7)]),
        (7 * 60 - 1, [(1, 7)], [(1, 7)]),
        (7 * 60, [(1, 7)], [(1, 3), (3 + 1 / 60, 7 + 1 / 60)]),
        (8 * 60, [(1, 3), (4, 8)], [(1, 3), (4 + 1 / 60, 8 + 1 / 60)]),
        (21 * 24 * 60 - 1, [(1, 3), (21 * 24 - 4, 21 * 24)], [(1, 3), (21 * 24 - 4, 21 * 24)]),
    ],
)
def test_of_a_miss_that_lasts_for_weeks_its_beginning_is_told_and_how_it_came_to_its_worst(
    worst: int, of_open: list[tuple[float, float]], of_ended: list[tuple[float, float]]
) -> None:
    weeks, hour = 21 * 24 * 60, 60 * MINUTE
    for miss, hours in ((missed(60, None, worst=worst), of_open), (missed(60, weeks, worst=worst), of_ended)):
        times = evidence_times(miss, START + weeks * MINUTE, 60_000)

        spans = [Interval(START + start * hour, START + end * hour) for start, end in hours]
        assert times == [Interval(spans[0].start - 31 * MINUTE, spans[0].end), *spans[1:]]
        assert covered(miss, START + weeks * MINUTE, times) == {
            "covers": [[instant_text(span.start), instant_text(span.end)] for span in spans]
        }


TWICE = {"covers": [["a", "b"], ["c", "d"]]}
ONCE = {"covers": [["a", "b"]]}


@pytest.mark.parametrize(
    ("told", "covers", "changes", "holds"),
    [
        (TWICE, TWICE, {}, True),
        (ONCE, ONCE, {}, True),
        (TWICE, TWICE, {"worst_at": START + 999 * MINUTE}, True),
        (ONCE, ONCE, {"worst_at": START + 999 * MINUTE}, False),
        (TWICE, {"covers": [["a", "b"], ["c", "e"]]}, {}, False),
        (TWICE, TWICE, {"worst_group": "refunds"}, False),
        (TWICE, TWICE, {"worst_topic": "returns"}, False),
        (TWICE | {"damaged_files": ["1"]}, TWICE, {}, False),
        (TWICE | {"unread_expiry": "soon"}, TWICE, {}, False),
        (TWICE | {"chain": []}, TWICE, {}, False),
        ({}, {}, {}, False),
        ({}, TWICE, {}, False),
    ],
)
def test_evidence_is_kept_while_the_same_rows_would_say_it_of_the_same_place(
    told: dict[str, Any], covers: dict[str, Any], changes: dict[str, Any], holds: bool
) -> None:
    before = missed(60, None, worst=600, evidence=told)

    assert is_explained(replace(before, **changes), before, covers) == holds


def test_what_stood_still_before_and_after_hours_without_rows_stood_still_twice() -> None:
    rows, states = flow([600] * 30, [600] * 5 + [0] * 25)
    for row in (*rows[15:], *states[15:]):
        row["window_start"] += 120 * MINUTE
    for row in rows[15:]:
        row["window_end"] += 120 * MINUTE
        row["last_commit_at"] = START + 100 * MINUTE

    found = told(missed(6, None, worst=29), (rows, states))

    assert (found["stalled_from"], found["stalled_until"]) == (instant_text(START + 100 * MINUTE), None)


def test_windows_that_tell_nothing_are_no_time_in_which_it_moved() -> None:
    rows, states = flow([600] * 12, [600] * 5 + [0] * 7)
    for row in rows[7:11]:
        row |= {"records_lag": None, "backlog_age_max_ms": None}

    found = told(missed(6, 12, worst=11), (rows, states))

    assert (found["stalled_share"], found["cause"]) == (1.0, "stopped")
