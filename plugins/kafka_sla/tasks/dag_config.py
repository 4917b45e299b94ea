"""Where the DAGs find the configuration, and what of it the trigger form shows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from kafka_sla.airflow_versions import variable
from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.errors import SettingsError

VARIABLE = "KAFKA_SLA_CONFIG"


@dataclass(frozen=True, slots=True)
class Menu:
    """What the form offers. `problem`: why the configuration cannot be read; the DAG stays visible and says so."""

    clusters: tuple[str, ...] = ()
    slas: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    problem: str | None = None
    settings: Settings | None = None

    @property
    def interval_ms(self) -> int:
        """How often the watching DAG measures; the default where the configuration cannot be read."""
        return (self.settings or Settings(clusters=())).interval_ms


def configuration_path(dag_file: str) -> Path:
    """The file that KAFKA_SLA_CONFIG names, else kafka_sla.yml beside the DAG file."""
    return Path(os.environ.get(VARIABLE) or Path(dag_file).with_name("kafka_sla.yml"))


def menu(path: Path) -> Menu:
    """Names for the form, read each time the DAG file is parsed (a few milliseconds)."""
    try:
        settings = load_settings(path, variable)
    except SettingsError as error:
        return Menu(problem=str(error))
    return Menu(
        tuple(c.name for c in settings.clusters),
        tuple(s.name for s in settings.slas),
        tuple(d.name for d in settings.digests),
        settings=settings,
    )
