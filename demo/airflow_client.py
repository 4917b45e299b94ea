"""What the demonstration asks of Airflow over its REST API."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

_PARTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")
_POOL, _SLOTS = "default_pool", 128
"""Airflow's own pool, and how many tasks of it may run at once by default."""
_WORD_SECONDS = 15
_ENDED = ("success", "failed", "upstream_failed", "skipped", "removed")
# never through a proxy: everything is on this machine
_OPEN = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """How one task of a run ended. `name` carries the cluster or the SLA of a mapped task."""

    name: str
    task_id: str
    state: str
    seconds: float
    problem: str = ""
    """What a failed task said."""


@dataclass(slots=True)
class AirflowClient:
    """One Airflow. `alive` raises when its process has ended, and returns the bytes that it has logged so far."""

    address: str
    user: str
    password: str = field(repr=False)
    alive: Callable[[], int]
    _token: str | None = field(default=None, repr=False)

    def token(self) -> str:
        """What logging in gives, for a browser."""
        login = {"username": self.user, "password": self.password}
        return str(self._send("POST", "/auth/token", login, {})["access_token"])

    def wait_until_healthy(self, seconds: float = 180, say: Callable[[str], None] = lambda text: None) -> None:
        """Wait as long as Airflow logs anything within so many seconds: a slow machine is no failure."""
        self._poll(self._is_healthy, seconds, "Airflow is not healthy", say)

    def unpause(self, dag_id: str, seconds: float = 120) -> None:
        """Let a DAG run, as soon as Airflow has parsed it."""
        self._poll(lambda: self._is_unpaused(dag_id), seconds, f"Airflow did not find the DAG {dag_id}")

    def unpause_alone(self, dag_id: str, seconds: float = 120) -> None:
        """Without the run of the interval before, which Airflow makes at once and nobody here asks for."""
        self.set_slots(_POOL, 0)
        self.unpause(dag_id)
        self._poll(lambda: bool(self.runs(dag_id)), seconds, f"Airflow makes no run of {dag_id}")
        made = list(self.runs(dag_id))
        for run_id in made:
            self.fail(dag_id, run_id)
        self._wait_for_next_loop(seconds)  # a scheduler that has in hand what is deleted ends with an error
        for run_id in made:
            self._ask("DELETE", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")
        self.set_slots(_POOL, _SLOTS)

    def trigger(self, dag_id: str, conf: dict[str, Any]) -> str:
        """Start a run with this form; returns its id."""
        run = self._ask("POST", f"/api/v2/dags/{dag_id}/dagRuns", {"logical_date": None, "conf": conf})
        return str(run["dag_run_id"])

    def connect(self, name: str, connection: Mapping[str, Any]) -> None:
        """Make a connection; its `extra` is a mapping."""
        body = {**connection, "connection_id": name, "extra": json.dumps(connection["extra"])}
        self._ask("POST", "/api/v2/connections", body)

    def states(self) -> dict[str, str]:
        """The state of each SLA, as this project's pages show it in Airflow's web server."""
        return {sla["name"]: sla["state"] for sla in self._ask("GET", "/kafka-sla/api/v1/slas")}

    def set_variable(self, name: str, value: str) -> None:
        """Add a variable that is not there, as under Admin > Variables."""
        self._ask("POST", "/api/v2/variables", {"key": name, "value": value})

    def set_slots(self, pool: str, slots: int) -> None:
        """How many tasks of a pool may run at once."""
        self._ask("PATCH", f"/api/v2/pools/{pool}?update_mask=slots", {"name": pool, "slots": slots})

    def fail(self, dag_id: str, run_id: str) -> None:
        """End a run and its tasks as failed."""
        self._ask("PATCH", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}?update_mask=state", {"state": "failed"})

    def runs(self, dag_id: str) -> dict[str, str]:
        """States of the DAG's runs by id, of the newest hundred."""
        found = self._ask("GET", f"/api/v2/dags/{dag_id}/dagRuns?limit=100&order_by=-run_after")["dag_runs"]
        return {run["dag_run_id"]: run["state"] for run in found}

    def wait_for_backfills(self, dag_id: str, seconds: float = 900) -> None:
        """Until Airflow counts every backfill of the DAG as complete, which it looks at every 30 seconds."""
        path = f"/api/v2/backfills?dag_id={dag_id}"
        self._poll(
            lambda: all(one["completed_at"] for one in self._ask("GET", path)["backfills"]),
            seconds,
            f"the backfill of {dag_id} is not complete",
        )

    def run_of(self, dag_id: str, interval_end: datetime) -> str | None:
        """The run whose data interval ends then; None when there is none yet."""
        found = self._ask("GET", f"/api/v2/dags/{dag_id}/dagRuns?limit=100&order_by=-run_after")["dag_runs"]
        ends = {run["dag_run_id"]: run["data_interval_end"] for run in found}
        return next((name for name, end in ends.items() if end and datetime.fromisoformat(end) == interval_end), None)

    def instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """The task instances of a run, as Airflow tells them."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances?limit=200"
        return list(self._ask("GET", path)["task_instances"])

    def follow(self, dag_id: str, run_id: str, seconds: float = 900) -> Iterator[TaskEnd]:
        """The tasks of a run as they end, until the run itself has ended."""
        told: set[tuple[str, int]] = set()
        deadline = time.monotonic() + seconds
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}"
        over = False
        while not over:
            over = self._ask("GET", path)["state"] in _ENDED
            for task in self._ask("GET", f"{path}/taskInstances?limit=200")["task_instances"]:
                key = (task["task_id"], task["map_index"])
                if task["state"] in _ENDED and key not in told:
                    told.add(key)
                    yield self._task_end(path, task)
            if time.monotonic() > deadline:
                raise TimeoutError(f"run {run_id} of {dag_id} did not end within {seconds:.0f} s; see {self.address}")
            time.sleep(0 if over else 1)

    def _task_end(self, path: str, task: dict[str, Any]) -> TaskEnd:
        task_id, mapped = task["task_id"], task["map_index"] >= 0
        name = f"{task_id} [{task.get('rendered_map_index') or task['map_index']}]" if mapped else task_id
        problem = self._problem(path, task) if task["state"] == "failed" else ""
        return TaskEnd(name, task_id, task["state"], float(task.get("duration") or 0), problem)

    def _problem(self, path: str, task: dict[str, Any]) -> str:
        """The exceptions in the log of a task's last try."""
        log = f"{path}/taskInstances/{task['task_id']}/logs/{task['try_number']}?map_index={task['map_index']}"
        entries = self._ask("GET", log)["content"]
        errors = [error for entry in entries for error in entry.get("error_detail") or ()]
        return "\n".join(f"{error['exc_type']}: {error['exc_value']}" for error in errors)

    def _poll(
        self, done: Callable[[], bool], seconds: float, problem: str, say: Callable[[str], None] = lambda text: None
    ) -> None:
        logged, progress_at = 0, time.monotonic()
        next_word = progress_at + _WORD_SECONDS
        while not done():
            now = time.monotonic()
            if (bytes_now := self.alive()) > logged:
                logged, progress_at = bytes_now, now
            if now > progress_at + seconds:
                raise TimeoutError(f"{problem}: it has logged nothing for {seconds:.0f} s")
            if now > next_word:
                say(f"waiting for Airflow: {logged // 1024} KiB logged")
                next_word = now + _WORD_SECONDS
            time.sleep(0.5)

    def _wait_for_next_loop(self, seconds: float) -> None:
        """Until the scheduler has ended the loop that it is in: it reports to be alive between two of them."""
        now = datetime.now(UTC)
        self._poll(lambda: self._reported_at() > now, seconds, "the scheduler does not go on")

    def _reported_at(self) -> datetime:
        return datetime.fromisoformat(self._health()["scheduler"]["latest_scheduler_heartbeat"])

    def _health(self) -> dict[str, Any]:
        with _OPEN(f"{self.address}/api/v2/monitor/health", timeout=5) as answer:
            return dict(json.load(answer))

    def _is_healthy(self) -> bool:
        try:
            health = self._health()
        except OSError:
            return False
        return all((health.get(part) or {}).get("status") == "healthy" for part in _PARTS)

    def _is_unpaused(self, dag_id: str) -> bool:
        try:
            self._ask("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return False
        return True

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        self.alive()
        if self._token is None:
            self._token = self.token()
        return self._send(method, path, body, {"Authorization": f"Bearer {self._token}"})

    def _send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(
            self.address + path,
            data,
            {"Content-Type": "application/json", "Accept": "application/json", **headers},
            method=method,
        )
        with _OPEN(request, timeout=30) as answer:
            return json.loads(answer.read() or b"{}")  # what was deleted answers nothing
