"""A database that restarts, a warehouse that is gone or full, a mail server that is down, two runs at once.

Every run measures the same imported half hour into a store of its own; its rows must be those of a run without a fault.
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from sqlalchemy import create_engine, make_url, text

from benchmarks.faults_grid import Grid, Outcome
from demo.imported_history import import_history
from demo.mailbox import Mailbox
from demo.postgres import interrupted, postgres
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Cluster, Connection, Interval, Patterns, Sla, SteadyState
from kafka_sla.pipeline import steps
from kafka_sla.spark.submit import run_spark

OVER = Interval(datetime(2026, 11, 1, 10, tzinfo=UTC), datetime(2026, 11, 1, 10, 30, tzinfo=UTC))
_MINUTE = timedelta(minutes=1)
_STOPPED = Interval(OVER.start + 5 * _MINUTE, OVER.start + 15 * _MINUTE)
_TABLES = ("consumer_latency", "steady_state", "sla_windows", "sla_misses")

Before = Callable[[str], None]
"""Called with the name of the step that is about to run."""


def experiments() -> Iterator[Outcome]:
    """All of them, on one Postgres."""
    with tempfile.TemporaryDirectory(prefix="kafka_sla-faults-") as name:
        folder = Path(name)
        with postgres(folder / "postgres") as urls:
            plain = _store(folder, urls["kafka_sla"], "plain")
            _measure(plain, Grid(), _nothing)
            rows = _rows(plain)
            yield _mail_server_down(folder, plain)
            yield _database_down(folder, urls["kafka_sla"], rows)
            yield _warehouse_gone(folder, urls["kafka_sla"], rows)
            yield _disk_full(folder, urls["kafka_sla"], rows)
            yield _twice_at_once(folder, urls["kafka_sla"], rows)


def _database_down(folder: Path, url: str, rows: object) -> Outcome:
    store, grid, seconds = _store(folder, url, "restarts"), Grid(), 15

    def before(step: str) -> None:
        if step != "measure":
            down = interrupted(folder / "postgres")
            _for_a_while(seconds, down.__enter__, lambda: down.__exit__(None, None, None))

    waited = _measure(store, grid, before)
    told = f"stopped for {seconds} s before each of prepare, validate, publish and evaluate; the steps wait for it"
    return Outcome(
        "the SQL database is down", told, grid.states, f"{max(waited, grid.waited):.0f} s", _rows(store) == rows
    )


def _warehouse_gone(folder: Path, url: str, rows: object) -> Outcome:
    store, grid, seconds = _store(folder, url, "gone"), Grid(), 15
    here, away = Path(store.warehouse), Path(store.warehouse + ".away")

    def vanish() -> None:
        here.rename(away)
        here.write_text("nothing is mounted here")

    def return_() -> None:
        here.unlink()
        away.rename(here)

    def before(step: str) -> None:
        if step in ("prepare", "validate", "publish"):
            _for_a_while(seconds, vanish, return_)

    _measure(store, grid, before)
    told = f"its folder is away for {seconds} s before each of prepare, validate and publish"
    return Outcome("the table store is down", told, grid.states, f"{grid.waited:.0f} s", _rows(store) == rows)


def _disk_full(folder: Path, url: str, rows: object) -> Outcome:
    """No file may grow beyond 1,000 bytes: what a full disk does to a writer, without root. Spark inherits it."""
    store, grid, seconds = _store(folder, url, "full"), Grid(), 15
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def before(step: str) -> None:
        if step in ("prepare", "measure", "publish"):
            _for_a_while(
                seconds,
                lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard)),
                lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard)),
            )

    _measure(store, grid, before)
    left = list(Path(store.warehouse).rglob("*.part"))
    told = f"for {seconds} s before each of prepare, measure and publish; {len(left)} half-written files left"
    return Outcome("the disk is full", told, grid.states, f"{grid.waited:.0f} s", _rows(store) == rows and not left)


def _twice_at_once(folder: Path, url: str, rows: object) -> Outcome:
    store = _store(folder, url, "twice")
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
        states = [each.result() for each in [processes.submit(_measured_alone, store) for _ in range(2)]]
    told = "two processes run all steps side by side"
    return Outcome("two runs of the same interval", told, "; ".join(sorted(set(states))), "0 s", _rows(store) == rows)


def _measured_alone(store: Store) -> str:
    grid = Grid()
    _measure(store, grid, _nothing)
    return grid.states


def _mail_server_down(folder: Path, store: Store) -> Outcome:
    (folder / "mail").mkdir()
    box, grid, seconds = Mailbox(folder / "mail"), Grid(), 30
    server = Controller(box, hostname="127.0.0.1", port=box.port)
    extra = {"from_email": "sla@example.com", "disable_ssl": True, "disable_tls": True}
    smtp = Connection("smtp", "127.0.0.1", box.port, extra=extra)

    def tell() -> dict[str, Any]:
        return steps.notify(SETTINGS, store, [sla.name for sla in SETTINGS.slas], OVER, smtp, None)

    waiting = _for_a_while(seconds, lambda: None, server.start)
    try:
        grid.run("notify", tell)
        first = len(box.files())
        tell()  # the next run
    finally:
        waiting.join()
        server.stop()
    told = f"nothing listens for {seconds} s; {first} mails came, {len(box.files()) - first} more with the next run"
    return Outcome("the mail server is down", told, grid.states, f"{grid.waited:.0f} s", first == len(box.files()) == 2)


def _for_a_while(seconds: float, begin: Callable[[], object], end: Callable[[], object]) -> threading.Timer:
    begin()
    timer = threading.Timer(seconds, end)
    timer.start()
    return timer


def _nothing(_: str) -> None:
    """No fault before any step."""


def _measure(store: Store, grid: Grid, before: Before) -> float:
    """All steps of one run; the seconds that the longest step without Spark took."""
    longest = 0.0

    def step(name: str, work: Callable[[], Any]) -> Any:
        nonlocal longest
        before(name)
        began = datetime.now(UTC)
        answer = grid.run(name, work)
        if name != "measure":
            longest = max(longest, (datetime.now(UTC) - began).total_seconds())
        return answer

    job = step("prepare", lambda: steps.prepare(SETTINGS, store, OVER, ["old"]))
    step("measure", lambda: run_spark(job, memory="1g"))
    step("validate", lambda: steps.validate(store, job))
    step("publish", lambda: steps.publish(store, job))
    step("evaluate", lambda: [steps.evaluate(SETTINGS, store, sla.name, OVER) for sla in SETTINGS.slas])
    return longest


def _rows(store: Store) -> dict[str, list[dict[str, Any]]]:
    return {name: Lake(store).published(name, OVER).to_pylist() for name in _TABLES}


def _sla(group: str) -> Sla:
    return Sla(
        group,
        "old",
        Patterns((group,)),
        Patterns(),
        120_000,
        60_000,
        0.999,
        SteadyState(120_000),
        recipients=("on-call@example.com",),
    )


SETTINGS = Settings((Cluster("old", None, Patterns(), Patterns()),), (_sla("keeps-up"), _sla("stops")))


def _store(folder: Path, url: str, name: str) -> Store:
    """A store with a database and a warehouse of its own that holds the half hour's facts."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    engine.dispose()
    address = make_url(url).set(database=name).render_as_string(hide_password=False)
    store = Store(str(folder / name / "warehouse"), address)
    Path(store.warehouse).mkdir(parents=True)
    minutes = [OVER.start + number * _MINUTE for number in range(-5, 31)]
    import_history(Lake(store), folder / name, minutes, {"keeps-up": None, "stops": _STOPPED})
    Ledger(store).verdicts.misses()  # makes its tables
    return store
