"""Where every record's time and every commit is known, figures are not bounded but equal to what a plain loop gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.simulation import truth
from benchmarks.simulation.bounds import Failure
from benchmarks.simulation.kernel import Made
from benchmarks.simulation.seeing import Plan
from benchmarks.simulation.visibility import Visibility
from benchmarks.simulation.world import NEVER, Commit, Reader, World
from kafka_sla.model.entities import Sla, epoch_ms
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE

_OFF_MS = 0.6
"""Estimates are of the middle of a record: half a ms and rounding."""


def plain(world: World, plan: Plan, visible: Visibility) -> bool:
    """Nothing about this reader is left to guess."""
    life = visible.reader.partition.lives[0]
    simple = len(visible.reader.partition.lives) == 1 and visible.skew_ms == 0 and not life.compacts
    known = plan.exact and plan.commit_log and not plan.compacted_until
    return bool(known and simple and not len(life.moved_at) and life.record.all())


def equal(world: World, slas: tuple[Sla, ...], visible: Visibility, whole: Made) -> Iterator[Failure]:
    """Figures and steady states of a reader by plain loops."""
    reader = visible.reader
    rows = [row for row in whole[CONSUMER_LATENCY].to_pylist() if _of(reader, row)]
    true = truth.windows(reader, world.start, world.end, world.window_ms)
    for row in rows:
        start = epoch_ms(row["window_start"])
        yield from _figures(reader, start, row, true[start])
    states = [row for row in whole[STEADY_STATE].to_pylist() if _of(reader, row)]
    for sla in slas:
        lives = list(_lives(reader, sla))
        for row in (row for row in states if row["sla"] == sla.name):
            yield from _state(reader, sla, row, lives)


def _of(reader: Reader, row: Mapping[str, Any]) -> bool:
    place = (reader.group, reader.partition.topic, reader.partition.number)
    return (row["group"], row["topic"], row["partition"]) == place


def _figures(reader: Reader, start: int, row: Mapping[str, Any], true: truth.WindowTruth) -> Iterator[Failure]:
    expected: dict[str, float | None] = {"records_consumed": len(true.latencies)}
    if len(true.latencies):
        expected |= {
            "records_latency_max_ms": int(true.latencies.max()),
            "records_latency_ms": int(true.latencies[-1]),
            "records_latency_avg_ms": float(true.latencies.mean()),
        }
    if row["unknown_reason"] is None and true.age is not None:
        expected["backlog_age_ms"] = true.age
        life = reader.partition.lives[0]
        end = epoch_ms(row["window_end"])
        position = reader.standing(end)
        if position and position.offset is not None:
            expected["records_lag"] = max(0, life.log_end(end) - position.offset)
    for name, value in expected.items():
        made = row[name]
        if made is None or value is None or abs(made - value) > (_OFF_MS if name.endswith("_ms") else 0):
            yield Failure("exact facts give exact figures", name, reader.name, start, str(value), str(made))


@dataclass
class _Life:
    """A bootstrapping, or a contradiction: when it began, and from when on the reader is steady."""

    began: int
    steady: int
    contradictory: bool = False
    progress: int = 0
    age: float = NEVER
    lag: int = NEVER
    """Smallest ones so far."""

    def __post_init__(self) -> None:
        self.progress = self.began

    def lapse(self, deadline: int, until: int = NEVER) -> None:
        """End it if a deadline has passed without progress."""
        if self.progress + deadline < until:
            self.steady = min(self.steady, self.progress + deadline)

    def look(self, age: float, lag: int, at: int) -> None:
        """Compare a backlog with the smallest ones so far."""
        if (age < self.age < NEVER or lag < self.lag < NEVER) and not self.contradictory:
            self.progress = at
        self.age, self.lag = min(self.age, age), min(self.lag, lag)


def _lives(reader: Reader, sla: Sla) -> Iterator[_Life]:
    """One after the other, as `docs/reference/steady_state.md` says."""
    rules, deadline = sla.steady_state, sla.steady_state.progress_deadline_ms
    now, highest, mark, before, rewinds, rewound = _Life(0, 0), -1, None, None, 0, -NEVER
    is_contradictory = False
    for commit in reader.commits:
        now.lapse(deadline, commit.at)
        event, stands = _event(before, commit, sla), -1 if commit.offset is None else commit.offset
        if event == "rewind":
            further, soon = mark is None or highest > mark, commit.at <= rewound + deadline
            mark = highest if further else mark
            falls = _on_time(reader, before, commit.at, sla) and not _on_time(reader, commit, commit.at, sla)
            is_contradictory = is_contradictory and soon
            if falls and is_contradictory:
                now.progress = rewound = commit.at
            elif falls and further:
                rewinds, rewound = rewinds + 1 if soon else 1, commit.at
                yield now
                is_contradictory = rewinds >= 3
                end = NEVER if is_contradictory else _grace_end(commit.at, sla)
                now = _Life(commit.at, end, is_contradictory)
            elif further and not is_contradictory:
                rewinds, rewound = rewinds + 1 if soon else 1, commit.at
                if rewinds < 3:
                    now.age, now.lag = NEVER, NEVER
        elif event:
            yield now
            now, highest, mark, rewinds, rewound = _Life(commit.at, _grace_end(commit.at, sla)), -1, None, 0, -NEVER
            is_contradictory = False
        if commit.offset is not None:
            now.look(_age(reader, commit.offset, commit.at), _lag(reader, commit.offset, commit.at), commit.at)
            if _within(reader, commit, commit.at, sla, rules.caught_up_within_ms) and not now.contradictory:
                now.steady = min(now.steady, commit.at)
        highest, before = max(highest, stands), commit
    now.lapse(deadline)
    yield now


def _on_time(reader: Reader, commit: Commit, at: int, sla: Sla) -> bool:
    """Whether a group that stands where the commit left it is on time at that moment."""
    return _within(reader, commit, at, sla, sla.max_latency_ms)


def _within(reader: Reader, commit: Commit, at: int, sla: Sla, limit_ms: int) -> bool:
    position = commit.offset or 0
    return _age(reader, position, at) <= limit_ms or _lag(reader, position, at) <= sla.allowed_lag


def _grace_end(at: int, sla: Sla) -> int:
    grace_period = sla.steady_state.grace_period_ms
    return NEVER if grace_period is None else at + grace_period


def _lag(reader: Reader, position: int, at: int) -> int:
    """Offsets from the first one behind a position that is not known to be no record to the log end."""
    return max(0, reader.partition.lives[0].log_end(at) - position)


def _age(reader: Reader, position: int, at: int) -> int:
    """Of the oldest record that waits at a position."""
    life = reader.partition.lives[0]
    waiting = life.waiting(position, at)
    return 0 if waiting is None else at - int(life.stamp[waiting])


def _event(before: Any, commit: Any, sla: Sla) -> str:
    if before is None:
        return "first_commit"
    if before.offset is None:
        return "offset_reset"
    if commit.at - before.at > sla.steady_state.expire_group_ms:
        return "returned"
    if commit.offset is not None and commit.offset < before.offset:
        return "rewind"
    return ""


def _state(reader: Reader, sla: Sla, row: Mapping[str, Any], lives: list[_Life]) -> Iterator[Failure]:
    start, end = epoch_ms(row["window_start"]), epoch_ms(row["window_end"])
    life = next(life for life in reversed(lives) if life.began < end)
    contradictory = life.contradictory and life.steady > start
    state = "contradictory" if contradictory else "steady" if life.steady < end else "bootstrapping"
    expected = (state, state == "steady" and life.steady <= start)
    if (row["state"], row["steady_whole_window"]) != expected:
        yield Failure(
            "steady states by a plain loop",
            f"state, {sla.name}",
            reader.name,
            start,
            str(expected),
            str((row["state"], row["steady_whole_window"], row["reason"])),
        )
