"""Real producers and consumer groups that write down what they do, and the broker's own record of the commits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from struct import Struct
from types import TracebackType

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.truth_flows import Flow
from benchmarks.truth_log import ClientLog, Commit, Record
from demo.warm_up import create_topic

_TICK_SECONDS = 0.02
_KEPT = {"retention.ms": "-1"}
_SHORT, _INT, _LONG = Struct(">h"), Struct(">i"), Struct(">q")


class Traffic:
    """Traffic on all flows inside the `with` block; `logs` holds what their clients wrote down, by flow name."""

    def __init__(self, client: dict[str, str], flows: Iterable[Flow]) -> None:
        self._client, self._flows = client, tuple(flows)
        self._stopping = threading.Event()
        self._threads = ThreadPoolExecutor(2 * len(self._flows), thread_name_prefix="traffic")
        self._running: list[Future[None]] = []
        self._began = 0.0
        self.logs = {flow.name: ClientLog() for flow in self._flows}

    def __enter__(self) -> Traffic:
        admin = AdminClient({**self._client})
        for flow in self._flows:
            create_topic(admin, NewTopic(flow.topic, 1, 1, config=_KEPT | flow.config))
        self._began = time.monotonic()
        for flow in self._flows:
            write = self._write_transactions if flow.transaction_seconds else self._write
            self._running += [self._threads.submit(write, flow), self._threads.submit(self._read, flow)]
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
        """Since the traffic began."""
        return time.monotonic() - self._began

    @property
    def all_committed(self) -> bool:
        """Every group has a position; raises what ended a client early."""
        for thread in self._running:
            if thread.done():
                thread.result()
        return all(log.commits for log in self.logs.values())

    def _write(self, flow: Flow) -> None:
        producer, made = Producer({**self._client, "linger.ms": 5}), 0
        while not self._stopping.wait(_TICK_SECONDS):
            while made < flow.made(self.seconds):
                _produce(producer, flow, made, self.logs[flow.name].written)
                made += 1
            producer.poll(0)
        producer.flush(30)

    def _write_transactions(self, flow: Flow) -> None:
        producer, made, number = Producer({**self._client, "transactional.id": flow.topic, "log_level": 3}), 0, 0
        producer.init_transactions(30)
        while not self._stopping.is_set():
            written: list[Record] = []
            producer.begin_transaction()
            until = self.seconds + (flow.transaction_seconds or 0)
            while self.seconds < until and not self._stopping.wait(_TICK_SECONDS):
                while made < flow.made(self.seconds):
                    _produce(producer, flow, made, written)
                    made += 1
                producer.poll(0)
            producer.flush(30)
            number += 1
            if flow.aborts_every and number % flow.aborts_every == 0:
                producer.abort_transaction(30)
            else:
                producer.commit_transaction(30)
                self.logs[flow.name].written += written

    def _read(self, flow: Flow) -> None:
        rewinds = list(flow.rewinds)
        while not self._stopping.wait(_TICK_SECONDS):
            if flow.reads_at(self.seconds):
                self._consume(flow, rewinds)

    def _consume(self, flow: Flow, rewinds: list[float]) -> None:
        """Read and commit until the flow's consumer stops."""
        consumer = Consumer(
            {
                **self._client,
                "group.id": flow.group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        consumer.subscribe([flow.topic])
        log, read, committed = self.logs[flow.name], list[Record](), self.seconds
        began, count = self.seconds, 0
        try:
            while flow.reads_at(self.seconds) and not self._stopping.is_set():
                message = consumer.poll(_TICK_SECONDS)
                if message is not None:
                    read.append(_record(message))
                    count += 1
                    if flow.reads_per_second:
                        began = max(began, self.seconds - (count + 1) / flow.reads_per_second)
                        self._stopping.wait(max(0, began + count / flow.reads_per_second - self.seconds))
                if read and self.seconds - committed >= flow.commit_seconds:
                    _commit(consumer, flow, log, read[-1].offset + 1, read)
                    committed, read = self.seconds, []
                    if rewinds and self.seconds >= rewinds[0]:
                        rewinds.pop(0)
                        _rewind(consumer, flow, log)
            if read:
                _commit(consumer, flow, log, read[-1].offset + 1, read)
        finally:
            consumer.close()


def commits_kept(client: dict[str, str]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """Time (ms) and offset of every commit by group and topic of one partition (`commits_of_partitions`)."""
    return {(group, topic): commits for (group, topic, _), commits in commits_of_partitions(client).items()}


def commits_of_partitions(client: dict[str, str]) -> dict[tuple[str, str, int], list[tuple[int, int]]]:
    """Time (ms) and offset of every commit by group, topic and partition, from a cluster with one partition of
    commits."""
    reader = Consumer({**client, "group.id": "truth", "enable.auto.commit": False, "enable.partition.eof": True})
    reader.assign([TopicPartition("__consumer_offsets", 0, 0)])
    kept: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
    try:
        while (message := reader.poll(30)) is not None and not message.error():
            key, value = message.key(), message.value()
            if key and value and _SHORT.unpack_from(key)[0] in (0, 1):
                group, at = _text(key, 2)
                topic, at = _text(key, at)
                partition = _INT.unpack_from(key, at)[0]
                kept.setdefault((group, topic, partition), []).append(
                    (_commit_time(value), _LONG.unpack_from(value, 2)[0])
                )
    finally:
        reader.close()
    return kept


def _commit_time(value: bytes) -> int:
    """The time in an offset commit value of version 3 or 4 (a broker of Kafka 4 writes no others)."""
    if _SHORT.unpack_from(value)[0] == 3:
        return int(_LONG.unpack_from(value, 16 + _SHORT.unpack_from(value, 14)[0])[0])
    return int(_LONG.unpack_from(value, 14 + value[14])[0])


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = at + 2 + _SHORT.unpack_from(data, at)[0]
    return data[at + 2 : end].decode(), end


def _produce(producer: Producer, flow: Flow, number: int, written: list[Record]) -> None:
    def acknowledged(error: object, message: Message) -> None:
        if error is None:
            written.append(_seen(message))

    at = _now_ms() + flow.ahead_ms[number % len(flow.ahead_ms)]
    key = None if flow.hot_keys is None else str(number if number % 3 == 0 else number % flow.hot_keys - flow.hot_keys)
    producer.produce(flow.topic, b"x" * 20, key, partition=0, timestamp=at, on_delivery=acknowledged)


def _record(message: Message) -> Record:
    if error := message.error():
        raise KafkaException(error)
    return _seen(message)


def _seen(message: Message) -> Record:
    offset = message.offset()
    assert offset is not None, "only a message that is in no log has no offset"
    return Record(offset, message.timestamp()[1])


def _commit(consumer: Consumer, flow: Flow, log: ClientLog, position: int, read: list[Record]) -> None:
    before = _now_ms()
    answer = consumer.commit(offsets=[TopicPartition(flow.topic, 0, position)], asynchronous=False)
    for committed in answer or ():
        if committed.error:
            raise KafkaException(committed.error)
    log.commits.append(Commit(position, before, _now_ms(), tuple(read)))


def _rewind(consumer: Consumer, flow: Flow, log: ClientLog) -> None:
    position = max(0, log.commits[-1].position - flow.rewind_records)
    consumer.seek(TopicPartition(flow.topic, 0, position))
    _commit(consumer, flow, log, position, [])


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
