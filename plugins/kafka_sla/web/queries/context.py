"""Where the web server finds configuration and store: as the DAGs do."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from fastapi import Request

from kafka_sla.airflow_versions import AirflowNotFoundException, airflow_connection, conf, variable
from kafka_sla.config.settings import STORE_CONNECTION, Settings, load_settings
from kafka_sla.config.sla_files import changes_of
from kafka_sla.config.store import Store
from kafka_sla.errors import ConnectionMissing, SettingsError
from kafka_sla.lake.lake import Lake
from kafka_sla.ledger.ledger import Ledger

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that a page reads from."""

    settings: Settings
    ledger: Ledger
    lake: Lake
    store: Store
    now: datetime
    damaged: list[str] = field(default_factory=list)
    """Files of the table store that the answer had to leave out; it says so."""

    def spared(self, read: Callable[[Lake], T]) -> T:
        """What `read` makes of the tables, without the files that turn out to be damaged: they cost their own rows."""
        found, left_out = self.lake.spared(read)
        self.damaged.extend(sorted(set(left_out) - set(self.damaged)))
        return found


def open_context(request: Request) -> Context:
    """A FastAPI dependency. The clock says what is shown as late, never what is computed."""
    settings = _current_settings()
    store = _store(settings.store_connection)
    ledger, lake = _opened(store)
    ledger.verify()
    request.state.damaged = []
    return Context(settings, ledger, lake.remembering(), store, datetime.now(UTC), request.state.damaged)


def _current_settings() -> Settings:
    """Those of the file; where the web server has none, as with DAG bundles, those of the newest run."""
    path = _configuration()
    try:
        return _of_file(path)
    except FileNotFoundError as error:
        with suppress(ConnectionMissing):
            if found := _opened(_store(STORE_CONNECTION))[0].configurations.newest():
                return found
        raise _unreadable(path, error) from error
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> SettingsError:
    return SettingsError(
        f"cannot read the configuration {path}: {error.strerror}; set KAFKA_SLA_CONFIG, or define the connection"
        f" {STORE_CONNECTION!r}, in whose store runs keep theirs"
    )


def _configuration() -> Path:
    """The file that KAFKA_SLA_CONFIG names, else kafka_sla.yml in the DAG folder."""
    return Path(os.environ.get("KAFKA_SLA_CONFIG") or Path(conf.get("core", "dags_folder")) / "kafka_sla.yml")


def _of_file(path: Path) -> Settings:
    """Read anew when a file, or an Airflow variable that it refers to, has changed."""
    settings, asked = _settings(path, changed := changes_of(path))
    if any(variable(name) != value for name, value in asked.items()):
        _settings.cache_clear()
        settings, _ = _settings(path, changed)
    return settings


@lru_cache(maxsize=2)
def _settings(path: Path, changed: tuple[int, ...]) -> tuple[Settings, dict[str, str | None]]:
    """The settings, and the Airflow variables that they were read with."""
    asked: dict[str, str | None] = {}

    def remembered(name: str) -> str | None:
        asked[name] = variable(name)
        return asked[name]

    return load_settings(path, remembered), asked


@lru_cache(maxsize=2)
def _opened(store: Store) -> tuple[Ledger, Lake]:
    """Opened anew when the connection of the store has changed: passwords are rotated."""
    ledger = Ledger(store)
    return ledger, Lake(store, ledger)


def _store(conn_id: str) -> Store:
    try:
        return Store.from_connection(airflow_connection(conn_id))
    except AirflowNotFoundException as error:
        if folder := os.environ.get("KAFKA_SLA_STORE"):
            return Store.embedded(Path(folder))
        raise ConnectionMissing(
            f"the Airflow connection {conn_id!r} is not defined where the web server runs; add it"
            " under Admin > Connections"
        ) from error
