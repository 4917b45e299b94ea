"""Real producers and real consumer groups that act out the flows, one thread each. Knows Kafka only."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from confluent_kafka import Consumer, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from demo.flows import Flow

_HISTORY_SECONDS = 7200
_COMMIT_SECONDS = 1.0
_TICK_SECONDS = 0.05


class Load:
    """Traffic on all flows inside the `with` block. A thread that fails shows at `check` or at the end."""

    def __init__(self, client: dict[str, str], flows: Iterable[Flow]) -> None:
        self._client, self._flows = client, tuple(flows)
        self._stopping = threading.Event()
        self._threads = ThreadPoolExecutor(2 * len(self._flows), thread_name_prefix="load")
        self._running: list[Future[None]] = []
        self._started = 0.0

    def __enter__(self) -> Load:
        self._create_topics()
        for flow in self._flows:
            if flow.history:
                self._write_history(flow)
        self._started = time.monotonic()
        for flow in self._flows:
            self._running += [self._threads.submit(self._write, flow), self._threads.submit(self._read, flow)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._threads.shutdown()
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raise what ended a thread early."""
        for thread in self._running:
            if thread.done():
                thread.result()

    @property
    def seconds(self) -> float:
        """Since the traffic began."""
        return time.monotonic() - self._started

    def _create_topics(self) -> None:
        topics = [NewTopic(flow.topic, flow.partitions, 1, config=_retention(flow)) for flow in self._flows]
        admin = AdminClient({**self._client, "log_level": 3})
        for made in admin.create_topics(topics).values():
            made.result(120)

    def _write_history(self, flow: Flow) -> None:
        producer = Producer(self._client)
        begin = time.time() - _HISTORY_SECONDS
        for i in range(flow.history):
            at = begin + _HISTORY_SECONDS * i / flow.history
            _produce(producer, flow, i, round(at * 1000))
        _flush(producer)

    def _write(self, flow: Flow) -> None:
        producer, written = Producer({**self._client, "linger.ms": 5}), 0
        while not self._stopping.wait(_TICK_SECONDS):
            while written < flow.made(self.seconds):
                _produce(producer, flow, written)
                written += 1
            producer.poll(0)
        _flush(producer)

    def _read(self, flow: Flow) -> None:
        while not self._stopping.wait(_TICK_SECONDS):
            if flow.reads_at(self.seconds):
                self._consume(flow)

    def _consume(self, flow: Flow) -> None:
        """Read and commit until the flow's consumer stops."""
        own = {"group.id": flow.group, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        consumer = Consumer({**self._client, **own})
        consumer.subscribe([flow.topic])
        committed, unsaved = self.seconds, False
        try:
            while flow.reads_at(self.seconds) and not self._stopping.is_set():
                message = consumer.poll(_TICK_SECONDS)
                if message is not None:
                    _raise_error(message)
                    unsaved = True
                    self._work(flow)
                if unsaved and self.seconds - committed >= _COMMIT_SECONDS:
                    consumer.commit(asynchronous=False)
                    committed, unsaved = self.seconds, False
            if unsaved:
                consumer.commit(asynchronous=False)
        finally:
            consumer.close()

    def _work(self, flow: Flow) -> None:
        if flow.reads_per_second:
            self._stopping.wait(1 / flow.reads_per_second)


def _retention(flow: Flow) -> dict[str, str]:
    """By Kafka's default the history's old timestamps would be deleted within minutes; whole segments expire only."""
    if flow.retention_seconds is None:
        return {"retention.ms": "-1"}
    return {"retention.ms": str(flow.retention_seconds * 1000), "segment.ms": "5000"}


def _produce(producer: Producer, flow: Flow, number: int, at_ms: int = 0) -> None:
    """One record, at `at_ms` since the epoch (0: now); waits while the client's queue is full."""
    while True:
        try:
            producer.produce(flow.topic, str(number), partition=number % flow.partitions, timestamp=at_ms)
            return
        except BufferError:
            producer.poll(0.1)


def _flush(producer: Producer) -> None:
    if left := producer.flush(30):
        raise TimeoutError(f"{left} records were not taken by the broker within 30 s")


def _raise_error(message: Message) -> None:
    if error := message.error():
        raise KafkaException(error)
