"""kill -9 at random points of a worker that runs intervals, and where they landed. Knows the steps by name only."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from benchmarks.order_stage import Stage, kill, mailed
from benchmarks.order_worker import STEPS, Journal, store_of
from kafka_sla.files import has_rows
from kafka_sla.lake.iceberg import Iceberg, paths
from kafka_sla.lake.staging import staged_files
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval, epoch_ms
from kafka_sla.model.tables import METRICS
from kafka_sla.spark.job_spec import read_job

_AIMED = (*STEPS, "publish", "notify", "notify")
"""Steps with a commit in them are short: they are aimed at more often."""
_GUESS_SECONDS = {
    "measure": 8.0,
    "snapshot": 0.3,
    "prepare": 0.3,
    "validate": 0.2,
    "publish": 0.3,
    "evaluate": 1.5,
    "notify": 0.6,
}
_LOOK_SECONDS = 0.004
_PATIENCE_SECONDS = 600.0


@dataclass(slots=True)
class Kills:
    """Where the kills landed."""

    steps: Counter[str] = field(default_factory=Counter)
    inside_publish: Counter[str] = field(default_factory=Counter)
    in_doubt: int = 0
    """The mail was taken, and the sender died before it had written so down."""
    whole_again: int = 0
    """After how many of them the whole interval was run again, not the killed step only."""


class Killer:
    """Runs a stage's intervals with so many kills; `finish` runs what is left."""

    def __init__(self, made: Stage, intervals: Sequence[Interval], seed: int) -> None:
        self._made, self._intervals, self._lots = made, intervals, random.Random(seed)  # noqa: S311
        self._folder = made.plan.folder
        self._steps = self._folder / "killed.steps"
        self.kills = Kills()

    def run(self, count: int) -> Kills:
        number = 0
        while number < count:
            worker = self._made.start("killed", self._intervals)
            try:
                if self._until(worker, self._lots.choice(_AIMED), further=number % 4 == 0):
                    kill(worker)
                    number += 1
                    self._note()
                elif worker.wait():
                    raise RuntimeError((self._folder / "killed.log").read_text()[-3000:])
                else:  # all is done before all kills are: some runs are cleared
                    # two at least, because some kills aim at a later one than the first
                    self._clear(self._lots.sample(list(self._intervals), max(2, len(self._intervals) // 3)))
            finally:
                kill(worker)
        return self.kills

    def finish(self) -> None:
        """Run what is left, undisturbed."""
        worker = self._made.start("killed", self._intervals)
        try:
            if worker.wait():
                raise RuntimeError((self._folder / "killed.log").read_text()[-3000:])
        finally:
            kill(worker)

    def _until(self, worker: subprocess.Popen[bytes], aim: str, *, further: bool) -> bool:
        """Wait for a random point of the aimed step; False when the worker ended before. `further`: of a later
        interval than the one that it begins with."""
        behind, began, deadline = len(self._said()), None, time.monotonic() + _PATIENCE_SECONDS
        mails = len(self._made.box.files())
        wait_for_mail = aim == "notify" and self._lots.random() < 0.7
        while time.monotonic() < deadline and worker.poll() is None:
            said = self._said()[behind:]
            began = began or (said[0][1] if said else None)
            if said and said[-1][2] == aim and (not further or said[-1][1] != began):
                if not wait_for_mail:
                    time.sleep(self._lots.uniform(0, self._typical(aim)))
                    return worker.poll() is None
                if len(self._made.box.files()) > mails:
                    time.sleep(self._lots.uniform(0, 0.35))
                    return worker.poll() is None
            mails = mails if said and said[-1][2] == "notify" else len(self._made.box.files())
            time.sleep(_LOOK_SECONDS)
        return worker.poll() is None

    def _said(self) -> list[tuple[float, int, str]]:
        """When the worker began which step of which interval."""
        if not self._steps.exists():
            return []
        lines = [line.split() for line in self._steps.read_text().splitlines()]
        return [(float(line[0]), int(line[1]), line[2]) for line in lines if len(line) == 3]

    def _typical(self, step: str) -> float:
        said = self._said()
        took = [b[0] - a[0] for a, b in pairwise(said) if a[1:] != b[1:] and a[2] == step]
        return sum(took[-8:]) / len(took[-8:]) if took else _GUESS_SECONDS[step]

    def _note(self) -> None:
        """Where the kill landed, from what it left behind; then the step alone, or all of its interval, is to run."""
        _, start, step = self._said()[-1]
        interval = next(i for i in self._intervals if epoch_ms(i.start) == start)
        journal = Journal.of(self._folder, interval)
        self.kills.steps[step] += 1
        if step == "publish" and "publish" not in journal.done:
            self.kills.inside_publish[self._published_so_far(journal.done["prepare"])] += 1
        if step == "notify":
            self.kills.in_doubt += self._in_doubt()
        if self._lots.random() < 0.35:
            self.kills.whole_again += 1
            self._clear([interval])

    def _clear(self, intervals: Sequence[Interval]) -> None:
        for interval in intervals:
            Journal.of(self._folder, interval).path.unlink(missing_ok=True)

    def _published_so_far(self, job_path: str) -> str:
        job, store = read_job(job_path), store_of(self._folder)
        if Ledger(store).publications.known_loads([job.load_id]):
            return "after the row"
        iceberg = Iceberg(store, Ledger(store).open)
        staged = {path for table in METRICS for path in staged_files(job.output, table) if has_rows(path)}
        there = {path for table in METRICS for path in paths(iceberg.planned(table))} & staged
        return f"{len(there)} of {len(staged)} files committed, no row"

    def _in_doubt(self) -> int:
        """Mails that came and are not marked as sent."""
        came = {event for mail in self._made.box.mails() for event in mailed(mail)}
        unsent = Ledger(store_of(self._folder)).alert_reports.unsent()
        kinds = {"opening": "opened", "resolving": "recovered"}
        return sum(f"{report.thread}.{kinds[report.state]}" in came for report in unsent)
