"""Airflow on this machine, as `airflow standalone` runs it, for the demonstration."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from demo.airflow_client import AirflowClient
from demo.broker import free_ports

ROOT = Path(__file__).resolve().parents[1]
_USER = "admin"


class AirflowFailed(RuntimeError):
    """Airflow did not come up; the message carries the end of its log."""


@contextmanager
def airflow(
    home: Path, database_url: str, extra: Mapping[str, str], port: int = 8080, stop_seconds: float = 30
) -> Iterator[AirflowClient]:
    """A running Airflow with this repository's DAGs; `extra` are environment variables, connections above all.

    The client may be asked at once; `AirflowClient.wait_until_healthy` says when Airflow answers. In the end it has
    `stop_seconds` to stop in good order before it is killed.
    """
    home.mkdir(parents=True, exist_ok=True)
    password = secrets.token_urlsafe(8)
    (home / "passwords.json").write_text(json.dumps({_USER: password}))
    port, *others = (port, *free_ports(2)) if _is_free(port) else free_ports(3)
    environment = os.environ | _environment(home, database_url, port, others) | dict(extra)
    log = home / "standalone.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _STANDALONE],
            env=environment,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def alive() -> int:
        if process.poll() is not None:
            raise AirflowFailed(f"Airflow ended with status {process.returncode}:\n{log.read_text()[-4000:]}")
        return log.stat().st_size

    try:
        yield AirflowClient(f"http://127.0.0.1:{port}", _USER, password, alive)
    finally:
        _stop(process, stop_seconds)


_STANDALONE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process of a script ignores it otherwise
from airflow.__main__ import main
from airflow.cli.commands.standalone_command import StandaloneCommand
calculated = StandaloneCommand.calculate_env
executor = {"AIRFLOW__CORE__EXECUTOR": os.environ["AIRFLOW__CORE__EXECUTOR"]}  # it would make each a LocalExecutor
StandaloneCommand.calculate_env = lambda command: calculated(command) | executor
sys.argv = ["airflow", "standalone"]
main()
"""


def _environment(home: Path, database_url: str, port: int, log_ports: list[int]) -> dict[str, str]:
    address, settings = f"http://127.0.0.1:{port}", "AIRFLOW__"
    worker_logs, trigger_logs = (str(one) for one in log_ports)
    return {
        "AIRFLOW_HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "GX_ANALYTICS_ENABLED": "false",
        settings + "CORE__EXECUTOR": "LocalExecutor",
        settings + "CORE__PARALLELISM": "4",
        settings + "CORE__LOAD_EXAMPLES": "False",
        settings + "CORE__DAGS_FOLDER": str(ROOT / "dags"),
        # the installed package registers the plugin; the folder as well would be an error
        settings + "CORE__PLUGINS_FOLDER": str(home / "plugins"),
        settings + "CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        settings + "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{_USER}:admin",
        settings + "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        settings + "CORE__FERNET_KEY": "",
        settings + "DATABASE__SQL_ALCHEMY_CONN": database_url,
        settings + "API__HOST": "127.0.0.1",
        settings + "API__PORT": str(port),
        settings + "API__BASE_URL": address,
        settings + "API__WORKERS": "1",
        settings + "API__SECRET_KEY": secrets.token_hex(16),
        settings + "API_AUTH__JWT_SECRET": secrets.token_hex(32),
        settings + "LOGGING__WORKER_LOG_SERVER_PORT": worker_logs,
        settings + "LOGGING__TRIGGER_LOG_SERVER_PORT": trigger_logs,
        settings + "DAG_PROCESSOR__PARSING_PROCESSES": "1",
        settings + "USAGE_DATA_COLLECTION__ENABLED": "False",
    }


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _stop(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Interrupt Airflow, which is the only signal that it stops in good order for, and end what it leaves behind."""
    if process.poll() is not None:
        return
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for child in family:
        if child.is_running():
            child.terminate()
    _, stubborn = psutil.wait_procs(family, timeout=5)
    for child in stubborn:
        child.kill()
