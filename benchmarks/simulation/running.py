"""Many worlds on all processors: how fast, what was in them, what failed."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa

from benchmarks.simulation.checking import Outcome, outcome
from benchmarks.simulation.sparked import sparked
from benchmarks.simulation.widths import markdown
from benchmarks.speed_table import say, table

_CHUNK = 8
_SPARK = 100
"""One world of so many goes through Spark as well."""


@dataclass(frozen=True, slots=True)
class Report:
    outcomes: tuple[Outcome, ...]
    seconds: float

    @property
    def failed(self) -> list[Outcome]:
        return [one for one in self.outcomes if one.failures]


def outcomes(seeds: Sequence[int]) -> Iterator[Outcome]:
    """Of each seed, in their order, by as many processes as there are processors."""
    if len(seeds) < 2 * _CHUNK:
        yield from map(outcome, seeds)
        return
    with ProcessPoolExecutor(os.cpu_count(), initializer=alone) as pool:
        yield from pool.map(outcome, seeds, chunksize=_CHUNK)


def alone() -> None:
    """One thread a process: there is one process a processor."""
    pa.set_cpu_count(1)


def run(seeds: Sequence[int]) -> Report:
    began = time.monotonic()
    found = tuple(_said(outcomes(seeds)))
    seconds = time.monotonic() - began
    for seed, failure in sparked([seed for seed in seeds if seed % _SPARK == _SPARK // 2]):
        number = seeds.index(seed)
        one = replace(found[number], failures=(*found[number].failures, failure))
        found = (*found[:number], one, *found[number + 1 :])
    return Report(found, seconds)


def _said(found: Iterable[Outcome]) -> Iterator[Outcome]:
    """Each outcome, failures of long runs as they come."""
    for one in found:
        if one.failures:
            say(f"world {one.seed}: {one.failures[0]}")
        yield one


def summary(report: Report) -> str:
    """A whole report, for people."""
    return "\n\n".join([figures(report), *(_failed(report.failed) if report.failed else ())])


def figures(report: Report) -> str:
    """How fast, what was generated, how wide bounds are."""
    count = len(report.outcomes)
    return "\n\n".join(
        [
            f"{count:,} worlds, {count / max(report.seconds, 1e-9):.1f} a second, {len(report.failed)} with failures.",
            coverage(report.outcomes),
            markdown([width for one in report.outcomes for width in one.widths]),
        ]
    )


def coverage(found: Iterable[Outcome]) -> str:
    """How often each flow, fault and way of seeing occurred."""
    counts = Counter(feature for one in found for feature in one.features)
    kinds = sorted({feature.split(": ")[0] for feature in counts})
    rows = [
        [
            kind,
            ", ".join(f"{f.split(': ', 1)[1]} {n:,}" for f, n in sorted(counts.items()) if f.startswith(f"{kind}: ")),
        ]
        for kind in kinds
    ]
    return table(["what", "in so many worlds"], rows)


def _failed(failed: Sequence[Outcome]) -> list[str]:
    kinds: dict[tuple[str, str], list[int]] = {}
    for one in failed:
        for kind in dict.fromkeys((failure.invariant, failure.figure) for failure in one.failures):
            kinds.setdefault(kind, []).append(one.seed)
    rows = [[*kind, len(seeds), " ".join(map(str, seeds[:8]))] for kind, seeds in sorted(kinds.items())]
    lines = "\n".join(f"make simulate SEED={one.seed}  # {one.failures[0]}" for one in failed[:20])
    return [f"Failures at commit {commit()}:", table(["invariant", "figure", "worlds", "seeds"], rows), lines]


def commit() -> str:
    """The commit of this tree: with it and a seed, a world is the same again."""
    answer = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"
