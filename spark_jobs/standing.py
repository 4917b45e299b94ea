"""A job measured on a standing Spark, through Spark Connect: no application starts for it, and the rows are the same.

The server starts Python processes for each session and keeps them, so one that measured before goes on in the session
that it had; two at once never share one, because they would see each other's views. Knows the server's address only.
"""

from __future__ import annotations

import fcntl
import os
import platform
import socket
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.connect.client.retries import DefaultPolicy

from kafka_sla.cache import cache_folder
from kafka_sla.errors import SparkFailed
from kafka_sla.spark.failures import cause_in
from kafka_sla.spark.job_spec import read_job
from kafka_sla.spark.package_zip import code_zip
from kafka_sla.spark.server import PORT
from kafka_sla.spark_jobs.measure import measured
from kafka_sla.validation import suites

_SECONDS = 10
_ENDED = "INVALID_HANDLE.SESSION_CLOSED"
_MOST_ENDED, _MOST_AT_ONCE = 100, 64


def measure_standing(
    url: str, job_path: str, settings: dict[str, str], began: Callable[[Callable[[], Any]], None] = lambda _: None
) -> dict[str, int]:
    """Measure the job on the server at `sc://host:port/;…`; answers the rows staged per table. `settings` of Spark SQL
    go before the server's. `began` is given what ends the work early.

    SparkFailed: no server answers, its Spark is of another version, or the job failed there.
    """
    job = read_job(job_path)
    _reach(url)
    Thread(target=suites.load, daemon=True).start()
    with _own_slot() as slot:
        try:
            session = _session(url, slot, settings)
            began(session.interruptAll)
            with _ending(session):
                for name, value in settings.items():
                    session.conf.set(name, value)
                return measured(job, lambda: session)
        except PySparkException as error:
            raise SparkFailed(f"Spark at {_place(url)} failed: {cause_in(str(error))}") from error


@contextmanager
def _ending(session: Any) -> Iterator[None]:
    """Lets the server end what it does for a process that is ended."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        session.interruptAll()
        raise


def check_versions(server: str, client: str) -> None:
    """SparkFailed unless both are of one line, as 4.1.1 and 4.1.3 are."""
    if server.split(".")[:2] != client.split(".")[:2]:
        raise SparkFailed(
            f"the server runs Spark {server}, and pyspark is {client} here: install the pyspark of the server's"
            f" version, or start a server of Spark {'.'.join(client.split('.')[:2])}"
        )


def _reach(url: str) -> None:
    """SparkFailed at once where nothing listens: Spark's own client tries for ten minutes."""
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or PORT), _SECONDS).close()
    except OSError as error:
        raise SparkFailed(
            f"no Spark Connect server answers at {_place(url)} ({error.strerror or error}): start one with"
            " `kafka-sla spark-server`, or correct the connection"
        ) from error


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or PORT}"


@contextmanager
def _own_slot() -> Iterator[int]:
    """The first number that no other process on this machine holds; a killed one holds none."""
    folder = cache_folder() / "spark_sessions"
    folder.mkdir(parents=True, exist_ok=True)
    for slot in range(_MOST_AT_ONCE):
        with (folder / str(slot)).open("w") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield slot
            return
    raise SparkFailed(f"{_MOST_AT_ONCE} jobs are being measured at once from here: wait for one of them")


def _session(url: str, slot: int, settings: dict[str, str]) -> Any:
    """The session of this machine, user, code, settings and slot; what a killed process left running in it is ended."""
    code = code_zip()
    holder = f"{platform.node()} {os.getuid()} {code.stem} {sorted(settings.items())} {slot}"
    for nth in range(_MOST_ENDED):
        own = uuid.uuid5(uuid.NAMESPACE_URL, f"{holder} {nth}")
        session = SparkSession.builder.remote(f"{url.rstrip(';')}{_parameters(url, own)}").create()
        session.client.set_retry_policies([DefaultPolicy(max_retries=5, max_backoff=5_000)])
        try:
            session.interruptAll()
        except PySparkException as error:
            if _ENDED in str(error):  # it was not used for long
                continue
            raise
        check_versions(session.version, pyspark.__version__)
        _send(session, code)
        return session
    raise SparkFailed(f"Spark at {_place(url)} ended {_MOST_ENDED} sessions of this machine: start it again")


def _send(session: Any, code: Path) -> None:
    """Give the server the code; this process goes on importing, and its children too, what is installed here."""
    before = list(sys.path)
    try:
        session.addArtifacts(str(code), pyfile=True)
    finally:
        sys.path[:] = before  # Spark puts the zip, which has no templates, before all that is installed


def _parameters(url: str, session_id: uuid.UUID) -> str:
    user = "" if "user_id=" in url else ";user_id=kafka_sla"
    return f"{'' if '/;' in url or url.endswith('/') else '/'}{user};session_id={session_id}"
