"""Causes that name what a person on call has to do, and the remediation that each comes with."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.tables import (
    CONSUMER_LATENCY,
    CONSUMER_STATUS,
    GROUP_MEMBERS,
    OPEN_TRANSACTIONS,
    STEADY_STATE,
)
from kafka_sla.sla.root_cause.context import Around
from kafka_sla.sla.root_cause.evidence import evidence, evidence_rows
from tests.kafka_sla.sla.root_cause.test_evidence import MINUTE, START, flow, missed

Row = dict[str, Any]
Flow = tuple[list[Row], list[Row]]
DEAD = flow([600] * 10, [600] * 5 + [0] * 5)
PLACE = {"cluster": "main", "topic": "orders", "partition": 0}


def explained(flows: list[Flow], **around: Any) -> Row:
    """The evidence of a miss from minute 6 on, without an end."""
    rows, states = ([row for one in flows for row in one[part]] for part in (0, 1))
    latency, steady = arrow_rows(CONSUMER_LATENCY, rows), arrow_rows(STEADY_STATE, states)
    return evidence(missed(6, None, worst=9), latency, [(latency, steady)], Around(**around))


def transaction(minute: float, start_offset: int, **changes: Any) -> Row:
    return {
        **PLACE,
        "at": START + minute * MINUTE,
        "last_stable_offset": start_offset,
        "log_end_offset": start_offset + 900,
        "producer_id": 4001,
        "transactional_id": "refunds-0",
        "open_since": START + 5 * MINUTE,
        **changes,
    }


def test_a_group_that_waits_before_an_open_transaction_is_not_blamed() -> None:
    found = explained([DEAD], transactions=arrow_rows(OPEN_TRANSACTIONS, [transaction(8, 4_001)]))

    assert found["cause"] == "open_transaction"
    assert found["sentence"] == (
        "A transaction of producer id 4001 (transactional.id refunds-0) has been open on orders-0 since 2026-03-02"
        " 10:05:00 UTC: group pay reads committed records only and waits before it; up to 3,000 records waited."
    )
    assert found["open_transaction"] == {
        "partition": 0,
        "start_offset": 4_001,
        "producer_id": 4001,
        "transactional_id": "refunds-0",
        "since": "2026-03-02T10:05:00.000Z",
    }
    for command in (
        "kafka-transactions.sh --bootstrap-server BROKER:9092 find-hanging --topic orders --partition 0",
        "describe --transactional-id refunds-0",
        "abort --topic orders --partition 0 --start-offset 4001",
    ):
        assert command in found["remediation"]
    assert ("What to do", "", found["remediation"]) in evidence_rows(found)


def test_a_hanging_transaction_that_no_coordinator_lists_has_no_state_to_describe() -> None:
    rows = [transaction(8, 4_000, transactional_id=None, producer_id=None, open_since=None)]
    found = explained([DEAD], transactions=arrow_rows(OPEN_TRANSACTIONS, rows))

    assert found["sentence"].startswith("A transaction of an unknown producer has been open on orders-0: group pay")
    assert "describe" not in found["remediation"]


@pytest.mark.parametrize(
    "row",
    [
        transaction(8, 5_000),
        transaction(8, 3_000),
        transaction(8, 4_000, partition=1),
        transaction(5.5, 4_000),
        transaction(8, 4_000, cluster="other"),
    ],
    ids=["behind the position", "before the position", "another partition", "before the miss", "another cluster"],
)
def test_a_transaction_that_the_group_does_not_wait_before_is_not_the_cause(row: Row) -> None:
    assert explained([DEAD], transactions=arrow_rows(OPEN_TRANSACTIONS, [row]))["cause"] == "stopped"


def test_a_transaction_on_one_of_three_late_partitions_is_not_the_cause() -> None:
    flows = [flow([600] * 10, [600] * 5 + [0] * 5, partition=number) for number in range(3)]
    rows = [transaction(8, 4_000, partition=2)]
    assert explained(flows, transactions=arrow_rows(OPEN_TRANSACTIONS, rows))["cause"] == "stopped"
    rows.append(transaction(8, 4_000, partition=1))
    assert explained(flows, transactions=arrow_rows(OPEN_TRANSACTIONS, rows))["cause"] == "open_transaction"


def members(*assigned: tuple[float, str, str]) -> Any:
    """Minute, member and topic of each assignment; an empty topic: none."""
    rows = [
        {
            "cluster": "main",
            "group": "pay",
            "member": member,
            "topic": topic,
            "at": START + minute * MINUTE,
            "client": "c",
            "host": "10.0.0.1",
            "partitions": [0] if topic else [],
        }
        for minute, member, topic in assigned
    ]
    return arrow_rows(GROUP_MEMBERS, rows)


def test_a_group_whose_members_read_other_topics_has_left_the_topic() -> None:
    found = explained([DEAD], members=members((2, "m1", "orders"), (8, "m1", "refunds"), (8, "m2", "")))

    assert (found["cause"], found["topic_members"], found["topics_read"]) == ("left_topic", 0, ["refunds"])
    assert found["sentence"] == (
        "Group pay has left orders: none of its members is assigned to it; they read refunds; up to 3,000 records"
        " waited."
    )
    assert "exclude orders in the SLA" in found["remediation"]
    assert "--delete-offsets --group pay --topic orders" in found["remediation"]


@pytest.mark.parametrize(
    "assigned",
    [
        [(8, "m1", "refunds"), (8, "m2", "orders")],
        [(7, "m1", "orders"), (8, "m1", "refunds")],
        [(8, "m1", ""), (8, "m2", "")],
        [(2, "m1", "refunds")],
        [],
    ],
    ids=["a member reads it", "a member read it in the miss", "rebalancing", "before the miss", "nothing known"],
)
def test_a_group_is_said_to_have_left_a_topic_only_when_its_assignments_show_it(
    assigned: list[tuple[float, str, str]],
) -> None:
    assert explained([DEAD], members=members(*assigned))["cause"] == "stopped"


def quiet(partition: int, last_commit_minute: float) -> Flow:
    """One record waits, the last one, which was produced in minute 5."""
    rows, states = flow([600] * 10, [600] * 10, partition=partition)
    for minute, row in enumerate(rows):
        age = max(0, minute + 1 - 5)
        row |= {"log_end_offset": 4_000, "committed_offset": 3_999, "records_lag": 1, "records_consumed": 0}
        row |= {"backlog_age_ms": 60_000.0 * age, "backlog_age_max_ms": 60_000.0 * age}
        row["last_commit_at"] = START + last_commit_minute * MINUTE
    return rows, states


def test_a_client_that_commits_the_last_offset_leaves_one_record_on_every_partition() -> None:
    found = explained([quiet(0, 5.1), quiet(1, 5.2)])

    assert found["cause"] == "one_record_waiting"
    assert found["sentence"] == (
        "Exactly one record of orders has been waiting on every late partition since the topic went quiet."
    )
    assert "allowed_lag: 1" in found["remediation"]


def test_a_consumer_that_did_not_commit_after_the_last_record_came_is_not_one_behind() -> None:
    assert explained([quiet(0, 4.9), quiet(1, 5.2)])["cause"] == "stalled"


def test_a_consumer_that_leaves_two_records_is_not_one_behind() -> None:
    rows, states = quiet(0, 5.1)
    rows[-1]["records_lag"] = 2
    assert explained([(rows, states)])["cause"] == "stalled"


def commit_times(spacing_s: float, **changes: Any) -> Any:
    """Ten commits at this spacing, as the consumer status of each window evaluates them."""
    times = [START + timedelta(seconds=spacing_s * number) for number in range(10)]
    row = {
        **PLACE,
        "group": "pay",
        "status": "OK",
        "complete": 1.0,
        "group_status": "OK",
        "group_complete": 1.0,
        "reason": "",
        "commit_times": times,
        "commit_offsets": [0] * 10,
        "commit_lags": [0] * 10,
        "polled_only": False,
        **changes,
    }
    windows = [{"window_start": START + m * MINUTE, "window_end": START + (m + 1) * MINUTE} for m in range(10)]
    return arrow_rows(CONSUMER_STATUS, [row | window for window in windows])


def test_a_consumer_that_commits_less_often_than_the_threshold_is_said_to_commit_rarely() -> None:
    found = explained([DEAD], status=commit_times(180))

    assert (found["cause"], found["commit_spacing_ms"]) == ("commits_rarely", 180_000)
    assert found["sentence"] == (
        "Group pay commits every 3 min on orders: a threshold of 1 min can be neither met nor shown."
    )
    assert "Set max_latency to more than 3 min" in found["remediation"]


@pytest.mark.parametrize(
    ("spacing_s", "changes"),
    [(45, {}), (120, {}), (180, {"polled_only": True})],
    ids=["often enough", "nothing for longer than two spacings", "only the polls are known"],
)
def test_a_consumer_that_has_stopped_does_not_merely_commit_rarely(spacing_s: float, changes: Row) -> None:
    assert explained([DEAD], status=commit_times(spacing_s, **changes))["cause"] == "stopped"


def with_reason(flow: Flow, reason: str) -> Flow:
    rows, states = flow
    return rows, [state | {"reason": reason} for state in states]


def test_a_group_that_never_catches_up_reads_more_slowly_than_is_produced() -> None:
    slow = flow([600] * 10, [600] * 5 + [300] * 5)
    found = explained([with_reason(slow, "not_catching_up")])

    assert (found["cause"], found["steady_reason"]) == ("not_catching_up", "not_catching_up")
    assert found["sentence"] == ("Group pay is not catching up on orders: it consumed 5/s while 10/s were produced.")
    assert "Add members to group pay" in found["remediation"]


def test_a_group_that_was_reset_and_hangs_has_made_no_progress_since() -> None:
    reset = flow([600] * 10, [600] * 4 + [-1_200] + [0] * 5)
    found = explained([with_reason(reset, "not_catching_up")])

    assert found["cause"] == "not_catching_up"
    assert found["sentence"] == (
        "Group pay went back 1,200 records after 2026-03-02 10:04:00 UTC on orders and has made no progress since its"
        " commit of 2026-03-02 10:03:30 UTC; up to 4,800 records waited."
    )
    assert "restart the ones that hang" in found["remediation"]


def test_a_partition_without_a_position_is_named_with_its_oldest_record() -> None:
    rows, states = flow([600] * 10, [0] * 10, partition=1)
    for minute, row in enumerate(rows):
        row |= {"committed_offset": None, "backlog_age_ms": 60_000.0 * (minute + 1), "last_commit_at": None}
    found = explained([(rows, states)])

    assert found["cause"] == "no_position"
    assert found["sentence"] == (
        "Group pay has no position on partition 1 of orders, unread since 2026-03-02 10:00:00 UTC."
    )
    assert "partitions: committed" in found["remediation"]
