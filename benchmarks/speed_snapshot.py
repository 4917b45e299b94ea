"""How long a snapshot of many group-partitions takes, beside the tools that people ask for the same. Real broker."""

from __future__ import annotations

import os
import shlex
import statistics
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import psutil
import pyarrow as pa
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.speed_table import megabytes, say, seconds, table
from benchmarks.speed_wire import CountedBroker, Wire
from demo.broker import Cluster as Broker
from demo.broker import archive_classes, free_ports
from demo.jars import KAFKA_VERSION, JarSet, fetch_jars, java
from demo.warm_up import create_topic
from kafka_sla.model.entities import Cluster, Connection, Interval, OffsetLookups, Patterns, floor_time
from kafka_sla.sources.kafka.snapshot import Snapshot, snapshot

EXPORTERS = "KAFKA_SLA_BENCHMARK_EXPORTERS"
"""Environment variable: commands of Prometheus exporters, with `;` between them; {bootstrap} and {port} are filled in.
"""
_TOOLS = JarSet(
    f"the command-line tools of Apache Kafka {KAFKA_VERSION}",
    f"kafka-tools-{KAFKA_VERSION}",
    "KAFKA_SLA_TOOLS_JARS",
    50,
    (("org.apache.kafka", "kafka-tools", KAFKA_VERSION),),
)
_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_WINDOW_MS = 60_000
_PARTITIONS = 100
_TIMES, _TIMES_OF_TOOL = 20, 5


@dataclass(frozen=True, slots=True)
class Size:
    """So many topics of 100 partitions, each read by every group."""

    topics: int
    groups: int

    @property
    def places(self) -> list[tuple[str, int]]:
        return [(f"topic-{topic}", partition) for topic in range(self.topics) for partition in range(_PARTITIONS)]

    @property
    def group_partitions(self) -> int:
        return self.topics * _PARTITIONS * self.groups


@dataclass(frozen=True, slots=True)
class Asked:
    """What one way of asking took, seconds."""

    name: str
    wall: float
    """The median of some times."""
    processor: float
    """The mean: of another process the system tells it in hundredths. Of whoever asks; brokers are not counted."""


def compare(group_partitions: int = 10_000) -> str:
    """Our snapshot, the consumer-groups tool and the exporters whose commands are given, on one cluster."""
    size = Size(10, max(1, group_partitions // (10 * _PARTITIONS)))
    with crowded(size, Broker()) as broker:
        rows = [_row("kafka_sla: snapshot", lambda: _look(broker.bootstrap), time.process_time)]
        for command in filter(None, map(str.strip, os.environ.get(EXPORTERS, "").split(";"))):
            with _exporter(command, broker) as (address, process):
                rows.append(_row(f"{_program(command)}: one scrape", _scraper(address), lambda: _spent(process)))
        jars = _tool_jars()
        for said, words in (
            ("kafka-consumer-groups --describe --all-groups", ()),
            ("of which to start its JVM (--version)", ("--version",)),
        ):
            asking = partial(_tool, jars, broker, *words)
            rows.append(_row(said, asking, _spent_by_children, _TIMES_OF_TOOL))
        produce(broker.client(), size)
        time.sleep(60 - time.time() % 60)  # what came in a minute that is not over is looked up less closely
        said = "kafka_sla: snapshot after a record came to every partition, whose times it looks up"
        rows.append(_row(said, lambda: _look(broker.bootstrap), time.process_time))
    ours = rows[0]
    cells = [
        (
            row.name,
            _milliseconds(row.wall),
            f"{row.wall / ours.wall:.1f}",
            _milliseconds(row.processor),
            f"{row.processor / ours.processor:.1f}",
        )
        for row in rows
    ]
    return f"{size.group_partitions:,} group-partitions: {size.topics} topics of {_PARTITIONS} partitions, " + (
        f"{size.groups} groups on each; {_TIMES} times, the tool {_TIMES_OF_TOOL} times with its start: median time,"
        " mean processor time.\n\n"
        + table(["what is asked", "time", "times ours", "processor time", "times ours"], cells)
    )


def wire(sizes: tuple[int, ...] = (10_000, 50_000)) -> str:
    """Requests and bytes of one snapshot by size, counted on the wire."""
    rows = []
    for count in sizes:
        size = Size(10, max(1, count // (10 * _PARTITIONS)))
        with Wire() as door, crowded(size, CountedBroker(door)):
            began = time.monotonic()
            found = _look(f"127.0.0.1:{door.port}")
            took = time.monotonic() - began
            requests = ", ".join(f"{kind} {n:,}" for kind, n in sorted(door.requests.items()))
            per = door.received / size.group_partitions
            rows.append(
                (
                    f"{size.group_partitions:,}",
                    size.groups,
                    f"{sum(door.requests.values()):,}",
                    requests,
                    megabytes(door.sent),
                    megabytes(door.received),
                    f"{per:.0f}",
                    seconds(took),
                    f"{sum(t.nbytes for t in _tables(found)) / size.group_partitions:.0f}",
                )
            )
    return table(
        [
            "group-partitions",
            "groups",
            "requests",
            "by kind",
            "sent",
            "received",
            "bytes each",
            "time through the counter",
            "bytes each in memory",
        ],
        rows,
    )


def _tables(found: Snapshot) -> list[pa.Table]:
    return [found.log_offsets, found.committed_offsets, found.group_states, found.topic_configs, found.commits]


@contextmanager
def crowded(size: Size, broker: Broker) -> Iterator[Broker]:
    """The broker with empty topics, and groups that have committed on all of their partitions."""
    archive_classes()
    with broker:
        say(f"making {size.group_partitions:,} group-partitions")
        admin = AdminClient({**broker.client(), "log_level": 0})
        for number in range(size.topics):
            create_topic(admin, NewTopic(f"topic-{number}", _PARTITIONS, 1))
        for number in range(size.groups):
            positions = [TopicPartition(name, partition, 0) for name, partition in size.places]
            request = ConsumerGroupTopicPartitions(f"group-{number}", positions)
            for committed in admin.alter_consumer_group_offsets([request]).values():
                committed.result(60)
        yield broker


def produce(client: dict[str, str], size: Size) -> None:
    """A record to every partition."""
    producer = Producer({**client, "linger.ms": 20})
    for name, partition in size.places:
        producer.produce(name, b"x", partition=partition)
    producer.flush(60)


def _milliseconds(spent: float) -> str:
    return f"{1_000 * spent:,.0f} ms"


def _row(name: str, run: Callable[[], object], spent: Callable[[], float], times: int = _TIMES) -> Asked:
    """`spent`: processor time so far of whoever asks."""
    run()  # what is loaded once is not what is asked for
    walls, before = [], spent()
    for _ in range(times):
        began = time.monotonic()
        run()
        walls.append(time.monotonic() - began)
    found = Asked(name, statistics.median(walls), (spent() - before) / times)
    say(f"{name}: {found.wall:.3f} s, {found.processor:.3f} s of processor time")
    return found


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _spent_by_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _program(command: str) -> str:
    """The name of what `env NAME=value … program --option` starts."""
    return next(Path(word).name for word in shlex.split(command) if "=" not in word and word != "env")


def _look(bootstrap: str) -> Snapshot:
    """One live snapshot of the five minutes that end with the current one: as many windows at whatever time."""
    start = floor_time(datetime.now(UTC), _WINDOW_MS) - timedelta(minutes=4)
    everything = Patterns(("group-.*",)), Patterns(("topic-.*",))
    return snapshot(
        Cluster("crowded", "broker"),
        Connection("broker", extra={"bootstrap.servers": bootstrap}),
        Interval(start, start + timedelta(minutes=5)),
        window_ms=_WINDOW_MS,
        groups=everything[0],
        topics=everything[1],
        live=True,
        offset_lookups=OffsetLookups(),
    )


def _tool_jars() -> str:
    return f"{fetch_jars(jars=_TOOLS)}/*"


def _tool(jars: str, broker: Broker, *asked: str) -> None:
    """The consumer-groups tool as its shell script runs it."""
    command = [java(), "-Xmx256M", "-cp", jars, _TOOL]
    wanted = asked or ("--bootstrap-server", broker.bootstrap, "--describe", "--all-groups", "--timeout", "60000")
    with tempfile.TemporaryFile() as output:
        ended = subprocess.run([*command, *wanted], stdout=output, stderr=subprocess.STDOUT, check=False)
        if ended.returncode:
            output.seek(0)
            raise RuntimeError(f"the consumer-groups tool failed: {output.read()[-2000:].decode()}")


@contextmanager
def _exporter(command: str, broker: Broker) -> Iterator[tuple[str, psutil.Process]]:
    (port,) = free_ports(1)
    words = [w.format(bootstrap=broker.bootstrap, port=port) for w in shlex.split(command)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}/metrics"
        _wait(address, process)
        yield address, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        try:
            _scraper(address)()
        except urllib.error.URLError:
            if process.poll() is not None:
                raise RuntimeError(f"the exporter ended with status {process.returncode}") from None
            time.sleep(0.2)
        else:
            return
    raise TimeoutError(f"nobody answers at {address}")


def _scraper(address: str) -> Callable[[], bytes]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def scrape() -> bytes:
        with opener.open(address, timeout=60) as answer:
            return bytes(answer.read())

    return scrape
