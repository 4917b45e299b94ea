"""Committed offsets and log ends between runs, for clusters whose commit log is closed: polled every few seconds and
thinned to what says something new. Knows no store and no schedule.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from kafka.errors import KafkaError

from kafka_sla.model.entities import Cluster, Connection
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS
from kafka_sla.sources.kafka import fact_rows
from kafka_sla.sources.kafka.committed_positions import Reader
from kafka_sla.sources.kafka.live_state import now_ms
from kafka_sla.sources.kafka.protocol.client import Client
from kafka_sla.sources.kafka.protocol.connection_errors import words_of
from kafka_sla.sources.kafka.protocol.groups import read_committed, see_groups
from kafka_sla.sources.kafka.protocol.list_offsets import Offsets
from kafka_sla.sources.kafka.protocol.topics import TopicPartition, read_topics


@dataclass(slots=True)
class Runs:
    """Values over time. Of polls that find the same, the first is kept, the last, and the last of each window: what is
    known at a window's end is what its bounds come from."""

    window_ms: int
    _last: dict[Any, tuple[int, int]] = field(default_factory=dict)
    """Time and value of the newest poll."""
    _pending: set[Any] = field(default_factory=set)
    """Keys whose newest poll is not among the kept ones."""
    _kept: list[tuple[Any, int, int]] = field(default_factory=list)

    def add(self, at: int, values: Mapping[Any, int]) -> None:
        for key, value in values.items():
            before = self._last.get(key)
            self._last[key] = (at, value)
            same = before is not None and before[1] == value
            if (
                before is not None
                and key in self._pending
                and not (same and self._window(before[0]) == self._window(at))
            ):
                self._keep(key, *before)
            if same:
                self._pending.add(key)
            else:
                self._keep(key, at, value)

    def take(self) -> list[tuple[Any, int, int]]:
        """Key, time and value of each kept poll since the last take, the newest of every key among them."""
        for key in list(self._pending):
            self._keep(key, *self._last[key])
        kept, self._kept = self._kept, []
        return kept

    def _window(self, at: int) -> int:
        return at // self.window_ms

    def _keep(self, key: Any, at: int, value: int) -> None:
        self._pending.discard(key)
        self._kept.append((key, at, value))


@dataclass(frozen=True, slots=True)
class Batch:
    """Facts that fit their table contracts."""

    committed_offsets: pa.Table
    log_offsets: pa.Table


class Sampler:
    """Polls one cluster. Each sample is two requests a broker: its groups' offsets, then the ends of what it leads.

    A client serves many samples, but not for ever: `renew` opens a fresh one, which knows groups and topics anew.
    """

    def __init__(self, cluster: Cluster, connection: Connection, window_ms: int) -> None:
        self._cluster, self._connection = cluster, connection
        self._open: contextlib.ExitStack | None = None
        self._committed, self._ends = Runs(window_ms), Runs(window_ms)

    def sample(self) -> None:
        """One poll. Raises KafkaUnreachable; the next call then tries anew."""
        if self._open is None:
            self._connect()
        try:
            committed = read_committed(self._client, self._groups, self._cluster.topics)
            self._committed.add(now_ms(), {
                Reader(group, tp): at for group, seen in committed.offsets.items() for tp, at in seen.items()
            })  # fmt: skip
            ends: dict[TopicPartition, int] = self._offsets.ends()
            self._ends.add(now_ms(), ends)
        except KafkaError as error:
            self.renew()
            raise self._client.unreachable(words_of(error)) from error

    def renew(self) -> None:
        """Forget the client: the next sample opens another."""
        if self._open:
            self._open.close()
        self._open = None

    def take(self) -> Batch:
        """What was polled since the last batch."""
        committed = [(reader.group, *reader.tp, at, value, fact_rows.SNAPSHOT)
                     for reader, at, value in self._committed.take()]  # fmt: skip
        ends = [(*tp, at, None, value, fact_rows.SNAPSHOT) for tp, at, value in self._ends.take()]
        name = self._cluster.name
        return Batch(
            fact_rows.fact_table(COMMITTED_OFFSETS, name, committed), fact_rows.fact_table(LOG_OFFSETS, name, ends)
        )

    def _connect(self) -> None:
        with contextlib.ExitStack() as opened:
            self._client = opened.enter_context(Client(self._cluster, self._connection))
            try:
                self._offsets = Offsets(self._client, read_topics(self._client, self._cluster.topics))
                self._groups, _ = see_groups(self._client, self._cluster.groups, self._cluster.topics)
            except KafkaError as error:
                raise self._client.unreachable(words_of(error)) from error
            self._open = opened.pop_all()
