"""The smallest world that still fails in the same way: readers, partitions, commits and facts are left out.

Delta debugging on what happened and on what was seen of it; a commit is left out of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.simulation import kernel
from benchmarks.simulation.bounds import Failure
from benchmarks.simulation.checking import failures
from benchmarks.simulation.facts import facts
from benchmarks.simulation.seeing import Plan
from benchmarks.simulation.world import Commit, Reader, World

_MOST_TRIALS = 300


class Shrinker:
    """Keeps the smallest case so far."""

    def __init__(self, world: World, plan: Plan, kind: tuple[str, str]) -> None:
        self.world, self.plan, self.kind = world, plan, kind
        self.trials = 0

    def shrink(self) -> list[Failure]:
        """Make `world` and `plan` as small as they get; answers how the smallest fails."""
        self._readers()
        self._partitions()
        self._end()
        for name in ("points", "polls", "runs"):
            self._drop(
                getattr(self.plan, name), lambda kept, name=name: (self.world, replace(self.plan, **{name: kept}))
            )
        for number in range(len(self.world.readers)):
            self._commits(number)
        return self._fails(self.world, self.plan)

    def _fails(self, world: World, plan: Plan) -> list[Failure]:
        self.trials += 1
        try:
            with kernel.folder() as into:
                found = list(failures(world, plan, facts(world, plan), into, []))
        except Exception as error:
            found = [Failure("nothing raises", type(error).__name__, "", world.start, "", str(error))]
        return [one for one in found if (one.invariant, one.figure) == self.kind]

    def _try(self, world: World, plan: Plan) -> bool:
        if self.trials >= _MOST_TRIALS or not self._fails(world, plan):
            return False
        self.world, self.plan = world, plan
        return True

    def _drop(self, items: Sequence[Any], without: Callable[[tuple[Any, ...]], tuple[World, Plan]]) -> None:
        """Leave out halves, quarters, … and single items while it still fails."""
        kept, size = tuple(items), max(1, len(items) // 2)
        while kept and self.trials < _MOST_TRIALS:
            at, dropped = 0, False
            while at < len(kept):
                fewer = kept[:at] + kept[at + size :]
                if self._try(*without(fewer)):
                    kept, dropped = fewer, True
                else:
                    at += size
            if size == 1 and not dropped:
                break
            size = max(1, size // 2)

    def _readers(self) -> None:
        self._drop(self.world.readers, lambda kept: (replace(self.world, readers=kept), self.plan))

    def _partitions(self) -> None:
        read = {id(reader.partition) for reader in self.world.readers}
        kept = tuple(partition for partition in self.world.partitions if id(partition) in read)
        topics = {partition.topic for partition in kept}
        configs = tuple(config for config in self.world.configs if config.topic in topics)
        self._try(replace(self.world, partitions=kept, configs=configs), self.plan)

    def _end(self) -> None:
        """Fewer windows."""
        while self.world.end - self.world.start > self.world.window_ms:
            if not self._try(replace(self.world, end=self.world.end - self.world.window_ms), self.plan):
                break

    def _commits(self, number: int) -> None:
        def without(kept: tuple[Commit, ...]) -> tuple[World, Plan]:
            readers = list(self.world.readers)
            readers[number] = _with_commits(readers[number], kept)
            return replace(self.world, readers=tuple(readers)), self.plan

        self._drop(self.world.readers[number].commits, without)


def _with_commits(reader: Reader, kept: tuple[Commit, ...]) -> Reader:
    """What was lost before a commit that is left out was lost before the next one."""
    chosen, lost, found = set(kept), set[int](), []
    for commit in reader.commits:
        lost.update(commit.lost)
        if commit in chosen:
            found.append(replace(commit, lost=tuple(sorted(lost))))
            lost.clear()
    return replace(reader, commits=tuple(found))
