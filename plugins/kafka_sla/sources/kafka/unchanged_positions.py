"""What the commit log proves of readers: where they were all along, whom polls only saw. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kafka_sla.model.tables import BEYOND_LOG_END, POLL_CONFIRMED
from kafka_sla.sources.kafka.commit_records import Commits
from kafka_sla.sources.kafka.committed_positions import Reader, Track
from kafka_sla.sources.kafka.fact_rows import Row
from kafka_sla.sources.kafka.live_state import Now
from kafka_sla.sources.kafka.protocol.topics import TopicPartition

_READER = 3
"""Values of a row that name the reader: group, topic, partition."""


def unchanged(since: int, now: Now, commits: Commits | None, ends: Mapping[TopicPartition, int]) -> list[Row]:
    """Rows for readers without a commit in what was read: where they are now is where they were at its start, as the
    commit log proves. Mere polls would leave open whether they moved. `since`: that start, ms."""
    if commits is None or commits.held_back:
        return []
    return [
        (
            reader.group,
            *reader.tp,
            since,
            position,
            BEYOND_LOG_END if position > ends.get(reader.tp, position) else POLL_CONFIRMED,
        )
        for reader, position in now.positions.items()
        if reader not in commits.tracks and reader not in commits.later
    ]


def proven(seen: list[Row], still: list[Row]) -> Iterator[Row]:
    """The positions of now, those of readers without commits as what the commit log proves to be unchanged."""
    silent = {row[:_READER] for row in still}
    for row in seen:
        yield (*row[:-1], POLL_CONFIRMED) if row[:_READER] in silent else row


def tracks(now: Now, commits: Commits | None, still: list[Row]) -> dict[Reader, Track]:
    """Positions over time: from commits, and for readers without any from where they are now."""
    if commits is None:
        return {reader: _standing(0, position) for reader, position in now.positions.items()}
    standing = {Reader(group, TopicPartition(*tp)): _standing(at, position) for group, *tp, at, position, _ in still}
    return {**commits.tracks, **standing}


def _standing(since: int, position: int) -> Track:
    track = Track()
    track.add(since, position)
    return track
