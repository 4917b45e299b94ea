"""What hundreds of SLAs cost an installation: their configuration, the DAGs, the grid, and judging one interval."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stderr
from datetime import timedelta
from io import StringIO
from pathlib import Path

import yaml

from benchmarks.speed_facts import CLUSTER, START, Shape, committed_offsets, log_offsets
from benchmarks.speed_table import say, seconds, table
from kafka_sla.cli.console.context import Workplace
from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import Interval
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS
from kafka_sla.pipeline import steps
from kafka_sla.spark.submit import run_spark
from kafka_sla.tasks.run_plan import Batch, batches

_DAGS = Path(__file__).resolve().parents[1] / "dags"
_INTERVAL = Interval(START, START + timedelta(minutes=5))
_PARTITIONS, _TEAMS = 2, 20
_PARSE = """
import sys, time
from airflow.dag_processing.dagbag import DagBag
began = time.monotonic()
bag = DagBag(sys.argv[1])
assert len(bag.dags) == 4 and not bag.import_errors, bag.import_errors
print(time.monotonic() - began)
"""


def grown(counts: tuple[int, ...] = (6, 300, 500, 1_000)) -> str:
    """By number of SLAs, each over a group of its own with two partitions: seconds and tasks."""
    found = [_one(count) for count in counts]
    return table(
        ["", *(f"{count:,} SLAs" for count in counts)], [(what, *(f[what] for f in found)) for what in found[0]]
    )


def _one(count: int) -> dict[str, str]:
    shape, found = Shape(count * _PARTITIONS, partitions=_PARTITIONS, commit_seconds=60), {}
    with tempfile.TemporaryDirectory(prefix="kafka_sla-slas-") as name, redirect_stderr(StringIO()):
        place = _place(Path(name), count)
        began = time.monotonic()
        settings = load_settings(place.config)
        found["read the configuration, a file a team"] = seconds(time.monotonic() - began)
        found["parse all DAG files"] = seconds(_parsed(place.config))
        tasks = batches(settings.slas)
        found["tasks that judge, a run"] = f"{len(tasks)}"
        facts = {LOG_OFFSETS.name: log_offsets(shape, _INTERVAL)}
        facts[COMMITTED_OFFSETS.name] = committed_offsets(shape, _INTERVAL)
        Lake(place.store).land(facts, _INTERVAL)
        job = steps.prepare(settings, place.store, _INTERVAL, [CLUSTER])
        run_spark(job)
        steps.validate(place.store, job)
        steps.publish(place.store, job)
        for what, missed in (("judge five minutes", 0), ("… when all are missed", count)):
            _write(place.config.parent, count, "1s" if missed else "5m")
            took, spent = _judged(load_settings(place.config), place, tasks, missed)
            found[f"{what}, one task after the other"] = seconds(took)
            found[f"{what}: processor time"] = seconds(spent)
    say(f"{count:,} SLAs: {found}")
    return found


def _judged(settings: Settings, place: Workplace, tasks: Sequence[Batch], missed: int) -> tuple[float, float]:
    """Seconds, and those of the processor."""
    began, spent, opened = time.monotonic(), time.process_time(), 0
    for batch in tasks:
        for sla, outcome in steps.evaluate_all(settings, place.store, batch["slas"], _INTERVAL):
            if isinstance(outcome, Exception):
                raise RuntimeError(sla) from outcome
            opened += len(outcome["open"])
    if opened != missed:
        raise RuntimeError(f"{opened} of {missed} misses opened")
    return time.monotonic() - began, time.process_time() - spent


def _place(folder: Path, count: int) -> Workplace:
    """A store and the configuration of some teams, each with a file of its own."""
    (folder / "slas.d").mkdir()
    _write(folder, count, "5m")
    return Workplace(folder / "kafka_sla.yml", folder / "store")


def _write(folder: Path, count: int, max_latency: str) -> None:
    (folder / "kafka_sla.yml").write_text(yaml.safe_dump({"clusters": {CLUSTER: {}}}))
    for team in range(min(_TEAMS, count)):
        slas = [
            {
                "name": f"payments.authorised-v2 read by group-{n:05} in time",
                "team": f"payments-{team:02}",
                "cluster": CLUSTER,
                "group": f"group-{n:05}",
                "max_latency": max_latency,
                "for": "2m",
                "objective": "99.5%",
            }
            for n in range(team, count, _TEAMS)
        ]
        (folder / "slas.d" / f"payments-{team:02}.yml").write_text(yaml.safe_dump({"slas": slas}))


def _parsed(config: Path) -> float:
    """Seconds, without Airflow's own start."""
    environment = os.environ | {"KAFKA_SLA_CONFIG": str(config), "AIRFLOW_HOME": str(config.parent / "airflow")}
    environment["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    command = [sys.executable, "-W", "ignore", "-c", _PARSE, str(_DAGS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.strip().splitlines()[-1]))
