"""When a consumer will have caught up: estimates, bounds that hold the truth, and what cannot be known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafka_sla.model.arrow_schemas import arrow_schema
from kafka_sla.model.entities import Patterns, Sla, SteadyState
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE
from kafka_sla.sla.catch_up import LATENCY_COLUMNS, STEADY_COLUMNS, CatchUp, behind, catch_ups
from kafka_sla.sla.wording import catching_up, caught_up_because, caught_up_in

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
GROUP, TOPIC = "billing.alerts-authorised-v2", "payments"
SLA = Sla(
    "billing",
    "prod",
    Patterns((r"billing\.alerts\-authorised\-v2",)),
    Patterns(("payments",)),
    60_000,
    0,
    0.99,
    SteadyState(30_000),
)


def row(minute: int, **figures: Any) -> dict[str, Any]:
    """A window that ends so many minutes before now; by default an hour behind."""
    age = 3_600_000.0
    return {
        "group": GROUP,
        "topic": TOPIC,
        "partition": 0,
        "window_end": NOW - timedelta(minutes=minute),
        "backlog_age_ms": age,
        "backlog_age_low_ms": age,
        "backlog_age_high_ms": age,
        **figures,
    }


def lags(*, now: int, per_minute: int, **figures: Any) -> list[dict[str, Any]]:
    """Fifteen windows whose lag falls by so much a minute."""
    return [row(minute, records_lag=now + minute * per_minute, **figures) for minute in range(15)]


def found(rows: list[dict[str, Any]], sla: Sla = SLA, bootstrapping: int = 0) -> CatchUp:
    schemas = [
        pa.schema([arrow_schema(table).field(name).with_nullable(True) for name in names])
        for table, names in ((CONSUMER_LATENCY, LATENCY_COLUMNS), (STEADY_STATE, STEADY_COLUMNS))
    ]
    steady = [
        {"sla": sla.name, "group": GROUP, "topic": TOPIC, "partition": number, "state": "bootstrapping"}
        for number in range(bootstrapping)
    ]
    latency, states = (pa.Table.from_pylist(each, schema) for each, schema in zip((rows, steady), schemas, strict=True))
    one = catch_ups([sla], latency, states, NOW, 60_000)[sla.name]
    newest = latency.filter(pc.equal(latency["window_end"], NOW))
    if not behind([sla], newest):
        assert one == catch_ups([sla], newest, states, NOW, 60_000)[sla.name]
    return one


def test_an_exact_lag_that_falls_evenly_gives_one_time() -> None:
    one = found(lags(now=1_200, per_minute=100))

    assert (one.state, one.in_ms, one.in_low_ms, one.in_high_ms) == ("catching_up", 720_000, 720_000, 720_000)
    assert one.slowest and one.slowest.pace == pytest.approx(100 / 60)
    assert catching_up(one) == "in 12 min at the pace of the last 14 min"
    assert (caught_up_in(one), caught_up_because(one)) == ("in 12 min", "at the pace of the last 14 min")


def test_a_pace_that_changes_gives_the_times_of_its_fastest_and_slowest() -> None:
    faster = [row(m, records_lag=1_200 + (100 * m if m < 7 else 700 + 60 * (m - 7))) for m in range(15)]
    one = found(faster)

    assert one.in_low_ms == pytest.approx(720_000)
    assert one.in_high_ms == one.in_ms == pytest.approx(1_200 / (1_120 / 14) * 60_000)
    assert catching_up(one) == "in 12 min to 15 min at the pace of the last 14 min"


def test_a_lag_that_grows_or_stays_is_never_caught_up() -> None:
    assert catching_up(found(lags(now=9_000, per_minute=-60))) == (
        "never at the pace of the last 14 min, its lag grows by 1/s"
    )
    assert catching_up(found(lags(now=9_000, per_minute=0))) == "never at the pace of the last 14 min"


def test_an_idle_or_prompt_consumer_has_caught_up() -> None:
    young = {"backlog_age_ms": 900.0, "backlog_age_low_ms": 0.0, "backlog_age_high_ms": 1_800.0}

    for rows in (lags(now=0, per_minute=0, **young), lags(now=50, per_minute=-1, **young)):
        assert catching_up(found(rows)) == "caught up"


def test_a_polled_group_may_have_caught_up_already_and_takes_no_longer_than_what_was_seen_shows() -> None:
    """100 records a second are produced and 150 consumed; the group is polled every two minutes, halfway."""
    rows, behind = [], 60_000
    for minute in range(15):
        seconds = -60 * minute
        poll = (seconds - 30) // 120 * 120 + 30
        position, end = 1_000_000 + 150 * poll, 1_000_000 + behind + 100 * seconds
        rows.append(
            row(
                minute,
                records_lag=end - position,
                effective_position=position,
                log_end_offset=end,
                backlog_age_low_ms=0.0,
            )
        )
    one = found(rows)
    truth_ms = behind / 50 * 1000

    assert one.in_low_ms == 0
    assert one.in_ms and one.in_high_ms
    assert one.in_low_ms < truth_ms < one.in_high_ms < 3 * truth_ms


def test_the_slowest_partition_decides() -> None:
    rows = lags(now=600, per_minute=100) + lags(now=4_000, per_minute=50, partition=1)
    one = found([*rows, *lags(now=0, per_minute=0, partition=2, backlog_age_high_ms=0.0, backlog_age_ms=0.0)])

    assert one.slowest and (one.slowest.partition, one.slowest.lag) == (1, 4_000)
    assert (one.in_ms, one.partitions, one.behind) == (80 * 60_000, 3, 2)


def test_a_rewind_and_a_recreated_topic_begin_anew() -> None:
    back = [row(m, records_lag=50_000 - 1_000 * (9 - m), effective_position=1_000) for m in range(10)]
    before = [row(m, records_lag=10, effective_position=90_000) for m in range(10, 15)]

    assert found(back + before).in_ms == found(back).in_ms == 41 * 60_000


def test_what_cannot_be_known_is_said() -> None:
    unknown = [*lags(now=0, per_minute=0, partition=1), row(0, partition=2, unknown_reason="no log end offset")]
    for one in unknown:
        one |= {"records_lag": None, "backlog_age_ms": None, "unknown_reason": "no log end offset"}
    one = found(lags(now=1_200, per_minute=100) + unknown, bootstrapping=1)

    assert (one.state, one.in_ms, one.in_high_ms, one.in_low_ms) == ("unknown", None, None, 720_000)
    assert catching_up(one) == (
        "not known, in 12 min at the earliest: 2 partitions of 3, "
        f"{GROUP} {TOPIC}-1: no log end offset; 1 of 3 partitions bootstrapping"
    )
    assert catching_up(found([])) == f"not known: no data for group {GROUP}, topic {TOPIC}"
    assert caught_up_because(found([])) == f"no data for group {GROUP}, topic {TOPIC}"


def test_a_lag_that_was_just_seen_first_has_no_pace_yet() -> None:
    assert catching_up(found(lags(now=900, per_minute=100)[:4])) == (
        f"not known: {GROUP} {TOPIC}-0: its lag has not been known for long enough to have a pace"
    )


def test_one_partition_that_never_catches_up_decides_whatever_is_unknown_beside_it() -> None:
    stuck = lags(now=5_000, per_minute=-10)
    beside = [row(0, partition=1, records_lag=None, backlog_age_ms=None, unknown_reason="no log end offset")]

    assert catching_up(found(stuck + beside)) == (
        f"never at the pace of the last 14 min, its lag grows by 0.167/s; {GROUP} {TOPIC}-1: no log end offset"
    )


def test_the_largest_lags_that_a_store_keeps_are_no_error() -> None:
    one = found(lags(now=2**62, per_minute=2**58))

    assert one.in_ms == pytest.approx(16 * 60_000)


def test_a_pace_is_needed_of_who_may_be_behind_only() -> None:
    figures = {"records_lag": 7, "backlog_age_high_ms": 30_000.0}
    groups = {
        "caught-up": figures,
        "late.at-most": figures | {"backlog_age_high_ms": 30_001.0},
        "unbounded": figures | {"backlog_age_high_ms": None},
        "lag-unknown": figures | {"records_lag": None},
        "age-unknown": figures | {"backlog_age_ms": None},
    }
    schema = pa.schema([arrow_schema(CONSUMER_LATENCY).field(name).with_nullable(True) for name in LATENCY_COLUMNS])
    newest = pa.Table.from_pylist([row(0, **one) | {"group": name} for name, one in groups.items()], schema)

    assert behind([SLA], newest) == ["late.at-most", "unbounded", "lag-unknown", "age-unknown"]
