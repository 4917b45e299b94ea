"""What it costs to sample a cluster of many group-partitions: processor time, requests and bytes. Real broker."""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from benchmarks.speed_snapshot import Size, crowded, produce
from benchmarks.speed_table import megabytes, say, table
from benchmarks.speed_wire import CountedBroker, Wire
from kafka_sla.config.store import Store
from kafka_sla.model.entities import Cluster, Connection, Patterns
from kafka_sla.pipeline.sampling import Pace, sample
from kafka_sla.sources.kafka.samples.sampler import Sampler

_PACE = Pace()
_LASTING_S = 3 * _PACE.land_s
_CLUSTER = Cluster("crowded", "broker", Patterns(("group-.*",)), Patterns(("topic-.*",)))


def cost(group_partitions: int = 10_000) -> str:
    """Three minutes in which nothing moves, and three in which everything does between two polls."""
    size = Size(10, group_partitions // 1_000)
    with Wire() as door, crowded(size, CountedBroker(door)) as broker:
        requests, sent, received = _on_the_wire(door)
        rows = [("nothing", *_sampled(broker.bootstrap))]
        with _moving(broker.bootstrap, size):
            rows.append(("every position and log end, between two polls", *_sampled(broker.bootstrap)))
    return (
        f"{size.group_partitions:,} group-partitions on {len(size.places):,} partitions, a poll every"
        f" {_PACE.poll_s:.0f} s, a batch every {_PACE.land_s:.0f} s, for {_LASTING_S:.0f} s. A poll is {requests}"
        f" requests to the one broker: {megabytes(sent)} there, {megabytes(received)} back.\n\n"
        + table(["what moves", "processor time", "of one core", "rows landed"], rows)
    )


def _on_the_wire(door: Wire) -> tuple[int, int, int]:
    """Requests and bytes of one poll."""
    sampler = Sampler(_CLUSTER, _login(f"127.0.0.1:{door.port}"), _PACE.window_ms)
    sampler.sample()
    door.clear()
    sampler.sample()
    counted = sum(door.requests.values()), door.sent, door.received
    sampler.renew()
    return counted


def _sampled(bootstrap: str) -> tuple[str, str, str]:
    """Processor time of this process, which does nothing else meanwhile."""
    stop = threading.Event()
    with tempfile.TemporaryDirectory(prefix="kafka_sla-speed-") as folder:
        store = Store.embedded(Path(folder))
        threading.Timer(_LASTING_S, stop.set).start()
        began, used = time.monotonic(), time.process_time()
        landed = sample(store, _CLUSTER, _login(bootstrap), _PACE, stop, say)
        took, used = time.monotonic() - began, time.process_time() - used
    return f"{used:.1f} s", f"{used / took:.1%}", f"{landed:,}"


@contextmanager
def _moving(bootstrap: str, size: Size) -> Iterator[None]:
    """Another process commits on every group-partition, and writes to every partition, all the time."""
    process = multiprocessing.get_context("spawn").Process(target=_move, args=(bootstrap, size), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _move(bootstrap: str, size: Size) -> None:
    client = {"bootstrap.servers": bootstrap}
    admin = AdminClient({**client})
    for position in count(1):
        due = time.monotonic() + _PACE.poll_s / 2
        produce(client, size)
        for number in range(size.groups):
            positions = [TopicPartition(name, partition, position) for name, partition in size.places]
            request = ConsumerGroupTopicPartitions(f"group-{number}", positions)
            for committed in admin.alter_consumer_group_offsets([request]).values():
                committed.result(60)
        time.sleep(max(0.0, due - time.monotonic()))


def _login(bootstrap: str) -> Connection:
    return Connection("broker", extra={"bootstrap.servers": bootstrap})
