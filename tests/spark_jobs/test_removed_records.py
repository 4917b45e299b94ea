"""What a real broker removed before groups read it, counted by the test while it happens, against `non_consumed`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, OffsetSpec, ResourceType

from demo.broker import Cluster as Broker
from kafka_sla.model.entities import Cluster, Interval, floor_time
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS, NON_CONSUMED, TOPIC_CONFIGS
from kafka_sla.sources.kafka.snapshot import Snapshot
from tests.kafka_sla.sources.kafka.traffic import (
    WINDOW_MS,
    admin,
    commit,
    joined,
    look,
    minutes,
    produce,
    this_minute,
    topic,
)
from tests.spark_jobs.conftest import EPOCH, Row
from tests.spark_jobs.measuring import Facts, Measuring, unread_of

HOUR_S = 3_600


@pytest.fixture(scope="module")
def hasty(kafka_classes: None) -> Iterator[Broker]:
    """A broker that looks for expired segments all the time instead of every five minutes."""
    properties = {"log.retention.check.interval.ms": "100", "log.initial.task.delay.ms": "100"}
    with Broker(properties=properties) as broker:
        yield broker


@dataclass
class Log:
    """A topic of ten segments of ten records, one an hour, the last one an hour old; and what its groups lost."""

    broker: Broker
    topic: str
    start: int = 0
    position: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)

    def commit(self, group: str, offset: int) -> None:
        commit(self.broker, group, self.topic, offset)
        self.position[group] = offset

    def expire(self, after_hours: float, start: int) -> None:
        """Let retention remove what is older, while nobody commits."""
        retention = ConfigEntry(
            "retention.ms", str(int(after_hours * HOUR_S * 1_000)), incremental_operation=AlterConfigOpType.SET
        )
        changed = ConfigResource(ResourceType.TOPIC, self.topic, incremental_configs=[retention])
        admin(self.broker).incremental_alter_configs([changed])[changed].result(120)
        self._moved(start)

    def delete(self, before: int) -> None:
        admin(self.broker).delete_records([TopicPartition(self.topic, 0, before)])
        self._moved(before)

    def _moved(self, to: int) -> None:
        partition, deadline = TopicPartition(self.topic, 0), time.monotonic() + 180
        while admin(self.broker).list_offsets({partition: OffsetSpec.earliest()})[partition].result(120).offset != to:
            assert time.monotonic() < deadline, f"the log does not start at {to}"
            time.sleep(0.05)
        for group, position in self.position.items():
            self.lost[group] = self.lost.get(group, 0) + max(0, to - max(self.start, position))
        self.start = to

    def read_after_reset(self, group: str, reset: str, records: int) -> None:
        """A consumer whose committed offset is gone starts where its setting says, reads on and commits."""
        consumer = joined(self.broker, group, self.topic, **{"auto.offset.reset": reset})
        seen = 0
        while seen < records:
            if reset == "latest":
                produce(self.broker, self.topic, [int(time.time() * 1_000)])
            seen += len(consumer.consume(records - seen, 0.2))
        (held,) = consumer.commit(asynchronous=False)
        consumer.close()
        self.position[group] = held.offset


def test_what_a_broker_removed_unread_lies_within_the_bounds(hasty: Broker, tmp_path: Path) -> None:
    now, begin = time.time(), floor_time(datetime.now(UTC), WINDOW_MS)
    log = Log(hasty, topic(hasty, segment_ms="1000"))
    for segment in range(10):
        produce(hasty, log.topic, [int((now - (10 - segment) * HOUR_S) * 1_000)] * 10)
    for group, offset in {"slow": 5, "quick": 100, "earliest": 5, "latest": 5, "back": 60}.items():
        log.commit(group, offset)
    time.sleep(1.1)  # what was committed within a second of a look may not have been held at it
    looks = [look(hasty, this_minute(), log.topic, live=True)]
    log.expire(8.5, start=20)
    log.expire(7.5, start=30)
    log.commit("back", 32)
    log.read_after_reset("earliest", "earliest", 5)
    log.read_after_reset("latest", "latest", 2)
    log.delete(45)
    looks.append(look(hasty, this_minute(), log.topic, live=True))
    log.expire(3.5, start=70)
    looks.append(look(hasty, this_minute(), log.topic, live=True))

    rows = _measured(tmp_path, log, looks, begin)

    assert log.lost == {"slow": 65, "quick": 0, "earliest": 25 + 10 + 25, "latest": 25, "back": 13 + 25}
    assert log.position["latest"] > 100
    found = {row["group"]: (row["non_consumed_total_low"], row["non_consumed_total_high"]) for row in rows}
    assert {group for group, (low, high) in found.items() if low <= log.lost[group] <= high} == set(log.lost)
    assert (found["slow"], found["quick"]) == ((65, 65), (0, 0))
    last = {row["group"]: row for row in rows}["slow"]
    assert (last["log_start_offset"], last["cleanup_policy"], last["retention_ms"]) == (70, "delete", 12_600_000)
    assert last["unread_expires_at"] is not None


def _measured(folder: Path, log: Log, looks: list[Snapshot], begin: datetime) -> list[Row]:
    """The rows of the last window, from what the looks saw and the commit log holds."""
    last_look = max(row["at"] for row in looks[-1].log_offsets.to_pylist())
    end = floor_time(last_look, WINDOW_MS) + minutes(1)
    known: Facts = {
        COMMITTED_OFFSETS: [row for row in looks[-1].commits.to_pylist() if row["topic"] == log.topic],
        LOG_OFFSETS: [row for seen in looks for row in seen.log_offsets.to_pylist()],
        TOPIC_CONFIGS: [row for seen in looks for row in seen.topic_configs.to_pylist()],
    }
    windows = Interval(begin, end).windows(WINDOW_MS)
    latency = [_waiting(log.topic, group, window.end) for window in windows for group in log.position]
    listed = Cluster("test", None, non_consumed_offsets_groups=((log.topic, tuple(log.position)),))
    first, last = ((at - EPOCH).total_seconds() for at in (begin, end))
    measuring = Measuring(NON_CONSUMED, unread_of, folder)
    return measuring.whole(known, first, last, (listed,), latency=latency)


def _waiting(name: str, group: str, end: datetime) -> Row:
    return {
        "cluster": "test",
        "group": group,
        "topic": name,
        "partition": 0,
        "window_start": end - minutes(1),
        "window_end": end,
        "records_consumed": 0,
        "negative_latency_records": 0,
        "unknown_latency_records": 0,
        "polled_only": False,
        "records_lag": 30,
        "backlog_age_ms": 3 * HOUR_S * 1_000.0,
        "backlog_age_high_ms": 3 * HOUR_S * 1_000.0,
    }
