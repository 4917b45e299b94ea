"""The sorted events of a task, cut into chunks of whole topic-partitions. Knows the layout of events, no metric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.arrays import NONE, Bools, Ints
from spark_jobs.order import Events, Sorted, ints
from spark_jobs.polls import Looks, Told, evidence, lost_before
from spark_jobs.ranges import Rows
from spark_jobs.timeline import Timeline

_OF_RANGES = ("at", "offset", "until", "records", "earliest", "latest")
_CHUNK_ROWS = 2_000_000
"""Events that a kernel runs on at once: so many that NumPy's per-call cost vanishes, about 200 MB."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole topic-partitions: the produced timeline of each and the commits of each group on each.

    Arrays have one entry per commit (sorted by group-partition, time), `keys` and `gp_partition` one per
    group-partition.
    """

    timeline: Timeline
    keys: pa.Table
    """cluster, group, topic, partition: one row per group-partition."""
    gp_partition: Ints
    """Index of the topic-partition of each group-partition."""
    gp: Ints
    at: Ints
    offset: Ints
    """-1: the committed offset was deleted."""
    polled: Bools
    """Only polls tell the position: the group may have moved before, unseen, or since."""
    unheard: Bools
    """Nobody heard what the group did since the position before: it was polled, or earlier commits are lost."""
    looks: Looks
    carried: Bools
    """A position carried over from before the replayed facts, not a commit of theirs."""
    carry: pa.Array
    """JSON of the carried steady states, null elsewhere, and of a carried position that had expired."""
    carried_log_start: Ints
    """Log start offset known at the carry-over, one entry per group-partition; -1 without."""

    @property
    def within(self) -> Ints:
        """An instant of the window that each commit belongs to: a poll at the end of one tells what it ends with."""
        return self.at - self.polled

    @property
    def expired(self) -> Bools:
        """Carried positions of group-partitions that were gone for good before the replayed facts."""
        without: Bools = pc.is_null(self.carry).to_numpy(zero_copy_only=False)
        return self.carried & without


def chunks(events: Events) -> Iterator[Chunk]:
    """Cut a task's events at borders of topic-partitions."""
    kinds = (events.points, events.ranges, events.commits)
    count = sum(np.bincount(kind.place, minlength=events.places.num_rows) for kind in kinds)
    filled = (np.cumsum(count) - count) // _CHUNK_ROWS
    borders = [*np.flatnonzero(np.diff(filled, prepend=-1)).tolist(), events.places.num_rows]
    for first, last in pairwise(borders):
        yield _chunk(events, first, last)


def _bools(table: pa.Table, name: str) -> Bools:
    """A column with False for null."""
    values: Bools = pc.fill_null(table.column(name), False).to_numpy()
    return values


def _chunk(events: Events, first: int, last: int) -> Chunk:
    points, ranges = events.points.between(first, last), events.ranges.between(first, last)
    timeline = Timeline(
        last - first,
        points.place,
        ints(points.rows, "at"),
        ints(points.rows, "offset"),
        ints(points.rows, "log_start"),
        _bools(points.rows, "polled"),
        Rows(ranges.place, *(ints(ranges.rows, name) for name in _OF_RANGES)),
    )
    return _with_commits(timeline, events, first, events.commits.between(first, last))


def _with_commits(timeline: Timeline, events: Events, first_place: int, part: Sorted) -> Chunk:
    commits, group = part.rows, ints(part.rows, "group")
    first = np.flatnonzero(np.diff(part.place * (len(events.groups) + 1) + group, prepend=-1))
    gp = np.repeat(np.arange(len(first)), np.diff(first, append=len(group)))
    told = _told(gp, commits)
    keep, looks = evidence(told)
    lost = lost_before(told, _bools(commits, "earlier_lost"))
    commits = commits.set_column(commits.column_names.index("earlier_lost"), "earlier_lost", pa.array(lost))
    kept = _rewinds_last(gp[keep], commits if len(keep) == len(gp) else commits.take(pa.array(keep)))
    carried_start = np.full(len(first), NONE)
    np.maximum.at(carried_start, gp, ints(commits, "log_start"))
    unheard = ~_bools(kept, "certain")
    return Chunk(
        timeline,
        _keys(events, first_place + part.place[first], group[first]),
        part.place[first],
        gp[keep],
        ints(kept, "at"),
        ints(kept, "offset"),
        unheard,
        unheard | _bools(kept, "earlier_lost"),
        looks,
        _bools(kept, "carried"),
        kept.column("carry").combine_chunks(),
        carried_start,
    )


def _keys(events: Events, place: Ints, group: Ints) -> pa.Table:
    places = events.places.take(pa.array(place))
    names = {"cluster": places["cluster"], "group": events.groups.take(pa.array(group))}
    return pa.table({**names, "topic": places["topic"], "partition": places["partition"]})


def _told(gp: Ints, commits: pa.Table) -> Told:
    flags = (_bools(commits, name) for name in ("polled", "certain", "carried"))
    return Told(gp, ints(commits, "at"), ints(commits, "offset"), *flags)


def _rewinds_last(gp: Ints, commits: pa.Table) -> pa.Table:
    """Put rewinds behind other commits of the same millisecond.

    A group that commits and is set back at once is told in the order of its offsets, which would read as a jump back
    and a return to where it was, and what it then reads again as read in no time.
    """
    at, offset = ints(commits, "at"), ints(commits, "offset")
    tied = np.zeros(len(gp), dtype=np.bool_)
    tied[1:] = (gp[1:] == gp[:-1]) & (at[1:] == at[:-1])
    if not tied.any():
        return commits
    first = np.maximum.accumulate(np.where(tied, 0, np.arange(len(gp))))
    before = np.maximum(first - 1, 0)
    known = (first > 0) & (gp[before] == gp) & (offset != NONE)
    back = known & (offset < offset[before])
    return commits.take(pa.array(np.lexsort((offset, back, at, gp))))
