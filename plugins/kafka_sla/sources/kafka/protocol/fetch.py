"""Fetch requests as a monitor needs them: without a group, many partitions each, never waiting for new records.

Knows requests, not what the records mean. Fetch needs READ permission on the topic, everything else only DESCRIBE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kafka.errors import KafkaError

from kafka_sla.sources.kafka.protocol.client import Ask, Client, QuotaUsedUp
from kafka_sla.sources.kafka.protocol.kafka_python import FetchRequest, IsolationLevel
from kafka_sla.sources.kafka.protocol.record_batches import read_batches
from kafka_sla.sources.kafka.protocol.topics import TopicPartition

_Topic = FetchRequest.FetchTopic
_Partition = _Topic.FetchPartition
_LAST_VERSION_WITH_NAMES = 12
_PARTITIONS, _BYTES = 64, 8 * 1024**2
"""What one request may ask for: so many partitions, and so many bytes together where one does not ask for more."""
PATIENCE_S = 60
"""How long brokers may withhold every answer. A quota counts the last ten seconds by default: of one that fits what is
asked for, the waits that a broker names are shorter than that; of one that does not, they can be hours."""
_PAUSE_S = 0.1
ONE_BATCH = 1
"""A limit that nothing fits: the broker then answers with exactly one batch."""


class FetchPosition(NamedTuple):
    """Where to read: at which node, in which partition, from which offset on."""

    node: int
    tp: TopicPartition
    offset: int


def fetched(client: Client, places: Sequence[FetchPosition], max_bytes: int, *, committed: bool = False) -> list[Any]:
    """Of each place whole batches from the one that holds its offset on: `max_bytes` of them, but one at least.

    The part of the broker's answer that is about the partition, with its error code, or the KafkaError of the request.
    `committed` leaves out what open transactions hold back, and answers which transactions were aborted.
    """
    answers: list[Any] = [None] * len(places)
    requests = list(_together(places, max_bytes))
    _fill(client, places, requests, max_bytes, committed, answers)
    shared = [i for indexes in requests if len(indexes) > 1 for i in indexes]
    alone = [[i] for i in shared if _cut_off(answers[i], places[i])]
    _fill(client, places, alone, max_bytes, committed, answers)
    return answers


def _together(places: Sequence[FetchPosition], max_bytes: int) -> Iterator[list[int]]:
    """Indexes of the places that one request asks for: of one node, each partition once, as a broker demands."""
    asked: dict[TopicPartition, int] = {}
    rounds: dict[tuple[int, int], list[int]] = {}
    for index, (node, tp, _) in enumerate(places):
        asked[tp] = asked.get(tp, 0) + 1
        rounds.setdefault((node, asked[tp]), []).append(index)
    most = max(1, min(_PARTITIONS, _BYTES // max_bytes)) if max_bytes > ONE_BATCH else 1
    for indexes in rounds.values():
        yield from (indexes[begin : begin + most] for begin in range(0, len(indexes), most))


def _fill(
    client: Client,
    places: Sequence[FetchPosition],
    requests: Sequence[list[int]],
    max_bytes: int,
    committed: bool,
    answers: list[Any],
) -> None:
    """Ask, one request for each list of indexes, and put the answers where they belong; again where it is withheld."""
    left = list(requests)
    while left:
        asks = [_request([places[i] for i in indexes], max_bytes, committed) for indexes in left]
        for indexes, answer in zip(left, client.ask(asks), strict=True):
            for i, told in zip(indexes, _parts(answer, [places[i].tp for i in indexes]), strict=True):
                answers[i] = told
        withheld = [indexes for indexes in left if isinstance(answers[indexes[0]], QuotaUsedUp)]
        if len(withheld) < len(left):
            client.waited_in_vain_s = 0
        patience_s = PATIENCE_S - client.waited_in_vain_s
        left = [indexes for indexes in withheld if max(_PAUSE_S, answers[indexes[0]].seconds) <= patience_s]
        if left:
            seconds = max(_PAUSE_S, *(answers[indexes[0]].seconds for indexes in left))
            client.sleep(seconds)
            client.waited_in_vain_s += seconds


def _parts(answer: Any, partitions: Sequence[TopicPartition]) -> list[Any]:
    """What an answer says of each partition."""
    if isinstance(answer, KafkaError):
        return [answer] * len(partitions)
    if not answer.responses:  # all of it is withheld
        return [QuotaUsedUp(answer.throttle_time_ms / 1_000)] * len(partitions)
    told = {
        TopicPartition(topic.topic, partition.partition_index): partition
        for topic in answer.responses
        for partition in topic.partitions
    }
    return [told[tp] for tp in partitions]


def _cut_off(answer: Any, place: FetchPosition) -> bool:
    """There is a batch, but it is larger than the limit: only the first partition of a request gets such a one."""
    if isinstance(answer, KafkaError) or answer.error_code or next(read_batches(answer.records or b""), None):
        return False
    readable: int = answer.high_watermark if answer.last_stable_offset < 0 else answer.last_stable_offset
    return place.offset < readable


def _request(places: Sequence[FetchPosition], max_bytes: int, committed: bool) -> Ask:
    topics: dict[str, list[Any]] = {}
    for _, tp, offset in places:
        partition = _Partition(partition=tp.partition, fetch_offset=offset, partition_max_bytes=max_bytes)
        topics.setdefault(tp.topic, []).append(partition)
    isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    return Ask(
        places[0].node,
        FetchRequest(
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=max_bytes * len(places),
            isolation_level=int(isolation),
            topics=[_Topic(topic=name, partitions=partitions) for name, partitions in topics.items()],
            max_version=_LAST_VERSION_WITH_NAMES,
        ),
    )
