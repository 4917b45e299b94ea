"""Airflow's own web server as a process, with this repository's DAGs known to it; no scheduler is needed for pages."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from demo.broker import free_ports

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "browser"
_OPEN = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


@dataclass(frozen=True)
class AirflowWeb:
    """A running web server; its user `viewer` may read, `operator` also edit. All users have the password above."""

    address: str

    def token(self, user: str) -> str:
        """What logging in gives."""
        body = json.dumps({"username": user, "password": PASSWORD}).encode()
        request = urllib.request.Request(f"{self.address}/auth/token", body, {"Content-Type": "application/json"})
        with _OPEN(request) as answer:
            return str(json.load(answer)["access_token"])


@contextmanager
def airflow_web(
    home: Path, extra: Mapping[str, str], commands: Sequence[Sequence[str]] = (), seconds: float = 300
) -> Iterator[AirflowWeb]:
    """Its tables made and the DAGs read first, so that every page is there at once; then `commands` of Airflow's."""
    home.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    (home / "passwords.json").write_text(json.dumps(dict.fromkeys(_USERS, PASSWORD)))
    environment = os.environ | _environment(home, port) | dict(extra)
    with (home / "airflow.log").open("wb") as log:
        for command in (["db", "migrate"], ["dags", "reserialize"], *commands):
            subprocess.run([*_AIRFLOW, *command], env=environment, stdout=log, stderr=log, check=True, cwd=home)
        server = subprocess.Popen(
            [*_AIRFLOW, "api-server", "--port", str(port)],
            env=environment,
            stdout=log,
            stderr=log,
            cwd=home,
        )
        try:
            found = AirflowWeb(f"http://127.0.0.1:{port}")
            _wait(found.address, server, home / "airflow.log", seconds)
            yield found
        finally:
            server.terminate()
            server.wait(30)


def shown(world: Path, config: Path) -> dict[str, str]:
    """The environment of a server that shows a world of `tests.kafka_sla.web.world`."""
    return {"KAFKA_SLA_CONFIG": str(config), "KAFKA_SLA_STORE": str(world / "store")}


_USERS = {"viewer": "viewer", "operator": "op"}
_AIRFLOW = [sys.executable, "-m", "airflow"]


def _wait(address: str, server: subprocess.Popen[bytes], log: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with _OPEN(f"{address}/api/v2/version"):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.5)
    raise RuntimeError(f"Airflow's web server did not answer:\n{log.read_text()[-3000:]}")


def _environment(home: Path, port: int) -> dict[str, str]:
    core = "AIRFLOW__CORE__"
    return {
        "AIRFLOW_HOME": str(home),
        core + "DAGS_FOLDER": str(ROOT / "dags"),
        core + "PLUGINS_FOLDER": str(home / "plugins"),
        core + "LOAD_EXAMPLES": "False",
        core + "SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in _USERS.items()),
        core + "SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__API__SECRET_KEY": secrets.token_hex(32),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }
