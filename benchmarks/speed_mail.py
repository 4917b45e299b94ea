"""From the end of an interval to the mail that says an SLA was missed in it, everything on this machine.

A real broker whose groups commit every ten seconds, a real Airflow that runs the DAG by its schedule, a real mailbox.
One group stops committing; Postgres, Airflow, Spark, Kafka and the traffic share the processors, as on a small server.
With a Spark that starts for each interval of five minutes; or one that stands by, a scheduler that imports for its
tasks, and intervals of one.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.speed_recompute import busy
from benchmarks.speed_table import say, seconds, table
from demo.airflow_client import AirflowClient
from demo.airflow_server import airflow
from demo.broker import Cluster, archive_classes
from demo.mailbox import Mailbox, mailbox
from demo.postgres import postgres
from demo.standing_spark import StandingSpark, standing_spark
from demo.warm_up import create_topic
from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.model.entities import floor_time
from kafka_sla.tasks import preload

_DAG = "kafka_sla"
_RUNS_BEFORE = 10
"""Runs in steady operation before the one that counts, where an interval is short: a standing Java takes so many to
compile what it runs."""
_MINUTES_WATCHED, _MINUTES_A_DAY = 5, 1_440
_PARTITIONS, _BEAT_SECONDS, _RECORDS = 100, 10, 10
_BEATS_BEFORE = 1_800 // _BEAT_SECONDS
_LATE = "group-0"
_CONFIGURATION = f"""
interval: INTERVAL
clusters: {{prod: {{connection: kafka_prod}}}}
defaults: {{cluster: prod, max_latency: 30s, for: 1m, recipients: [on-call@example.com]}}
slas:
  - {{name: stopped, group: {_LATE}, topic: /.*/}}
  - {{name: healthy, groups: [/group-.*/, "!{_LATE}"], topic: /.*/}}
"""


@dataclass(frozen=True, slots=True)
class _Case:
    minutes: int
    stands_by: bool

    @property
    def width(self) -> timedelta:
        return timedelta(minutes=self.minutes)


@dataclass(frozen=True, slots=True)
class _Delay:
    """How long the mail took, what each task had done by then, and how many runs were not done when it came."""

    seconds: float
    tasks: list[tuple[str, ...]]
    unfinished: int
    busy: _Busy


@dataclass(frozen=True, slots=True)
class _Busy:
    """Processor seconds a minute, before the interval ended."""

    everything: float
    spark: float
    """Of it, the Spark that stands by and its Python."""


def starting() -> str:
    """Spark starts for each interval of five minutes."""
    return _delay(_Case(5, stands_by=False))


def standing() -> str:
    """Spark stands by, and an interval is a minute."""
    return _delay(_Case(1, stands_by=True))


def _delay(case: _Case, group_partitions: int = 1_000) -> str:
    """When the mail comes, and what each step had done by then."""
    archive_classes()
    found = _measured(case, group_partitions)
    return (
        f"{group_partitions:,} group-partitions, an interval of {case.minutes} min: the mail came"
        f" **{seconds(found.seconds)}** after its end, with {found.unfinished} of the DAG's runs not done then. Until"
        f" then all processors together were busy {found.busy.everything:.0f} s a minute, Kafka and its traffic"
        f" included: {found.busy.everything * _MINUTES_A_DAY / 3_600:.1f} hours a day."
        + (f" Of it {found.busy.spark:.1f} s a minute were Spark's, to measure and validate." if case.stands_by else "")
        + "\n\n"
        + table(["task", "began, s after the end", "ended", "took"], found.tasks)
    )


def _measured(case: _Case, group_partitions: int) -> _Delay:
    topics = max(2, group_partitions // _PARTITIONS)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafka_sla-mail-")))
        spark = stack.enter_context(standing_spark(folder)) if case.stands_by else None
        cluster = stack.enter_context(Cluster(folder=folder / "kafka"))
        databases = stack.enter_context(postgres(folder / "postgres"))
        box = stack.enter_context(mailbox(folder / "mail"))
        traffic = stack.enter_context(_Traffic(cluster.client(), topics))
        store = Store(str(folder / "warehouse"), databases["kafka_sla"])
        master = spark.connection if spark else {"conn_type": "spark", "host": "local[*]"}
        environment = _environment(folder, cluster, store, box, case, master)
        say("starting Airflow")
        client = stack.enter_context(airflow(folder / "airflow", databases["airflow"], environment))
        client.wait_until_healthy(600)
        if spark:
            spark.wait()
        end, was_busy = _next_interval(client, traffic, case, spark)
        mailed = _first_mail(client, box, end)
        unfinished = sum(state in ("queued", "running") for state in client.runs(_DAG).values())
        return _Delay((mailed - end).total_seconds(), _tasks(client, end), unfinished, was_busy)


def _next_interval(
    client: AirflowClient, traffic: _Traffic, case: _Case, spark: StandingSpark | None
) -> tuple[datetime, _Busy]:
    """Let an interval pass in which the late group stops; answers its end, and how busy the processors were in the last
    minutes before it."""
    earliest = datetime.now(UTC) + (_RUNS_BEFORE * case.width if case.minutes == 1 else timedelta(minutes=1))
    start = floor_time(earliest, case.minutes * 60_000) + case.width
    traffic.stops_at = start.timestamp() + (60 if case.minutes > 1 else 0)
    say(f"the interval that counts is {start:%H:%M} to {start + case.width:%H:%M}")
    client.unpause(_DAG)
    end = start + case.width

    def spent_until(at: datetime) -> tuple[float, float]:
        while datetime.now(UTC) < at:
            traffic.check()
            client.alive()
            time.sleep(0.2)
        return busy(), _spent(spark.process.pid) if spark else 0.0

    before = spent_until(end - timedelta(minutes=_MINUTES_WATCHED))
    after = spent_until(end)
    return end, _Busy(*((now - then) / _MINUTES_WATCHED for then, now in zip(before, after, strict=True)))


def _spent(pid: int) -> float:
    """Processor seconds of a process and of all that it started and that still runs."""
    server = psutil.Process(pid)
    return sum(sum(one.cpu_times()[:2]) for one in (server, *server.children(recursive=True)))


def _first_mail(client: AirflowClient, box: Mailbox, end: datetime) -> datetime:
    while not box.files():
        client.alive()
        if datetime.now(UTC) > end + timedelta(minutes=15):
            raise TimeoutError(f"no mail within 15 minutes after {end}: runs {client.runs(_DAG)}")
        time.sleep(0.05)
    at = datetime.fromtimestamp(box.files()[0].stat().st_mtime, UTC)
    say(f"the mail came {(at - end).total_seconds():.1f} s after the interval's end")
    return at


def _tasks(client: AirflowClient, end: datetime) -> list[tuple[str, ...]]:
    run_id = client.run_of(_DAG, end)
    if run_id is None:
        raise LookupError(f"the mail came, but no run of {_DAG} has the interval that ends at {end}")
    while any(task["state"] in (None, "scheduled", "queued", "running") for task in client.instances(_DAG, run_id)):
        time.sleep(0.5)
    tasks = sorted((t for t in client.instances(_DAG, run_id) if t["start_date"]), key=lambda t: t["start_date"])
    rows = []
    for task in tasks:
        began, over = (datetime.fromisoformat(task[key]) for key in ("start_date", "end_date"))
        name = task["task_id"] + (f" [{task['rendered_map_index']}]" if task.get("rendered_map_index") else "")
        times = ((began - end), (over - end), (over - began))
        rows.append((name, *(f"{one.total_seconds():.1f}" for one in times)))
    return rows


class _Traffic:
    """Every ten seconds each partition gets records and each group commits all of them, inside the `with` block.

    Before, each group commits as often as in half an hour: so far back a snapshot reads commits again once its hour is
    published.
    """

    def __init__(self, client: dict[str, str], topics: int) -> None:
        self._topics = {f"group-{number}": f"topic-{number}" for number in range(topics)}
        self._admin = AdminClient({**client, "log_level": 0})
        self._producer = Producer({**client, "linger.ms": 50})
        self._stopping = threading.Event()
        self._failed: list[BaseException] = []
        self._thread = threading.Thread(target=self._guarded)
        self.stops_at = float("inf")
        """Epoch seconds from which on the late group commits nothing."""

    def __enter__(self) -> _Traffic:
        for topic in self._topics.values():
            create_topic(self._admin, NewTopic(topic, _PARTITIONS, 1))
        say("committing as often as in half an hour")
        for _ in range(_BEATS_BEFORE):
            self._commit(0)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def check(self) -> None:
        """Raise what ended the traffic early."""
        if self._failed:
            raise self._failed[0]

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as error:  # told by `check`, in the thread that can end the experiment
            self._failed.append(error)

    def _run(self) -> None:
        written, due = 0, time.monotonic()
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            for topic in self._topics.values():
                for partition in range(_PARTITIONS):
                    for _ in range(_RECORDS):
                        self._producer.produce(topic, b"x", partition=partition)
                self._producer.flush(60)
            written += _RECORDS
            self._commit(written)
            due += _BEAT_SECONDS

    def _commit(self, offset: int) -> None:
        for group, topic in self._topics.items():
            if group == _LATE and time.time() >= self.stops_at:
                continue
            positions = [TopicPartition(topic, partition, offset) for partition in range(_PARTITIONS)]
            for one in self._admin.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, positions)]
            ).values():
                one.result(60)


def _environment(
    folder: Path, cluster: Cluster, store: Store, box: Mailbox, case: _Case, master: dict[str, Any]
) -> dict[str, str]:
    configuration = folder / "kafka_sla.yml"
    configuration.write_text(_CONFIGURATION.replace("INTERVAL", f"{case.minutes}m"))
    load_settings(configuration)  # a mistake in it should not be found after ten minutes
    mail = {"from_email": "kafka-sla@example.com", "disable_ssl": True, "disable_tls": True}
    stored = {"warehouse": store.warehouse, "database_url": store.database_url}
    named: Mapping[str, dict[str, Any]] = {
        "kafka_prod": {"conn_type": "kafka", "extra": cluster.client()},
        "spark_default": master,
        "smtp_default": {"conn_type": "smtp", "host": "127.0.0.1", "port": box.port, "extra": mail},
        "kafka_sla_store": {"conn_type": "generic", "extra": stored},
    }
    found = {f"AIRFLOW_CONN_{name.upper()}": json.dumps(connection) for name, connection in named.items()}
    return {"KAFKA_SLA_CONFIG": str(configuration), preload.VARIABLE: "1" if case.stands_by else "", **found}
