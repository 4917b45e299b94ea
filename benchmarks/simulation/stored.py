"""A world through a store of files and SQLite, step by step as runs do: in any order, late facts, rules that change,
steps that are killed inside and repeated, maintenance in between. Only Spark and Great Expectations are left out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from benchmarks.simulation import kernel
from benchmarks.simulation.assumed import comparable
from benchmarks.simulation.bounds import Failure
from benchmarks.simulation.facts import Facts
from benchmarks.simulation.making import generator
from benchmarks.simulation.rows_agree import same
from benchmarks.simulation.slas import slas_of
from benchmarks.simulation.world import CLUSTER, World
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.alerts.report_rows import AlertMessage
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Interval, SteadyState, epoch_ms
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE
from kafka_sla.pipeline import steps
from kafka_sla.sla.evaluate import judge
from kafka_sla.spark.job_spec import read_job
from kafka_sla.spark_jobs.events.write_files import Target, keep

T = TypeVar("T")
_SLA = 2
"""The SLA that is judged: one is enough, and each costs its own queries."""


def stored(world: World, known: Facts, into: Path, whole: kernel.Made) -> Iterator[Failure]:
    """What is published in the end is what one interval over all facts gives, verdicts included."""
    runs = Runs(world, into)
    first, late = runs.divided(known)
    runs.land(first)
    intervals = runs.intervals()
    for number in runs.rng.permutation(len(intervals)).tolist()[: int(runs.rng.integers(0, 2))]:
        runs.run(intervals[number], runs.former)
    for number in runs.rng.permutation(len(intervals)).tolist():
        runs.run(intervals[number], runs.settings)
    if runs.rng.random() < 0.5:
        Lake(runs.store).maintain(datetime.now(UTC) + timedelta(days=400 * int(runs.rng.integers(0, 2))), fewest=2)
    if runs.land(late):
        for interval in intervals:
            runs.run(interval, runs.settings)
    yield from same(comparable(whole, known), comparable(runs.published(), known), "published run by run")
    yield from runs.verdicts(whole)
    yield from runs.notices()


class Killed(BaseException):
    """The process ends here."""


@contextmanager
def killed_after(writes: int) -> Iterator[None]:
    """Let so many files be synced or moved into their place, and then end."""
    left = [writes]

    def counting(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return real(*given, **named)

        return call

    with patch("os.fsync", counting(os.fsync)), patch("os.replace", counting(os.replace)):
        yield


class Runs:
    """The runs of one world, each by the settings that it is given."""

    def __init__(self, world: World, into: Path) -> None:
        self.world, self.rng = world, generator(world.seed, "runs")
        self.store = Store.embedded(into / "store")
        slas = slas_of(world)[_SLA : _SLA + 1]
        self.settings = Settings((Cluster(CLUSTER, None),), slas, window_ms=world.window_ms)
        other = replace(slas[0], max_latency_ms=slas[0].max_latency_ms // 3, steady_state=SteadyState(7_000, 90_000))
        self.former = replace(self.settings, slas=(other,))
        self.told: list[tuple[str, str]] = []
        self.whole = Interval(kernel.at(-(-world.start // world.window_ms) * world.window_ms), kernel.at(world.end))

    def divided(self, known: Facts) -> tuple[Facts, Facts]:
        """The facts that are there in time, and those that come when all is measured."""
        late: dict[object, np.ndarray[tuple[int], np.dtype[np.bool_]]] = {
            table: self.rng.random(len(rows)) < 0.2 * (self.world.seed % 3 == 0) for table, rows in known.items()
        }
        parts = [{t: rows.filter(pa.array(late[t] == is_late)) for t, rows in known.items()} for is_late in (0, 1)]
        return parts[0], parts[1]

    def land(self, some: Facts) -> int:
        return self._step(lambda: sum(Lake(self.store).land({t.name: rows for t, rows in some.items()}).values()))

    def intervals(self) -> list[Interval]:
        count = (self.world.end - epoch_ms(self.whole.start)) // self.world.window_ms
        inner = sorted(self.rng.choice(np.arange(1, count), size=min(2, count - 1), replace=False).tolist())
        start = epoch_ms(self.whole.start)
        borders = [start, *(start + n * self.world.window_ms for n in inner), self.world.end]
        return [Interval(kernel.at(a), kernel.at(b)) for a, b in pairwise(borders)]

    def run(self, interval: Interval, settings: Settings) -> None:
        """All steps, each of which may be killed inside; some loads are given up, some steps come twice."""
        sla = settings.slas[0].name
        if self.rng.random() < 0.2:
            self._measure(self._prepare(settings, interval))
        job = self._prepare(settings, interval)
        steps_of_run = (
            lambda: self._measure(job),
            lambda: steps.publish(self.store, job),
            lambda: steps.evaluate(settings, self.store, sla, interval),
            lambda: steps.announce(settings, self.store, [sla], interval, self._record),
        )
        for step in steps_of_run:
            for _ in range(1 + int(self.rng.random() < 0.25)):
                self._step(step)

    def _step(self, step: Callable[[], T]) -> T:
        """A step; sometimes it is killed first, as it writes."""
        if self.rng.random() < 0.3:
            with suppress(Killed), killed_after(int(self.rng.integers(0, 8))):
                step()
        return step()

    def _record(self, message: AlertMessage) -> None:
        self.told += [(report.thread, message.state) for report in message.reports]

    def _prepare(self, settings: Settings, interval: Interval) -> str:
        return steps.prepare(settings, self.store, interval, [CLUSTER])

    def _measure(self, path: str) -> None:
        """What the Spark application does, in this process."""
        job = read_job(path)
        target = Target(job.output, job.interval.start, job.load_id)
        found = kernel.made(job)
        for table in kernel.METRICS:
            keep(target, table, [])
            if table in found:
                kernel.write(f"{target.folder(table)}/part-1.parquet", target.labelled(table, found[table]))

    def published(self) -> kernel.Made:
        lake = Lake(self.store)
        found = {t: lake.published(t.name, self.whole, [CLUSTER]) for t in kernel.METRICS}
        return {table: kernel.in_order(rows.select(list(table.names)), table) for table, rows in found.items()}

    def notices(self) -> Iterator[Failure]:
        """Of each miss that is left, what happened was told; nothing was told twice."""
        ledger, told = Ledger(self.store), Counter(self.told)
        for (miss, kind), count in told.items():
            if count > 1:
                yield self._untrue(miss, "1", f"{kind} {count} times")
        for one in ledger.verdicts.misses(self.settings.slas[0].name, self.whole):
            kinds = {kind for miss, kind in told if miss == one.id}
            if ledger.alert_reports.unsent([one.sla]) or (kinds and (one.end is not None) > ("resolved" in kinds)):
                yield self._untrue(one.id, "open, then resolved", str(sorted(kinds)))

    def _untrue(self, miss: str, true: str, made: str) -> Failure:
        return Failure("a miss is told once and ends once", "notices", miss, self.world.start, true, made)

    def verdicts(self, whole: kernel.Made) -> Iterator[Failure]:
        sla = self.settings.slas[0]
        expected = judge(sla, self.whole, self.world.window_ms, whole[CONSUMER_LATENCY], whole[STEADY_STATE])
        judged = Ledger(self.store).verdicts.windows(sla.name, self.whole)
        for a, b in zip(expected, judged, strict=True):
            if a != b:
                yield Failure("verdicts run by run", "verdict", sla.name, epoch_ms(a.window.start), str(a), str(b))
                return
