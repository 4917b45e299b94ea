"""Where nobody could see: what the documents say that facts of a plan cannot tell. Knows world and plan, no rows.

Such windows are not compared with the truth, or give it room. Each rule here is a sentence of `docs/reference`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmarks.simulation.seeing import Plan, edges
from benchmarks.simulation.world import NEVER, Commit, Life, Partition, Reader, World


@dataclass(frozen=True, slots=True)
class Visibility:
    """What a plan sees of one reader."""

    reader: Reader
    polls: tuple[int, ...]
    """When its position was polled."""
    only_polls: bool
    """The commit log may not be read."""
    seen_at: tuple[int, ...]
    """When anything told where it stood; all commits in between are hidden."""
    told: frozenset[Commit]
    """Its commits that the commit log keeps."""
    skew_ms: int
    """How far the clocks of its partition's records were from the broker's at most: a record that waits by its
    timestamp may not have been written yet."""
    room_ms: int
    """The same where nothing shows it."""
    voids: bool
    """What aborted transactions wrote, and markers, cannot be told from records: their windows were not sampled."""
    unseen_until: int
    """No poll or snapshot fell into the lives of the topic that ended by then."""
    unsigned_until: int
    """A new life of the topic left no sign that its reader had not passed by then."""
    standing: tuple[tuple[int, bool], ...]
    """When a group was told to stand beyond offset 0 of its partition, or not to: that alone shows such a life."""
    configured: tuple[int, ...] | None
    """When it was seen that the topic is compacted; None where nothing was removed so."""

    def hidden(self, start: int, end: int) -> bool:
        """What nobody could see: a life of the topic that left no sign; what compaction removed where nobody saw that
        the topic is compacted; a position that went back, was deleted or began in this window, or before it since it
        was last seen, and that nothing has told by its end."""
        if start < self.unsigned_until or (start < self.unseen_until and not self._somebody_stands(end)):
            return True
        if self.configured is not None and self._compacted(start, end):
            return True
        borders = {start, end}.intersection(self.polls)
        if any(c.at in borders for c in self.reader.commits):
            return True  # a poll at the end belongs to the window, a commit of that instant to the next
        before = max((at for at in self.seen_at if at < start), default=0)
        standing = self.reader.standing(before + 1)
        highest = standing.offset if standing else None
        for commit in self.reader.commits:
            if not before < commit.at < end:
                continue
            if commit not in self.told and (highest is None or commit.offset is None or commit.offset < highest):
                return True
            highest = commit.offset
        return self.only_polls and not any(at <= end for at in self.polls)

    def _somebody_stands(self, at: int) -> bool:
        """Before that instant; whoever stood there once and has no position any more tells nothing."""
        latest = [beyond for moment, beyond in self.standing if moment < at]
        return bool(latest) and latest[-1]

    def _compacted(self, start: int, end: int) -> bool:
        """Records that the reader had not read by the window's start were removed by its end, unknown to all."""
        assert self.configured is not None
        if any(end - _CONFIGURED_MS <= at <= end + _AHEAD_MS for at in self.configured):
            return False
        standing = self.reader.standing(start) or next(iter(self.reader.commits))
        life = self.reader.partition.lives[standing.life]
        lowest = [c.offset for c in (standing, *self.reader.commits) if c.offset is not None and c.at < end]
        return bool((life.removed[min(lowest, default=0) :] <= end).any())


_CONFIGURED_MS, _AHEAD_MS = 3_600_000, 600_000


_CLOCK_TOLERANCE_MS = 10_000
_KEPT_BY_TRUNCATION = 0.9


def visible_to(world: World, plan: Plan) -> dict[tuple[str, str, int], Visibility]:
    """By group, topic and partition."""
    polls = tuple(sorted({*plan.polls, *(run.asked for run in plan.runs if run.live)}))
    blind = not plan.exact and not sampled(world, plan)
    live = tuple(run.asked for run in plan.runs if run.live)
    found = {}
    for r in world.readers:
        p = r.partition
        unread = blind and world.config(p.topic).transactional
        told = kept(r, plan)
        found[r.group, p.topic, p.number] = Visibility(
            r,
            polls,
            not plan.commit_log,
            tuple(sorted({*polls, *(commit.at for commit in told)})),
            frozenset(told),
            skew_of(p),
            _room(world, plan, r),
            unread,
            _unseen(world, plan, p),
            _unsigned(world, plan, r),
            _standing(world, plan, p, polls),
            tuple(at for at in live if p.life_at(at)) if any(life.compacts for life in p.lives) else None,
        )
    return found


def kept(reader: Reader, plan: Plan) -> tuple[Commit, ...]:
    """What the commit log has left of its commits."""
    if not plan.commit_log:
        return ()
    old = [n for n, commit in enumerate(reader.commits) if commit.at < plan.compacted_until]
    return reader.commits[old[-1] if old else 0 :]


def _standing(world: World, plan: Plan, partition: Partition, polls: tuple[int, ...]) -> tuple[tuple[int, bool], ...]:
    """Whether some group was told to stand beyond offset 0 of a partition, from time to time."""
    events = []
    for number, reader in enumerate(world.readers):
        if reader.partition is partition:
            seen = [(at, reader.standing(at + 1)) for at in polls]
            told = [*kept(reader, plan), *(c for _, c in seen if c and c.offset is not None)]
            times = [*(c.at for c in kept(reader, plan)), *(at for at, c in seen if c and c.offset is not None)]
            events += [(at, number, bool(c.offset)) for at, c in zip(times, told, strict=True)]
    beyond, found = dict[int, bool](), []
    for at, number, is_beyond in sorted(events):
        beyond[number] = is_beyond
        found.append((at, any(beyond.values())))
    return tuple(found)


def skew_of(partition: Partition) -> int:
    return max((int(abs(life.stamp - life.appended).max(initial=0)) for life in partition.lives), default=0)


def _unseen(world: World, plan: Plan, partition: Partition) -> int:
    """When the last life began before which there was one that nobody saw."""
    polls = {*plan.points, *(run.asked for run in plan.runs if run.live), *(edges(world) if plan.exact else ())}
    pairs = pairwise(partition.lives)
    return max((b.born for a, b in pairs if not any(a.born <= at < a.died for at in polls)), default=0)


def _unsigned(world: World, plan: Plan, reader: Reader) -> int:
    """Until when a reader stands where the incarnation before, as far as it was polled or read, had records as well, if
    nothing shows that its topic was created again: no polled log end that fell far enough, and no other topic id.
    Times of records show nothing."""
    asked = [run.asked for run in plan.runs if run.live]
    polls = sorted({*plan.points, *asked, *(edges(world) if plan.exact else ())})
    until = 0
    for number, (a, b) in enumerate(pairwise(reader.partition.lives), 1):
        last = max((at for at in polls if a.born <= at < a.died), default=0)
        standing = reader.standing(b.born)
        if not last and not standing:
            continue
        end = a.log_end(last) if last else (standing.offset or 0 if standing else 0)
        if last and _shows_new_incarnation(polls, last, end, b):
            continue
        if any(at < a.died for at in asked) and any(at >= b.born for at in asked):
            continue
        end = max(end, len(a.appended)) if plan.exact else end
        passed = (c.at for c in reader.commits if c.life == number and c.offset is not None and c.offset >= end)
        until = max(until, next(passed, NEVER))
    return until


def _shows_new_incarnation(polls: Sequence[int], last: int, end: int, born_again: Life) -> bool:
    """Whether polls of the new log lie so far below the last one of the old log that it cannot have been truncated."""
    later = [at for at in polls if at >= born_again.born]
    confirming = [at for at in later if at > last + _CLOCK_TOLERANCE_MS]
    if not confirming:
        return False
    first, confirmed = born_again.log_end(later[0]), born_again.log_end(confirming[0])
    return first < end and min(first, confirmed) < _KEPT_BY_TRUNCATION * end and confirmed < end


def _room(world: World, plan: Plan, reader: Reader) -> int:
    """'Skew against the brokers' clock makes latencies wrong by the skew', but windows whose timestamps are out of
    order are found by samples of the windows of runs, and read. A reader that lags may read older records."""
    lives = reader.partition.lives
    found = all(_mixed(life) for life in lives) and sampled(world, plan)
    return 0 if found and not _reads_older(plan, reader, world.start) else skew_of(reader.partition)


def _reads_older(plan: Plan, reader: Reader, start: int) -> bool:
    """Than the first run's interval, from `start` on."""
    standing = reader.standing(start) or reader.commits[0]
    unread = reader.partition.lives[standing.life].stamp[standing.offset or 0 :]
    return bool((unread < plan.runs[0].start).any())


def _mixed(life: Life) -> bool:
    """Late and early timestamps all the time."""
    back = np.flatnonzero(life.stamp[1:] < life.stamp[:-1])
    return len(back) * 8 > len(life.stamp)


def sampled(world: World, plan: Plan) -> bool:
    """Every window was asked about, with lookups to spare."""
    spans = sorted((run.start, run.end) for run in plan.runs)
    whole = bool(spans) and spans[0][0] <= world.start and spans[-1][1] >= world.end
    whole = whole and all(a[1] >= b[0] for a, b in pairwise(spans))
    return whole and plan.budget >= 10_000 and not plan.points
