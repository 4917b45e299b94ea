"""`python -m demo`: start everything, let consumers run well and badly, measure them through Airflow, tell the outcome.

With ONCE=1 in the environment it ends after that, with status 1 when something else than the expected was missed; else
traffic and Airflow go on until Ctrl-C, and the DAG measures every five minutes. Knows the order of things only.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from demo.airflow_client import AirflowClient
from demo.airflow_server import ROOT, AirflowFailed, airflow
from demo.broker import Cluster, archive_classes
from demo.flows import FIRST_FIGURES_SECONDS, FLOWS, OPENED_SECONDS, RECOVERED_SECONDS
from demo.load import Load
from demo.mailbox import mailbox
from demo.neighbours import Neighbours, neighbours_of
from demo.outcome import Outcome
from demo.postgres import postgres
from demo.standing_spark import StandingSpark, standing_spark
from kafka_sla.config.env_connections import environment_connection
from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.config.store import Store
from kafka_sla.model.entities import Interval, floor_time
from kafka_sla.pipeline.steps import snapshot

FOLDER = ROOT / ".work" / "demo"
CONFIGURATION = Path(__file__).with_name("kafka_sla.yml")
DAG = "kafka_sla"
_EXPIRE_SOON = {"log.retention.check.interval.ms": "5000"}
"""Kafka looks for expired records every five minutes by itself; here one topic keeps them for seconds."""
_CALM = {"AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300"}
"""Airflow parses every DAG each 30 seconds by itself, with a sixth of a core; nobody edits them here."""
_BEGAN = time.monotonic()


def say(text: str) -> None:
    """One line of progress, after the seconds since the start."""
    print(f"[{time.monotonic() - _BEGAN:5.0f} s] {text}", flush=True)


def main() -> int:
    for ending in (signal.SIGINT, signal.SIGTERM):  # a script's background process ignores the first otherwise
        signal.signal(ending, signal.default_int_handler)
    once = os.environ.get("ONCE") == "1"
    try:
        return _play(once)
    except KeyboardInterrupt:
        say("stopped")
        return 130 if once else 0
    except (AirflowFailed, TimeoutError) as error:
        say(f"stopped: {error}; Airflow's log is {FOLDER / 'airflow' / 'standalone.log'}")
        return 1


def _play(once: bool) -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with ExitStack() as brokers, ExitStack() as stack:  # whoever asks brokers ends before them
        say("on two idle cores this takes about 7 minutes; the first figures are there after about 2")
        cluster = Cluster(folder=FOLDER / "kafka", properties=_EXPIRE_SOON)
        neighbours = neighbours_of(cluster)
        configuration = neighbours.configuration(CONFIGURATION, FOLDER / CONFIGURATION.name)
        say("starting Spark, Postgres, a mailbox and Airflow")
        spark = stack.enter_context(standing_spark(FOLDER))
        databases = stack.enter_context(postgres(FOLDER / "postgres"))
        box = stack.enter_context(mailbox(FOLDER / "mail"))
        store = Store(str(FOLDER / "warehouse"), databases["kafka_sla"])
        connections = _connections(cluster, neighbours, store, box.port, spark)
        environment = connections | _CALM | {"KAFKA_SLA_CONFIG": str(configuration)}
        if once:  # only the runs that are triggered below
            environment["AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE"] = "False"
        client = stack.enter_context(airflow(FOLDER / "airflow", databases["airflow"], environment))
        say("starting Kafka and MirrorMaker, while Airflow starts")
        brokers.enter_context(cluster)
        load = stack.enter_context(Load(cluster.client(), FLOWS))
        say(f"traffic runs: {len(FLOWS)} topics, {len(FLOWS)} consumer groups")
        neighbours.start_mirror(brokers)
        client.wait_until_healthy(say=say)
        spark.wait()
        (client.unpause if once else client.unpause_alone)(DAG)
        say(f"Airflow is up: {_login(client)}")
        first = _first_round(client, load, load_settings(configuration).window_ms)
        if neighbours.roomy:
            say("starting three more brokers, one of them behind slow links")
            archive_classes()
            for name, connection in neighbours.start_brokers(brokers).items():
                client.connect(name, connection)
                connections |= _in_environment({name: connection})
        settings = load_settings(neighbours.configuration(CONFIGURATION, configuration))
        measured = _other_rounds(client, load, settings, first, partial(_look, settings, store, connections))
        outcome = Outcome(settings, store, measured, box)
        surprises = _tell(outcome, client)
        if not once:
            _stay(client, load)
    return 1 if surprises else 0


def _connections(
    cluster: Cluster, neighbours: Neighbours, store: Store, mail_port: int, spark: StandingSpark
) -> dict[str, str]:
    """The connections that configuration and DAG name, as environment variables."""
    mail = {"from_email": "kafka-sla@example.com", "disable_ssl": True, "disable_tls": True}
    named: dict[str, dict[str, Any]] = {
        "kafka_demo": {"conn_type": "kafka", "extra": cluster.client()},
        "spark_default": spark.connection,
        "smtp_default": {"conn_type": "smtp", "host": "127.0.0.1", "port": mail_port, "extra": mail},
        "kafka_sla_store": {
            "conn_type": "generic",
            "extra": {"warehouse": store.warehouse, "database_url": store.database_url},
        },
    }
    return _in_environment(named | neighbours.connections())


def _in_environment(named: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {f"AIRFLOW_CONN_{name.upper()}": json.dumps(connection) for name, connection in named.items()}


def _first_round(client: AirflowClient, load: Load, window_ms: int) -> Interval:
    """Measure the traffic as soon as there is a window of it to show; returns the time that was measured."""
    traffic_began = datetime.now(UTC) - timedelta(seconds=load.seconds)
    began, end = (
        floor_time(traffic_began + timedelta(seconds=seconds), window_ms)
        for seconds in (window_ms / 1000, FIRST_FIGURES_SECONDS)
    )
    _let_run(load, FIRST_FIGURES_SECONDS)
    _run(client, Interval(began, end))
    say(f"the first figures: {client.address}/kafka-sla/")
    return Interval(began, end)


def _other_rounds(
    client: AirflowClient, load: Load, settings: Settings, first: Interval, look: Callable[[Interval], None]
) -> Interval:
    """Measure the traffic in two more runs: a miss opens in one and recovers in the other. Returns the time of all.

    What is only seen now, such as the start of a log or the totals of brokers, is told by two looks within an interval.
    A run's look falls into the next one's interval; one more is taken in the last before it ends.
    """
    width = timedelta(milliseconds=settings.window_ms)
    _let_run(load, OPENED_SECONDS)
    traffic_began = datetime.now(UTC) - timedelta(seconds=load.seconds)
    second = floor_time(traffic_began + timedelta(seconds=OPENED_SECONDS), settings.window_ms)
    _run(client, Interval(first.end, second))
    _let_run(load, RECOVERED_SECONDS)
    say("one more look at what is only seen now")
    look(Interval(second, floor_time(datetime.now(UTC), settings.window_ms)))
    end = floor_time(datetime.now(UTC), settings.window_ms) + width
    _let_run(load, load.seconds + (end - datetime.now(UTC)).total_seconds())
    _run(client, Interval(second, end))
    return Interval(first.start, end)


def _look(settings: Settings, store: Store, connections: Mapping[str, str], interval: Interval) -> None:
    """Snapshot every cluster as a run of the DAG would, without measuring anything."""
    login = partial(environment_connection, environ=connections)
    for cluster in settings.clusters:
        snapshot(settings, store, cluster.name, login, interval, live=True)


def _let_run(load: Load, until: float) -> None:
    told = -1
    while load.seconds < until:
        load.check()
        if (tens := int(load.seconds) // 20) > told:
            told = tens
            say(f"traffic: {load.seconds:.0f} of {until:.0f} s")
        time.sleep(0.5)


def _run(client: AirflowClient, interval: Interval) -> None:
    """One run of the DAG through the form that people use too."""
    say(f"triggering {DAG} for {interval}")
    form = {"from": f"{interval.start:%FT%TZ}", "to": f"{interval.end:%FT%TZ}", "notify": "always"}
    for task in client.follow(DAG, client.trigger(DAG, form)):
        say(f"  {task.name}: {task.state} ({task.seconds:.1f} s){_indented(task.problem)}")


def _login(client: AirflowClient) -> str:
    return f"{client.address}  user {client.user}, password {client.password}"


def _indented(text: str) -> str:
    return "".join(f"\n            {line}" for line in text.splitlines())


def _tell(outcome: Outcome, client: AirflowClient) -> list[str]:
    surprises = outcome.surprises()
    print(f"\n{outcome.text(FOLDER / 'report.html')}\n\nAirflow\n{_login(client)}", flush=True)
    for surprise in surprises:
        print(f"WRONG: {surprise}", file=sys.stderr, flush=True)
    if not surprises:
        missed = ", ".join(flow.sla for flow in FLOWS if flow.missed)
        print(f"As expected, exactly these were missed: {missed}.", flush=True)
    return surprises


def _stay(client: AirflowClient, load: Load) -> None:
    print("Traffic and Airflow go on; Ctrl-C ends everything.", flush=True)
    while True:
        load.check()
        client.alive()
        time.sleep(1)


if __name__ == "__main__":
    sys.exit(main())
