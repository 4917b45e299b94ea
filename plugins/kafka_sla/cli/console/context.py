"""Where a command works: configuration, store and connections, none of them from Airflow. Does no work itself."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kafka_sla.cli.console.arguments import CONFIG_FILE, CONFIG_VARIABLE, STORE_FOLDER, STORE_VARIABLE
from kafka_sla.config.env_connections import environment_connection, variable_of
from kafka_sla.config.reading.yaml_lines import KeyPath, YamlFile
from kafka_sla.config.rules import merged_slas
from kafka_sla.config.settings import Settings, load_settings, supposed_slas
from kafka_sla.config.sla_files import read_configuration
from kafka_sla.config.store import Store
from kafka_sla.errors import BadRequest
from kafka_sla.model.entities import Connection, Sla


@dataclass(frozen=True)
class Workplace:
    """`config` and `folder` as the command line names them; None: from the environment, else the current folder."""

    config: Path | None = None
    folder: Path | None = None

    @cached_property
    def settings(self) -> Settings:
        return load_settings(self._configuration)

    @property
    def raw_slas(self) -> list[dict[str, Any]]:
        """The SLAs as the configuration writes them, each with the defaults."""
        return merged_slas(self._values)

    @property
    def defaults(self) -> dict[str, Any]:
        """`defaults` as the configuration writes them."""
        return dict(self._values.get("defaults") or {})

    def supposed(self, entries: Sequence[Mapping[str, Any]]) -> list[Sla]:
        """What these entries would be in `slas` of the configuration."""
        return supposed_slas(self._values, entries)

    def line_of(self, key: KeyPath) -> str:
        """File and line of a key of the configuration, `slas.d/team.yml, line 7`; of an inherited key, its SLA's."""
        place = self._file.mistake(key, "")
        return f"{place.file or self._configuration}, line {place.line}"

    @property
    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = self._file.values
        return values

    @cached_property
    def _file(self) -> YamlFile:
        return read_configuration(self._configuration)

    @property
    def is_configured(self) -> bool:
        """Whether a configuration is named, or lies where it usually does."""
        return self._named_configuration is not None or self._configuration.exists()

    @property
    def _named_configuration(self) -> str | Path | None:
        return self.config or os.environ.get(CONFIG_VARIABLE) or None

    @property
    def _configuration(self) -> Path:
        return Path(self._named_configuration or CONFIG_FILE)

    @cached_property
    def named_store(self) -> Store:
        """The named folder, else the configured connection where it is defined, as for the DAGs, else a folder."""
        if self.folder:
            return Store.embedded(self.folder)
        if os.environ.get(variable_of(self.settings.store_connection)):
            return Store.from_connection(environment_connection(self.settings.store_connection, kind="store"))
        return Store.embedded(Path(os.environ.get(STORE_VARIABLE) or STORE_FOLDER))

    @cached_property
    def store(self) -> Store:
        """The same; StoreError where it was moved or copied and has yet to be told so: nothing is read or written."""
        from kafka_sla.ledger.ledger import Ledger

        Ledger(self.named_store).check_place()
        return self.named_store

    @cached_property
    def known_store(self) -> Store:
        """The same for who only reads; BadRequest where there is none yet, so that a mistyped address makes none."""
        self._check_begun()
        return self.store

    @cached_property
    def moved_store(self) -> Store:
        """The same for who tells it that it was moved."""
        self._check_begun()
        return self.named_store

    def _check_begun(self) -> None:
        from kafka_sla.ledger.ledger import Ledger

        named = self.named_store
        if not Ledger(named).has_begun():
            database = named.url.render_as_string(hide_password=True)
            raise BadRequest(
                f"there is no store in the warehouse {named.warehouse} with the database {database}: correct the"
                " address, or let `kafka-sla run` or the DAGs begin one there"
            )

    def login(self, conn_id: str) -> Connection:
        """The connection of that id."""
        return environment_connection(conn_id)

    @property
    def smtp(self) -> Connection | None:
        named = self.settings.smtp_connection
        return environment_connection(named, kind="mail") if named else None
