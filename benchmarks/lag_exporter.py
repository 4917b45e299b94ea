"""Kafka Lag Exporter's estimate of time lag, as KIP-489 describes it, for comparison. Shares no code with ours.

It polls the log end offset of each partition into a table of (offset, time), looks the group's committed offset up
in it by interpolation, or by extrapolation through the table's first and last points, and reports now less that time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from types import TracebackType

from confluent_kafka import Consumer, KafkaException, TopicPartition

from benchmarks.truth_flows import Flow

POLL_SECONDS = 5.0
"""Six times as often as its default of 30 seconds."""
_POINTS = 60


class LookupTable:
    """The points of one partition; times in ms."""

    def __init__(self) -> None:
        self._points: list[tuple[int, float]] = []

    def add(self, offset: int, at: float) -> None:
        """Keep a polled end offset; a flat line is kept as its two ends."""
        if len(self._points) > 1 and self._points[-1][0] == self._points[-2][0] == offset:
            self._points.pop()
        self._points.append((offset, at))
        del self._points[:-_POINTS]

    def lag_ms(self, committed: int, now: float) -> float | None:
        """Time lag of a group that stands at `committed`; None while the table cannot tell."""
        if not self._points or committed >= self._points[-1][0]:
            return 0.0 if self._points else None
        around = [(a, b) for a, b in pairwise(self._points) if a[0] <= committed <= b[0]]
        (o1, t1), (o2, t2) = around[-1] if around else (self._points[0], self._points[-1])
        if o1 == o2:
            return None
        return max(0.0, now - (t1 + (committed - o1) / (o2 - o1) * (t2 - t1)))


class LagExporter:
    """Polls all flows inside the `with` block; `samples`: (time in ms, lag in ms) by flow name."""

    def __init__(self, client: dict[str, str], flows: Iterable[Flow]) -> None:
        self._flows = tuple(flows)
        self._readers = {
            f.name: Consumer({**client, "group.id": f.group, "enable.auto.commit": False}) for f in self._flows
        }
        self._tables = {f.name: LookupTable() for f in self._flows}
        self._stopping = threading.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lag-exporter")
        self.samples: dict[str, list[tuple[float, float]]] = {f.name: [] for f in self._flows}

    def __enter__(self) -> LagExporter:
        self._running = self._thread.submit(self._run)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.shutdown()
        for reader in self._readers.values():
            reader.close()
        if kind is None:
            self._running.result()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            for flow in self._flows:
                with suppress(KafkaException):  # as it does: a failed poll gives no sample, the next one may
                    self._poll(flow)
            due += POLL_SECONDS

    def _poll(self, flow: Flow) -> None:
        reader, partition = self._readers[flow.name], TopicPartition(flow.topic, 0)
        _, end = reader.get_watermark_offsets(partition, timeout=10)
        now = time.time() * 1000
        self._tables[flow.name].add(end, now)
        (found,) = reader.committed([partition], timeout=10)
        if found.offset >= 0 and (lag := self._tables[flow.name].lag_ms(found.offset, now)) is not None:
            self.samples[flow.name].append((now, lag))
