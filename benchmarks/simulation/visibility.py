"""Where nobody could see: what the documents say that facts of a plan cannot tell. Knows world and plan, no rows.

Such windows are not compared with the truth, or give it room. Each rule here is a sentence of `docs/reference`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmarks.simulation.seeing import Plan, edges
from benchmarks.simulation.world import Life, Partition, Reader, World


@dataclass(frozen=True, slots=True)
class Visibility:
    """What a plan sees of one reader."""

    reader: Reader
    polls: tuple[int, ...] | None
    """When its position was polled; None where the commit log has every commit."""
    skew_ms: int
    """How far the clocks of its partition's records were from the broker's at most: a record that waits by its
    timestamp may not have been written yet."""
    room_ms: int
    """The same where nothing shows it."""
    voids: bool
    """What aborted transactions wrote, and markers, cannot be told from records: their windows were not sampled."""
    unseen_until: int
    """A life of the topic that ended by then left no sign: neither poll nor snapshot fell into it."""

    def hidden(self, start: int, end: int) -> bool:
        """A position that went back, was deleted or began in this window, or before it since the last poll, and that no
        poll has seen by its end; or a life of the topic that nobody saw."""
        if start < self.unseen_until:
            return True
        if self.polls is None:
            return False
        if end in self.polls and any(commit.at == end for commit in self.reader.commits):
            return True  # a poll at the end belongs to the window, a commit of that instant to the next
        last = max((at for at in self.polls if at <= end), default=0)
        before = max((at for at in self.polls if at < start), default=0)
        standing = self.reader.standing(before + 1)
        highest = standing.offset if standing else None
        for commit in self.reader.commits:
            if not before < commit.at < end:
                continue
            if highest is None or commit.offset is None or commit.offset < highest:
                return True
            highest = commit.offset
        return last == 0


def visible_to(world: World, plan: Plan) -> dict[tuple[str, str, int], Visibility]:
    """By group, topic and partition."""
    polls = None if plan.commit_log else tuple(sorted({*plan.polls, *(run.asked for run in plan.runs if run.live)}))
    blind = not plan.exact and not sampled(world, plan)
    found = {}
    for r in world.readers:
        p = r.partition
        unread = blind and world.config(p.topic).transactional
        found[r.group, p.topic, p.number] = Visibility(
            r, polls, _skew(p), _room(world, plan, p), unread, _unseen(world, plan, p)
        )
    return found


def _skew(partition: Partition) -> int:
    return max((int(abs(life.stamp - life.appended).max(initial=0)) for life in partition.lives), default=0)


def _unseen(world: World, plan: Plan, partition: Partition) -> int:
    """When the last life began before which there was one that nobody saw."""
    polls = {*plan.points, *(run.asked for run in plan.runs if run.live), *(edges(world) if plan.exact else ())}
    pairs = pairwise(partition.lives)
    return max((b.born for a, b in pairs if not any(a.born <= at < a.died for at in polls)), default=0)


def _room(world: World, plan: Plan, partition: Partition) -> int:
    """'Skew against the brokers' clock makes latencies wrong by the skew', but windows whose timestamps are out of
    order are found by samples of the windows of runs, and read."""
    two_clocks = all(_mixed(life) for life in partition.lives)
    return 0 if two_clocks and sampled(world, plan) else _skew(partition)


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
