"""The example of KIP-736 on three real brokers: TCP proxies (demo/links.py) delay what is sent to broker 0."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from demo.measured_cluster import MeasuredCluster
from demo.trickle import Trickle
from demo.warm_up import create_topic
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import EVERYTHING, Cluster, Connection, Exporter, Interval, floor_time
from kafka_sla.model.tables import BROKER_REQUESTS, FETCH_LATENCY, REPLICA_FETCHES, Table
from kafka_sla.pipeline import steps
from kafka_sla.spark.job_spec import Job, Replay
from kafka_sla.spark_jobs import fetch_latency
from kafka_sla.spark_jobs.metrics import Inputs
from tests.spark_jobs.conftest import Row

DELAY_MS = 400.0
"""Far above what a busy machine adds to every link."""
PARTITIONS = 6
WINDOW_MS = 1_000
BUSY_STEPS = 3
"""A machine that stands still for a second in the middle of one makes it say that it does not know."""


@dataclass(frozen=True, slots=True)
class Observer:
    """Takes live snapshots of the brokers, as a run every five minutes does."""

    settings: Settings
    store: Store
    connection: Connection

    def look(self, *, live: bool = True) -> list[str]:
        minute = floor_time(datetime.now(UTC), 60_000)
        interval = Interval(minute - timedelta(minutes=1), minute)
        found = steps.snapshot(self.settings, self.store, "prod", lambda _: self.connection, interval, live=live)
        return [note for note in found["notes"] if "exporter" in note]

    def facts(self, table: Table) -> pa.Table:
        return Lake(self.store).read_facts(table, EVERYTHING)


@pytest.fixture(scope="module")
def observed(kafka_classes: None, tmp_path_factory: pytest.TempPathFactory) -> Observer:
    """Looked at before and after some seconds, first idle, then with some hundred records a second."""
    with MeasuredCluster() as brokers:
        create_topic(AdminClient({**brokers.client()}), NewTopic("r", PARTITIONS, 3))
        exporters = tuple(Exporter(*one) for one in brokers.jmx_exporters.items())
        settings = Settings((Cluster("prod", "brokers", jmx_exporters=exporters),))
        store = Store.embedded(Path(tmp_path_factory.mktemp("brokers")))
        observer = Observer(settings, store, Connection("brokers", extra={**brokers.client()}))
        brokers.links.slow(0, frozenset(), DELAY_MS / 1000)
        _look(observer, 10)
        with Trickle(brokers.client(), "r", PARTITIONS, 300):
            _look(observer, *[6] * BUSY_STEPS)
        assert [] == observer.look(live=False)
    return observer


def _look(observer: Observer, *seconds: float) -> None:
    """Once, and again after each of these."""
    time.sleep(2)  # for what was under way before
    assert [] == observer.look()
    for pause in seconds:
        time.sleep(pause)
        assert [] == observer.look()


@pytest.fixture(scope="module")
def times(observed: Observer) -> list[datetime]:
    return sorted(set(observed.facts(BROKER_REQUESTS)["at"].to_pylist()))


@pytest.fixture(scope="module")
def rows(spark: SparkSession, observed: Observer, times: list[datetime]) -> list[Row]:
    frames = {table: spark.createDataFrame(observed.facts(table)) for table in (BROKER_REQUESTS, REPLICA_FETCHES)}
    interval = Interval(floor_time(times[0], WINDOW_MS), floor_time(times[-1], WINDOW_MS) + timedelta(seconds=2))
    job = Job("load", interval, WINDOW_MS, (Replay(Cluster("prod", None), None),), (), {}, {}, "", {}, 0, 0)
    nothing = spark.createDataFrame([], FETCH_LATENCY.ddl)
    measured = fetch_latency.measure(Inputs(job, lambda table: frames[table], nothing, lambda table: nothing))
    return measured.toArrow().to_pylist()  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def idle(rows: list[Row], times: list[datetime]) -> list[Row]:
    return _between(rows, *times[:2])


@pytest.fixture(scope="module")
def busy(rows: list[Row], times: list[datetime]) -> list[list[Row]]:
    """Of each step that says something of the brokers."""
    steps = [_between(rows, *pair) for pair in pairwise(times[2:])]
    told = [step for step in steps if {"unknown"} != {row["verdict"] for row in step}]
    assert told, steps
    return told


def _between(rows: list[Row], before: datetime, after: datetime) -> list[Row]:
    """The rows of one window that compares these two samples."""
    found = [row for row in rows if (row["sampled_from"], row["sampled_until"]) == (before, after)]
    return [row for row in found if row["window_start"] == min(one["window_start"] for one in found)]


def test_only_live_snapshots_read_exporters(times: list[datetime]) -> None:
    assert 2 + BUSY_STEPS + 1 == len(times)


@pytest.mark.parametrize("load", ["idle", "busy"])
def test_the_pairs_of_the_delayed_broker_stand_out_and_the_broker_is_named(
    idle: list[Row], busy: list[list[Row]], load: str
) -> None:
    for found in [idle] if load == "idle" else busy:
        pairs = {(int(row["follower"]), row["leader"]): row for row in found if row["follower"] != "consumers"}
        late, usual = ([row for pair, row in pairs.items() if (0 in pair) == slow] for slow in (True, False))

        assert {("slow_broker", 0)} == {(row["verdict"], row["verdict_broker"]) for row in found}, found
        assert {(0, 1), (1, 0), (0, 2), (2, 0)} == {pair for pair, row in pairs.items() if row["slow"]}
        assert (
            min(row["fetch_latency_ms"] for row in late) > max(row["fetch_latency_ms"] for row in usual) + DELAY_MS / 2
        )
        assert all(row["fetch_latency_high_ms"] > DELAY_MS for row in late), late


def test_the_plain_total_of_idle_brokers_tells_nothing_but_the_fetch_wait(idle: list[Row]) -> None:
    found = [row for row in idle if row["follower"] != "consumers"]

    assert 6 == len(found)
    assert all(row["leader_total_ms"] > 480 and (row["total_local_ms"] or 0.0) < DELAY_MS / 2 for row in found), found
    totals = [row["leader_total_ms"] for row in found]
    assert max(totals) < min(totals) + DELAY_MS / 2, "no broker stands out by its plain total"


def test_what_consumers_wait_for_is_taken_off_and_links_between_brokers_do_not_matter(busy: list[list[Row]]) -> None:
    for rows in busy:
        found = {row["leader"]: row for row in rows if row["follower"] == "consumers"}

        assert {0, 1, 2} == set(found)
        assert all(row["fetches"] > 0 and row["fetch_latency_ms"] < DELAY_MS / 2 for row in found.values()), found
