"""Real clients in a row that carry each record's birth in a header through every topic. Measures nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.truth_flows import bursts, steady
from demo.warm_up import create_topic
from kafka_sla.model.entities import Stage

_TICK_SECONDS = 0.02
_BIRTH = "born-at-ms"
_ALWAYS = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Link:
    """One stage: a consumer that reads what is there, writes what comes of it, waits for that, and commits."""

    group: str
    topic: str
    partitions: int
    seconds_a_record: float = 0.0
    most: int = 500
    """Records that it reads before it commits."""
    copies: Callable[[int], int] = lambda number: 1
    """How many records come of the so manieth."""
    absent: tuple[float, float] = _ALWAYS
    transactional: bool = False
    """Output and positions in one transaction: exactly once."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Three stages under a load."""

    name: str
    made: Callable[[float], int]
    """Records written in the first so many seconds."""
    links: tuple[Link, ...]
    late_stage: int | None = None
    """The stage that is slowed, if one is; from 1."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(Stage(link.group, link.topic) for link in self.links)


def _links(name: str, *changes: dict[str, object]) -> tuple[Link, ...]:
    of = name.replace(" ", "-").replace(",", "").replace("/", "-per-")
    plain = (
        (f"{of}.order-enricher", f"{of}.orders.placed.v2", 3),
        (f"{of}.billing.invoice-writer", f"{of}.orders.enriched.v1", 2),
        (f"{of}.billing.alerts-authorised", f"{of}.orders.billed.v1", 1),
    )
    return tuple(Link(*one, **more) for one, more in zip(plain, changes, strict=True))  # type: ignore[arg-type]


def _chain(name: str, made: Callable[[float], int], *changes: dict[str, object], late: int | None = None) -> Chain:
    return Chain(name, made, _links(name, *(changes or ({}, {}, {}))), late)


CHAINS = (
    _chain("20/s", steady(20)),
    _chain("200/s", steady(200)),
    _chain("bursts", bursts(150, every=17)),
    _chain("rare", bursts(1, every=7)),
    _chain("one of five passes", steady(40), {"copies": lambda n: int(n % 5 == 0)}, {}, {}),
    _chain("none to three come of one", steady(30), {}, {"copies": lambda n: n % 4}, {}),
    _chain("second stage too slow", steady(30), {}, {"seconds_a_record": 0.05, "most": 40}, {}, late=2),
    _chain("first stage stops", steady(30), {"absent": (60, 110)}, {}, {}, late=1),
    _chain("last stage stops", steady(30), {}, {}, {"absent": (60, 110)}, late=3),
    _chain("exactly once", steady(30), {"transactional": True}, {"transactional": True}, {}),
)


@dataclass(frozen=True, slots=True)
class Written:
    """A record as its topic holds it."""

    partition: int
    offset: int
    at_ms: int
    born_ms: int


class ChainTraffic:
    """Traffic through all chains inside the `with` block."""

    def __init__(self, client: dict[str, str], chains: Iterable[Chain]) -> None:
        self._client, self._chains = client, tuple(chains)
        self._stopping = threading.Event()
        self._threads = ThreadPoolExecutor(sum(1 + len(chain.links) for chain in self._chains))
        self._running: list[Future[None]] = []
        self._began = 0.0

    def __enter__(self) -> ChainTraffic:
        admin = AdminClient({**self._client})
        for link in (link for chain in self._chains for link in chain.links):
            create_topic(admin, NewTopic(link.topic, link.partitions, 1))
        self._began = time.monotonic()
        for chain in self._chains:
            following = [link.topic for link in chain.links[1:]]
            self._running.append(self._threads.submit(self._write, chain))
            for link, topic in zip(chain.links, [*following, None], strict=True):
                self._running.append(self._threads.submit(self._work, link, topic))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._threads.shutdown()
        for thread in self._running if kind is None else ():
            thread.result()

    @property
    def seconds(self) -> float:
        """Since the traffic began; raises what ended a client early."""
        for thread in self._running:
            if thread.done():
                thread.result()
        return time.monotonic() - self._began

    def _write(self, chain: Chain) -> None:
        producer, made = Producer({**self._client, "linger.ms": 5}), 0
        while not self._stopping.wait(_TICK_SECONDS):
            while made < chain.made(time.monotonic() - self._began):
                _produce(producer, chain.links[0].topic, now_ms())
                made += 1
            producer.poll(0)
        producer.flush(30)

    def _work(self, link: Link, topic: str | None) -> None:
        while not self._stopping.wait(_TICK_SECONDS):
            if not self._is_absent(link):
                self._serve(link, topic)

    def _is_absent(self, link: Link) -> bool:
        return link.absent[0] <= time.monotonic() - self._began < link.absent[1]

    def _serve(self, link: Link, topic: str | None) -> None:
        """Until the stage is to stop."""
        consumer = Consumer(
            {
                **self._client,
                "group.id": link.group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        more = {"transactional.id": link.group} if link.transactional else {}
        producer = Producer({**self._client, "linger.ms": 5, "log_level": 3, **more})
        if link.transactional:
            producer.init_transactions(30)
        consumer.subscribe([link.topic])
        count = 0
        try:
            while not self._stopping.is_set() and not self._is_absent(link):
                read = [message for message in consumer.consume(link.most, 0.2) if _is_record(message)]
                if read:
                    self._pass_on(link, consumer, producer, topic, read, count)
                    count += len(read)
        finally:
            consumer.close()

    def _pass_on(
        self, link: Link, consumer: Consumer, producer: Producer, topic: str | None, read: list[Message], count: int
    ) -> None:
        if link.transactional:
            producer.begin_transaction()
        for number, message in enumerate(read, count):
            time.sleep(link.seconds_a_record)
            for _ in range(link.copies(number) if topic else 0):
                _produce(producer, str(topic), _born(message))
        producer.flush(30)
        positions = {message.partition(): (message.offset() or 0) + 1 for message in read}
        offsets = [TopicPartition(link.topic, partition or 0, at) for partition, at in positions.items()]
        if link.transactional:
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
            producer.commit_transaction(30)
        else:
            consumer.commit(offsets=offsets, asynchronous=False)


def contents(client: dict[str, str], link: Link) -> list[Written]:
    """Every record of a topic, with its birth."""
    reader = Consumer(
        {
            **client,
            "group.id": "truth",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    reader.assign([TopicPartition(link.topic, number, 0) for number in range(link.partitions)])
    found, open_partitions = list[Written](), link.partitions
    while open_partitions and (message := reader.poll(30)) is not None:
        if message.error():
            open_partitions -= 1
        else:
            at = message.partition() or 0, message.offset() or 0
            found.append(Written(*at, message.timestamp()[1], _born(message)))
    reader.close()
    return found


def _produce(producer: Producer, topic: str, born_ms: int) -> None:
    producer.produce(topic, b"x" * 20, headers={_BIRTH: str(born_ms)}, timestamp=now_ms())


def _born(message: Message) -> int:
    return int(dict(message.headers() or [])[_BIRTH])  # type: ignore[arg-type]


def _is_record(message: Message) -> bool:
    if error := message.error():
        raise KafkaException(error)
    return True


def now_ms() -> int:
    return time.time_ns() // 1_000_000
