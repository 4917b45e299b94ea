"""The past measured again from stored facts, as `kafka-sla run` does: how long, and what the time grows with."""

from __future__ import annotations

import io
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psutil

from benchmarks.speed_facts import CLUSTER, START, Shape, committed_offsets, days, log_offsets
from benchmarks.speed_plot import Line, plot
from benchmarks.speed_table import megabytes, say, seconds, table
from kafka_sla.cli.console.context import Workplace
from kafka_sla.cli.local_run import Run, execute
from kafka_sla.files import bytes_of, files_below
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import COMMITTED_OFFSETS, CONSUMER_LATENCY, LOG_OFFSETS

CONFIGURATION = (
    f"clusters: {{{CLUSTER}: {{}}}}\nslas: [{{name: promise, group: /.*/, topic: /.*/, max_latency: 30s}}]\n"
)
_STEP = re.compile(r"^(\w+).*: (\d+\.\d) s$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Measured:
    """One recomputation; seconds."""

    shape: Shape
    days: float
    commits: int
    rows: int
    wall: float
    processor: float
    """How long the machine's processors were busy in that time, with whatever else ran."""
    steps: dict[str, float]
    fact_bytes: int
    metric_bytes: int


def past(count: float = 30, group_partitions: int = 1_000) -> str:
    """So many days of one size, and where the time goes."""
    found = recompute(Shape(group_partitions, uneven_ms=500), count)
    rows = [(name, seconds(took), f"{100 * took / found.wall:.0f} %") for name, took in found.steps.items()]
    rows.append(("everything", seconds(found.wall), "100 %"))
    return (
        f"{count:g} days of {group_partitions:,} group-partitions, a commit every {found.shape.commit_seconds:g} s:"
        f" {found.commits:,} commits, {found.rows:,} rows of latency; {megabytes(found.fact_bytes)} of facts read,"
        f" {megabytes(found.metric_bytes)} of metrics written; {found.commits / found.wall:,.0f} commits a second,"
        f" {found.processor / count:.0f} s of processor time a day of data.\n\n"
        + table(["step", "time", "share"], rows)
    )


def growth(folder: Path, group_partitions: int = 1_000) -> str:
    """Four sizes of commits, and four rates of records with the same commits; plots both."""
    sizes = [recompute(Shape(group_partitions), days) for days in (1 / 32, 1 / 16, 1 / 8, 1 / 4)]
    rates = [recompute(Shape(group_partitions, records_per_second=rate), 1 / 32) for rate in (1, 10, 100, 1_000)]
    plot(
        folder / "speed_commits.svg",
        "commits measured again, million",
        "seconds",
        [
            Line("time", [(m.commits / 1e6, m.wall) for m in sizes]),
            Line("processor time", [(m.commits / 1e6, m.processor) for m in sizes]),
        ],
    )
    plot(
        folder / "speed_records.svg",
        "records a second and partition, same commits",
        "seconds",
        [
            Line("time", [(m.shape.records_per_second, m.wall) for m in rates]),
            Line("processor time", [(m.shape.records_per_second, m.processor) for m in rates]),
        ],
        logarithmic=True,
    )
    return (
        _by(sizes)
        + "\n\n![time by commits](speed_commits.svg)\n\n"
        + _by(rates)
        + "\n\n![time by records](speed_records.svg)"
    )


def _by(found: Sequence[Measured]) -> str:
    head = ["commits", "records a second and partition", "records", "time", "processor time", "metrics written"]
    return table(
        head,
        [
            (
                f"{m.commits:,}",
                f"{m.shape.records_per_second:,}",
                f"{m.shape.records_per_second * m.shape.group_partitions * m.days * 86_400:,.0f}",
                seconds(m.wall),
                seconds(m.processor),
                megabytes(m.metric_bytes),
            )
            for m in found
        ],
    )


def recompute(shape: Shape, count: float) -> Measured:
    """Store the facts of so many days, then measure them in one command."""
    with tempfile.TemporaryDirectory(prefix="kafka_sla-recompute-") as folder:
        place = workplace(Path(folder))
        commits = store_facts(place, shape, count)
        fact_bytes = bytes_of(files_below(f"{place.store.warehouse}/facts"))
        interval = Interval(START, START + timedelta(days=count))
        began, processor = time.monotonic(), busy()
        words = io.StringIO()
        with redirect_stderr(words):
            execute(place, Run(interval, (CLUSTER,), place.settings.slas, live=False))
        took, used = time.monotonic() - began, busy() - processor
        say(f"{commits:,} commits in {took:.1f} s")
        steps: dict[str, float] = {}
        for name, spent in _STEP.findall(words.getvalue()):
            steps[name] = steps.get(name, 0.0) + float(spent)
        lake = Lake(place.store)
        files = [path for path in files_below(f"{place.store.warehouse}/staging") if path.endswith(".parquet")]
        rows = lake.published(CONSUMER_LATENCY.name, interval, columns=["partition"]).num_rows
        return Measured(shape, count, commits, rows, took, used, steps, fact_bytes, bytes_of(files))


def workplace(folder: Path) -> Workplace:
    """A store of its own with one cluster whose facts are imported, and one SLA over all of it."""
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "kafka_sla.yml"
    configuration.write_text(CONFIGURATION)
    return Workplace(configuration, folder / "store")


def store_facts(place: Workplace, shape: Shape, count: float) -> int:
    """Land the facts of so many days through the lake's door; answers the commits."""
    lake, commits = Lake(place.store), 0
    for day in days(START, count):
        facts = {LOG_OFFSETS.name: log_offsets(shape, day), COMMITTED_OFFSETS.name: committed_offsets(shape, day)}
        lake.land(facts, day)
        commits += facts[COMMITTED_OFFSETS.name].num_rows
        say(f"stored {day.start:%F}: {commits:,} commits")
    return commits


def busy() -> float:
    """Of the machine, because Spark's workers end without anybody's waiting for them, who could count their time."""
    idle = ("idle", "iowait", "guest", "guest_nice")  # what guests take is in the others, too
    return float(sum(spent for name, spent in psutil.cpu_times()._asdict().items() if name not in idle))
