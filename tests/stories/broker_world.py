"""A minute of traffic on a real broker: topics that are written to, groups that read them, and what operators do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from demo.broker import Cluster

WRITES_EVERY = 0.1
COMMITS_EVERY = 1.0


class Traffic:
    """Threads that write, read and act on a broker until the traffic ends. Seconds count from its start."""

    def __init__(self, cluster: Cluster) -> None:
        self.client = cluster.client()
        self.admin = AdminClient(self.client)
        self.started_at = time.time()
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._errors: list[BaseException] = []

    @property
    def seconds(self) -> float:
        return time.time() - self.started_at

    def create(self, topic: str, **settings: str) -> None:
        config = {name.replace("_", "."): value for name, value in settings.items()}
        self.admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result()

    def write(self, topic: str, until: float = float("inf"), keys: Sequence[bytes] = (b"key",)) -> None:
        """Ten records a second."""

        def work() -> None:
            producer, number = Producer(self.client | {"linger.ms": 5}), 0
            while self._is_running(until):
                producer.produce(topic, b"value", keys[number % len(keys)])
                producer.poll(0)
                number += 1
                time.sleep(WRITES_EVERY)
            producer.flush(10)

        self._begin(work)

    def read(
        self,
        group: str,
        topics: Sequence[str],
        until: float = float("inf"),
        then: Sequence[str] = (),
        isolation: str = "read_uncommitted",
    ) -> None:
        """Reads and commits each second; after `until` it closes, or subscribes to other topics."""

        def work() -> None:
            settings = {
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": isolation,
            }
            consumer = Consumer(self.client | settings)
            consumer.subscribe(list(topics))
            self._consume(consumer, until)
            if then:
                consumer.unsubscribe()
                consumer.subscribe(list(then))
                self._consume(consumer, float("inf"))
            consumer.close()

        self._begin(work)

    def _consume(self, consumer: Consumer, until: float) -> None:
        next_commit = self.seconds + COMMITS_EVERY
        while self._is_running(until):
            consumer.poll(0.1)
            if self.seconds >= next_commit and consumer.assignment():
                known = [p for p in consumer.position(consumer.assignment()) if p.offset >= 0]
                if known:
                    consumer.commit(offsets=known, asynchronous=False)
                next_commit = self.seconds + COMMITS_EVERY

    def open_transaction(self, topic: str, when: float) -> None:
        """Writes one record in a transaction that stays open."""

        def work() -> None:
            producer = Producer(
                self.client | {"transactional.id": f"hanging-{topic}", "transaction.timeout.ms": 900_000}
            )
            producer.init_transactions()
            self._wait(when)
            producer.begin_transaction()
            producer.produce(topic, b"value", b"key")
            producer.flush(10)
            self._ended.wait()

        self._begin(work)

    def delete_records(self, topic: str, when: float) -> None:
        """Deletes all records that there are at that time."""

        def work() -> None:
            self._wait(when)
            _, end = Consumer(self.client | {"group.id": "unused"}).get_watermark_offsets(TopicPartition(topic, 0), 10)
            self.admin.delete_records([TopicPartition(topic, 0, end)])[TopicPartition(topic, 0)].result()

        self._begin(work)

    def sleep_until(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds - self.seconds))

    def end(self) -> None:
        """Ends all threads, and raises what went wrong in one of them."""
        self._ended.set()
        for thread in self._threads:
            thread.join(60)
        if self._errors:
            raise self._errors[0]

    def _is_running(self, until: float) -> bool:
        return not self._ended.is_set() and self.seconds < until

    def _wait(self, when: float) -> None:
        self._ended.wait(max(0.0, when - self.seconds))

    def _begin(self, work: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                self._errors.append(error)

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        self._threads.append(thread)


@contextmanager
def traffic(cluster: Cluster) -> Iterator[Traffic]:
    """Traffic that ends with the block."""
    world = Traffic(cluster)
    try:
        yield world
    finally:
        world.end()
