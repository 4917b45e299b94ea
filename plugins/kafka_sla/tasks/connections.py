"""Airflow connections as this project's own values. Knows where logins come from, not what anybody does with them."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from airflow.sdk.log import mask_secret

from kafka_sla.airflow_versions import AirflowNotFoundException, airflow_connection, conf
from kafka_sla.config.store import Store
from kafka_sla.errors import ConnectionMissing
from kafka_sla.model.entities import Connection

STORE_FOLDER = "KAFKA_SLA_STORE"
"""Environment variable of the embedded store's folder, used when the store's connection is not defined."""

_SECRET_WORDS = (
    "password",
    "secret",
    "token",
    "pem",
    "oauthbearer.config",
    "account-key",
    "connection-string",
)


def connection(conn_id: str) -> Connection:
    """The Airflow connection of that id, its secrets masked in every log from here on."""
    try:
        found = airflow_connection(conn_id)
    except AirflowNotFoundException as error:
        raise ConnectionMissing(
            f"the Airflow connection {conn_id!r} is not defined; add it under Admin > Connections, with"
            f" `airflow connections add {conn_id} ...`, or as the environment variable AIRFLOW_CONN_{conn_id.upper()}"
        ) from error
    _check_callback(conn_id, found.extra)
    for secret in _secrets(found.password, found.extra):
        mask_secret(secret)
    return found


def store_of(conn_id: str) -> Store:
    """The table store: its Airflow connection, or the embedded one in the folder that KAFKA_SLA_STORE names."""
    try:
        return Store.from_connection(connection(conn_id))
    except ConnectionMissing:
        if folder := os.environ.get(STORE_FOLDER):
            return Store.embedded(Path(folder))
        raise


def _check_callback(conn_id: str, extra: dict[str, object]) -> None:
    """Whoever may edit connections must not thereby run code: Airflow's own list of callbacks is honoured."""
    allowed = [path.strip() for path in conf.get("apache_kafka", "callback_allowlist", fallback="").split(",")]
    if (path := extra.get("oauth_cb")) and path not in allowed:
        raise ConnectionMissing(
            f"the Airflow connection {conn_id!r} names the callback {path!r}, which this Airflow does not allow: add it"
            " to callback_allowlist in the section [apache_kafka] of its configuration"
        )


def _secrets(password: str | None, extra: dict[str, object]) -> list[str]:
    """What must never show. Airflow masks by the names of keys; a URL that holds a password has no telling name."""
    hidden = [password]
    for key, value in extra.items():
        if any(word in key.lower() for word in _SECRET_WORDS):
            hidden.append(str(value))
        elif "://" in str(value) and (inside := urlsplit(str(value)).password):
            hidden += [str(value), inside, unquote(inside)]
    return [secret for secret in hidden if secret]
