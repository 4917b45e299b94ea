"""Where groups were seen to stand: commits with the lag of their instant, and polls between them, in order.

A group-partition *exists* from its first sighting until its offset is deleted, or until neither a commit nor a poll has
told of it for `expire_group`. Where the commit log tells of it, polls are no commits. Elsewhere a poll that finds
another position than the sighting before it stands for the commit, and one that finds the same is none: a poll must not
make a dead consumer look alive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.spark_jobs.events.chunks import Chunk
from kafka_sla.spark_jobs.events.columns import ints
from kafka_sla.spark_jobs.numeric.arrays import CLOCK_TOLERANCE_US, MARKERS, NONE, Bools, Ints
from kafka_sla.spark_jobs.numeric.scans import begins, earlier, last_until, latest, value_at


@dataclass(frozen=True, slots=True)
class Sightings:
    """Sorted by (group-partition, time); a deletion comes last in its instant."""

    gp: Ints
    at: Ints
    position: Ints
    """-1: deleted."""
    lag: Ints
    """When it was seen; -1 while no log end offset was known."""
    begins: Bools
    """Nothing is known of the group-partition before it."""
    is_commit: Bools
    polled_only: Bools
    """The commit log has not told of the group-partition yet."""


class LogEnds:
    """Every known log end offset, and the ones that the published rows end with."""

    def __init__(self, chunk: Chunk) -> None:
        known, published = chunk.points, chunk.status
        place = np.concatenate([known.place, chunk.gp_partition[published.gp]])
        at = np.concatenate([known.at, ints(published.rows, "at")])
        log_end = np.concatenate([known.log_end, ints(published.rows, "log_end")])
        order = np.lexsort((log_end, at, place))
        order = order[log_end[order] != NONE]
        self._place, self._at, self._log_end = place[order], at[order], log_end[order]

    def newest(self, place: Ints, at: Ints) -> Ints:
        """The last one of each topic-partition up to that instant; -1 without."""
        return value_at(self._log_end, last_until(self._place, self._at, place, at))

    def is_outdated(self, place: Ints, at: Ints, window: int, position: Ints, committed_at: Ints) -> Bools:
        """Whether the newest log end at the end of each window lies before a position, and says nothing of the lag.

        It is older than the window, or it is younger than the commit of that position, which proves it wrong: a record
        stamped ahead hides what came after it from lookups.
        """
        last = last_until(self._place, self._at, place, at)
        known_at = value_at(self._at, last)
        older = -(-known_at // window) * window <= at - window
        wrong = (known_at > committed_at + CLOCK_TOLERANCE_US) & (value_at(self._log_end, last) < position - MARKERS)
        hidden = (last != NONE) & (value_at(self._log_end, last) < position) & (older | wrong)
        return np.asarray(hidden, dtype=np.bool_)


def lag_behind(log_end: Ints, position: Ints) -> Ints:
    """Not below 0: ends are known at some instants only, a commit may be ahead of the newest. -1 without an end."""
    return np.where((log_end == NONE) | (position == NONE), NONE, np.maximum(log_end - position, 0))


def sightings(chunk: Chunk, ends: LogEnds, until: int, expire: Ints) -> Sightings:
    """All before `until`; `expire`: expire_group of each group-partition. Times are µs."""
    gp, at, offset, logged, carried, lag = _together(chunk, until)
    start = latest(begins(gp))
    at_1, offset_1 = earlier(at, start), earlier(offset, start)
    starts = (offset_1 == NONE) | (~carried & (at - at_1 > expire[gp]))
    counts = (offset != NONE) & ~((at == at_1) & (offset == offset_1))
    moves = (offset != NONE) & (offset_1 != NONE) & (offset != offset_1)
    told = latest(logged)
    polled_only = (told < start) | (at[np.maximum(told, 0)] < at[np.maximum(latest(starts), 0)])
    position = np.where(carried, offset, _in_the_order_of_commits(at, offset, start))
    seen_lag = lag_behind(ends.newest(chunk.gp_partition[gp], at), position)
    return Sightings(
        gp,
        at,
        position,
        np.where(carried, lag, seen_lag),
        starts,
        counts & (starts | logged | polled_only & moves),
        polled_only,
    )


def _together(chunk: Chunk, until: int) -> tuple[Ints, Ints, Ints, Bools, Bools, Ints]:
    """Group-partition, time, offset, whether logged and carried, and carried lag, of new and carried sightings."""
    new = chunk.positions
    fresh = new.at < until
    old = _carried(chunk)
    none = np.full(int(fresh.sum()), NONE)
    columns = [
        np.concatenate([before, now])
        for before, now in zip(
            old, (new.gp[fresh], new.at[fresh], new.offset[fresh], new.logged[fresh], none > NONE, none), strict=True
        )
    ]
    gp, at, offset, logged, carried, _ = columns
    last = np.where(offset == NONE, np.iinfo(np.int64).max, offset)
    order = np.lexsort((~logged, np.where(carried, np.arange(len(gp)), last), ~carried, at, gp))
    gp, at, offset, logged, carried, lag = (column[order] for column in columns)
    again = ~begins(gp, at, offset, logged, carried) & ~carried
    return gp[~again], at[~again], offset[~again], logged[~again], carried[~again], lag[~again]


def _carried(chunk: Chunk) -> tuple[Ints, Ints, Ints, Bools, Bools, Ints]:
    """The evaluated commits of the published rows, and the poll after them, in their order."""
    rows = chunk.status.rows
    parent = pc.list_parent_indices(rows["times"].combine_chunks()).to_numpy().astype(np.int64)
    at, offset, lag = (_flat(rows[name].combine_chunks()) for name in ("times", "offsets", "lags"))
    seen = ints(rows, "seen")
    ending = np.flatnonzero(np.append(parent[1:] != parent[:-1], True)) if len(parent) else parent
    polled = ending[seen[parent[ending]] > at[ending]]
    row = np.concatenate([parent, parent[polled]])
    logged = ~pc.fill_null(rows["polled"], False).to_numpy()[parent]
    return (
        chunk.status.gp[row],
        np.concatenate([at, seen[parent[polled]]]),
        np.concatenate([offset, offset[polled]]),
        np.concatenate([logged, np.zeros(len(polled), dtype=np.bool_)]),
        np.ones(len(row), dtype=np.bool_),
        np.concatenate([lag, np.full(len(polled), NONE)]),
    )


def _flat(lists: pa.ListArray) -> Ints:
    return np.asarray(pc.fill_null(lists.flatten(), NONE).to_numpy(zero_copy_only=False), dtype=np.int64)


def _in_the_order_of_commits(at: Ints, offset: Ints, start: Ints) -> Ints:
    """A group that commits and is set back in one instant is told in the order of its offsets, which would read as if
    it stood at the higher one: the two change places."""
    at_1, at_2 = earlier(at, start), earlier(at, start, 2)
    offset_1, offset_2 = earlier(offset, start), earlier(offset, start, 2)
    inside = ~np.roll(start == np.arange(len(start)), -1)  # the next one is of the same group-partition
    next_at = np.where(inside, np.roll(at, -1), NONE)
    next_offset = np.where(inside, np.roll(offset, -1), NONE)
    known = (offset != NONE) & (offset_1 != NONE)
    back = known & (next_at == at) & (at_1 < at) & (offset < offset_1) & (next_offset >= offset_1)
    forth = known & (at_1 == at) & (at_2 < at) & (offset_2 != NONE) & (offset_1 < offset_2) & (offset >= offset_2)
    return np.where(back, next_offset, np.where(forth, offset_1, offset))
