"""Brokers that bounce, hang, die and hand over, while one snapshot after the other is taken."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.faults_grid import Grid, Outcome, StepFailed
from demo.broker import Cluster as Broker
from demo.warm_up import create_topic
from kafka_sla.model.entities import Cluster, Connection, Interval, OffsetLookups, Patterns, epoch_ms, floor_time
from kafka_sla.sources.kafka.snapshot import Snapshot, snapshot

PARTITIONS, GROUPS, LOG_PARTITIONS = 12, 40, 6
_TOPIC, _LOG = "faults", "__consumer_offsets"
_MINUTE = timedelta(minutes=1)


def experiments() -> Iterator[Outcome]:
    """All of them on one cluster of three brokers."""
    with Broker(3, properties={"offsets.topic.num.partitions": str(LOG_PARTITIONS)}) as broker:
        over = _fill(broker)
        whole = _facts(_look(broker, over))
        for name, fault in _FAULTS.items():
            yield _experiment(name, broker, over, whole, fault)


def _experiment(
    name: str, broker: Broker, over: Interval, whole: dict[str, object], fault: Callable[[Broker], None]
) -> Outcome:
    """Snapshots without a pause until the fault is over, and one more."""
    ends, grid, seen, took = threading.Event(), Grid(), Counter[str](), 0.0

    def happen() -> None:
        try:
            fault(broker)
        finally:
            ends.set()

    thread = threading.Thread(target=happen)
    thread.start()
    while not ends.is_set():
        began = time.monotonic()
        try:
            found = grid.run("snapshot", lambda: _look(broker, over))
        except StepFailed:
            seen["red"] += 1
            continue
        took = max(took, time.monotonic() - began)
        seen[_compared(found, whole)] += 1
    thread.join()
    last = _compared(_look(broker, over), whole)
    said = f"{seen.total()} snapshots, the longest took {took:.0f} s" + "".join(
        f"; {seen[kind]} {kind}"
        for kind in ("lacked facts and said so", "lacked facts in silence", "red")
        if seen[kind]
    )
    return Outcome(
        name, said, grid.states, f"{max(took, grid.waited):.0f} s", seen["whole"] == seen.total() and last == "whole"
    )


def _compared(found: Snapshot, whole: dict[str, object]) -> str:
    if _facts(found) == whole:
        return "whole"
    return "lacked facts and said so" if found.notes else "lacked facts in silence"


def _facts(found: Snapshot) -> dict[str, object]:
    """What every snapshot of the finished interval must hold: all but the moment at which it looked."""
    points = [row for row in found.log_offsets.to_pylist() if row["source"] != "snapshot"]
    standing = [row for row in found.committed_offsets.to_pylist() if row["source"] in ("snapshot", "poll_confirmed")]
    return {
        "points": sorted((row["partition"], row["at"], row["log_end_offset"]) for row in points),
        "ends": found.log_offsets.num_rows - len(points),
        "commits": found.commits.num_rows,
        "positions": sorted({(row["group"], row["partition"], row["committed_offset"]) for row in standing}),
        "groups": sorted(row["group"] for row in found.group_states.to_pylist()),
        "topics": found.topic_configs.num_rows,
    }


def _look(broker: Broker, over: Interval) -> Snapshot:
    everything: dict[str, Any] = {"groups": Patterns(), "topics": Patterns((_TOPIC,))}
    return snapshot(
        Cluster("faults", "faults"),
        Connection("faults", extra=dict(broker.client())),
        over,
        window_ms=60_000,
        live=True,
        offset_lookups=OffsetLookups(),
        **everything,
    )


def _fill(broker: Broker) -> Interval:
    """Records and commits of some minutes that are over."""
    admin = AdminClient({**broker.client(), "log_level": 0})
    create_topic(admin, NewTopic(_TOPIC, PARTITIONS, 3, config={"retention.ms": "-1"}))
    start = floor_time(datetime.now(UTC), 60_000)
    producer = Producer(broker.client())
    for number in range(100 * PARTITIONS):
        at = epoch_ms(start - 2 * _MINUTE) + number * 60
        producer.produce(_TOPIC, b"x" * 20, partition=number % PARTITIONS, timestamp=at)
    producer.flush(30)
    for group in range(GROUPS):
        positions = [TopicPartition(_TOPIC, partition, 50) for partition in range(PARTITIONS)]
        (answer,) = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(f"g{group}", positions)]).values()
        answer.result(30)
    end = floor_time(datetime.now(UTC), 60_000) + _MINUTE
    time.sleep(max(0.0, (end - datetime.now(UTC)).total_seconds()) + 1)
    return Interval(start - 4 * _MINUTE, end)


def _bounce(broker: Broker) -> None:
    for node in broker.nodes:
        node.stop()
        node.launch()
        node.wait()
        time.sleep(5)


def _hang(broker: Broker) -> None:
    os.kill(broker.nodes[1].pid, signal.SIGSTOP)
    time.sleep(45)
    os.kill(broker.nodes[1].pid, signal.SIGCONT)
    time.sleep(15)


def _die(broker: Broker) -> None:
    broker.nodes[2].kill()
    time.sleep(30)
    broker.nodes[2].launch()
    broker.nodes[2].wait()
    time.sleep(5)


def _hand_over(broker: Broker) -> None:
    """Each broker in turn loses all it coordinates and gets it back by an election."""
    admin = AdminClient({**broker.client(), "log_level": 0})
    partitions = [TopicPartition(_LOG, partition) for partition in range(LOG_PARTITIONS)]
    for node in broker.nodes:
        node.stop()
        node.launch()
        node.wait()
        for _ in range(3):
            time.sleep(3)
            admin.elect_leaders(ElectionType.PREFERRED, partitions).result(30)


_FAULTS: dict[str, Callable[[Broker], None]] = {
    "rolling bounce of three brokers": _bounce,
    "a broker hangs for 45 s (SIGSTOP)": _hang,
    "a broker dies and is back after 30 s": _die,
    "coordinators move away and back by election": _hand_over,
}
