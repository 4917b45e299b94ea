"""Airflow connections as this project's own values. Knows where logins come from, not what anybody does with them."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from airflow.sdk import Connection as AirflowConnection
from airflow.sdk.log import mask_secret

from kafka_sla.airflow_versions import AirflowNotFoundException
from kafka_sla.config.store import Store
from kafka_sla.errors import ConnectionMissing
from kafka_sla.model.entities import Connection

STORE_FOLDER = "KAFKA_SLA_STORE"
"""Environment variable of the embedded store's folder, used when the store's connection is not defined."""


def connection(conn_id: str) -> Connection:
    """The Airflow connection of that id, its secrets masked in every log from here on."""
    try:
        found = AirflowConnection.get(conn_id)
    except AirflowNotFoundException as error:
        raise ConnectionMissing(
            f"the Airflow connection {conn_id!r} is not defined; add it under Admin > Connections, with"
            f" `airflow connections add {conn_id} ...`, or as the environment variable AIRFLOW_CONN_{conn_id.upper()}"
        ) from error
    extra = dict(found.extra_dejson)
    for secret in _secrets(found.password, extra):
        mask_secret(secret)
    return Connection(
        id=conn_id,
        host=found.host,
        port=found.port,
        login=found.login,
        password=found.password,
        schema=found.schema,
        conn_type=found.conn_type,
        extra=extra,
    )


def store_of(conn_id: str) -> Store:
    """The table store: its Airflow connection, or the embedded one in the folder that KAFKA_SLA_STORE names."""
    try:
        return Store.from_connection(connection(conn_id))
    except ConnectionMissing:
        if folder := os.environ.get(STORE_FOLDER):
            return Store.embedded(Path(folder))
        raise


def _secrets(password: str | None, extra: dict[str, object]) -> list[str]:
    """What must never show. Airflow masks by the names of keys; a URL that holds a password has no telling name."""
    hidden = [password]
    for key, value in extra.items():
        if any(word in key.lower() for word in ("password", "secret", "token", "account-key", "connection-string")):
            hidden.append(str(value))
        elif "://" in str(value) and (inside := urlsplit(str(value)).password):
            hidden += [str(value), inside, unquote(inside)]
    return [secret for secret in hidden if secret]
