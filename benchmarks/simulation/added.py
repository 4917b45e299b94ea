"""An SLA over some of a world's groups is added to a store in which another one is measured: what is published from
then on, and of the past once that is run again, is what it would be had the SLA always been there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from benchmarks.simulation import kernel
from benchmarks.simulation.bounds import Failure
from benchmarks.simulation.facts import facts
from benchmarks.simulation.making import generator, world
from benchmarks.simulation.rows_agree import same
from benchmarks.simulation.seeing import plan
from benchmarks.simulation.slas import slas_of
from benchmarks.simulation.stored import Runs
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Patterns, epoch_ms


def added(seed: int) -> Iterator[Failure]:
    """What differs in the world of this number."""
    made = world(seed)
    known, rng = facts(made, plan(made)), generator(seed, "added")
    old, new = slas_of(made)[1:3]
    groups = sorted({reader.group for reader in made.readers})
    new = replace(new, groups=Patterns((str(rng.choice(groups)),)))
    with kernel.folder() as into:
        runs = Runs(made, into)
        before = replace(runs.settings, slas=(old,))
        after = replace(runs.settings, slas=(old, new))
        runs.land(known)
        intervals = runs.intervals()
        for interval in intervals[:-1]:
            runs.run(interval, before)
        if rng.random() < 0.5:
            Lake(runs.store).maintain(datetime.now(UTC) + timedelta(days=400), fewest=2)
        runs.run(intervals[-1], after)
        first, start, end = (epoch_ms(at) for at in (runs.whole.start, intervals[-1].start, intervals[-1].end))
        whole = kernel.measured(into, known, first, end, made.window_ms, (old, new))
        yield from same(
            kernel.between(whole, start, end), kernel.between(runs.published(), start, end), "after an SLA was added"
        )
        for number in rng.permutation(len(intervals) - 1).tolist():
            runs.run(intervals[number], after)
        yield from same(whole, runs.published(), "with the past of an SLA that was added")
