"""The sorted events of a task, cut into chunks of whole topic-partitions. Knows the layouts of events, no metric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.spark.job_spec import NEXT_POLL_US
from kafka_sla.spark_jobs.events.columns import flagged, ints
from kafka_sla.spark_jobs.events.layouts import CARRIED, CERTAIN, EARLIER_LOST, LOOKED_UP, POLLED
from kafka_sla.spark_jobs.events.sort import Sorted, TaskEvents
from kafka_sla.spark_jobs.numeric.arrays import EARLIEST_STAMP_US, NONE, Bools, Ints
from kafka_sla.spark_jobs.numeric.offset_ranges import RangeRows
from kafka_sla.spark_jobs.numeric.polls import Observations, PollTimes, alike, evidence, lost_before
from kafka_sla.spark_jobs.numeric.positions import checked
from kafka_sla.spark_jobs.numeric.produced_timeline import Points, Timeline
from kafka_sla.spark_jobs.numeric.scans import begins, last_until, value_at
from kafka_sla.spark_jobs.numeric.topic_incarnations import LogPoints, TopicIdChanges

_OF_RANGES = ("at", "offset", "until", "records", "earliest", "latest")
_CHUNK_EVENTS = 250_000
"""Events that a kernel runs on at once: so many that NumPy's per-call cost vanishes, and so few that the memory of one
array serves the next, without being asked from the system each time."""
_EVENTS_A_ROW, _COMMITS_AN_EVENT = 2, 5
"""A row of a window takes as much room as so many events, and one more for so many commits evaluated for it."""
_MILLION, _OFFSETS = 2**20, 2**41
"""Offsets of all logs of a chunk lie side by side, too: about so many millions of them, or the numbers overflow."""
_WRONG_CLOCK_US = 60_000_000
"""No clock is so much ahead."""
_CLOCK = 2**62
CONFIG_US = 3_600_000_000
"""A topic's configuration seen longer ago is not known: as far back as a run reads it."""
_MARGIN_US = 2 * 86_400_000_000
"""Sorted keys put the time of each group-partition behind that of the one before, so all of a chunk have to fit into 64
bits side by side, with what is asked shortly before and after."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Commits and polls of the replayed facts as they came, sorted by (group-partition, time, offset); those that are
    no positions are left out."""

    gp: Ints
    at: Ints
    offset: Ints
    """-1: the committed offset was deleted."""
    logged: Bools
    """The log of commits tells it; else a poll saw it."""


class Configurations:
    """What was seen of topics' configurations, sorted by (topic, time)."""

    def __init__(self, rows: pa.Table) -> None:
        cluster, topics = (rows[name].combine_chunks() for name in ("cluster", "topic"))
        key = cluster.indices.to_numpy() * np.int64(len(topics.dictionary)) + topics.indices.to_numpy()
        _, first, topic = np.unique(key, return_index=True, return_inverse=True)
        names = (column.take(pa.array(first)).to_pylist() for column in (cluster, topics))
        self.topics = {name: number for number, name in enumerate(zip(*names, strict=True))}
        """(cluster, topic) → the number that stands for it."""
        at = ints(rows, "at")
        order = np.lexsort((at, topic))
        self.topic, self.at = topic[order], at[order]
        self.rows = rows.take(pa.array(order))
        policies = self.rows["cleanup_policy"].cast(pa.string())
        self.compacted: Ints = pc.fill_null(pc.match_substring(policies, "compact"), False).to_numpy().astype(np.int64)
        ids = self.rows["topic_id"].combine_chunks()
        self._id: Ints = pc.fill_null(ids.indices, NONE).to_numpy().astype(np.int64)
        self._changed = self._find_changed_ids()

    def _find_changed_ids(self) -> Ints:
        """Rows that show another topic id than the row before them."""
        changed = ~begins(self.topic) & (self._id != NONE)
        changed[1:] &= (self._id[1:] != self._id[:-1]) & (self._id[:-1] != NONE)
        return np.flatnonzero(changed)

    def find_id_changes(self, places: pa.Table) -> tuple[TopicIdChanges, Bools]:
        """Which of these topic-partitions belong to a topic whose id changed, and between which instants; and which of
        them the new topic does not have."""
        nothing = np.zeros(0, dtype=np.int64)
        if not len(self._changed):
            return TopicIdChanges(nothing, nothing, nothing), nothing > 0
        topic = self.topics_of(places)
        pairs = [(np.flatnonzero(topic == self.topic[row]), row) for row in self._changed.tolist()]
        partition = np.concatenate([partitions for partitions, _ in pairs])
        row = np.concatenate([np.full(len(partitions), row) for partitions, row in pairs])
        gone = ints(places, "partition")[partition] >= ints(self.rows, "partitions")[row]
        return TopicIdChanges(partition, self.at[row - 1], self.at[row]), gone

    def has_same_id(self, places: pa.Table, partition: Ints, before: Ints, at: Ints) -> Bools:
        """Whether the topic of each of these topic-partitions is known to have had one id from `before` until `at`."""
        topic = self.topics_of(places)[partition]
        first = last_until(self.topic, self.at, topic, before)
        last = last_until(self.topic, self.at, topic, at)
        is_known = (first != NONE) & (last != NONE) & (value_at(self.at, last) > before)
        identifier = value_at(self._id, last)
        same = value_at(self._id, first) == identifier
        return np.asarray(is_known & (identifier != NONE) & same, dtype=np.bool_)

    def topics_of(self, places: pa.Table) -> Ints:
        """The number of each topic-partition's topic; -1 where its configuration was never seen."""
        names = zip(places["cluster"].to_pylist(), places["topic"].to_pylist(), strict=True)
        return np.array([self.topics.get(name, NONE) for name in names], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Published:
    """Rows that were published for the window before the replayed facts, and of which group-partition each is."""

    gp: Ints
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole topic-partitions: the produced timeline of each and the commits of each group on each.

    Arrays have one entry per commit (sorted by group-partition, time), `keys` and `gp_partition` one per
    group-partition. A poll that tells nothing new is no commit here, and what it saw stands in `positions` only.
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
    gap_before: Bools
    """Nobody heard what the group did since the position before: it was polled, or earlier commits are lost."""
    invalid: Ints
    """VALID, or why it is no position (`positions`)."""
    invalid_from: Ints
    """From then on it is known to be no position; FAR where it is one."""
    polls: PollTimes
    carried: Bools
    """A position carried over from before the replayed facts, not a commit of theirs."""
    contradicted: Ints
    """Offset that a poll just before told and that this one contradicts; -1 without (`windows.contradicted`)."""
    carry: pa.Array
    """JSON of the carried steady states, one entry per group-partition; null where none are, and of a carried position
    that had expired."""
    carried_log_start: Ints
    """Log start offset known at the carry-over, one entry per topic-partition; -1 without."""
    carried_log_end: Ints
    """The same of the log end offset."""
    points: Points
    positions: Positions
    status: Published
    """Evaluated commits of `consumer_status`, in the layout of status."""
    unread: Published
    """What `non_consumed` had counted, in the layout of unread."""
    configurations: Configurations
    """Of all topics."""
    assumed: bool = False
    """The groups have no committed offset here: these are the positions that they are assumed to have."""

    def compacts(self, gp: Ints, at: Ints) -> Bools:
        """Whether each group-partition's topic was seen to be compacted, not much later than that instant."""
        known = self.configurations
        topic = known.topics_of(self.keys)[gp]
        last = last_until(known.topic, known.at, topic, at + NEXT_POLL_US)
        return value_at(known.compacted, last, np.int64(0)) & (at <= value_at(known.at, last) + CONFIG_US) > 0

    @property
    def within(self) -> Ints:
        """An instant of the window that each commit belongs to: a poll at the end of one tells what it ends with."""
        return self.at - self.polled

    @property
    def expired(self) -> Bools:
        """Carried positions of group-partitions that were gone for good before the replayed facts."""
        without: Bools = pc.is_null(self.carry).to_numpy(zero_copy_only=False)
        return self.carried & without[self.gp]


@dataclass(frozen=True, slots=True)
class Room:
    """What the rows of a job take, for chunks that fit into memory."""

    until: int = 0
    """End of the last row; µs."""
    windows: int = 0
    """Rows of a group-partition."""
    evaluated: int = 0
    """Commits that a row lists, at most."""


def chunks(events: TaskEvents, room: Room) -> Iterator[Chunk]:
    """Cut a task's events at borders of topic-partitions."""
    kinds, places = (events.points, events.ranges, events.commits), events.places.num_rows
    count = sum(np.bincount(kind.place, minlength=places) for kind in kinds)
    longest = np.zeros(places, dtype=np.int64)
    for kind, name in ((events.points, "offset"), (events.ranges, "until")):
        np.maximum.at(longest, kind.place, ints(kind.rows, name))
    of_group = begins(events.commits.place, ints(events.commits.rows, "group"))
    groups = np.bincount(events.commits.place[of_group], minlength=places)
    count += room.windows * (_EVENTS_A_ROW + room.evaluated // _COMMITS_AN_EVENT) * groups
    filled = (np.cumsum(count) - count) // _CHUNK_EVENTS
    crowded = np.cumsum(groups + 1) // max(1, _CLOCK // _span(events, room.until))
    long = np.cumsum(longest // _MILLION + 1) // _OFFSETS
    borders = [*np.flatnonzero(begins(filled, crowded, long)).tolist(), places]
    configurations = Configurations(events.configurations)
    for first, last in pairwise(borders):
        yield _chunk(events, configurations, first, last)


def whole_chunk(events: TaskEvents) -> Chunk:
    """All topic-partitions of a task, as one chunk."""
    return _chunk(events, Configurations(events.configurations), 0, events.places.num_rows)


def _span(events: TaskEvents, until: int) -> int:
    """From the first instant of all to the last; µs. One clock in the year 1970 makes it half a century."""
    at = [ints(kind.rows, "at") for kind in (events.points, events.ranges, events.commits, events.status)]
    listed = events.status.rows["times"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    known = np.concatenate([*at, listed, [until]]).astype(np.int64)
    return int(known.max() - known.min()) + _MARGIN_US


def _chunk(events: TaskEvents, configurations: Configurations, first: int, last: int) -> Chunk:
    points, ranges = events.points.between(first, last), events.ranges.between(first, last)
    at, offset, log_start = (ints(points.rows, name) for name in ("at", "offset", "log_start"))
    polled, looked_up = (flagged(points.rows, flag) for flag in (POLLED, LOOKED_UP))
    known = LogPoints(points.place, at, offset, log_start, polled, looked_up)
    known = known.take(np.flatnonzero(polled | (at >= EARLIEST_STAMP_US)))
    read = _with_possible_times(RangeRows(ranges.place, *(ints(ranges.rows, name) for name in _OF_RANGES)))
    places = events.places.slice(first, last - first)
    changes, gone = configurations.find_id_changes(places)
    if gone.any():
        known = _with_empty_polls(known, changes.partition[gone], changes.at[gone])
    timeline = Timeline(last - first, known, changes, read, partial(configurations.has_same_id, places))
    return _with_commits(timeline, configurations, events, first, last)


def _with_empty_polls(points: LogPoints, partition: Ints, at: Ints) -> LogPoints:
    """Points with a poll of each of these partitions that found nothing: a topic that was created again does not have
    them, and no poll will say that their logs have ended."""
    nothing, true = np.zeros(len(at), dtype=np.int64), np.ones(len(at), dtype=np.bool_)
    polls = LogPoints(partition, at, nothing, nothing, true, ~true)
    both = LogPoints(*(np.concatenate([getattr(of, n) for of in (points, polls)]) for n in LogPoints.__slots__))
    return both.take(np.lexsort((both.offset, both.at, both.partition)))


def _with_possible_times(read: RangeRows) -> RangeRows:
    """Ranges without those whose records are all stamped long after the window that they were read for: they belong to
    another incarnation of the topic. Ranges with a record that cannot be so old count as not read."""
    wrong = read.earliest > read.at + _WRONG_CLOCK_US
    too_old = (read.records > 0) & (read.earliest < EARLIEST_STAMP_US)
    if too_old.any():
        hidden = (np.where(too_old, NONE, values) for values in (read.records, read.earliest, read.latest))
        read = RangeRows(read.partition, read.at, read.offset, read.until, *hidden)
    return RangeRows(*(getattr(read, name)[~wrong] for name in RangeRows.__slots__)) if wrong.any() else read


def _with_commits(
    timeline: Timeline,
    configurations: Configurations,
    events: TaskEvents,
    first_place: int,
    last_place: int,
) -> Chunk:
    part = events.commits.between(first_place, last_place)
    commits, group = part.rows, ints(part.rows, "group")
    key = part.place * len(events.groups) + group
    first = np.flatnonzero(begins(key))
    gp = np.repeat(np.arange(len(first)), np.diff(first, append=len(group)))
    observed = _observations(gp, commits)
    keep, polls = evidence(observed)
    invalid, since = checked(
        timeline, part.place, observed.at, observed.offset, alike(observed, ints(commits, "invalid"))
    )
    lost = lost_before(observed, flagged(commits, EARLIER_LOST))
    keep = keep[_rewinds_last(gp[keep], observed.at[keep], observed.offset[keep])]
    carried_start, carried_end = (np.full(last_place - first_place, NONE) for _ in range(2))
    gap_before = ~observed.certain[keep]

    def published(kind: Sorted) -> Published:
        rows = kind.between(first_place, last_place)
        own = rows.place * len(events.groups) + ints(rows.rows, "group")
        known = np.isin(own, key[first])
        return Published(np.searchsorted(key[first], own[known]), rows.rows.filter(pa.array(known)))

    carried = published(events.carried)
    for known, name in ((carried_start, "log_start"), (carried_end, "log_end")):
        np.maximum.at(known, part.place[first][carried.gp], ints(carried.rows, name))
    carry = np.full(len(first), NONE)
    carry[carried.gp] = np.arange(len(carried.gp))
    fresh = ~observed.carried & (since > observed.at)
    return Chunk(
        timeline,
        _keys(events, first_place + part.place[first], group[first]),
        part.place[first],
        gp[keep],
        observed.at[keep],
        observed.offset[keep],
        gap_before,
        gap_before | lost[keep],
        invalid[keep],
        since[keep],
        polls,
        observed.carried[keep],
        np.full(len(keep), NONE),
        carried.rows.column("carry").combine_chunks().take(pa.array(carry, mask=carry == NONE)),
        carried_start,
        carried_end,
        timeline.living,
        Positions(gp[fresh], observed.at[fresh], observed.offset[fresh], ~observed.polled[fresh]),
        published(events.status),
        published(events.unread),
        configurations,
    )


def _keys(events: TaskEvents, place: Ints, group: Ints) -> pa.Table:
    places = events.places.take(pa.array(place))
    names = {"cluster": places["cluster"], "group": events.groups.take(pa.array(group))}
    return pa.table({**names, "topic": places["topic"], "partition": places["partition"]})


def _observations(gp: Ints, commits: pa.Table) -> Observations:
    flags = (flagged(commits, flag) for flag in (POLLED, CERTAIN, CARRIED))
    return Observations(gp, ints(commits, "at"), ints(commits, "offset"), *flags)


def _rewinds_last(gp: Ints, at: Ints, offset: Ints) -> Ints:
    """The order of commits with rewinds behind other commits of the same millisecond.

    A group that commits and is set back at once is told in the order of its offsets, which would read as a jump back
    and a return to where it was, and what it then reads again as read in no time.
    """
    tied = np.zeros(len(gp), dtype=np.bool_)
    tied[1:] = (gp[1:] == gp[:-1]) & (at[1:] == at[:-1])
    if not tied.any():
        return np.arange(len(gp))
    first = np.maximum.accumulate(np.where(tied, 0, np.arange(len(gp))))
    before = np.maximum(first - 1, 0)
    known = (first > 0) & (gp[before] == gp) & (offset != NONE)
    back = known & (offset < offset[before])
    return np.lexsort((offset, back, at, gp))
