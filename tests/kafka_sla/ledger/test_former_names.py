"""A database in the words of an earlier version: it is made over when it is first opened, and keeps its rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import create_engine, inspect, text

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.sla.rollups import DAY_MS, Sums
from tests.kafka_sla.loads import at, span

HOUR = span("10:00", "11:00")
FORMER_TABLES = (
    """CREATE TABLE sla_windows (
        sla TEXT NOT NULL, cluster TEXT NOT NULL, window_start TIMESTAMP WITH TIME ZONE NOT NULL,
        window_end TIMESTAMP WITH TIME ZONE NOT NULL, verdict TEXT NOT NULL, certain BOOLEAN NOT NULL, reason TEXT,
        max_latency_ms BIGINT NOT NULL, worst_latency_ms DOUBLE PRECISION, worst_latency_low_ms DOUBLE PRECISION,
        worst_latency_high_ms DOUBLE PRECISION, worst_group TEXT, worst_topic TEXT, worst_partition INTEGER,
        steady_partitions INTEGER NOT NULL, bootstrapping_partitions INTEGER NOT NULL,
        unknown_partitions INTEGER NOT NULL, records_consumed BIGINT NOT NULL, records_over BIGINT NOT NULL,
        PRIMARY KEY (sla, window_start),
        CONSTRAINT sla_windows_verdict CHECK (verdict IN ('good', 'bad', 'excused', 'unknown')))""",
    """CREATE TABLE sla_misses (
        miss_id TEXT NOT NULL, sla TEXT NOT NULL, cluster TEXT NOT NULL, state TEXT NOT NULL,
        start_at TIMESTAMP WITH TIME ZONE NOT NULL, end_at TIMESTAMP WITH TIME ZONE,
        opened_at TIMESTAMP WITH TIME ZONE NOT NULL, bad_windows INTEGER NOT NULL, certain BOOLEAN NOT NULL,
        max_latency_ms BIGINT NOT NULL, worst_latency_ms DOUBLE PRECISION NOT NULL,
        worst_latency_low_ms DOUBLE PRECISION, worst_latency_high_ms DOUBLE PRECISION,
        worst_at TIMESTAMP WITH TIME ZONE NOT NULL, worst_group TEXT NOT NULL, worst_topic TEXT NOT NULL,
        worst_partition INTEGER NOT NULL, evidence TEXT NOT NULL, PRIMARY KEY (miss_id),
        CONSTRAINT sla_misses_state CHECK (state IN ('open', 'closed')),
        CONSTRAINT sla_misses_end CHECK ((state = 'open') = (end_at IS NULL)))""",
    "CREATE INDEX sla_misses_by_sla ON sla_misses (sla, start_at)",
    """CREATE TABLE sla_stretches (
        sla TEXT NOT NULL, width_ms BIGINT NOT NULL, start_at TIMESTAMP WITH TIME ZONE NOT NULL,
        good_ms BIGINT NOT NULL, bad_ms BIGINT NOT NULL, excused_ms BIGINT NOT NULL, unknown_ms BIGINT NOT NULL,
        records_consumed BIGINT NOT NULL, records_over BIGINT NOT NULL, worst_ms DOUBLE PRECISION,
        worst_low_ms DOUBLE PRECISION, worst_high_ms DOUBLE PRECISION, all_consumed BIGINT, all_produced BIGINT,
        PRIMARY KEY (sla, width_ms, start_at))""",
    """CREATE TABLE late_runs (
        cluster TEXT NOT NULL, interval_end TIMESTAMP WITH TIME ZONE NOT NULL,
        told_at TIMESTAMP WITH TIME ZONE NOT NULL, PRIMARY KEY (cluster, interval_end))""",
)
WINDOW = """INSERT INTO sla_windows VALUES ('payments', 'a', '2026-03-02 10:0{0}:00.000000',
    '2026-03-02 10:0{1}:00.000000', '{2}', {3}, NULL, 30000, 45000.0, 44000.0, NULL, 'billing', 'orders', 0, 1, 0, 0,
    100, 7)"""
VERDICTS = ("good", "bad", "bad", "excused", "unknown")
MISS = """INSERT INTO sla_misses VALUES ('{0}', '{1}', 'a', 'closed', '2026-03-02 10:01:00.000000',
    '2026-03-02 10:03:00.000000', '2026-03-02 10:03:00.000000', 2, true, {2}, 45000.0, 44000.0, NULL,
    '2026-03-02 10:01:00.000000', 'billing', 'orders', 0, '{{"cause": "stopped"}}')"""
FORMER_ROWS = (
    *(WINDOW.format(m, m + 1, verdict, verdict == "bad") for m, verdict in enumerate(VERDICTS)),
    MISS.format("m0", "refunds", 20_000),
    MISS.format("m1", "payments", 30_000),
    """INSERT INTO sla_stretches VALUES ('payments', 86400000, '2026-03-02 00:00:00.000000', 1, 2, 3, 4, 5, 6, 45000.0,
        44000.0, NULL, NULL, NULL)""",
    "INSERT INTO late_runs VALUES ('a', '2026-03-02 10:05:00.000000', '2026-03-02 10:21:00.000000')",
)
NOTICE = """INSERT INTO notices (miss_id, kind, channel, sla, thread, start_at, known_until, notice, queued_at)
    VALUES ('{0}', 'opened', 'mail', 'payments', '{0}', '2026-03-02 10:01:00.000000', '2026-03-02 10:03:00.000000',
    '{{"miss": {{"id": "{0}", "sla": "payments", "cluster": "a", "start": "2026-03-02T10:01:00+00:00",
    "end": "2026-03-02T10:03:00+00:00", "opened_at": "2026-03-02T10:03:00+00:00", "bad_windows": 2, "certain": true,
    "worst_latency_ms": 45000.0, "worst_latency_low_ms": 44000.0, "worst_latency_high_ms": null,
    "worst_at": "2026-03-02T10:01:00+00:00", "worst_group": "billing", "worst_topic": "orders", "worst_partition": 0,
    "evidence": {{"cause": "stopped"}}}}, "run_url": null}}', '2026-03-02 10:03:00.000000')"""


@pytest.fixture
def former(store: Store) -> Store:
    """A database as version 0.1 left it before the words were settled."""
    engine = create_engine(store.url)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SET TIME ZONE 'UTC'"))
        for statement in (*FORMER_TABLES, *FORMER_ROWS):
            connection.exec_driver_sql(statement)
    engine.dispose()
    return store


def test_verdicts_and_misses_are_read_in_todays_words(former: Store) -> None:
    ledger = Ledger(former)

    windows = ledger.verdicts.windows("payments", HOUR)
    assert [w.verdict for w in windows] == ["good", "bad", "bad", "excluded", "unknown"]
    assert [w.is_certain for w in windows] == [False, True, True, False, False]
    assert {w.records_over_threshold for w in windows} == {7}
    (miss,) = ledger.verdicts.newest_misses(["payments"], HOUR, ["recovered"], 9).misses
    assert (miss.start, miss.end, miss.is_certain, miss.evidence) == (
        at("10:01"),
        at("10:03"),
        True,
        {"cause": "stopped"},
    )


def test_rollups_and_late_runs_keep_their_rows(former: Store) -> None:
    ledger = Ledger(former)

    assert ledger.rollups.sums(["payments"], DAY_MS, span("0:00", "24:00")) == {
        "payments": Sums(1, 2, 3, 4, 5, 6, 0, 5, 0)
    }
    assert not ledger.outbox.send_late_once({"a": at("10:00")}, at("10:10"), lambda: None), (
        "that outage was mailed already"
    )


def test_a_notice_that_waits_is_sent(former: Store) -> None:
    Ledger(former).publications.slices(None, HOUR)
    engine = create_engine(former.url)
    with engine.begin() as connection:
        for miss in ("m1", "removed since"):
            connection.exec_driver_sql(NOTICE.format(miss))
    engine.dispose()

    waiting, removed = Ledger(former).outbox.queue.waiting()
    assert waiting.miss.max_latency_ms == 30_000, "the notice did not say it, the miss does"
    assert (waiting.kind, waiting.miss.id, waiting.miss.is_certain, waiting.incident) == ("opened", "m1", True, "")
    assert (removed.miss.max_latency_ms, removed.miss.for_ms) == (0, 0)


def test_what_is_written_afterwards_stands_beside_it_and_nothing_of_the_former_tables_is_left(former: Store) -> None:
    ledger = Ledger(former)
    ledger.outbox.send_late_once({"a": at("10:20")}, at("12:00"), lambda: None)

    engine = create_engine(former.url)
    names = set(inspect(engine).get_table_names())
    assert {index["name"] for index in inspect(engine).get_indexes("sla_misses")} == {"sla_misses_by_sla"}
    engine.dispose()
    assert not {name for name in names if "stretch" in name or "former" in name}
    assert Ledger(former).verdicts.windows("payments", HOUR) == ledger.verdicts.windows("payments", HOUR)


def test_components_that_come_up_at_once_make_it_over_once(former: Store) -> None:
    with ThreadPoolExecutor(4) as several:
        found = list(several.map(lambda _: Ledger(former).verdicts.sums("payments", HOUR), range(4)))

    minute = timedelta(minutes=1) // timedelta(milliseconds=1)
    assert found == [Sums(minute, 2 * minute, minute, minute, 300, 21, 0, 300, 100)] * 4
