"""Committed offsets and log ends between runs, for clusters whose commit log is closed: polled every few seconds."""

from __future__ import annotations

import contextlib
from collections.abc import Set
from dataclasses import dataclass

import pyarrow as pa
from kafka.errors import KafkaError

from kafka_sla.errors import KafkaUnreachable
from kafka_sla.model.entities import Cluster, Connection
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS
from kafka_sla.sources.kafka import fact_rows
from kafka_sla.sources.kafka.committed_positions import Reader
from kafka_sla.sources.kafka.live_state import now_ms
from kafka_sla.sources.kafka.protocol.client import NONSENSE, Client
from kafka_sla.sources.kafka.protocol.connection_errors import words_of
from kafka_sla.sources.kafka.protocol.groups import read_committed, see_groups
from kafka_sla.sources.kafka.protocol.list_offsets import Offsets
from kafka_sla.sources.kafka.protocol.record_timestamps import RecordTimes
from kafka_sla.sources.kafka.protocol.topics import TopicPartition, read_topics
from kafka_sla.sources.kafka.samples.poll_runs import Runs
from kafka_sla.sources.kafka.timeline.transaction_markers import ends_of_records

End = tuple[TopicPartition, int, int]
"""Partition, time (ms) and log end offset of a poll."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Facts that fit their table contracts."""

    committed_offsets: pa.Table
    log_offsets: pa.Table
    notes: tuple[str, ...] = ()
    """What could not be read and why, for people."""


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
            self._committed.add(
                now_ms(),
                {
                    Reader(group, TopicPartition(topic, partition)): at
                    for group, topic, partitions, offsets in committed.by_topic()
                    for partition, at in zip(partitions.tolist(), offsets.tolist(), strict=True)
                },
            )
            ends: dict[TopicPartition, int] = self._offsets.ends()
            self._ends.add(now_ms(), ends)
        except (KafkaError, *NONSENSE) as error:
            self.renew()
            if isinstance(error, KafkaError):
                raise self._client.unreachable(words_of(error)) from error
            raise self._client.nonsense(error) from error

    @property
    def sees_topics(self) -> bool:
        """Whether the newest sample was of any topic that matches and may be seen."""
        return bool(self._topics)

    @property
    def sees_consumers(self) -> bool:
        """The same of groups."""
        return bool(self._groups)

    def renew(self) -> None:
        """Forget the client: the next sample opens another."""
        if self._open:
            self._open.close()
        self._open = None

    def take(self) -> Batch:
        """What was polled since the last batch."""
        committed = [
            (reader.group, *reader.tp, at, value, fact_rows.SNAPSHOT) for reader, at, value in self._committed.take()
        ]
        ends, notes = self._ends_of_records(self._ends.take(), {TopicPartition(*row[1:3]) for row in committed})
        rows = [(*tp, at, None, value, fact_rows.SNAPSHOT) for tp, at, value in ends]
        name = self._cluster.name
        return Batch(
            fact_rows.fact_table(COMMITTED_OFFSETS, name, committed),
            fact_rows.fact_table(LOG_OFFSETS, name, rows),
            notes,
        )

    def _ends_of_records(self, polled: list[End], read: Set[TopicPartition]) -> tuple[list[End], tuple[str, ...]]:
        """The ends before the markers of transactions, as snapshots say them, for a whole batch at once. An end that
        cannot be checked is left out: beside a snapshot's it would look like a log that was cut."""
        if not polled:
            return [], ()
        try:
            if self._open is None:
                self._connect()
            times = RecordTimes(self._client, self._topics)
            polled = [end for end in polled if self._offsets.leader(end[0]) is not None]
            told = ends_of_records(times, read, {(tp, end) for tp, _, end in polled})
            problem = times.withheld()
        except (KafkaUnreachable, KafkaError) as error:
            told, problem = {}, str(error) if isinstance(error, KafkaUnreachable) else words_of(error)
        except NONSENSE as error:
            told, problem = {}, str(self._client.nonsense(error))
        if problem:
            return [], (f"{len(polled)} log ends are left out, for the records before them were not read: {problem}",)
        return [(tp, at, told[tp, end]) for tp, at, end in polled], ()

    def _connect(self) -> None:
        with contextlib.ExitStack() as opened:
            self._client = opened.enter_context(Client(self._cluster, self._connection))
            try:
                self._topics = read_topics(self._client, self._cluster.topics)
                self._offsets = Offsets(self._client, self._topics)
                self._groups, _ = see_groups(self._client, self._cluster.groups, self._cluster.topics)
            except KafkaError as error:
                raise self._client.unreachable(words_of(error)) from error
            self._open = opened.pop_all()
