"""One world from its number to its failures: made, watched, measured and compared."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from benchmarks.simulation import assumed, counts, cuts, due, exact, kernel, rows_agree, verdicts
from benchmarks.simulation.bounds import Failure, outside
from benchmarks.simulation.facts import Facts, facts
from benchmarks.simulation.making import world
from benchmarks.simulation.seeing import Plan, plan
from benchmarks.simulation.slas import slas_of
from benchmarks.simulation.stored import stored
from benchmarks.simulation.visibility import visible_to
from benchmarks.simulation.widths import Width, kind_of, width_of
from benchmarks.simulation.world import World
from kafka_sla.model.entities import epoch_ms
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE


@dataclass(frozen=True, slots=True)
class Outcome:
    seed: int
    failures: tuple[Failure, ...]
    features: tuple[str, ...]
    widths: tuple[Width, ...]


def outcome(seed: int) -> Outcome:
    """What fails in the world of this number."""
    made = world(seed)
    watched = plan(made)
    features = (*made.features, *watched.features)
    wide: list[Width] = []
    try:
        with kernel.folder() as into:
            found = tuple(failures(made, watched, facts(made, watched), into, wide))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        found = (Failure("nothing raises", type(error).__name__, "", made.start, "", what),)
    return Outcome(seed, found, features, tuple(wide))


def failures(made: World, watched: Plan, known: Facts, into: Path, wide: list[Width]) -> Iterator[Failure]:
    """All invariants of one world; those that measure it once more, in some worlds."""
    slas, seen = slas_of(made), visible_to(made, watched)
    landed = kernel.files(into, known)
    whole = kernel.measured(into, landed, made.start, made.end, made.window_ms, slas)
    if not whole:
        return
    true = verdicts.of_readers(made, seen)
    countable = {key for key, visible in seen.items() if counts.countable(made, watched, visible)}
    yield from assumed.outside_bounds(made, whole)
    committed = assumed.committed_only(whole)
    for row in committed[CONSUMER_LATENCY].to_pylist():
        key, start = (row["group"], row["topic"], row["partition"]), epoch_ms(row["window_start"])
        yield from outside(seen[key], true[key][start], start, row)
        if key in countable:
            yield from counts.counted(watched, seen[key], true[key][start], start, row)
        wide += width_of(kind_of(made, watched, seen[key]), true[key][start], row)
    yield from due.late_records(made, watched, slas, seen, known, committed)
    for visible in seen.values():
        if exact.plain(made, watched, visible):
            yield from exact.equal(made, slas, visible, committed)
    yield from rows_agree.statuses(made, watched, known, committed)
    yield from rows_agree.losses(made, watched, committed)
    if made.seed % 6 == 0:
        yield from verdicts.verdicts(made, slas[made.seed // 6 % len(slas)], committed, seen, true)
    if made.seed % 4 == 1:
        yield from _same(whole, cuts.in_pieces(made, landed, into), known, "in pieces")
    if made.seed % 8 == 5:
        yield from _same(*cuts.with_an_sla_added(made, landed, into), known, "with an SLA added")
    if made.seed % 300 == 157:
        yield from stored(made, known, into, _of_one(whole, slas[2].name))
    if made.seed % 6 == 5:
        yield from rows_agree.same(whole, cuts.shuffled(made, known, into), "in any order and twice")


def _same(whole: kernel.Made, other: kernel.Made, known: Facts, how: str) -> Iterator[Failure]:
    """What differs among the rows that do not depend on how the facts are cut."""
    yield from rows_agree.same(assumed.comparable(whole, known), assumed.comparable(other, known), how)


def _of_one(whole: kernel.Made, sla: str) -> kernel.Made:
    """The rows of a world that has this SLA only."""
    return whole | {STEADY_STATE: whole[STEADY_STATE].filter(pc.equal(whole[STEADY_STATE]["sla"], sla))}
