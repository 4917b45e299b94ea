"""Does a test fail with a mutant? Each is tried in a copy of the tree, by a process that is forked after the libraries
have been imported. Whatever ends this process, even a kill, ends what it started and removes the copies."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
_OURS = {path.name.removesuffix(".py") for path in (*ROOT.iterdir(), *(ROOT / "plugins").iterdir())}
_LEFT_OUT = (".git", ".venv", ".cache", ".work", "dist", "build", ".mypy_cache", ".ruff_cache", ".pytest_cache")
_PATIENCE, _LEAST_S, _UNKNOWN_S = 5, 30.0, 900.0
"""A mutant that takes so many times as long as the tests do without it, and half a minute, goes on for ever."""
_FAILED = (1, 2, 3, 4)
"""What pytest ends with when a test failed, or a module or a conftest could not be imported."""
_PASSED = (0, 5)
"""Every test did, or there was none to run."""
_SLOW_S = 3.0
_SLOW = ("postgres", "spark", "processes", "killed")
"""Tests that take longer, or start something by their names, are run only for mutants that no other kills."""
_SAID = "said.txt"
_IMPORTED = "imported.txt"
_SECONDS = "seconds.json"


@dataclass(frozen=True, slots=True)
class Trial:
    """The text of a module, by its path, and the files of the tests that should fail with it."""

    module: str
    text: str
    tests: tuple[str, ...]
    known: Mapping[str, float]
    """How long each test takes, by its id, as far as that is known."""
    slow: bool = False
    """Run the slow tests, and not the others."""

    @property
    def limit_s(self) -> float:
        return _LEAST_S + _PATIENCE * sum(self.known.values()) if self.known and not self.slow else _UNKNOWN_S

    def asks(self, test: str) -> bool:
        """Is this test one to run?"""
        name = test.partition("::")[2]
        is_slow = any(word in name for word in _SLOW) or self.known.get(test, 0.0) > _SLOW_S
        return is_slow == self.slow


@dataclass(frozen=True, slots=True)
class Outcome:
    killed: bool
    said: str
    """The end of what pytest printed."""
    seconds: Mapping[str, float]
    """How long each test took, by its id."""


@dataclass(slots=True)
class _Running:
    number: int
    trial: Trial
    copy: Path
    process: int
    began: float


class Bench:
    """Copies of the tree, in each of which one mutant at a time is tried. `held`: a descriptor that is open as long as
    this process lives, and that nothing else may hold."""

    def __init__(self, folder: Path, processes: int, held: int) -> None:
        self._held, self._copies = held, [folder / str(number) for number in range(processes)]
        for copy in self._copies:
            shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT, "__pycache__"))

    def outcomes(self, trials: Iterable[Trial]) -> Iterator[tuple[int, Outcome]]:
        """What became of each, by its number, as soon as it is known."""
        waiting, free = enumerate(trials), list(self._copies)
        running: list[_Running] = []
        while True:
            while free and (one := next(waiting, None)):
                running.append(self._begun(*one, free.pop()))
            if not running:
                return
            time.sleep(0.02)
            for one in list(running):
                if (outcome := _outcome(one)) is not None:
                    running.remove(one)
                    free.append(one.copy)
                    yield one.number, outcome

    def import_libraries(self) -> None:
        """Import what the last tests did but for what is ours, so that mutants find it there."""
        for copy in self._copies:
            names = (copy / _IMPORTED).read_text().splitlines() if (copy / _IMPORTED).exists() else []
            for name in names:
                if name.partition(".")[0] not in _OURS and name not in sys.modules:
                    with contextlib.suppress(ImportError, AttributeError):
                        importlib.import_module(name)

    def _begun(self, number: int, trial: Trial, copy: Path) -> _Running:
        path = copy / trial.module
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()  # Python trusts it where size and second of the text are the same
        path.write_text(trial.text)
        process = os.fork()
        if not process:
            os.close(self._held)
            _forked(lambda: _tested(copy, trial))
        return _Running(number, trial, copy, process, time.monotonic())


def _outcome(one: _Running) -> Outcome | None:
    """None while it is being tried."""
    ended, status = os.waitpid(one.process, os.WNOHANG)
    late = not ended and time.monotonic() - one.began > one.trial.limit_s
    if not ended and not late:
        return None
    _end_all(one.copy)
    code = 1 if late else os.waitstatus_to_exitcode(status)
    if late:
        os.waitpid(one.process, 0)
    said = (one.copy / _SAID).read_text(errors="replace")[-2_000:]
    if code not in (*_PASSED, *_FAILED) and code >= 0:
        raise RuntimeError(f"pytest ended with {code}:\n{said}")
    shutil.copyfile(ROOT / one.trial.module, one.copy / one.trial.module)
    killed = code not in _PASSED
    return Outcome(killed, said, {} if killed else json.loads((one.copy / _SECONDS).read_text()))


@contextlib.contextmanager
def bench(processes: int) -> Iterator[Bench]:
    """A bench that leaves nothing behind."""
    folder = Path(tempfile.mkdtemp(prefix="kafka_sla-mutation-"))
    reading, writing = os.pipe()
    guard = os.fork()
    if not guard:
        os.close(writing)
        _forked(lambda: _tidy_after(reading, folder))
    os.close(reading)
    try:
        yield Bench(folder, processes, writing)
    finally:
        os.close(writing)
        os.waitpid(guard, 0)


def _tidy_after(reading: int, folder: Path) -> int:
    """Wait until nobody holds the other end, because who did has ended, or is past its `with` block."""
    os.setsid()
    for ended in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ended, signal.SIG_IGN)
    os.read(reading, 1)
    _end_all(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _end_all(folder: Path) -> None:
    """End every process that works in this folder, whoever started it."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if f"{process.cwd()}/".startswith(f"{folder}/"):
                process.kill()


def _forked(work: Callable[[], int]) -> NoReturn:
    """The rest of a forked process, which never returns to what its parent does."""
    code = 3
    try:
        code = work()
    finally:
        os._exit(code)


def _tested(copy: Path, trial: Trial) -> int:
    os.setsid()
    os.chdir(copy)
    said = os.open(_SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)
    shutil.rmtree("tmp", ignore_errors=True)
    Path("tmp").mkdir()
    paths = [str(copy / "plugins"), str(copy)]
    os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(copy / "tmp")}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    tempfile.tempdir, sys.dont_write_bytecode = None, False  # what is compiled lies in the copy, too
    sys.path[:] = paths + [path for path in sys.path if path and Path(path) != ROOT]
    quickest = _QuickestFirst(trial)
    code = int(pytest.main(["-q", "-x", "--tb=line", "-p", "no:cacheprovider", *trial.tests], [quickest]))
    Path(_IMPORTED).write_text("\n".join(sys.modules))
    Path(_SECONDS).write_text(json.dumps(quickest.seconds))
    return code


class _QuickestFirst:
    """Leaves the tests of the trial, by how long they are known to take."""

    def __init__(self, trial: Trial) -> None:
        self._trial, self.seconds = trial, defaultdict[str, float](float)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = self._trial.known
        items[:] = [one for one in items if self._trial.asks(one.nodeid)]
        items.sort(key=lambda one: known.get(one.nodeid, 0.0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
