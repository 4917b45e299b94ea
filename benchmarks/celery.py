"""`python -m benchmarks.celery`: an Airflow with CeleryExecutor whose two workers share no folder, on real facts.

Redis (`redis-server` on the PATH, or REDIS=…) carries the tasks, Postgres the databases, an S3-compatible server the
warehouse, and a DAG bundle from Git the DAGs with their configuration: nothing else names a file of it. Each worker has
a home, a clone of the bundle and a folder for temporary files that the other does not know.
Some runs are triggered at once; prints which worker ran how many of their tasks, and fails when one did none, or when
the rows are not those of a folder on this machine.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import psutil

from benchmarks.order_day import CLUSTER, CONFIGURATION, DAY, write_files
from benchmarks.order_reader import digest
from benchmarks.order_stage import TABLES, import_facts
from benchmarks.printed import put
from benchmarks.speed_table import say, table
from demo.airflow_client import AirflowClient
from demo.airflow_server import ROOT, airflow
from demo.broker import free_ports
from demo.object_store import BUCKET, ObjectStore, object_store
from demo.postgres import postgres
from kafka_sla.cli.console.context import Workplace
from kafka_sla.cli.local_run import Run, execute
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.model.entities import EVERYTHING, Connection, Interval

DAG, RUNS = "kafka_sla", 6
_WORKERS = ("worker-1", "worker-2")
_HOUR = timedelta(hours=1)
_MAIN = "from airflow.__main__ import main; main()"


def main() -> int:
    intervals = [Interval(DAY.start + n * _HOUR, DAY.start + (n + 1) * _HOUR) for n in range(RUNS)]
    with tempfile.TemporaryDirectory(prefix="kafka_sla-celery-") as name, ExitStack() as stack:
        folder = Path(name)
        files = write_files(folder / "facts")
        databases = stack.enter_context(postgres(folder / "postgres"))
        objects = stack.enter_context(object_store(folder / "objects"))
        connection = _store(databases["kafka_sla"], objects)
        store = Store.from_connection(connection)
        import_facts(Lake(store), files)
        extra = _celery(stack.enter_context(_redis(folder / "redis")), databases["airflow"])
        extra |= {"AIRFLOW_CONN_KAFKA_SLA_STORE": _as_json(connection), **_bundle(folder / "repository")}
        extra |= {"AIRFLOW__CORE__DAGS_FOLDER": str(folder / "no DAGs")}  # beside a bundle, there are none
        extra |= {"AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"})}
        client = stack.enter_context(airflow(folder / "airflow", databases["airflow"], extra))
        for worker in _WORKERS:
            stack.enter_context(_worker(worker, folder, client, extra))
        say("workers started")
        client.wait_until_healthy(600, say=say)
        client.set_variable("payments.limit", "60s")
        client.unpause(DAG, 600)
        _run(client, intervals)
        ran = {name: len(list((folder / name / "logs").rglob("attempt=*.log"))) for name in _WORKERS}
        states = client.states()
        found, expected = _rows(store), _rows(_on_disk(folder / "disk", files, intervals))
    wrong = [f"the rows of {name} are not those of a folder" for name in TABLES if found[name] != expected[name]]
    wrong += [f"{name} ran nothing" for name, tasks in ran.items() if not tasks]
    wrong += [] if len(states) == CONFIGURATION.count("{name:") else [f"the pages show {states}"]
    said = f"{RUNS} runs, {sum(ran.values())} tasks; SHA-256 of all rows: {'not equal' if wrong else 'equal'}"
    print(text := f"{table(['worker', 'tasks'], list(ran.items()))}\n\n{said}")
    for one in wrong:
        say(one)
    if not wrong:
        put("compatibility.md", "make celery", text)
    return int(bool(wrong))


def _store(database: str, objects: ObjectStore) -> Connection:
    extra = {"warehouse": f"s3://{BUCKET}/celery/warehouse", "database_url": database, **objects.properties}
    return Connection("kafka_sla_store", conn_type="generic", extra=extra)


def _as_json(connection: Connection) -> str:
    return json.dumps({"conn_type": connection.conn_type, "extra": connection.extra})


@contextmanager
def _redis(folder: Path) -> Iterator[str]:
    """The address of a broker of its own."""
    folder.mkdir()
    (port,) = free_ports(1)
    program = os.environ.get("REDIS", "redis-server")
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    server = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait()


def _celery(broker: str, database: str) -> dict[str, str]:
    return {
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW__CELERY__BROKER_URL": broker,
        "AIRFLOW__CELERY__RESULT_BACKEND": f"db+{database}",
        "AIRFLOW__API__SECRET_KEY": secrets.token_hex(16),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",
    }


def _bundle(folder: Path) -> dict[str, str]:
    """A repository with the DAGs and their configuration, as a team's own, and the setting that names it."""
    shutil.copytree(ROOT / "dags", folder / "team" / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "team" / "dags" / "kafka_sla.yml").write_text(
        CONFIGURATION.replace("max_latency: 60s", 'max_latency: "${var:payments.limit}"')
    )
    author = ["-c", "user.name=data-platform", "-c", "user.email=data-platform@example.com"]
    for command in (["init", "--quiet", "--initial-branch", "main"], ["add", "."], ["commit", "--quiet", "-m", "DAGs"]):
        subprocess.run(["git", *author, *command], cwd=folder, check=True)
    kwargs = {"repo_url": str(folder), "tracking_ref": "main", "subdir": "team/dags"}
    bundle = {"name": "data-platform", "classpath": "airflow.providers.git.bundles.git.GitDagBundle", "kwargs": kwargs}
    return {"AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([bundle])}


@contextmanager
def _worker(name: str, folder: Path, client: AirflowClient, extra: Mapping[str, str]) -> Iterator[None]:
    """A worker that knows its own folder and, of the others, addresses only."""
    home = folder / name
    (home / "tmp").mkdir(parents=True)
    (port,) = free_ports(1)
    environment = os.environ | {
        **extra,
        "AIRFLOW_HOME": str(home),
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "NO_PROXY": "127.0.0.1,localhost",
        "GX_ANALYTICS_ENABLED": "false",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{client.address}/execution/",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(port),
    }
    options = ["--celery-hostname", name, "--concurrency", "1", "--without-gossip", "--without-mingle"]
    command = [sys.executable, "-c", _MAIN, "celery", "worker", *options]
    with (home / "worker.log").open("wb") as log:
        worker = subprocess.Popen(command, env=environment, cwd=home, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        family = [worker, *psutil.Process(worker.pid).children(recursive=True)] if worker.poll() is None else []
        for process in family:
            process.kill()
        worker.wait()


def _run(client: AirflowClient, intervals: list[Interval]) -> None:
    """Runs that are triggered at once and all end well."""
    runs = [client.trigger(DAG, {"from": f"{i.start:%FT%TZ}", "to": f"{i.end:%FT%TZ}"}) for i in intervals]
    for run in runs:
        for task in client.follow(DAG, run, 3_600):
            if task.state not in ("success", "skipped"):
                raise RuntimeError(f"{run}: {task.name}: {task.state}: {task.problem}")
        say(f"{run} ended")


def _rows(store: Store) -> dict[str, str]:
    return {name: digest(name, Lake(store).published(name, EVERYTHING).to_pylist()) for name in TABLES}


def _on_disk(folder: Path, files: list[tuple[str, Path]], intervals: list[Interval]) -> Store:
    """The same time in one run of the command line, on a store in a folder."""
    folder.mkdir()
    (folder / "kafka_sla.yml").write_text(CONFIGURATION)
    place = Workplace(folder / "kafka_sla.yml", folder / "store")
    import_facts(Lake(place.store), files)
    whole = Interval(intervals[0].start, intervals[-1].end)
    execute(place, Run(whole, (CLUSTER,), place.settings.slas, live=False))
    return place.store


if __name__ == "__main__":
    sys.exit(main())
