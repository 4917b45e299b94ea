"""`python -m benchmarks.lifetime RUNS GROUP_PARTITIONS [FOLDER]`: what grows while one store lives long, what is lost?

Five-minute runs one after the other on one store: facts land before each
run, every two hours the worker is killed with SIGKILL in the middle of a step and begins anew, every day the tables are
tidied, once with a clock that stands two days back. Prints what worker and store hold after each day, and fails when a
row differs from those of one run over everything, when a file is damaged, or when something grows that should not.
With a FOLDER a life that was interrupted goes on where it was.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
from pydantic import TypeAdapter

from benchmarks.order_stage import TABLES, Stage, kill
from benchmarks.order_worker import Journal, Plan, store_of
from benchmarks.printed import put
from benchmarks.speed_facts import CLUSTER, START, Shape, committed_offsets, log_offsets
from benchmarks.speed_table import machine, megabytes, say, table
from demo.mailbox import mailbox
from kafka_sla.cli.main import main as kafka_sla
from kafka_sla.config.store import Store
from kafka_sla.files import bytes_of, files_below
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import EVERYTHING, Interval
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS

_WIDTH, _DAY = timedelta(minutes=5), timedelta(days=1)
_RUNS_A_DAY, _RUNS_A_WORKER = 288, 24
_CONFIGURATION = f"""
clusters: {{{CLUSTER}: {{}}, eu-west: {{}}}}
slas:
  - {{name: all within 30 s, cluster: {CLUSTER}, group: /.*/, topic: /.*/, max_latency: 30s}}
  - {{name: group-00000 within 3 s, cluster: {CLUSTER}, group: group-00000, max_latency: 3s, for: 10m}}
"""
_WORTH_KEEPING = 96_000
"""Runs times group-partitions of a life whose table goes into the page."""
_GROWTH = 1.5
"""How much more the last day may have of what should be flat, than the second: the first has no past yet."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was held at one time."""

    rss: int
    descriptors: int


_NOTHING = Sample(0, 0)


@dataclass(frozen=True, slots=True)
class Day:
    """What there is after the tables were tidied."""

    runs: int
    kills: int
    most: Sample
    temporary: int
    files: int
    warehouse: int
    database: int
    run_seconds: float

    def row(self) -> tuple[str, ...]:
        return (
            f"{self.runs:,}",
            f"{self.kills}",
            megabytes(self.most.rss),
            f"{self.most.descriptors}",
            f"{self.temporary}",
            f"{self.files:,}",
            megabytes(self.warehouse),
            megabytes(self.database),
            f"{self.run_seconds:.1f} s",
        )


_HEAD = (
    "runs",
    "kills",
    "worker's memory at most",
    "its file descriptors",
    "temporary files left",
    "files of the warehouse",
    "its size",
    "database",
    "a run",
)


@dataclass(slots=True)
class Life:
    """How far a life got."""

    runs: int = 0
    kills: int = 0
    seconds: float = 0
    """That the day took so far."""
    most: Sample = _NOTHING
    """That was held on the day."""
    days: list[Day] = field(default_factory=list)

    @classmethod
    def of(cls, path: Path) -> Life:
        return _LIFE.validate_json(path.read_bytes()) if path.exists() else cls()

    def keep(self, path: Path) -> None:
        part = path.with_suffix(".part")
        part.write_bytes(_LIFE.dump_json(self))
        part.replace(path)


_LIFE = TypeAdapter(Life)


def main(runs: int, group_partitions: int, folder: Path | None) -> int:
    """Live so long; 1 when something was lost or grew."""
    with nullcontext(folder) if folder else tempfile.TemporaryDirectory(prefix="kafka_sla-long-life-") as place:
        return _main(runs, group_partitions, Path(place).resolve())


def _main(runs: int, group_partitions: int, folder: Path) -> int:
    shape = Shape(group_partitions)
    intervals = [Interval(START + n * _WIDTH, START + (n + 1) * _WIDTH) for n in range(runs)]
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder / "tmp")  # nobody else leaves anything there
    with _stage(folder / "life", intervals) as lived:
        days = _lived(lived, shape, intervals)
        checked = kafka_sla(["--store", str(lived.plan.folder / "store"), "store", "check"])
    whole = Interval(intervals[0].start, intervals[-1].end)
    with _stage(folder / "once", intervals) as once:
        for day in whole.pieces(_DAY):
            _land(store_of(once.plan.folder), shape, day)
        once.run([whole])
    lost = list(_differences(lived.lake, once.lake, whole))
    lines = table(_HEAD, [day.row() for day in days])
    text = f"{runs:,} runs of {group_partitions:,} group-partitions:\n\n{lines}\n\n<sub>{machine()}</sub>"
    print(text)
    wrong = [*lost, *_grown(days), *(["store check found damage"] if checked else [])]
    for one in wrong:
        say(one)
    if not wrong and runs * group_partitions >= _WORTH_KEEPING:
        put("damage.md", "make lifetime", text)
    return int(bool(wrong))


@contextmanager
def _stage(folder: Path, intervals: Sequence[Interval]) -> Iterator[Stage]:
    """A new store and a mailbox, or those that an interrupted experiment left in the folder."""
    folder.mkdir(exist_ok=True)
    if not (folder / "store").exists():
        (folder / "kafka_sla.yml").write_text(_CONFIGURATION)
    with mailbox(folder / "mail") as box:
        yield Stage(Plan(folder, tuple(intervals), box.port, None, "life", checked=False), box)


def _land(store: Store, shape: Shape, interval: Interval) -> None:
    facts = {LOG_OFFSETS.name: log_offsets(shape, interval), COMMITTED_OFFSETS.name: committed_offsets(shape, interval)}
    Lake(store).land(facts, interval)


def _lived(made: Stage, shape: Shape, intervals: Sequence[Interval]) -> list[Day]:
    """All days, each worker's two hours kept when they are done."""
    store, kept = store_of(made.plan.folder), made.plan.folder / "progress.json"  # life.json is the worker's plan
    life = Life.of(kept)
    while life.runs < len(intervals):
        began, some = time.monotonic(), intervals[life.runs : life.runs + _RUNS_A_WORKER]
        for interval in some:
            _land(store, shape, interval)
        left = intervals[max(0, life.runs - _RUNS_A_WORKER) : life.runs]  # by who was killed last
        _worked(made, life, [*left, *some], random.Random(life.runs))  # noqa: S311
        life.runs += len(some)
        ends = life.runs % _RUNS_A_DAY == 0 or life.runs == len(intervals)
        if ends:
            _worked(made, life, some)
        life.seconds += time.monotonic() - began
        if ends:
            _tidied(store, back=len(life.days) == 1)
            life.days.append(_day(made, life))
            life.seconds, life.most = 0, _NOTHING
        life.keep(kept)
        say(f"{life.runs:,} runs")
    return life.days


def _worked(made: Stage, life: Life, some: Sequence[Interval], lots: random.Random | None = None) -> None:
    """Work to the end; with lots be killed somewhere in the middle of the last two hours. Kept of it: whether the kill
    came in time, and the most that the worker and what it started held at once."""
    worker, deadline = made.start("life", some), time.monotonic() + 3_600
    wanted = Journal.of(made.plan.folder, lots.choice(some[1 - _RUNS_A_WORKER :])).path if lots else None
    try:
        while worker.poll() is None and not (wanted and wanted.exists()):
            assert time.monotonic() < deadline
            life.most = _larger(life.most, _held(worker.pid))
            time.sleep(0.5)
        if lots:
            time.sleep(lots.uniform(0, 2))
            life.kills += worker.poll() is None
    finally:
        kill(worker)
    if worker.returncode not in ((0, -signal.SIGKILL) if lots else (0,)):
        raise RuntimeError((made.plan.folder / "life.log").read_text()[-3_000:])


def _held(pid: int) -> Sample:
    rss = descriptors = 0
    try:
        parent = psutil.Process(pid)
        for process in (parent, *parent.children(recursive=True)):
            rss += process.memory_info().rss
            descriptors += process.num_fds()
    except psutil.NoSuchProcess:  # it has just ended
        return _NOTHING
    return Sample(rss, descriptors)


def _larger(one: Sample, other: Sample) -> Sample:
    return Sample(max(one.rss, other.rss), max(one.descriptors, other.descriptors))


def _tidied(store: Store, *, back: bool) -> None:
    """As every night, but with no time to wait for readers. `back`: first with a clock that stands two days back."""
    lake, now = Lake(store), datetime.now(UTC)
    if back:
        lake.maintain(now - timedelta(days=2))
    soon = timedelta(seconds=1)
    lake.maintain(now + timedelta(seconds=5), grace_period=soon, orphan_age=soon, trash_age=soon)


def _day(made: Stage, life: Life) -> Day:
    folder = made.plan.folder / "store"
    there = [path for path in files_below(str(folder / "warehouse")) if "/trash/" not in path]
    database = sum(path.stat().st_size for path in folder.glob("kafka_sla.db*"))
    temporary = len(list(Path(tempfile.gettempdir()).glob("*kafka_sla*")))
    runs_today = life.runs - (life.days[-1].runs if life.days else 0)
    size, took = bytes_of(there), life.seconds / runs_today
    return Day(life.runs, life.kills, life.most, temporary, len(there), size, database, took)


def _differences(lived: Lake, once: Lake, whole: Interval) -> Iterator[str]:
    """Half a day at a time: rows with histograms, twice and sorted, of a whole one do not fit into memory."""
    before, after = Interval(EVERYTHING.start, whole.start), Interval(whole.end, EVERYTHING.end)
    for name in TABLES:
        rows = 0
        for part in (before, *whole.pieces(_DAY / 2), after):
            one, other = once.published(name, part), lived.published(name, part)
            rows += one.num_rows if whole.covers(part) else 0
            if not other.equals(one):
                yield f"{name}: {other.num_rows:,} rows of {part} are not the {one.num_rows:,} of one run"
        say(f"{name}: {rows:,} rows")
        if not rows:
            yield f"{name}: one run has no rows, so there was nothing to lose"


def _grown(days: Sequence[Day]) -> Iterator[str]:
    if len(days) < 3:
        return
    second, last = days[1], days[-1]
    for what, before, after in (
        ("the worker's memory", second.most.rss, last.most.rss),
        ("its file descriptors", second.most.descriptors, last.most.descriptors),
        ("temporary files", second.temporary + 1, last.temporary + 1),
        ("files a run", second.files / second.runs, last.files / last.runs),
        ("bytes a run", second.warehouse / second.runs, last.warehouse / last.runs),
        ("the database's bytes a run", second.database / second.runs, last.database / last.runs),
    ):
        if after > _GROWTH * before:
            yield f"{what} grew from {before:,.0f} to {after:,.0f}"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]) if sys.argv[3:] else None))
