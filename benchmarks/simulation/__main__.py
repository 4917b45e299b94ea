"""`python -m benchmarks.simulation SEEDS` runs worlds 0 … SEEDS - 1; `--seed N` replays one, shrinks and draws it;
`--planted` looks for the bugs of `planted.toml`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.printed import put
from benchmarks.simulation import kernel, planted, slas, verdicts, visibility
from benchmarks.simulation.checking import failures
from benchmarks.simulation.facts import facts
from benchmarks.simulation.making import world
from benchmarks.simulation.picture import draw
from benchmarks.simulation.running import alone, commit, figures, run, summary
from benchmarks.simulation.seeing import plan
from benchmarks.simulation.shrink import Shrinker
from benchmarks.simulation.world import World
from kafka_sla.model.entities import Interval, SlaWindow
from kafka_sla.model.tables import CONSUMER_LATENCY, STEADY_STATE
from kafka_sla.sla.evaluate import judge

PAGE = "truth.md"
_WORTH_KEEPING = 1_000
"""Worlds whose tables go into the page."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=1_000, help="how many worlds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="replay this one")
    parser.add_argument("--into", type=Path, default=Path(".work"), help="folder of the picture")
    parser.add_argument("--planted", action="store_true", help="are planted bugs found?")
    asked = parser.parse_args()
    if asked.planted:
        found = planted.markdown(planted.found(asked.seeds))
        print(found)
        put(PAGE, "make planted", found)
        return 0
    if asked.seed is not None:
        alone()
        return replay(asked.seed, asked.into)
    report = run(range(asked.first, asked.first + asked.seeds))
    print(summary(report))
    if asked.seeds >= _WORTH_KEEPING:
        put(PAGE, "make simulate", figures(report))
    return 1 if report.failed else 0


def replay(seed: int, folder: Path) -> int:
    """What one world does, in words and as a picture; a failure is shrunk first."""
    made, watched = world(seed), plan(world(seed))
    print(f"world {seed} at commit {commit()}: {', '.join((*made.features, *watched.features))}")
    with kernel.folder() as into:
        found = list(failures(made, watched, facts(made, watched), into, []))
    for failure in found[:20]:
        print(failure)
    if found:
        smallest = Shrinker(made, watched, (found[0].invariant, found[0].figure))
        found, made, watched = smallest.shrink(), smallest.world, smallest.plan
        print(
            f"\nshrunk in {smallest.trials} trials to {len(made.readers)} readers,"
            f" {sum(len(r.commits) for r in made.readers)} commits, {len(watched.runs)} runs,"
            f" {len(watched.points)} points and {len(watched.polls)} polls:"
        )
        for failure in found[:5]:
            print(failure)
    known = facts(made, watched)
    with kernel.folder() as into:
        whole = kernel.measured(into, known, made.start, made.end, made.window_ms, slas.slas_of(made))
    rows = whole[CONSUMER_LATENCY].to_pylist() if whole else []
    true = verdicts.of_readers(made, visibility.visible_to(made, watched))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"world-{seed}.png"
    if made.readers:
        draw(path, made, known, rows, true, found, _judged(made, whole) if rows else {})
        print(f"\ndrawn as {path}: red windows fail")
    return 1 if found else 0


def _judged(made: World, whole: kernel.Made) -> dict[str, tuple[SlaWindow, ...]]:
    span = Interval(kernel.at(-(-made.start // made.window_ms) * made.window_ms), kernel.at(made.end))
    rows = whole[CONSUMER_LATENCY], whole[STEADY_STATE]
    return {sla.name: judge(sla, span, made.window_ms, *rows) for sla in slas.slas_of(made)}


if __name__ == "__main__":
    sys.exit(main())
