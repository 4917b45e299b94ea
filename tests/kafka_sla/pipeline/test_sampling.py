"""Sampling between runs: what is polled lands as facts, whatever becomes of samplers and brokers."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from demo.broker import Cluster as Broker
from demo.broker import free_ports
from demo.degraded_broker import LIST_OFFSETS, DegradedBroker
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import EVERYTHING, Cluster, Connection, Patterns
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS, Table
from kafka_sla.pipeline.sampling import Pace, sample
from kafka_sla.sources.kafka.samples.poll_runs import Runs
from tests.kafka_sla.sources.kafka.probes.test_capabilities import each_partition
from tests.kafka_sla.sources.kafka.test_record_sampling import transactions
from tests.kafka_sla.sources.kafka.traffic import commit, produce, topic

OFTEN = Pace(0.1, 0.6)


@contextmanager
def sampling(store: Store, broker: Broker | DegradedBroker, name: str, count: int = 1) -> Iterator[list[str]]:
    """`count` samplers of one topic inside the block; what they say."""
    cluster = Cluster("payments-eu", "kafka_eu", Patterns((f"billing.{name}",)), Patterns((name,)))
    stop, said = threading.Event(), list[str]()
    with ThreadPoolExecutor(count) as pool:
        running = [
            pool.submit(
                sample, store, cluster, Connection("kafka_eu", extra=dict(broker.client())), OFTEN, stop, said.append
            )
            for _ in range(count)
        ]
        try:
            yield said
        finally:
            stop.set()
        for each in running:
            each.result(120)


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 180
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def facts(store: Store, table: Table, column: str) -> list[int]:
    rows = Lake(store).read_facts(table, EVERYTHING).to_pylist()
    return [row[column] for row in sorted(rows, key=lambda row: row[table.time])]


def positions(store: Store) -> list[int]:
    return facts(store, COMMITTED_OFFSETS, "committed_offset")


def a_topic(kafka: Broker) -> str:
    name = topic(kafka)
    produce(kafka, name, [int(time.time() * 1000)] * 10)
    commit(kafka, f"billing.{name}", name, 4)
    return name


def test_positions_and_log_ends_land_while_the_commit_log_is_hidden(kafka: Broker, tmp_path: Path) -> None:
    store, name = Store.embedded(tmp_path), a_topic(kafka)

    hidden = DegradedBroker(kafka.bootstrap, hidden=frozenset({"__consumer_offsets"}))
    with hidden as broker, sampling(store, broker, name) as said:
        until(lambda: 4 in positions(store))
        commit(kafka, f"billing.{name}", name, 7)
        until(lambda: 7 in positions(store))

    assert [p for p, before in zip(positions(store), [0, *positions(store)], strict=False) if p != before] == [4, 7]
    assert set(facts(store, LOG_OFFSETS, "log_end_offset")) == {10}
    assert all(text.startswith("payments-eu: ") for text in said)


def test_two_samplers_of_one_cluster_only_poll_it_twice(kafka: Broker, tmp_path: Path) -> None:
    store, name = Store.embedded(tmp_path), a_topic(kafka)

    with sampling(store, kafka, name, count=2) as said:
        until(lambda: len(said) >= 4)

    assert set(positions(store)) == {4}


def test_brokers_that_go_away_cost_samples_and_nothing_else(kafka: Broker, tmp_path: Path) -> None:
    store, name, (port,) = Store.embedded(tmp_path), a_topic(kafka), free_ports(1)

    broker = DegradedBroker(kafka.bootstrap, port=port)
    with sampling(store, broker, name) as said:
        until(lambda: any("no sample of payments-eu" in text and "nothing answers" in text for text in said))
        with broker:
            until(lambda: 4 in positions(store))

    assert set(positions(store)) == {4}


def test_a_store_that_takes_nothing_for_a_while_costs_no_sample(kafka: Broker, tmp_path: Path) -> None:
    store, name, obstacle = Store.embedded(tmp_path / "store"), a_topic(kafka), tmp_path / "store"
    obstacle.touch()

    with sampling(store, kafka, name) as said:
        until(lambda: any("2 batches wait for the store" in text for text in said))
        commit(kafka, f"billing.{name}", name, 7)
        obstacle.unlink()
        until(lambda: any("new rows" in text for text in said))

    assert sorted(set(positions(store))) == [4, 7]


def test_polls_do_not_wait_for_a_store_that_is_slow(kafka: Broker, tmp_path: Path) -> None:
    store, name = Store.embedded(tmp_path), a_topic(kafka)

    with sampling(store, kafka, name):
        until(lambda: 4 in positions(store))
        with closing(sqlite3.connect(str(store.url.database), isolation_level=None)) as database:
            database.execute("BEGIN EXCLUSIVE")
            time.sleep(2 * OFTEN.land_s)
            for position in (7, 9):
                commit(kafka, f"billing.{name}", name, position)
                time.sleep(5 * OFTEN.poll_s)

    assert sorted(set(positions(store))) == [4, 7, 9]


def test_the_marker_of_a_transaction_is_no_record_that_waits(kafka: Broker, tmp_path: Path) -> None:
    store, name = Store.embedded(tmp_path), topic(kafka)
    transactions(kafka, name, (10, "commit"))
    commit(kafka, f"billing.{name}", name, 10)

    with sampling(store, kafka, name) as said:
        until(lambda: 10 in positions(store))
        transactions(kafka, name, (5, "commit"))
        until(lambda: len(said) >= 4)

    assert set(facts(store, LOG_OFFSETS, "log_end_offset")) == {10, 16}


def test_log_ends_come_from_samples_where_no_lookup_by_time_is_answered(kafka: Broker, tmp_path: Path) -> None:
    store, name = Store.embedded(tmp_path), a_topic(kafka)

    with (
        DegradedBroker(kafka.bootstrap, changes={LIST_OFFSETS: each_partition(35)}) as broker,
        sampling(store, broker, name),
    ):
        until(lambda: 10 in facts(store, LOG_OFFSETS, "log_end_offset"))
        produce(kafka, name, [int(time.time() * 1000)] * 5)
        until(lambda: 15 in facts(store, LOG_OFFSETS, "log_end_offset"))

    assert set(facts(store, LOG_OFFSETS, "log_end_offset")) == {10, 15}


def test_a_sampler_that_is_stopped_for_a_while_tells_nothing_of_that_while(kafka: Broker, tmp_path: Path) -> None:
    name = a_topic(kafka)
    entry = f"{{connection: kafka_eu, topics: [{name}], groups: [billing.{name}]}}"
    (tmp_path / "kafka_sla.yml").write_text(f"clusters:\n  payments-eu: {entry}\n")
    login = json.dumps({"conn_type": "kafka", "extra": dict(kafka.client())})
    command = [sys.executable, "-c", "import sys; from kafka_sla.cli.main import main; sys.exit(main())", "sample"]
    with subprocess.Popen(
        [*command, "--every", "1s", "--land-every", "2s"],
        cwd=tmp_path,
        env=os.environ | {"AIRFLOW_CONN_KAFKA_EU": login},
    ) as sampler:
        store = Store.embedded(tmp_path / "kafka_sla_store")
        until(lambda: (tmp_path / "kafka_sla_store" / "kafka_sla.db").exists() and 4 in positions(store))
        sampler.send_signal(signal.SIGSTOP)
        stopped = time.time()
        time.sleep(3)
        before = time.time()
        commit(kafka, f"billing.{name}", name, 7)
        after = time.time()
        time.sleep(3)
        sampler.send_signal(signal.SIGCONT)
        until(lambda: 7 in positions(store))
        sampler.send_signal(signal.SIGINT)

    told = [
        (row["at"].timestamp(), row["committed_offset"])
        for row in Lake(store).read_facts(COMMITTED_OFFSETS, EVERYTHING).to_pylist()
    ]
    assert max(at for at, offset in told if offset == 4) < before
    assert min(at for at, offset in told if offset == 7) > after
    assert not [at for at, _ in told if stopped + 1 < at < after]


def test_of_equal_polls_the_first_the_last_and_the_last_of_each_window_are_kept() -> None:
    runs = Runs(window_ms=10)
    for at, value in ((1, 4), (2, 4), (3, 4), (4, 7), (5, 9), (6, 9), (8, 9), (11, 9), (12, 9), (21, 9), (22, 9)):
        runs.add(at, {"billing": value})

    assert [(at, value) for _, at, value in runs.take()] == [(1, 4), (3, 4), (4, 7), (5, 9), (8, 9), (12, 9), (22, 9)]
    runs.add(23, {"billing": 9})
    assert runs.take() == [("billing", 23, 9)]
    assert runs.take() == []
