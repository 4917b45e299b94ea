"""What an SLA that is added costs the next run, beside a run as ever and a replay of all stored facts."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from datetime import timedelta
from io import StringIO
from pathlib import Path

from benchmarks.speed_facts import CLUSTER, START, Shape
from benchmarks.speed_recompute import CONFIGURATION, busy, store_facts, workplace
from benchmarks.speed_table import say, seconds, table
from kafka_sla.cli.console.context import Workplace
from kafka_sla.cli.local_run import Run, execute
from kafka_sla.model.entities import Interval

_RUN = timedelta(minutes=5)
_ADDED = "{name: added, group: group-00000, topic: /.*/, max_latency: 10s}"


@dataclass(frozen=True, slots=True)
class _Cost:
    """Seconds of a run, and how long the machine's processors were busy in them."""

    wall: float
    processor: float

    def __str__(self) -> str:
        return f"{seconds(self.wall)} ({seconds(self.processor)})"


def added(sizes: Sequence[float], group_partitions: int = 1_000) -> str:
    """A table: a row for each length of history, in days."""
    shape = Shape(group_partitions)
    head = [
        "days of facts",
        "commits",
        "replay of all",
        "a run as ever",
        "the run after an SLA was added",
        "the next one",
    ]
    return (
        f"Five minutes of {group_partitions:,} group-partitions, {shape.topics} topics; the SLA that is added covers"
        f" one group, {100 / shape.topics:.0f} % of them. Time, and processor time in brackets.\n\n"
        + table(head, [_row(shape, days) for days in sizes])
    )


def _row(shape: Shape, days: float) -> list[object]:
    with tempfile.TemporaryDirectory(prefix="kafka_sla-newsla-") as folder:
        place = workplace(Path(folder))
        commits = store_facts(place, shape, days)
        end = START + timedelta(days=days)
        runs = [Interval(end - n * _RUN, end - (n - 1) * _RUN) for n in (4, 3, 2, 1)]
        costs = [_run(place, run) for run in runs[:2]]
        configuration = Path(folder, "kafka_sla.yml")
        configuration.write_text(CONFIGURATION.replace("slas: [", f"slas: [{_ADDED}, "))
        costs += [_run(Workplace(configuration, Path(folder, "store")), run) for run in runs[2:]]
        return [f"{days:g}", f"{commits:,}", *costs]


def _run(place: Workplace, interval: Interval) -> _Cost:
    began, processor = time.monotonic(), busy()
    with redirect_stderr(StringIO()):
        execute(place, Run(interval, (CLUSTER,), place.settings.slas, live=False))
    found = _Cost(time.monotonic() - began, busy() - processor)
    say(f"{interval}: {found}")
    return found
