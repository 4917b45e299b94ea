"""One producer at a steady rate and one reader of what it writes, on all partitions of a topic. Knows Kafka only."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

from confluent_kafka import Consumer, Producer, TopicPartition

_TICK_SECONDS = 0.005
_RECORD = b"x" * 200


class Trickle:
    """Traffic inside the `with` block; an error of a client shows at its end."""

    def __init__(self, client: dict[str, str], topic: str, partitions: int, records_per_second: float) -> None:
        self._client, self._topic, self._partitions = client, topic, partitions
        self._rate = records_per_second
        self._stopping = threading.Event()
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="trickle")

    def __enter__(self) -> Trickle:
        self._running = [self._threads.submit(act) for act in (self._write, self._read)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._threads.shutdown()
        for one in self._running:
            one.result()

    def _write(self) -> None:
        producer, began, written = Producer({**self._client, "acks": "1", "linger.ms": "0"}), time.monotonic(), 0
        while not self._stopping.is_set():
            while written < self._rate * (time.monotonic() - began):
                producer.produce(self._topic, _RECORD, partition=written % self._partitions)
                written += 1
            producer.poll(_TICK_SECONDS)
        producer.flush(10)

    def _read(self) -> None:
        consumer = Consumer({**self._client, "group.id": "trickle", "enable.auto.commit": "false"})
        consumer.assign([TopicPartition(self._topic, i, 0) for i in range(self._partitions)])
        while not self._stopping.is_set():
            consumer.poll(0.1)
        consumer.close()
