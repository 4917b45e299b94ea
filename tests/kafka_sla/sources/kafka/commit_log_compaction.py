"""When `__consumer_offsets` of a cluster is compacted, and how far. Knows Kafka only."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from benchmarks.truth_traffic import commits_kept

_TOPIC = "__consumer_offsets"
_HOUR_MS = "3600000"
_NOW = {"min.compaction.lag.ms": "0", "min.cleanable.dirty.ratio": "0.0001"}
_PATIENCE_SECONDS = 90.0


class Compaction:
    """The log of commits: one partition, whose closed segments are compacted when this says so."""

    def __init__(self, client: dict[str, str]) -> None:
        self._client, self._admin = client, AdminClient({**client})

    def hold(self) -> None:
        """Compact nothing yet."""
        self._set({"min.compaction.lag.ms": _HOUR_MS})

    def roll(self) -> None:
        """Close the segment, with all that was committed until now."""
        self._set({"segment.ms": "1000"})
        time.sleep(2.5)
        self._set({"segment.ms": _HOUR_MS})

    def compact_closed(self) -> int:
        """Compact the closed segments; answers how many commits are gone."""
        before = self._count()
        self._set(_NOW)
        return self._wait(before)

    def compact_all(self) -> int:
        """Close all segments and compact them; answers how many commits are gone."""
        before = self._count()
        self._set({"segment.ms": "1000", **_NOW})
        for _ in range(3):  # a segment is closed when something is written after its time
            time.sleep(1.2)
            self._commit()
        return self._wait(before + 3)

    def _count(self) -> int:
        return sum(map(len, commits_kept(self._client).values()))

    def _wait(self, before: int) -> int:
        """Until there are fewer, and no fewer still for some seconds."""
        deadline, counts = time.monotonic() + _PATIENCE_SECONDS, [before]
        while time.monotonic() < deadline:
            counts.append(self._count())
            if counts[-1] < before and len(counts) > 4 and len(set(counts[-4:])) == 1:
                return before - counts[-1]
            time.sleep(1)
        raise TimeoutError(f"{_TOPIC} was not compacted: {counts}")

    def _commit(self) -> None:
        """A commit of a group that nobody asks for."""
        topic = next(name for name in self._admin.list_topics(timeout=30).topics if not name.startswith("__"))
        consumer = Consumer({**self._client, "group.id": "rolls-the-log", "enable.auto.commit": False})
        try:
            consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        finally:
            consumer.close()

    def _set(self, values: dict[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in values.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, _TOPIC, incremental_configs=entries)
        for done in self._admin.incremental_alter_configs([resource]).values():
            done.result(30)
