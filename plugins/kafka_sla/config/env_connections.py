"""Connections where no Airflow runs: its environment variables, read without it. Never shows what they hold."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from kafka_sla.errors import ConnectionMissing, SettingsError
from kafka_sla.model.entities import Connection

Kind = Literal["brokers", "http", "mail", "store"]
_EXAMPLES: dict[Kind, str] = {
    "brokers": '{"conn_type": "kafka", "extra": {"bootstrap.servers": "host:9092"}} or as a URI such as'
    " kafka://host:9092",
    "http": '{"conn_type": "http", "host": "https://hooks.example.com", "password": "…"}',
    "mail": '{"conn_type": "smtp", "host": "mail.example.com", "port": 587,'
    ' "extra": {"from_email": "sla@example.com"}}',
    "store": '{"conn_type": "postgres", "host": "db.example.com", "schema": "kafka_sla", "login": "kafka_sla",'
    ' "password": "…", "extra": {"warehouse": "/shared/kafka_sla"}}',
}
_FOR: dict[Kind, str] = {
    "brokers": "Kafka brokers",
    "http": "a webhook or Kafka Connect",
    "mail": "a mail server",
    "store": "a store",
}


def environment_connection(
    conn_id: str, environ: Mapping[str, str] = os.environ, *, kind: Kind | None = None
) -> Connection:
    """The connection that AIRFLOW_CONN_<ID> holds, as JSON or as a URI. `kind`: what it is wanted for, which decides
    the example that is shown where it is missing; None: one for each, since an id need not tell."""
    variable = variable_of(conn_id)
    text = environ.get(variable, "").strip()
    if not text:
        raise ConnectionMissing(
            f"the connection {conn_id!r} is not defined here: set the environment variable {variable}, as JSON"
            f" such as {_EXAMPLES[kind] if kind else _one_for_each()}"
        )
    try:
        return _from_json(conn_id, json.loads(text)) if text.startswith("{") else _from_uri(conn_id, text)
    except (ValueError, TypeError, AttributeError, RecursionError):
        # Neither the text nor the parser's words may show: both can hold a password.
        raise SettingsError(
            f"the environment variable {variable} holds no connection: write JSON with conn_type, host, port (1 to"
            " 65535), login, password, schema and extra, or a URI type://login:password@host:port/schema?key=value,"
            " percent-encoded"
        ) from None


def _one_for_each() -> str:
    return "; ".join(f"{example} for {_FOR[kind]}" for kind, example in _EXAMPLES.items())


def variable_of(conn_id: str) -> str:
    """The environment variable that Airflow, too, looks for."""
    return f"AIRFLOW_CONN_{conn_id.upper()}"


def _from_json(conn_id: str, given: dict[str, Any]) -> Connection:
    extra, port = given.get("extra") or {}, given.get("port")
    return Connection(
        id=conn_id,
        host=given.get("host") or None,
        port=_port(port) if port else None,
        login=given.get("login") or None,
        password=given.get("password") or None,
        schema=given.get("schema") or None,
        conn_type=_type(str(given.get("conn_type") or "generic")),
        extra=dict(json.loads(extra) if isinstance(extra, str) else extra),
    )


def _port(given: object) -> int:
    port = int(str(given)) if str(given).isascii() else 0
    if not 0 < port < 65_536:
        raise ValueError("no port")
    return port


def _from_uri(conn_id: str, text: str) -> Connection:
    parts = urlsplit(text)
    if not parts.scheme:
        raise ValueError("no scheme")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    nested = query.pop("__extra__", None)
    return Connection(
        id=conn_id,
        host=_decoded(_host(parts.netloc)),
        port=parts.port,
        login=_decoded(parts.username),
        password=_decoded(parts.password),
        schema=_decoded(parts.path.removeprefix("/")),
        conn_type=_type(parts.scheme),
        extra={**query, **(dict(json.loads(nested)) if nested else {})},
    )


def _host(netloc: str) -> str:
    """The host as it was written; the standard library would lower its case, which a file's path does not survive."""
    host = netloc.rpartition("@")[2]
    return host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]


def _decoded(text: str | None) -> str | None:
    return unquote(text) if text else None


def _type(text: str) -> str:
    return {"postgresql": "postgres"}.get(text, text.replace("-", "_"))
