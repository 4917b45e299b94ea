"""Chains of which everything is known: who read, wrote and committed what, and when. Times are seconds in ms steps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kafka_sla.model.entities import Stage
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS
from tests.spark_jobs.conftest import Row, commit, point
from tests.spark_jobs.measuring import Facts

MINUTE = 60


@dataclass(frozen=True, slots=True)
class Record:
    """`before`: when it, or what it was made of, was produced into each topic so far."""

    produced: float
    birth: float
    before: tuple[float, ...] = ()


@dataclass(slots=True)
class Consumed:
    """A record that a stage read, and when it committed it."""

    record: Record
    committed: float


@dataclass(frozen=True, slots=True)
class Worker:
    """What a stage's consumer does: reads all that is there up to `at_most`, writes what comes of it, commits."""

    stage: Stage
    partitions: int = 1
    every: float = 1.0
    """Between the beginnings of two rounds, at least."""
    seconds_a_record: float = 0.01
    at_most: int = 1_000
    copies: Callable[[int], int] = lambda number: 1
    """How many records come of the so manieth that it reads."""
    absent: tuple[float, float] = (1e9, 1e9)


@dataclass(slots=True)
class World:
    """What happened: records of each topic's partitions, and each stage's commits."""

    workers: Sequence[Worker]
    until: float
    logs: list[list[list[Record]]] = field(default_factory=list)
    consumed: list[list[Consumed]] = field(default_factory=list)
    commits: list[Row] = field(default_factory=list)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(worker.stage for worker in self.workers)

    def facts(self, every: float = 5.0) -> Facts:
        """The commits, and the log ends as lookups every so many seconds know them."""
        instants = [number * every for number in range(int(self.until / every) + 1)]
        points = [
            point(
                at,
                bisect_left(log, at, key=lambda record: record.produced),
                topic=worker.stage.topic,
                partition=number,
                source="list_offsets",
            )
            for worker, logs in zip(self.workers, self.logs, strict=True)
            for number, log in enumerate(logs)
            for at in instants
        ]
        return {LOG_OFFSETS: points, COMMITTED_OFFSETS: self.commits}

    def latency_max(self, window: float) -> float | None:
        """Largest time from birth to the last commit in the window that starts then."""
        inside = [one for one in self.consumed[-1] if window <= one.committed < window + MINUTE]
        return max((one.committed - one.record.birth for one in inside), default=None)

    def backlog_age(self, end: float) -> float:
        """Age of the oldest record that any stage has not committed by then."""
        waiting = [record.birth for number in range(len(self.workers)) for record in self._uncommitted(number, end)]
        return end - min(waiting, default=end)

    def added_max(self, stage: int, window: float) -> float | None:
        """Largest time that the stage added to a record that came out in the window; stages count from 0."""
        inside = [one for one in self.consumed[-1] if window <= one.committed < window + MINUTE]
        times = [(*one.record.before, one.record.produced, one.committed) for one in inside]
        return max((passed[stage + 1] - passed[stage] for passed in times), default=None)

    def over(self, window: float, threshold: float) -> int:
        inside = [one for one in self.consumed[-1] if window <= one.committed < window + MINUTE]
        return sum(one.committed - one.record.birth > threshold for one in inside)

    def _uncommitted(self, number: int, end: float) -> Iterable[Record]:
        done = {id(one.record) for one in self.consumed[number] if one.committed < end}
        return [
            record for log in self.logs[number] for record in log if record.produced < end and id(record) not in done
        ]


def lived(workers: Sequence[Worker], births: Iterable[float], until: float) -> World:
    """Let records that are born at these times pass the stages."""
    world = World(workers, until)
    arriving = [Record(round(birth, 3), round(birth, 3)) for birth in births]
    for worker in workers:
        logs: list[list[Record]] = [[] for _ in range(worker.partitions)]
        for number, record in enumerate(arriving):
            logs[number % worker.partitions].append(record)
        world.logs.append(logs)
        arriving = _work(world, worker, logs)
    return world


def _work(world: World, worker: Worker, logs: list[list[Record]]) -> list[Record]:
    positions, written, consumed, count = [0] * len(logs), list[Record](), list[Consumed](), 0
    world.consumed.append(consumed)
    now, names = 0.5, {"group": worker.stage.group, "topic": worker.stage.topic}
    world.commits += [commit(0.25, 0, partition=number, **names) for number in range(len(logs))]
    while now < world.until:
        began = now
        if worker.absent[0] <= now < worker.absent[1]:
            now = worker.absent[1]
            continue
        batch = _read(logs, positions, now, worker.at_most)
        for _, record in batch:
            now = round(now + worker.seconds_a_record, 3)
            before = (*record.before, record.produced)
            written += [Record(now, record.birth, before) for _ in range(worker.copies(count))]
            count += 1
        now = round(now + 0.002, 3)
        for number in sorted({number for number, _ in batch}):
            positions[number] += sum(of == number for of, _ in batch)
            if now < world.until:
                world.commits.append(commit(now, positions[number], partition=number, **names))
        consumed += [Consumed(record, now) for _, record in batch]
        now = round(max(began + worker.every, now + 0.001), 3)
    return written


def _read(logs: list[list[Record]], positions: list[int], now: float, at_most: int) -> list[tuple[int, Record]]:
    there = [
        (number, record)
        for number, log in enumerate(logs)
        for record in log[positions[number] : positions[number] + at_most]
        if record.produced < now
    ]
    return sorted(there, key=lambda one: one[1].produced)[:at_most]
