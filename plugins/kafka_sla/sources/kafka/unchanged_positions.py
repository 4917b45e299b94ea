"""What the commit log proves of readers: where they were all along, whom polls only saw. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_sla.model.arrow_schemas import arrow_columns
from kafka_sla.model.tables import BEYOND_LOG_END, COMMITTED_OFFSETS, POLL_CONFIRMED
from kafka_sla.sources.kafka.commit_records import Commits
from kafka_sla.sources.kafka.committed_positions import Ints, ReaderNumbers, Tracks, ends_of
from kafka_sla.sources.kafka.fact_rows import SNAPSHOT
from kafka_sla.sources.kafka.live_state import Now
from kafka_sla.sources.kafka.protocol.topics import TopicPartition

_Flags = npt.NDArray[np.bool_]


def unchanged(now: Now, commits: Commits | None) -> _Flags:
    """Which readers of now have no commit in what was read: where they are now is where they were at its start, as the
    commit log proves. Mere polls would leave open whether they moved."""
    if commits is None:
        return np.zeros(len(now.readers), np.bool_)
    return ~np.isin(now.readers, np.concatenate([commits.tracks.readers, commits.later]))


def positions_seen(
    cluster: str, now: Now, still: _Flags, since: int, numbers: ReaderNumbers, ends: Mapping[TopicPartition, int]
) -> pa.Table:
    """Rows of `committed_offsets`: the positions of now, and those of unchanged readers at the start of what was read,
    `since` (ms), too."""
    before, beyond = np.flatnonzero(still), now.positions > ends_of(now.readers, numbers, ends)
    readers = np.concatenate([now.readers, now.readers[before]])
    told = np.concatenate([np.where(still, 1, 0), np.where(beyond[before], 2, 1)])
    rows = {
        **numbers.columns(readers),
        "cluster": pa.repeat(cluster, len(readers)),
        "at": pa.array(np.repeat([now.committed_at, since], [len(now.readers), len(before)]) * 1_000),
        "committed_offset": pa.array(np.concatenate([now.positions, now.positions[before]])),
        "source": pa.array([SNAPSHOT, POLL_CONFIRMED, BEYOND_LOG_END]).take(pa.array(told)),
    }
    return arrow_columns(COMMITTED_OFFSETS, rows)


def tracks(now: Now, commits: Commits | None, still: _Flags, since: int, numbers: ReaderNumbers) -> Tracks:
    """Positions over time: from commits, and for readers without any from where they are now."""
    if commits is None:
        return _standing(numbers, now.readers, 0, now.positions)
    return commits.tracks | _standing(numbers, now.readers[still], since, now.positions[still])


def _standing(numbers: ReaderNumbers, readers: Ints, since: int, positions: Ints) -> Tracks:
    return Tracks.of_commits(numbers, readers, np.full(len(readers), since), positions)
