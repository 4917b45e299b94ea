"""Causes of misses that other tables tell, and what is said when they tell nothing or contradict each other."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.tables import (
    CONSUMER_LATENCY,
    CONSUMER_STATUS,
    FETCH_LATENCY,
    GROUP_STATES,
    NON_CONSUMED,
    REPLICATION_LAG,
    STEADY_STATE,
    Table,
)
from kafka_sla.sla.root_cause.context import Around
from kafka_sla.sla.root_cause.evidence import evidence, evidence_rows
from tests.kafka_sla.sla.root_cause.test_evidence import MINUTE, SLA, START, flow, missed

Row = dict[str, Any]
STOPPED = flow([600] * 10, [600] * 5 + [0] * 5)
DEAD = flow([600] * 50, [600] * 5 + [0] * 45)
SLOW = flow([600] * 10, [600] * 5 + [300] * 5)
KEPT_UP = flow([600] * 10, [600] * 10, behind=900)
PLACE = {"cluster": "main", "group": "pay", "topic": "orders", "partition": 0}


def rows(table: Table, minutes: range, **row: Any) -> Any:
    """The same row in each of these minutes."""
    windows = [{"window_start": START + m * MINUTE, "window_end": START + (m + 1) * MINUTE} for m in minutes]
    return arrow_rows(table, [PLACE | row | window for window in windows])


def status(word: str) -> Any:
    return rows(
        CONSUMER_STATUS,
        range(10),
        status=word,
        complete=1.0,
        group_status="OK",
        group_complete=1.0,
        reason="",
        commit_times=[],
        commit_offsets=[],
        commit_lags=[],
    )


def lost(low: int, high: int) -> Any:
    soon = START + 30 * MINUTE
    return rows(NON_CONSUMED, range(10), non_consumed_low=low, non_consumed_high=high, unread_expires_at=soon)


def brokers(
    before: str, during: str, reason: str = "every pair of broker 2 takes about 104 ms, the others 3 ms"
) -> Any:
    fields = {"leader": 2, "follower": "1", "verdict_reason": reason, "confidence": 0.97}
    minutes = {before: range(5), during: range(5, 10)} if before != during else {before: range(10)}
    made = [rows(FETCH_LATENCY, span, verdict=verdict, **fields).to_pylist() for verdict, span in minutes.items()]
    return arrow_rows(FETCH_LATENCY, [row for part in made for row in part])


def members(before: int, during: int) -> Any:
    seen = [(m, before if m < 5 else during) for m in range(10)]
    return arrow_rows(
        GROUP_STATES,
        [
            {
                "cluster": "main",
                "group": "pay",
                "at": START + m * MINUTE,
                "type": "classic",
                "state": "Stable" if count else "Empty",
                "members": count,
            }
            for m, count in seen
        ],
    )


def replication(latency_ms: float) -> Any:
    return rows(
        REPLICATION_LAG,
        range(10),
        cluster="other",
        flow="other->main",
        target="main",
        target_topic="orders",
        topic="orders",
        refreshes=4,
        stale_refreshes=0,
        replication_record_lag_max=4_200,
        replication_latency_max_ms=latency_ms,
    )


def told(flowing: tuple[list[Row], list[Row]], patience_ms: int = SLA.max_latency_ms, **around: Any) -> Row:
    """Of a miss from the seventh minute on."""
    latency, steady = arrow_rows(CONSUMER_LATENCY, flowing[0]), arrow_rows(STEADY_STATE, flowing[1])
    miss = missed(6, len(flowing[0]), worst=9, max_latency_ms=patience_ms)
    return evidence(miss, latency, [(latency, steady)], Around(**around))


def test_a_group_without_members_is_told_from_one_that_hangs() -> None:
    gone, hanging = told(STOPPED, groups=members(2, 0)), told(STOPPED, groups=members(2, 2))

    assert ("no_members", "stopped") == (gone["cause"], hanging["cause"])
    assert gone["sentence"] == (
        "Group pay had no members (2 before) and consumed nothing from orders after 2026-03-02 10:04:30 UTC "
        "while up to 3,000 records waited."
    )
    assert (2, 0, "Empty") == (gone["members_before"], gone["members_least"], gone["group_state"])


def test_a_group_that_went_back_reads_again() -> None:
    latency, steady = flow([600] * 10, [600] * 10)
    for row in latency[5:]:
        row["committed_offset"] -= 5_000
        row["backlog_age_max_ms"] = 400_000.0

    found = told((latency, steady))

    assert ("rewound", 4_400) == (found["cause"], found["rewound_records"])
    assert found["sentence"].startswith("Group pay went back 4,400 records on orders after 2026-03-02 10:05:00 UTC")


def test_slow_brokers_explain_a_slow_consumer_unless_they_were_slow_before() -> None:
    found, before = (
        told(SLOW, brokers=brokers("even", "slow_broker")),
        told(SLOW, brokers=brokers("slow_broker", "slow_broker")),
    )

    assert ("slow_broker", "too_slow") == (found["cause"], before["cause"])
    assert found["sentence"] == (
        "Brokers were slow: every pair of broker 2 takes about 104 ms, the others 3 ms (confidence 97%), unlike "
        "before; group pay consumed 5/s while 10/s were produced to orders."
    )


def test_records_that_were_copied_late_are_not_the_consumers_doing() -> None:
    found, in_time = told(KEPT_UP, replication=replication(95_000.0)), told(KEPT_UP, replication=replication(900.0))

    assert ("replication", "unclear") == (found["cause"], in_time["cause"])
    assert found["sentence"] == (
        "Records reached orders late: other->main took up to 1 min 35 s to copy them and was up to 4,200 records "
        "behind."
    )


def test_records_that_expired_unread_are_counted_whatever_the_cause_is() -> None:
    stopped, nothing_else = told(STOPPED, lost=lost(100, 120)), told(KEPT_UP, lost=lost(100, 120))

    assert ("stopped", "records_expired") == (stopped["cause"], nothing_else["cause"])
    assert (400, 480) == (stopped["expired_unread_low"], stopped["expired_unread_high"])
    assert "Records of orders expired before group pay read them: at least 400 records." == nothing_else["sentence"]


@pytest.mark.parametrize(
    ("flowing", "word", "words"),
    [
        (DEAD, "OK", "nothing was consumed for 100% of the time, yet the consumer status was OK"),
        (KEPT_UP, "STALLED", "the consumer status was STALLED, yet as much was consumed as produced"),
    ],
)
def test_evidence_that_contradicts_itself_is_called_so(
    flowing: tuple[list[Row], list[Row]], word: str, words: str
) -> None:
    found = told(flowing, status=status(word))

    assert "contradictory" == found["cause"]
    assert f"The evidence contradicts itself: {words}; check group pay and its commits on orders." == found["sentence"]


def test_a_status_that_has_not_noticed_yet_contradicts_nothing() -> None:
    assert "stopped" == told(STOPPED, status=status("OK"))["cause"]


def test_what_is_not_measured_is_named_and_empty_tables_count_as_that() -> None:
    nothing = told(KEPT_UP, status=status("OK").slice(0, 0), replication=replication(1.0).slice(0, 0))
    much = told(KEPT_UP, status=status("OK"), lost=lost(0, 0), groups=members(2, 2), brokers=brokers("even", "even"))

    every = ["consumer status", "group members", "expired records", "broker pairs"]
    assert [*every, "replication"] == nothing["not_measured"]
    assert nothing["sentence"].endswith(
        "not measured: consumer status, group members, expired records, broker pairs, replication."
    )
    assert [] == much["not_measured"]
    assert much["sentence"].endswith("up to 900 records waiting.")


def test_figures_come_in_words_with_what_was_usual_beside_them() -> None:
    found = told(
        STOPPED,
        status=status("STOPPED"),
        lost=lost(100, 120),
        groups=members(2, 0),
        brokers=brokers("even", "slow_broker"),
        replication=replication(95_000.0),
    )

    assert [
        ("Consumer status", "", "STOPPED (100 % of windows)"),
        ("Group members", "2", "0"),
        ("Expired unread", "", "400 to 480 records"),
        ("Next unread expiry", "", "2026-03-02 10:30:00 UTC"),
        ("Broker pairs", "even", "every pair of broker 2 takes about 104 ms, the others 3 ms"),
        ("Replication other->main", "", "up to 1 min 35 s late"),
    ] == evidence_rows(found)[5:]


def test_where_nothing_was_late_but_records_may_expire_all_partitions_of_the_group_are_looked_at() -> None:
    found = told(STOPPED, patience_ms=86_400_000, status=status("STOPPED"), lost=lost(3, 3))
    assert found["late_partitions"] == 0
    assert (found["status"], found["expired_unread_low"], found["lag_worst"]) == ("STOPPED", 12, 3_000)
