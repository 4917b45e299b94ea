"""Where the web server finds configuration and store: as the DAGs do. Knows no page."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from airflow.sdk import Connection as AirflowConnection
from airflow.sdk import conf
from airflow.sdk.exceptions import AirflowNotFoundException
from fastapi import Request

from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.config.store import Store
from kafka_sla.errors import ConnectionMissing, SettingsError
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Connection


@dataclass(frozen=True, slots=True)
class Place:
    """Everything that a page reads from."""

    settings: Settings
    ledger: Ledger
    lake: Lake
    store: Store
    now: datetime


def place(request: Request) -> Place:
    """A FastAPI dependency. The clock says what is shown as late, never what is computed."""
    path = _configuration()
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise SettingsError(f"cannot read the configuration {path}: {error.strerror}; set KAFKA_SLA_CONFIG") from error
    settings, ledger, lake, store = _opened(path, changed)
    return Place(settings, ledger, lake, store, datetime.now(UTC))


def _configuration() -> Path:
    """The file that KAFKA_SLA_CONFIG names, else kafka_sla.yml in the DAG folder."""
    return Path(os.environ.get("KAFKA_SLA_CONFIG") or Path(conf.get("core", "dags_folder")) / "kafka_sla.yml")


@lru_cache(maxsize=2)
def _opened(path: Path, changed: int) -> tuple[Settings, Ledger, Lake, Store]:
    """Read anew when the file has changed."""
    settings = load_settings(path)
    store = _store(settings)
    return settings, Ledger(store), Lake(store), store


def _store(settings: Settings) -> Store:
    try:
        found = AirflowConnection.get(settings.store_connection)
    except AirflowNotFoundException as error:
        if folder := os.environ.get("KAFKA_SLA_STORE"):
            return Store.embedded(Path(folder))
        raise ConnectionMissing(
            f"the Airflow connection {settings.store_connection!r} is not defined where the web server runs; add it"
            " under Admin > Connections"
        ) from error
    return Store.from_connection(
        Connection(
            id=settings.store_connection, host=found.host, port=found.port, login=found.login,
            password=found.password, schema=found.schema, conn_type=found.conn_type, extra=dict(found.extra_dejson),
        )
    )  # fmt: skip
