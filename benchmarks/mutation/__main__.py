"""`make mutate`: would the tests notice a wrong line where it means a wrong number, a lost mail or a doubled row?

Tries the mutants of the modules in modules.toml with the tests nearest to each, and prints as Markdown how many were
killed, and every survivor; of all modules, or of a sample of them all, also into docs/reference/mutation.md. Exit
status 1 when a survivor is not explained in explained.toml, or an explanation fits no mutant any more.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.mutation.mutants import Mutant, mutants
from benchmarks.mutation.trials import ROOT, Bench, Outcome, Trial, bench
from benchmarks.printed import put
from benchmarks.speed_table import say, table

_HERE = Path(__file__).parent
Explained = Mapping[tuple[str, str], str]
"""Why nothing can notice a mutant, by its module and its diff."""


_WORTH_KEEPING = 150
"""Mutants of all modules whose table goes into the page."""
_TIMED = ROOT / ".cache" / "mutation.json"


@dataclass(frozen=True, slots=True)
class Module:
    path: str
    tests: tuple[str, ...]

    @property
    def text(self) -> str:
        return (ROOT / self.path).read_text()

    def trial(self, text: str, known: Mapping[str, float], *, slow: bool = False) -> Trial:
        return Trial(self.path, text, self.tests, known, slow)


def main() -> int:
    asked = _arguments()
    modules = [one for one in _modules() if re.search(asked.only, one.path)]
    every = {one.path: mutants(one.path, one.text) for one in modules}
    explained = {key: why for key, why in _explained().items() if key[0] in every}
    whole = [mutant for found in every.values() for mutant in found]
    chosen = _sample(whole, asked.sample, asked.seed)
    with bench(asked.processes) as place:
        survivors = _survivors(place, modules, chosen, explained)
    drawn = f", drawn by seed {asked.seed}" if len(chosen) < len(whole) else ""
    found = f"{len(chosen):,} of {len(whole):,} mutants{drawn}.\n\n{_report(modules, chosen, survivors, explained)}"
    print(found)
    if not asked.only and len(chosen) >= _WORTH_KEEPING:
        put("mutation.md", "make mutate", found)
    stale = explained.keys() - {(one.module, one.diff) for one in whole}
    return _said([one for one in survivors if (one.module, one.diff) not in explained], sorted(stale))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutate", description=__doc__)
    parser.add_argument("--only", default="", help="modules whose path has this, a regular expression")
    parser.add_argument("--sample", type=int, default=0, help="so many mutants, drawn by the seed; else all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args()


def _modules() -> list[Module]:
    told = tomllib.loads((_HERE / "modules.toml").read_text())
    return [Module(path, tuple(tests)) for path, tests in told.items()]


def _explained() -> Explained:
    told: list[dict[str, Any]] = tomllib.loads((_HERE / "explained.toml").read_text()).get("mutants", [])
    return {(one["module"], diff.strip()): " ".join(one["why"].split()) for one in told for diff in one["diffs"]}


def _sample(every: Sequence[Mutant], size: int, seed: int) -> list[Mutant]:
    """So many of them, of which a larger sample by the same seed holds all; 0: all."""
    order = random.Random(seed).sample(range(len(every)), len(every))  # noqa: S311  the same for the same seed
    return [every[number] for number in sorted(order[:size] if size else order)]


def _survivors(place: Bench, modules: Sequence[Module], chosen: Sequence[Mutant], known: Explained) -> list[Mutant]:
    """Those of the mutants that no test noticed; slow ones are run where nothing explains why none would."""
    asked = [module for module in modules if _of(module, chosen)]
    seconds, by_path = _seconds(place, asked), {one.path: one for one in asked}

    def left(mutants: Sequence[Mutant], *, slow: bool) -> list[Mutant]:
        trials = (by_path[one.module].trial(one.text, seconds[one.module], slow=slow) for one in mutants)
        return list(_left(place.outcomes(trials), mutants))

    quick = left(chosen, slow=False)
    told = [one for one in quick if (one.module, one.diff) in known]
    rest = [one for one in quick if one not in told]
    if rest:
        _check(place, [one.trial(one.text, seconds[one.path], slow=True) for one in asked if _of(one, rest)])
    survived = {id(one) for one in (*told, *left(rest, slow=True))}
    return [one for one in chosen if id(one) in survived]


def _of(module: Module, mutants: Sequence[Mutant]) -> bool:
    return any(one.module == module.path for one in mutants)


def _check(place: Bench, trials: Sequence[Trial]) -> None:
    """The tests must pass without any mutant."""
    for number, outcome in place.outcomes(trials):
        if outcome.killed:
            raise SystemExit(f"{trials[number].tests} fail without any mutant:\n{outcome.said}")


def _left(outcomes: Iterator[tuple[int, Outcome]], mutants: Sequence[Mutant]) -> Iterator[Mutant]:
    for count, (number, outcome) in enumerate(outcomes, 1):
        say(f"{count} of {len(mutants)}: {'killed' if outcome.killed else 'SURVIVED'}: {mutants[number]}")
        if not outcome.killed:
            yield mutants[number]


def _seconds(place: Bench, modules: Sequence[Module]) -> dict[str, Mapping[str, float]]:
    """How long each test of each module takes, by its id; they must pass without any mutant, the slow ones before they
    are needed."""
    files, whole = sorted({file for module in modules for file in module.tests}), modules[0]
    timed = _timed()
    found = {file: timed.get(_version(file), {}) for file in files}
    for number, outcome in place.outcomes(Trial(whole.path, whole.text, (file,), found[file]) for file in files):
        if outcome.killed:
            raise SystemExit(f"{files[number]} fails without any mutant:\n{outcome.said}")
        place.import_libraries()
        found[files[number]] = {**found[files[number]], **outcome.seconds}
        say(f"{files[number]} takes {sum(outcome.seconds.values()):.1f} s")
    _TIMED.parent.mkdir(exist_ok=True)
    _TIMED.write_text(json.dumps(timed | {_version(file): found[file] for file in files}))
    return {one.path: {name: s for file in one.tests for name, s in found[file].items()} for one in modules}


def _timed() -> dict[str, dict[str, float]]:
    """How long tests took the last time, by the version of their file: the slow ones need not be timed again."""
    return json.loads(_TIMED.read_text()) if _TIMED.exists() else {}


def _version(tests: str) -> str:
    """A file of tests, or one test of it, as it is now."""
    return f"{tests} {hashlib.sha256((ROOT / tests.partition('::')[0]).read_bytes()).hexdigest()}"


def _report(modules: Sequence[Module], chosen: Sequence[Mutant], survivors: Sequence[Mutant], known: Explained) -> str:
    rows = [row for module in modules if (row := _row(f"`{module.path}`", chosen, survivors, known, module.path))]
    rows.append(_row("all", chosen, survivors, known))
    parts = [table(("module", "mutants", "killed", "%", "survivors explained"), rows), *_list(survivors, known)]
    return "\n\n".join(parts)


def _row(
    name: str, chosen: Sequence[Mutant], survivors: Sequence[Mutant], known: Explained, path: str = ""
) -> tuple[object, ...]:
    mine = [one for one in chosen if path in one.module]
    left = [one for one in survivors if path in one.module]
    killed, told = len(mine) - len(left), sum((one.module, one.diff) in known for one in left)
    return (name, len(mine), killed, f"{killed / len(mine):.1%}", f"{told} of {len(left)}") if mine else ()


def _list(survivors: Sequence[Mutant], known: Explained) -> Iterator[str]:
    """Every survivor, and why nothing can notice it."""
    for one in survivors:
        why = known.get((one.module, one.diff), "**not explained**")
        yield f"`{one.module}:{one.line}`: {why}\n\n```diff\n{one.diff}\n```"


def _said(unexplained: Sequence[Mutant], stale: Sequence[tuple[str, str]]) -> int:
    if unexplained:
        say(f"{len(unexplained)} survivors are not explained in explained.toml")
    for module, diff in stale:
        say(f"{module}: an explanation fits no mutant any more:\n{diff}")
    return int(bool(unexplained or stale))


if __name__ == "__main__":
    sys.exit(main())
