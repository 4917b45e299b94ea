from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, TopicPartition

from demo.broker import Cluster
from demo.flows import Flow, once, steady
from demo.load import Load

HEALTHY = Flow("healthy", "load-healthy", "load-healthy", steady(50), partitions=2)
NEVER_THERE = Flow("stopped", "load-stopped", "load-stopped", once(20), absent=(0, 1e9))
NEWCOMER = Flow("newcomer", "load-newcomer", "load-newcomer", once(0), history=500, reads_per_second=20)


def _flow_of(made: Callable[[float], int]) -> Flow:
    return Flow("broken", "load-broken", "load-broken", made)


def _positions(cluster: Cluster, flow: Flow) -> tuple[int, int]:
    """Records written, and records read and committed, of all partitions."""
    consumer = Consumer({**cluster.client(), "group.id": flow.group})
    places = [TopicPartition(flow.topic, partition) for partition in range(flow.partitions)]
    written = sum(consumer.get_watermark_offsets(place, timeout=60)[1] for place in places)
    committed = sum(max(0, one.offset) for one in consumer.committed(places, timeout=60))
    consumer.close()
    return written, committed


def test_consumers_do_what_their_flows_say(kafka: Cluster) -> None:
    with Load(kafka.client(), [HEALTHY, NEVER_THERE, NEWCOMER]) as load:
        deadline = time.monotonic() + 180
        while (
            _positions(kafka, HEALTHY)[1] < 100 or not _positions(kafka, NEWCOMER)[1]
        ) and time.monotonic() < deadline:
            load.check()
            time.sleep(0.2)
        newcomer = _positions(kafka, NEWCOMER)

    written, committed = _positions(kafka, HEALTHY)
    assert 100 <= committed <= written
    assert (20, 0) == _positions(kafka, NEVER_THERE)
    assert 500 == newcomer[0]
    assert 0 < newcomer[1] < 500


def test_a_thread_that_fails_is_heard_of(kafka: Cluster) -> None:
    def broken(seconds: float) -> int:
        raise ValueError("no such rate")

    with pytest.raises(ValueError, match="no such rate"), Load(kafka.client(), [_flow_of(broken)]) as load:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            load.check()
            time.sleep(0.05)
