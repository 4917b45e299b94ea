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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
        clean = _Answers(ROOT, most)
        for number, bug in enumerate(bugs()):
            tree = Path(place) / str(number)
            for folder in _TREE:
                shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
            apply(bug, tree)
            finds.append(_first(bug, clean, tree, most))
            say(f"{bug.name}: {finds[-1].seed} {finds[-1].what}")
            shutil.rmtree(tree)
        clean.close()
    return finds


def _first(bug: Bug, clean: _Answers, tree: Path, most: int) -> Find:
    answers = _Answers(tree, most)
    try:
        for seed in range(most):
            new = [failure for failure in answers[seed] if failure not in clean[seed]]
            if new:
                return Find(bug, seed, new[0].split(": true ")[0])
        return Find(bug, None, "")
    finally:
        answers.close()


class _Answers:
    """What fails in world after world of one tree, by a process of its own, as far as somebody asks."""

    def __init__(self, tree: Path, most: int) -> None:
        paths = os.pathsep.join(map(str, (tree, tree / "plugins")))
        command = [sys.executable, "-m", "benchmarks.simulation.planted", str(most)]
        self._process = subprocess.Popen(
            command, cwd=tree, env=os.environ | {"PYTHONPATH": paths}, stdout=subprocess.PIPE, text=True
        )
        self._known: list[list[str]] = []

    def __getitem__(self, seed: int) -> list[str]:
        while len(self._known) <= seed:
            assert self._process.stdout is not None
            line = self._process.stdout.readline()
            if not line:
                raise RuntimeError(f"no answer for world {len(self._known)}")
            self._known.append(json.loads(line))
        return self._known[seed]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


def markdown(finds: Sequence[Find]) -> str:
    rows = [
        [one.bug.name, f"`{one.bug.module}`", "not found" if one.seed is None else one.seed,
         "" if one.seed is None else one.seed + 1, one.what]
        for one in finds
    ]  # fmt: skip
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
