"""What consumers of a group do on a partition: they read, commit, stop, go back."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchmarks.simulation.traffic import Generator
from benchmarks.simulation.world import Commit, Life, Partition

EVENTS = (
    "stop",
    "stall",
    "rewind",
    "rewind_again",
    "jump_to_latest",
    "move_by_hand",
    "delete_offset",
    "out_of_order",
    "rebalance",
    "slow_down",
)
_MOST_POLLS = 250
"""Of a reader in one life: a world takes a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How a group reads."""

    joins: int
    poll_ms: int
    commit_ms: int
    rate: float
    """Records a second, at most."""
    reset: str
    """auto.offset.reset: earliest or latest."""
    commits_idle: bool
    """It commits also when it has not moved."""
    before_markers: bool
    """Its position stays before markers at the end."""
    on_the_second: bool
    """It commits at whole seconds, ends of windows among them."""
    events: tuple[tuple[int, str, int], ...]
    """When, what, and how long (ms)."""


@dataclass
class _Run:
    """One consumer at work in one life."""

    rng: Generator
    habits: Habits
    life: Life
    number: int
    position: int | None = None
    commits: list[Commit] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)

    def begin(self, at: int) -> None:
        end = self.life.readable_end(at)
        self.position = self.life.log_start(at) if self.habits.reset == "earliest" else end

    def read(self, at: int, ms: int) -> None:
        if self.position is None:
            self.begin(at)
        first = self.life.log_start(at)
        assert self.position is not None
        if self.position < first:  # out of range: the position is reset
            self.lost.update(range(self.position, first))
            self.position = first if self.habits.reset == "earliest" else max(first, self.life.readable_end(at))
        end = self.life.readable_end(at)
        if self.habits.before_markers:
            while end > self.position and not self.life.record[end - 1]:
                end -= 1
        most = self.habits.rate * ms / 1_000
        to = min(end, self.position + int(most) + (self.rng.random() < most % 1))
        if self.life.compacts and to > self.position:
            gone = self.life.removed[self.position : to] <= at
            self.lost.update((self.position + np.flatnonzero(gone)).tolist())
        self.position = max(to, self.position)

    def skip(self, to: int, at: int) -> None:
        """Stand there without reading; what was removed on the way nobody consumed."""
        for offset in range(self.position or 0, to):
            if offset < self.life.log_start(at) or self.life.removed[offset] <= at:
                self.lost.add(offset)
        self.position = to

    def commit(self, at: int, offset: int | None = -1) -> None:
        to = self.position if offset == -1 else offset
        if to is None and offset == -1:
            return
        before = self.commits[-1] if self.commits else None
        if self.habits.on_the_second:
            at = -(-at // 1_000) * 1_000
        if before and at <= before.at:
            at = before.at + 1
        self.commits.append(Commit(at, to, self.number, tuple(sorted(self.lost))))
        self.lost.clear()


def commits(rng: Generator, habits: Habits, partition: Partition, end: int) -> tuple[Commit, ...]:
    """All commits of a group on all lives of a partition."""
    found: list[Commit] = []
    for number, life in enumerate(partition.lives):
        run = _Run(rng, habits, life, number, commits=found)
        _live(run, max(habits.joins, life.born + int(rng.integers(0, 30_000)) * (number > 0)), min(life.died, end))
        if life.died < end and found and found[-1].offset is not None and rng.random() < 0.8:
            run.lost.clear()
            run.commit(life.died + int(rng.integers(1, 2_000)), None)  # the coordinator forgets a deleted topic
    return tuple(commit for commit in found if commit.at < end)


def _live(run: _Run, start: int, end: int) -> None:
    habits, rng = run.habits, run.rng
    poll_ms = max(habits.poll_ms, (end - start) // _MOST_POLLS)
    events = sorted(event for event in habits.events if start < event[0] < end)
    now, next_commit, slow = start, start + int(rng.integers(habits.commit_ms)), 1.0
    asleep_until = stalled_until = again_until = 0
    while now < end:
        while events and events[0][0] <= now:
            _at, what, length = events.pop(0)
            if what in ("stop", "rebalance"):
                asleep_until = now + (length if what == "stop" else min(length, 20_000))
            elif what == "stall":
                stalled_until = now + length
            elif what == "rewind_again":
                again_until = now + length
            elif what == "slow_down":
                slow = 0.2
            else:
                _happen(run, what, now)
        if now >= asleep_until:
            if now >= stalled_until:
                run.read(now, int(poll_ms * slow))
            if now >= next_commit:
                moved = not run.commits or run.commits[-1].offset != run.position
                if moved or habits.commits_idle or now < stalled_until:
                    run.commit(now)
                next_commit = now + max(1, int(habits.commit_ms * rng.uniform(0.9, 1.1)))
                if now < again_until and run.position is not None and run.position > 0:
                    back = max(run.life.log_start(now), run.position - int(rng.integers(1, 25)))
                    run.position = back
                    run.commit(now + 1)
        now += max(1, int(poll_ms * rng.uniform(0.8, 1.2)))


def _happen(run: _Run, what: str, now: int) -> None:
    life, rng = run.life, run.rng
    if run.position is None:
        return
    start, end = life.log_start(now), life.readable_end(now)
    if what == "rewind":
        run.skip(int(rng.integers(start, max(run.position, start) + 1)), now)
    elif what == "jump_to_latest":
        run.skip(end, now)
    elif what == "move_by_hand":
        run.skip(int(rng.integers(start, max(end, start) + 1)), now)
    elif what == "delete_offset":
        run.commit(now, None)
        run.position = None
        return
    elif what == "out_of_order" and len(run.commits) > 1 and run.commits[-2].life == run.number:
        run.commit(now, run.commits[-2].offset)  # a retried commit comes late
        return
    run.commit(now)


def _expires_while_stopped(events: tuple[tuple[int, str, int], ...]) -> bool:
    stops = [(at, at + length) for at, what, length in events if what == "stop"]
    return any(start < at < end for at, what, _ in events if what == "delete_offset" for start, end in stops)


def habits(rng: Generator, start: int, end: int, features: set[str]) -> Habits:
    """Some group's ways."""
    commit_ms = int(rng.choice([500, 1_000, 5_000, 15_000, 60_000, 300_000], p=[0.1, 0.2, 0.35, 0.15, 0.15, 0.05]))
    if commit_ms >= 60_000:
        features.add("group: commits rarely")
    rate = float(np.exp(rng.uniform(np.log(0.2), np.log(200))))
    chosen = [str(rng.choice(EVENTS)) for _ in range(int(rng.choice([0, 1, 2, 3], p=[0.35, 0.35, 0.2, 0.1])))]
    features.update(f"group: {name}" for name in chosen)
    events = tuple((int(rng.integers(start, end)), name, int(rng.integers(5_000, 900_000))) for name in chosen)
    if _expires_while_stopped(events):
        features.add("group: its offset expires while it is stopped")
    joins = start + int(rng.integers(0, 30_000)) if rng.random() < 0.7 else int(rng.integers(start, end))
    reset = str(rng.choice(["earliest", "latest"], p=[0.7, 0.3]))
    return Habits(
        joins,
        int(rng.choice([250, 1_000, 3_000])),
        commit_ms,
        rate,
        reset,
        bool(rng.random() < 0.5),
        bool(rng.random() < 0.3),
        bool(rng.random() < 0.2),
        events,
    )
