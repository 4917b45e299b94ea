"""Sorted Arrow batches of facts, gathered into chunks of whole topic-partitions. Knows the event layout, no metric.

An *event* is a produced point, a range that was read, a carry-over position or a commit; `EVENTS` is the layout that
`facts.events` makes and the kernel reads. Events arrive sorted by (cluster, topic, partition, group, at, offset), those
without a group (points and ranges) first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.arrays import NONE, Bools, Ints
from spark_jobs.polls import Looks, Told, evidence, lost_before
from spark_jobs.ranges import Rows
from spark_jobs.timeline import Timeline

EVENTS = (
    "cluster STRING, topic STRING, `partition` INT, `group` STRING, at BIGINT, offset BIGINT, log_start BIGINT, "
    "polled BOOLEAN, certain BOOLEAN, earlier_lost BOOLEAN, carried BOOLEAN, carry STRING, until BIGINT, "
    "records BIGINT, earliest BIGINT, latest BIGINT"
)
"""Times in µs; offset null: the commit was deleted; `polled`: it was seen, not heard of; `certain`: no commit after it
goes unheard; `earlier_lost`: commits before it may have been compacted away; `carry`: JSON of the steady states;
`until` and what follows: a range of offsets that was read (ranges.Rows), null elsewhere."""

_OF_POINTS = ["at", "offset", "log_start", "polled"]
_OF_RANGES = ["at", "offset", "until", "records", "earliest", "latest"]
_OF_COMMITS = [
    "cluster",
    "group",
    "topic",
    "partition",
    "at",
    "offset",
    "log_start",
    "polled",
    "certain",
    "earlier_lost",
    "carried",
    "carry",
]
_CHUNK_ROWS = 2_000_000
"""Events gathered before a kernel runs: large enough that NumPy's per-call cost vanishes, about 200 MB."""


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


def chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[Chunk]:
    """Cut a sorted stream of events into chunks at borders of topic-partitions."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _CHUNK_ROWS:
            table = pa.Table.from_batches(held)
            cut = _last_border(table)
            if cut:
                yield _chunk(table.slice(0, cut))
                held = table.slice(cut).to_batches()
                rows = table.num_rows - cut
    if rows:
        yield _chunk(pa.Table.from_batches(held))


def _last_border(table: pa.Table) -> int:
    """First row of the last topic-partition; 0 when the table holds only one."""
    border = np.flatnonzero(_changes(table, ["cluster", "topic", "partition"]))
    return int(border[-1]) if len(border) else 0


def _changes(table: pa.Table, names: list[str]) -> Bools:
    """True where any of the columns differs from the row before; False in the first row."""
    changed = np.zeros(table.num_rows, dtype=np.bool_)
    for name in names if table.num_rows else []:
        column = table.column(name).combine_chunks()
        column = pc.fill_null(column, "") if pa.types.is_string(column.type) else column
        changed[1:] |= pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)).to_numpy(zero_copy_only=False)
    return changed


def _ints(table: pa.Table, name: str) -> Ints:
    """A BIGINT column as int64 with -1 for null."""
    values: Ints = pc.fill_null(table.column(name), -1).to_numpy().astype(np.int64, copy=False)
    return values


def _chunk(table: pa.Table) -> Chunk:
    partition = np.cumsum(_changes(table, ["cluster", "topic", "partition"]), dtype=np.int64)
    is_commit = pc.is_valid(table.column("group")).to_numpy()
    is_range = pc.is_valid(table.column("until")).to_numpy()
    is_point = ~is_commit & ~is_range
    points = table.select(_OF_POINTS).filter(pa.array(is_point))
    commits = table.select(_OF_COMMITS).filter(pa.array(is_commit))
    ranges = table.select(_OF_RANGES).filter(pa.array(is_range))
    timeline = Timeline(
        int(partition[-1]) + 1,
        partition[is_point],
        _ints(points, "at"),
        _ints(points, "offset"),
        _ints(points, "log_start"),
        points.column("polled").to_numpy(),
        Rows(partition[is_range], *(_ints(ranges, name) for name in _OF_RANGES)),
    )
    return _with_commits(timeline, commits, partition[is_commit])


def _with_commits(timeline: Timeline, commits: pa.Table, partition: Ints) -> Chunk:
    changed = _changes(commits, ["cluster", "topic", "partition", "group"])
    gp = np.cumsum(changed, dtype=np.int64)
    first = np.flatnonzero(np.concatenate([[True], changed[1:]])) if commits.num_rows else np.zeros(0, dtype=np.int64)
    told = _told(gp, commits)
    keep, looks = evidence(told)
    lost = lost_before(told, commits.column("earlier_lost").to_numpy())
    commits = commits.set_column(commits.column_names.index("earlier_lost"), "earlier_lost", pa.array(lost))
    kept = _rewinds_last(gp[keep], commits if len(keep) == len(gp) else commits.take(pa.array(keep)))
    carried_start = np.full(len(first), NONE)
    np.maximum.at(carried_start, gp, _ints(commits, "log_start"))
    return Chunk(
        timeline,
        commits.select(["cluster", "group", "topic", "partition"]).take(pa.array(first)),
        partition[first],
        gp[keep],
        _ints(kept, "at"),
        _ints(kept, "offset"),
        ~kept.column("certain").to_numpy(),
        ~kept.column("certain").to_numpy() | kept.column("earlier_lost").to_numpy(),
        looks,
        kept.column("carried").to_numpy(),
        kept.column("carry").combine_chunks(),
        carried_start,
    )


def _told(gp: Ints, commits: pa.Table) -> Told:
    flags = (commits.column(name).to_numpy() for name in ("polled", "certain", "carried"))
    return Told(gp, _ints(commits, "at"), _ints(commits, "offset"), *flags)


def _rewinds_last(gp: Ints, commits: pa.Table) -> pa.Table:
    """Put rewinds behind other commits of the same millisecond.

    A group that commits and is set back at once is told in the order of its offsets, which would read as a jump back
    and a return to where it was, and what it then reads again as read in no time.
    """
    at, offset = _ints(commits, "at"), _ints(commits, "offset")
    tied = np.zeros(len(gp), dtype=np.bool_)
    tied[1:] = (gp[1:] == gp[:-1]) & (at[1:] == at[:-1])
    if not tied.any():
        return commits
    first = np.maximum.accumulate(np.where(tied, 0, np.arange(len(gp))))
    before = np.maximum(first - 1, 0)
    known = (first > 0) & (gp[before] == gp) & (offset != NONE)
    back = known & (offset < offset[before])
    return commits.take(pa.array(np.lexsort((offset, back, at, gp))))
