"""Real producers and consumer groups that play one incident per topic, see `benchmarks.truth_estate`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from demo.warm_up import create_topic

STOP_SECONDS = 90
"""When consumers that die do so."""
_RATE_SECONDS = 0.2
"""Each topic gets a record so often."""
_TOPICS = (
    "step-back",
    "unread",
    "two-programs",
    "left",
    "kept",
    "ahead",
    "ahead-dead",
    "behind",
    "seconds",
    "hanging",
    "deleted",
    "sampled",
)
_SKEW_MS = {"ahead": 3_600_000, "ahead-dead": 3_600_000, "behind": -3_600_000}


class EstateTraffic:
    """Runs the incidents inside the `with` block."""

    def __init__(self, client: dict[str, str]) -> None:
        self._client = client
        self._stopping = threading.Event()
        self._admin = AdminClient({**client, "log_level": 0})
        self._threads = ThreadPoolExecutor(32, thread_name_prefix="estate")
        self._running: list[Future[None]] = []
        self._began = 0.0

    def __enter__(self) -> EstateTraffic:
        for topic in (*_TOPICS, "emptied"):
            create_topic(self._admin, NewTopic(topic, 1, 1, config={"retention.ms": "-1"}))
        create_topic(self._admin, NewTopic("compacted", 1, 1, config={"cleanup.policy": "compact"}))
        self._began = time.monotonic()
        actions: list[Callable[[], None]] = [
            self._produce,
            self._hold_transaction,
            self._add_partition,
            self._delete_records,
            self._empty_topic,
            self._step_back,
            self._leave_topic,
            *(lambda name=name: self._consume(name) for name in ("ahead", "behind", "seconds", "emptied")),
            *(
                lambda name=name: self._consume(name, until=STOP_SECONDS)
                for name in ("ahead-dead", "deleted", "sampled")
            ),
            lambda: self._consume("unread", partitions=1),
            lambda: self._consume("hanging"),
            lambda: self._consume("compacted", pause=(STOP_SECONDS, STOP_SECONDS + 60)),
            lambda: self._commit_contradictions(),
        ]
        self._running = [self._threads.submit(action) for action in actions]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._threads.shutdown()
        if kind is None:
            self.check()

    @property
    def seconds(self) -> float:
        """Seconds since the traffic began."""
        return time.monotonic() - self._began

    def check(self) -> None:
        """Raise what ended a client early."""
        for future in self._running:
            if future.done():
                future.result()

    def _wait_until(self, seconds: float) -> bool:
        """Whether the traffic still runs at that time."""
        return not self._stopping.wait(max(0.0, seconds - self.seconds))

    def _produce(self) -> None:
        producer = Producer({**self._client, "linger.ms": 5, "topic.metadata.refresh.interval.ms": 2_000})
        number = 0
        while not self._stopping.wait(_RATE_SECONDS):
            now_ms = time.time_ns() // 1_000_000
            for topic in _TOPICS:
                producer.produce(topic, b"x", partition=0, timestamp=self._timestamp(topic, now_ms, number))
            producer.produce("compacted", b"x", key=str(number % 5).encode(), partition=0)
            if self.seconds > 50:
                producer.produce("unread", b"x", partition=1)
            if number < 100:
                producer.produce("emptied", b"x", partition=0)
            producer.poll(0)
            number += 1
        producer.flush(10)

    @staticmethod
    def _timestamp(topic: str, now_ms: int, number: int) -> int:
        if topic == "seconds":
            return now_ms // 1_000 if number % 10 == 0 else now_ms
        return now_ms + _SKEW_MS.get(topic, 0)

    def _hold_transaction(self) -> None:
        producer = Producer(
            {**self._client, "transactional.id": "forgotten", "transaction.timeout.ms": 900_000, "log_level": 3}
        )
        producer.init_transactions(30)
        if self._wait_until(60):
            producer.begin_transaction()
            producer.produce("hanging", b"open", partition=0)
            producer.flush(10)
            self._stopping.wait()

    def _add_partition(self) -> None:
        if self._wait_until(40):
            self._admin.create_partitions([NewPartitions("unread", 2)])["unread"].result()

    def _delete_records(self) -> None:
        if self._wait_until(STOP_SECONDS + 20):
            self._admin.delete_records([TopicPartition("deleted", 0, -1)])[TopicPartition("deleted", 0)].result()

    def _empty_topic(self) -> None:
        if self._wait_until(40):
            self._admin.delete_records([TopicPartition("emptied", 0, -1)])[TopicPartition("emptied", 0)].result()

    def _consume(
        self,
        topic: str,
        *,
        until: float = float("inf"),
        partitions: int | None = None,
        pause: tuple[float, float] = (float("inf"), float("inf")),
    ) -> None:
        """Read a topic and commit each second, until a time; `pause` is the time between which it does nothing."""
        consumer = self._consumer(topic)
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions or 1)])
        next_offset, commits_at = 0, 0.0
        try:
            while not self._stopping.is_set() and self.seconds < until:
                if pause[0] <= self.seconds < pause[1]:
                    self._stopping.wait(0.2)
                    continue
                message = consumer.poll(0.1)
                if message is not None and not message.error():
                    next_offset = message.offset() + 1
                if next_offset and self.seconds >= commits_at:
                    consumer.commit(offsets=[TopicPartition(topic, 0, next_offset)], asynchronous=False)
                    commits_at = self.seconds + 1
        finally:
            consumer.close()

    def _step_back(self) -> None:
        """The consumer dies; an operator resets its offset by ten records, and it does not come up."""
        self._consume("step-back", until=STOP_SECONDS)
        if self._wait_until(STOP_SECONDS + 70):
            consumer = self._consumer("step-back")
            (position,) = consumer.committed([TopicPartition("step-back", 0)], timeout=30)
            consumer.commit(offsets=[TopicPartition("step-back", 0, max(0, position.offset - 10))], asynchronous=False)
            consumer.close()

    def _leave_topic(self) -> None:
        """A member reads two topics, and only one of them from 60 s on."""
        consumer = self._consumer("left")
        consumer.subscribe(["left", "kept"])
        offsets: dict[str, int] = {}
        commits_at, has_left = 0.0, False
        try:
            while not self._stopping.is_set():
                message = consumer.poll(0.1)
                if message is not None and not message.error():
                    offsets[message.topic()] = message.offset() + 1
                if offsets and self.seconds >= commits_at:
                    places = [TopicPartition(topic, 0, offset) for topic, offset in offsets.items()]
                    consumer.commit(offsets=places, asynchronous=False)
                    commits_at = self.seconds + 1
                if not has_left and self.seconds > 60:
                    has_left, offsets = True, {}
                    consumer.unsubscribe()
                    consumer.subscribe(["kept"])
        finally:
            consumer.close()

    def _commit_contradictions(self) -> None:
        """Two programs commit for one group: one is at the end, the other far behind."""
        first, second = self._consumer("two-programs"), self._consumer("two-programs")
        try:
            while not self._stopping.wait(2):
                end = first.get_watermark_offsets(TopicPartition("two-programs", 0), timeout=30)[1]
                for consumer, offset in ((first, end), (second, end // 4)):
                    consumer.commit(offsets=[TopicPartition("two-programs", 0, offset)], asynchronous=False)
                    self._stopping.wait(1)
        finally:
            first.close()
            second.close()

    def _consumer(self, name: str) -> Consumer:
        return Consumer(
            {
                **self._client,
                "group.id": f"g-{name}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "log_level": 3,
            }
        )
