"""The markers that end transactions: which topics have them, and where the records before them end.

A marker takes an offset and is no record: nobody reads it, and the position of a group that has read everything may
stay before it for as long as the topic is idle. It must not look like a record that waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from kafka_sla.sources.kafka.protocol.record_timestamps import RecordTimes
from kafka_sla.sources.kafka.protocol.topics import TopicPartition


def transactional_topics(times: RecordTimes, read: Set[TopicPartition], ends: Mapping[TopicPartition, int]) -> set[str]:
    """Topics whose last batch, in one partition that is `read`, was written in a transaction or ends one."""
    last = {tp.topic: (tp, end - 1) for tp, end in sorted(ends.items()) if end > 0 and tp in read}
    times.at(last.values())
    return {topic for topic, position in last.items() if times.transactional(position)}


def before_markers(times: RecordTimes, tp: TopicPartition, offsets: Iterable[int]) -> dict[int, int]:
    """Each offset, and the same or, right behind markers, the one of the first of these."""
    told = {offset: offset for offset in offsets}
    asked = set(told)
    while asked:
        times.at((tp, offset - 1) for offset in sorted(asked) if offset > 0)
        asked = {offset - 1 for offset in asked if times.marker((tp, offset - 1))}
    for offset in told:
        while times.marker((tp, told[offset] - 1)):
            told[offset] -= 1
    return told


def ends_of_records(
    times: RecordTimes, read: Set[TopicPartition], ends: Set[tuple[TopicPartition, int]]
) -> dict[tuple[TopicPartition, int], int]:
    """Each log end, and the same or, right behind markers, the offset of the first of these."""
    transactional = transactional_topics(times, read, dict(sorted(ends)))
    of_partition: dict[TopicPartition, set[int]] = {}
    for tp, end in ends:
        if tp.topic in transactional:
            of_partition.setdefault(tp, set()).add(end)
    moved = {
        (tp, end): told
        for tp, several in of_partition.items()
        for end, told in before_markers(times, tp, several).items()
    }
    return {one: moved.get(one, one[1]) for one in ends}
