"""Positions that consumers keep elsewhere, as rows and tracks beside those of the commit log. Pure: asks nobody."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from kafka_sla.model.entities import KeptPosition
from kafka_sla.model.tables import BEYOND_LOG_END, EVERY_COMMIT, POLL_CONFIRMED
from kafka_sla.sources.kafka.committed_positions import Reader, Track
from kafka_sla.sources.kafka.fact_rows import Row
from kafka_sla.sources.kafka.protocol.topics import TopicPartition


def kept_tracks(kept: Iterable[KeptPosition], there: Collection[TopicPartition]) -> dict[Reader, Track]:
    """Each reader's positions over time, on partitions that are there."""
    tracks: dict[Reader, Track] = {}
    for one in sorted(kept, key=lambda position: position.at_ms):
        if (tp := TopicPartition(one.topic, one.partition)) in there:
            tracks.setdefault(Reader(one.group, tp), Track()).add(one.at_ms, one.offset)
    return tracks


def kept_rows(kept: Iterable[KeptPosition], ends: Mapping[TopicPartition, int], since: int) -> Iterator[Row]:
    """Positions from `since` on as they are, on partitions that are there; those beyond the log end are none. An older
    one may be years old; it is told as where its reader stood at `since`, else each landing would be compared with all
    facts from then on."""
    for one in kept:
        if (tp := TopicPartition(one.topic, one.partition)) not in ends:
            continue
        beyond = one.source in EVERY_COMMIT and one.offset is not None and one.offset > ends[tp]
        if one.at_ms >= since:
            yield one.group, *tp, one.at_ms, one.offset, BEYOND_LOG_END if beyond else one.source
        elif one.offset is not None:
            yield one.group, *tp, since, one.offset, BEYOND_LOG_END if beyond else POLL_CONFIRMED


def standing(tracks: dict[Reader, Track], since: int, now: int) -> Iterator[Row]:
    """Where readers are now that have not moved since; without it one that was silent for long had no position."""
    for reader, track in tracks.items():
        position = track.at(now)
        if track.times[-1] < since and position is not None:
            yield reader.group, *reader.tp, now, position, POLL_CONFIRMED
