"""Bugs planted one by one into a copy of the tree: does the simulator find each, by which seed and after how many?

`planted.toml` lists them as exact text of a module and what stands there instead.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.speed_table import say, table

ROOT = Path(__file__).resolve().parents[2]
_TREE = ("plugins", "spark_jobs", "benchmarks", "demo")
_LIST = Path(__file__).with_name("planted.toml")


@dataclass(frozen=True, slots=True)
class Bug:
    name: str
    module: str
    """Dotted name, as it is imported."""
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Find:
    bug: Bug
    seed: int | None
    what: str


def bugs() -> list[Bug]:
    return [Bug(**one) for one in tomllib.loads(_LIST.read_text())["bug"]]


def path_of(module: str, root: Path = ROOT) -> Path:
    """The file of a module."""
    inside = module.replace(".", "/") + ".py"
    return root / ("plugins" if module.startswith("kafka_sla") else "") / inside


def apply(bug: Bug, root: Path) -> None:
    """Plant it; its text must stand there once."""
    path = path_of(bug.module, root)
    text = path.read_text()
    if text.count(bug.old) != 1:
        raise ValueError(f"{bug.name}: {bug.module} holds this {text.count(bug.old)} times: {bug.old!r}")
    path.write_text(text.replace(bug.old, bug.new))


def found(most: int) -> list[Find]:
    """Each bug with the first seed that fails otherwise than without it."""
    finds = []
    with tempfile.TemporaryDirectory() as place:
        for number, bug in enumerate(bugs()):
            tree = Path(place) / str(number)
            for folder in _TREE:
                shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
            apply(bug, tree)
            finds.append(_first(bug, tree, most))
            say(f"{bug.name}: {finds[-1].seed} {finds[-1].what}")
            shutil.rmtree(tree)
    return finds


def _first(bug: Bug, tree: Path, most: int) -> Find:
    answers = _answers(tree, most)
    try:
        for seed, failures in enumerate(answers):
            new = failures and [failure for failure in failures if failure not in _clean(seed)]
            if new:
                return Find(bug, seed, new[0].split(": true ")[0])
        return Find(bug, None, "")
    finally:
        answers.close()


@cache
def _clean(seed: int) -> list[str]:
    """What fails of a world without any planted bug."""
    from benchmarks.simulation.checking import outcome

    return [str(failure) for failure in outcome(seed).failures]


def _answers(tree: Path, most: int) -> Generator[list[str]]:
    """What fails in world after world of one tree, by a process of its own, as far as somebody asks."""
    paths = os.pathsep.join(map(str, (tree, tree / "plugins")))
    command = [sys.executable, "-m", "benchmarks.simulation.planted", str(most)]
    environment = os.environ | {"PYTHONPATH": paths}
    with subprocess.Popen(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                yield json.loads(line)
            if process.wait():
                raise RuntimeError(f"the worlds of {tree} ended with {process.returncode}")
        finally:
            process.kill()


def markdown(finds: Sequence[Find]) -> str:
    rows = [
        [
            one.bug.name,
            f"`{one.bug.module}`",
            "not found" if one.seed is None else one.seed,
            "" if one.seed is None else one.seed + 1,
            one.what,
        ]
        for one in finds
    ]
    return table(["planted bug", "in", "found by seed", "after worlds", "as"], rows)


def _tell(most: int) -> Iterator[str]:
    from benchmarks.simulation.checking import outcome
    from benchmarks.simulation.running import alone

    alone()
    for seed in range(most):
        yield json.dumps([str(failure) for failure in outcome(seed).failures])


if __name__ == "__main__":
    for answer in _tell(int(sys.argv[1])):
        print(answer, flush=True)
