"""No sentence about a miss says anything that its own figures deny, whatever combination of figures there is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

from kafka_sla.sla.root_cause.classify import Evidence
from kafka_sla.sla.root_cause.context import Surroundings
from kafka_sla.sla.root_cause.evidence import evidence_rows
from kafka_sla.sla.root_cause.summary import sentence

T = datetime(2026, 3, 2, 10, tzinfo=UTC)
MOVES: dict[str, tuple[Any, ...]] = {
    "produce_rate_before": (None, 0.0, 10.0),
    "produce_rate_during": (None, 0.0, 10.0, 40.0),
    "consume_rate_before": (None, 0.0, 10.0),
    "consume_rate_during": (None, 0.0, 5.0, 10.0, 40.0),
    "lag_worst": (None, 0, 900),
    "stalled_share": (None, 0.0, 0.2, 1.0),
    "stalled_until": (None, T + timedelta(minutes=9)),
    "commits_without_progress": (False, True),
    "rewound_records": (None, 900),
}
OUTSIDE: dict[str, tuple[Any, ...]] = {
    "members": ((None, None), (None, 0), (0, 0), (3, 0), (3, 3)),
    "status": ((None, None), ("OK", 0.9), ("STOPPED", 0.9)),
    "brokers": (
        (None, None, None),
        ("slow_broker", None, None),
        ("slow_broker", "even", "Broker 2 is slow"),
        ("slow_broker", "slow_broker", "Broker 2 is slow"),
    ),
    "replication": ((None, None), (90_000.0, None), (90_000.0, 4_200), (10.0, 0)),
    "expired": (None, 0, 12),
    "not_measured": ((), ("consumer status", "broker pairs")),
}
BESIDE = [dict(zip(OUTSIDE, values, strict=True)) for values in product(*OUTSIDE.values())]


def every_evidence() -> Iterator[Evidence]:
    """All combinations of a group's own figures, each with some of what happened around it."""
    for number, values in enumerate(product(*MOVES.values())):
        moves = dict(zip(MOVES, values, strict=True))
        if possible(moves):
            for step in range(3):
                yield made(moves, BESIDE[(7 * number + 101 * step) % len(BESIDE)])


def possible(moves: dict[str, Any]) -> bool:
    """Only a group that stood still has a stall that ended or was committed in, and its records waited."""
    if not moves["stalled_share"]:
        return moves["stalled_until"] is None and not moves["commits_without_progress"]
    return bool(moves["lag_worst"])


def made(moves: dict[str, Any], beside: dict[str, Any]) -> Evidence:
    share = moves["stalled_share"]
    verdict, verdict_before, reason = beside["brokers"]
    late_ms, behind = beside["replication"]
    return Evidence(
        group="billing-alerts",
        topic="billing.alerts-authorised-v2",
        late_partitions=1,
        partitions=(),
        **moves,
        records_consumed=0 if share == 1 else 600,
        lag_at_start=None,
        last_commit_at=None,
        stalled_ms=3_600_000.0 * (share or 0),
        stalled_from=T if share else None,
        rewound_at=T if moves["rewound_records"] else None,
        max_latency_ms=30_000,
        around=Surroundings(
            status=beside["status"][0],
            status_share=beside["status"][1],
            members_before=beside["members"][0],
            members_least=beside["members"][1],
            expired_unread_low=beside["expired"],
            broker_verdict=verdict,
            broker_verdict_before=verdict_before,
            broker_reason=reason,
            replication_flow="prod->dr" if late_ms else None,
            replication_latency_worst_ms=late_ms,
            replication_lag_worst=behind,
            not_measured=beside["not_measured"],
        ),
    )


def denied(e: Evidence) -> list[str]:
    """What the sentence says and the figures deny."""
    text, around = sentence(e), e.around
    consumed, produced = e.consume_rate_during, e.produce_rate_during
    waited = bool(e.lag_worst or (e.lag_worst is None and produced))
    claims = {
        "names what is not known": re.search(r"unknown|None|nan|\b0 record|for 0%", text),
        "too slow, yet it consumed nothing or nothing waited": "too slow" in text
        and (not consumed or produced is None or consumed >= produced or e.lag_worst == 0),
        "consumed nothing, yet it moved": "consumed nothing" in text and not e.stalled_share and consumed != 0,
        "consumed nothing, yet nothing waited": "consumed nothing" in text and not waited,
        "stood still most of the time, and is not said to": (e.stalled_share or 0) >= 0.5
        and not re.search("consumed nothing|without progress|contradicts", text),
        "no members, yet there were, or it never had any": "no members" in text
        and (around.members_least != 0 or around.members_before == 0),
        "no members, yet it kept committing": "no members" in text and "kept committing" in text,
        "a jump that is none": "jumped" in text
        and not (produced and e.produce_rate_before and produced > e.produce_rate_before and consumed),
        "went back, yet it did not": "went back" in text and not e.rewound_records,
        "reads again, yet it stands still": "read them again" in text and consumed == 0 and waited,
        "unlike before, yet that is not known": "unlike before" in text and around.broker_verdict_before is None,
        "slow as before": "Brokers were slow" in text and around.broker_verdict == around.broker_verdict_before,
        "copied late, yet it was not": "Records reached" in text and not around.replication_latency_worst_ms,
        "expired, yet none did": "expired before" in text and not around.expired_unread_low,
        "says OK of nothing consumed": "was OK" in text and not e.stalled_share,
        "is no sentence": not re.fullmatch(r"[A-Z][^\n]*[^.]\.", text),
    }
    return [claim for claim, found in claims.items() if found]


def test_no_sentence_denies_its_own_figures() -> None:
    causes: Counter[str] = Counter()
    wrong: dict[str, str] = {}
    for evidence in every_evidence():
        causes[evidence.cause] += 1
        wrong |= {claim: f"{sentence(evidence)} {evidence}" for claim in denied(evidence)}

    assert wrong == {}
    assert sum(causes.values()) > 10_000
    assert len(causes) == 11, "every cause occurs"


def test_a_group_that_left_before_its_records_expired_is_not_called_slow() -> None:
    """As in the demonstration on a busy machine: most windows are unknown, and the group is empty."""
    moves = dict.fromkeys(MOVES) | {
        "produce_rate_during": 20.0,
        "consume_rate_during": 0.0,
        "lag_worst": 1_200,
        "stalled_share": 0.2,
        "commits_without_progress": False,
    }
    gone = made(moves, dict(zip(OUTSIDE, [(1, 0), (None, None), (None,) * 3, (None, None), 12, ()], strict=True)))

    assert gone.cause == "no_members"
    assert sentence(gone) == (
        "Group billing-alerts had no members (1 before) and consumed nothing from billing.alerts-authorised-v2 after "
        "2026-03-02 10:00:00 UTC while up to 1,200 records waited."
    )


def test_figures_that_are_not_known_are_left_out() -> None:
    nothing = dict.fromkeys(["produce_rate_before", "lag_worst", "status", "members_least", "broker_verdict"])

    assert evidence_rows(nothing | {"late_partitions": 0, "consume_rate_during": 5.0, "not_measured": []}) == [
        ("Consumed", "", "5/s")
    ]
