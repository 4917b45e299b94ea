"""`python -m benchmarks.order_worker PLAN`: runs intervals step by step as the DAG does, resuming where it was killed.

What Airflow keeps between tasks (who is done, small results) is kept in a journal of one file an interval. One Spark
session serves all intervals of the process. Decides nothing about order and kills.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.config.store import Store
from kafka_sla.model.entities import Connection, Interval, epoch_ms
from kafka_sla.pipeline import steps
from kafka_sla.spark.conf import spark_conf
from kafka_sla.spark.job_spec import read_job
from kafka_sla.validation import suites

STEPS = ("snapshot", "prepare", "measure", "validate", "publish", "evaluate", "notify")


@dataclass(frozen=True, slots=True)
class Plan:
    """What one worker does: a folder with configuration and store, its intervals in order, and who to talk to."""

    folder: Path
    intervals: tuple[Interval, ...]
    smtp_port: int | None = None
    broker: str | None = None
    name: str = "worker"
    checked: bool = True
    """Let Great Expectations look at each load. It may refuse one, and changes no row, but takes most of the time."""
    live: bool = False
    """Snapshots observe what is there now, too."""

    def write(self) -> Path:
        path = self.folder / f"{self.name}.json"
        spans = [(i.start.isoformat(), i.end.isoformat()) for i in self.intervals]
        told = {"intervals": spans, "smtp_port": self.smtp_port, "broker": self.broker, "name": self.name}
        path.write_text(json.dumps(told | {"checked": self.checked, "live": self.live}))
        return path


def read_plan(path: Path) -> Plan:
    raw = json.loads(path.read_text())
    spans = tuple(Interval(datetime.fromisoformat(a), datetime.fromisoformat(b)) for a, b in raw["intervals"])
    return Plan(path.parent, spans, raw["smtp_port"], raw["broker"], raw["name"], raw["checked"], raw["live"])


def store_of(folder: Path) -> Store:
    """The one whose connection `store.json` holds, or one in the folder itself."""
    named = folder / "store.json"
    if not named.exists():
        return Store.embedded(folder / "store")
    return Store.from_connection(Connection("kafka_sla_store", **json.loads(named.read_text())))


def settings_of(folder: Path) -> Settings:
    return load_settings(folder / "kafka_sla.yml")


@dataclass
class Journal:
    """What is done of one interval, and what its steps answered; each file is written beside and renamed."""

    path: Path
    done: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, interval: Interval) -> Journal:
        path = folder / "journal" / f"{epoch_ms(interval.start)}-{epoch_ms(interval.end)}.json"
        return cls(path, json.loads(path.read_text()) if path.exists() else {})

    def keep(self, step: str, answer: Any) -> None:
        self.done[step] = answer
        self.path.parent.mkdir(exist_ok=True)
        part = self.path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(self.done, default=str))
        part.replace(self.path)


class Worker:
    """The steps on one store."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.settings, self.store = plan, settings_of(plan.folder), store_of(plan.folder)
        self._says = (plan.folder / f"{plan.name}.steps").open("a")

    def run(self) -> None:
        for interval in self.plan.intervals:
            journal = Journal.of(self.plan.folder, interval)
            for step in STEPS:
                if step not in journal.done:
                    self._say(step, interval)
                    journal.keep(step, self._steps[step](interval, journal.done))
        self._say("end", self.plan.intervals[-1])

    @property
    def _steps(self) -> dict[str, Callable[[Interval, dict[str, Any]], Any]]:
        return {
            "snapshot": self._snapshot,
            "prepare": self._prepare,
            "measure": self._measure,
            "validate": lambda _, done: steps.validate(self.store, done["prepare"]),
            "publish": lambda _, done: steps.publish(self.store, done["prepare"]),
            "evaluate": self._evaluate,
            "notify": self._notify,
        }

    def _snapshot(self, interval: Interval, done: dict[str, Any]) -> Any:
        login = Connection("broker", extra={"bootstrap.servers": str(self.plan.broker)})
        names = [cluster.name for cluster in self.settings.clusters]
        return [
            steps.snapshot(self.settings, self.store, n, lambda _: login, interval, live=self.plan.live) for n in names
        ]

    def _prepare(self, interval: Interval, done: dict[str, Any]) -> Any:
        clusters = [cluster.name for cluster in self.settings.clusters]
        return steps.prepare(self.settings, self.store, interval, clusters)

    def _measure(self, interval: Interval, done: dict[str, Any]) -> Any:
        from kafka_sla.spark_jobs import measure

        if not self.plan.checked:
            suites.validate = _unchecked
        return measure.main(read_job(done["prepare"]), self._spark(done["prepare"]))

    def _evaluate(self, interval: Interval, done: dict[str, Any]) -> Any:
        names = [sla.name for sla in self.settings.slas]
        found = [outcome for _, outcome in steps.evaluate_all(self.settings, self.store, names, interval)]
        if errors := [outcome for outcome in found if isinstance(outcome, Exception)]:
            raise ExceptionGroup(f"{len(errors)} SLAs could not be judged", errors)
        return found

    def _notify(self, interval: Interval, done: dict[str, Any]) -> Any:
        extra = {"disable_ssl": True, "disable_tls": True, "from_email": "sla@example.com"}
        smtp = Connection("smtp", host="127.0.0.1", port=self.plan.smtp_port, extra=extra)
        names = [sla.name for sla in self.settings.slas]
        return steps.notify(self.settings, self.store, names, interval, smtp, None)

    def _spark(self, job: str) -> SparkSession:
        """One session for all: with the settings of small jobs, such as every five minutes have."""
        here = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.log.level": "ERROR"}
        builder = SparkSession.builder.master("local[2]").appName("order")
        for key, value in (spark_conf(job, local_driver=True) | here).items():
            builder = builder.config(key, value)
        return builder.getOrCreate()

    def _say(self, step: str, interval: Interval) -> None:
        """One line a step, so that others see from outside where the worker is."""
        self._says.write(f"{time.time():.6f} {epoch_ms(interval.start)} {step}\n")
        self._says.flush()


def _unchecked(*_: Any, **__: Any) -> suites.ValidationOutcome:
    """No expectation was looked at."""
    return suites.ValidationOutcome((), ())


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    Worker(read_plan(Path(sys.argv[1]))).run()
