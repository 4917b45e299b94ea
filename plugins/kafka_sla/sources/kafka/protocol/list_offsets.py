"""ListOffsets: where each partition starts and ends now, and which record came first at or after a time.

Knows requests and answers, not what to ask. Everything is read uncommitted: the end is the log end offset, which counts
open transactions and the markers that end them, because the lag of a group is told against what the log holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from kafka.errors import (
    BrokerResponseError,
    IncompatibleBrokerVersion,
    InvalidRequestError,
    KafkaError,
    KafkaProtocolError,
    UnsupportedForMessageFormatError,
    UnsupportedVersionError,
    for_code,
)

from kafka_sla.sources.kafka.protocol.client import TAKE_OVER_S, Ask, Client
from kafka_sla.sources.kafka.protocol.connection_errors import words_of
from kafka_sla.sources.kafka.protocol.kafka_python import OffsetSpec
from kafka_sla.sources.kafka.protocol.partition_messages import list_offsets
from kafka_sla.sources.kafka.protocol.topics import Topic, TopicPartition, read_topic

NO_TIMES = (UnsupportedVersionError, UnsupportedForMessageFormatError, IncompatibleBrokerVersion, InvalidRequestError)
"""What brokers answer that cannot look up by time; where a log starts and ends they may know all the same."""

_NONE = -1
"""Offset of an answer to a time after which there is no record."""

Ints = npt.NDArray[np.int64]
Asked = dict[TopicPartition, Sequence[int]]
Answers = dict[TopicPartition, dict[int, "Found"]]
_Batch = dict[str, dict[int, tuple[TopicPartition, int]]]
"""What one request asks: by topic and number of the partition, that partition and a time."""


class Found(NamedTuple):
    """The first record with a timestamp (ms) not before the asked one; offset -1: there is none."""

    offset: int
    timestamp: int


class Offsets:
    """Look-ups in the partitions of some topics. Counts them, and remembers by cause which were not answered."""

    def __init__(self, client: Client, topics: Mapping[str, Topic]) -> None:
        self._client = client
        self._leaders: dict[TopicPartition, int] = {}
        self._offline: set[TopicPartition] = set()
        for topic in topics.values():
            self._know(topic)
        self._gone: set[TopicPartition] = set()
        self._without_times: set[TopicPartition] = set()
        self.offset_lookups = 0
        self.unanswered: Counter[str] = Counter()
        self._example: dict[str, TopicPartition] = {}

    @property
    def partitions(self) -> list[TopicPartition]:
        """All partitions that still answer."""
        return sorted(self._leaders.keys() - self._gone)

    def answering(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Those of partitions that did not stop to answer since."""
        return {tp: end for tp, end in ends.items() if tp not in self._gone}

    def leader(self, tp: TopicPartition) -> int | None:
        """The node that leads a partition; None where there is none."""
        return self._leaders.get(tp)

    @property
    def without_times(self) -> frozenset[TopicPartition]:
        """Partitions in which offsets cannot be looked up by time, as far as this was found out."""
        return frozenset(self._without_times)

    def find_without_times(self, ends: Mapping[TopicPartition, int], *, of_each: bool = False) -> set[TopicPartition]:
        """Partitions that know no times, and those of topics that hold records and answer that none has a time: lookups
        there would not be true, and are left out from here on. `ends`: log ends, read before.

        A whole topic must answer so: compaction may leave a partition without any record between its start and end. One
        that knows a time speaks for its topic unless `of_each`; partitions that refuse to be asked all the same are
        found when they are.
        """
        filled: Asked = {tp: (0,) for tp, end in ends.items() if end}
        answers, timed = Answers(), set[str]()
        one_a_topic = list({tp.topic: tp for tp in filled}.values())
        for some in (filled,) if of_each else (one_a_topic, filled):
            answers |= self._found({tp: (0,) for tp in some if tp.topic not in timed and tp not in answers})
            timed |= {tp.topic for tp, found in answers.items() if found[0].offset >= 0}
        silent = [tp for tp in answers if tp.topic not in timed]
        starts = self._found({tp: (int(OffsetSpec.EARLIEST),) for tp in silent})
        self._without_times |= {tp for tp, found in starts.items() if found[int(OffsetSpec.EARLIEST)].offset < ends[tp]}
        return set(self._without_times)

    def ends(self) -> dict[TopicPartition, int]:
        """Log end offset of every partition that answers."""
        return self._extremes(int(OffsetSpec.LATEST))

    def starts(self) -> dict[TopicPartition, int]:
        """First readable offset of every partition that answers."""
        return self._extremes(int(OffsetSpec.EARLIEST))

    def at(self, times: Asked) -> Answers:
        """The answer for each partition and time (ms) that was answered; the rest is counted in `unanswered`.

        All leaders are asked at once, each in one request for the first time of all its partitions, one for the
        second, and so on: Kafka takes a partition only once per request.
        """
        self.offset_lookups += sum(len(asked) for asked in times.values())
        return self._found(times)

    def _found(self, times: Asked, failed: Mapping[TopicPartition, KafkaError] | None = None) -> Answers:
        """`failed`: the errors of what was asked already."""
        answers: Answers = {}
        left_out = self._gone or self._without_times
        waiting: Asked = {
            tp: asked for tp, asked in times.items() if asked and not (left_out and self._is_left_out(tp, asked))
        }
        errors = dict(failed) if failed else self._ask(waiting, answers)
        for pause_s in TAKE_OVER_S:
            moving = [tp for tp, error in errors.items() if error.retriable and tp not in self._offline]
            if not moving:
                break
            self._find_leaders(moving, pause_s)
            left: Asked = {tp: [t for t in times[tp] if t not in answers.get(tp, {})] for tp in moving}
            errors = {tp: error for tp, error in errors.items() if tp not in left} | self._ask(left, answers)
        for tp, error in errors.items():
            by_time = isinstance(error, NO_TIMES) and max(times[tp]) >= 0
            (self._without_times if by_time else self._gone).add(tp)
            self._miss(tp, error, len(times[tp]))
        return answers

    def _is_left_out(self, tp: TopicPartition, times: Sequence[int]) -> bool:
        return tp in self._gone or (tp in self._without_times and max(times) >= 0)

    def notes(self) -> list[str]:
        """What was not answered and why, for people."""
        return [
            f"{count} offset lookups were not answered: {cause}"
            f" (first: {self._example[cause].topic}, partition {self._example[cause].partition})"
            + ("; grant DESCRIBE on the topics" if "AUTHORIZATION" in cause else "")
            for cause, count in sorted(self.unanswered.items())
        ]

    def _extremes(self, spec: int) -> dict[TopicPartition, int]:
        """One offset of every partition: all are asked the same, and the answers are taken as columns. Only what has an
        error is asked again one partition after the other."""
        asked = self._by_leader()
        self.offset_lookups += sum(len(tps) for topics in asked.values() for tps in topics.values())
        asks = [
            Ask(node, list_offsets({topic: _columns(tps, spec) for topic, tps in topics.items()}))
            for node, topics in asked.items()
        ]
        found: dict[TopicPartition, int] = {}
        failed: dict[TopicPartition, KafkaError] = {}
        for topics, answer in zip(asked.values(), self._client.ask(asks), strict=True):
            if isinstance(answer, KafkaError):
                failed |= dict.fromkeys((tp for tps in topics.values() for tp in tps), answer)
                continue
            for topic, rows in answer.topics:
                tps = {tp.partition: tp for tp in topics[topic]}
                impossible = (rows["error"] == 0) & (rows["offset"] < 0)
                failed |= {tps[partition]: _impossible() for partition in rows["partition"][impossible].tolist()}
                refused = (rows["error"] != 0) | impossible
                told = (rows[name][~refused].tolist() for name in ("partition", "offset"))
                found |= {tps[partition]: offset for partition, offset in zip(*told, strict=True)}
                refused &= ~impossible
                errors = (rows[name][refused].tolist() for name in ("partition", "error"))
                failed |= {tps[partition]: for_code(error)() for partition, error in zip(*errors, strict=True)}
        again = self._found(dict.fromkeys(failed, (spec,)), failed)
        return found | {tp: answer[spec].offset for tp, answer in again.items()}

    def _by_leader(self) -> dict[int, dict[str, list[TopicPartition]]]:
        places: dict[int, dict[str, list[TopicPartition]]] = {}
        for tp, node in self._leaders.items():
            if tp not in self._gone:
                places.setdefault(node, {}).setdefault(tp.topic, []).append(tp)
        return places

    def _ask(self, waiting: Asked, answers: Answers) -> dict[TopicPartition, KafkaError]:
        """Adds to `answers`; returns the last error of each partition that had one."""
        batches = self._batches(waiting)
        errors: dict[TopicPartition, KafkaError] = {}
        asks = [Ask(node, _request(asked)) for node, asked in batches]
        for (_, asked), answer in zip(batches, self._client.ask(asks), strict=True):
            if isinstance(answer, KafkaError):
                errors |= dict.fromkeys((tp for of_topic in asked.values() for tp, _ in of_topic.values()), answer)
                continue
            for topic, rows in answer.topics:
                of_topic = asked[topic]
                for partition, error, timestamp, offset, *_ in rows.tolist():
                    tp, time_ms = of_topic[partition]
                    if error:
                        errors[tp] = for_code(error)()
                    elif offset < (0 if time_ms < 0 else _NONE):
                        errors[tp] = _impossible()
                    else:
                        answers.setdefault(tp, {})[time_ms] = Found(offset, timestamp)
        return errors

    def _batches(self, waiting: Asked) -> list[tuple[int, _Batch]]:
        batches: dict[tuple[int, int], _Batch] = {}
        for tp, asked in waiting.items():
            for index, time_ms in enumerate(asked):
                of_leader = batches.setdefault((self._leaders[tp], index), {})
                of_leader.setdefault(tp.topic, {})[tp.partition] = tp, time_ms
        return [(node, asked) for (node, _), asked in batches.items()]

    def _find_leaders(self, moving: Iterable[TopicPartition], pause_s: float) -> None:
        self._client.pause(pause_s)
        for name in {tp.topic for tp in moving}:
            try:
                topic = read_topic(self._client, name)
            except BrokerResponseError:
                continue  # the old leader's own error says what is wrong, and is noted
            self._know(topic)

    def _know(self, topic: Topic) -> None:
        self._leaders |= {TopicPartition(topic.name, p): node for p, node in topic.leaders.items()}
        self._offline -= set(topic.partitions)
        self._offline |= {TopicPartition(topic.name, p) for p in topic.offline}

    def _miss(self, tp: TopicPartition, error: KafkaError, count: int) -> None:
        cause = words_of(error)
        self.unanswered[cause] += count
        self._example.setdefault(cause, tp)


def _impossible() -> KafkaError:
    """In place of an offset below 0, which no log has."""
    return KafkaProtocolError("an answer holds an offset below 0, which no log has")


def _columns(tps: Sequence[TopicPartition], spec: int) -> tuple[Ints, Ints]:
    return np.fromiter((tp.partition for tp in tps), np.int64, len(tps)), np.full(len(tps), spec, np.int64)


def _request(asked: _Batch) -> Any:
    return list_offsets(
        {
            topic: (np.fromiter(of_topic, np.int64), np.array([time_ms for _, time_ms in of_topic.values()], np.int64))
            for topic, of_topic in asked.items()
        }
    )
