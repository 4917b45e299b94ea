"""A connection's keys, named as confluent-kafka and Airflow name them, as the client's configuration. Opens nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka_sla.errors import KafkaUnreachable
from kafka_sla.model.entities import Connection

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI")
_OF_CONSUMERS = frozenset({"group.id", "auto.offset.reset", "enable.auto.commit"})
"""Keys that a connection shared with consumers carries; nothing here joins a group, so they mean nothing here."""


class _Wrong(ValueError):
    """What is wrong with one key; never carries a secret's value."""


def client_configuration(cluster: str, connection: Connection) -> dict[str, Any]:
    """kafka-python's configuration for this connection, or KafkaUnreachable that names every wrong key."""
    keys, wrong = _keys(connection), []
    found: dict[str, Any] = {}
    for key, value in keys.items():
        try:
            found |= _translate(key, value)
        except _Wrong as error:
            wrong.append(f"{key}: {error}")
    wrong += _contradictions(found)
    if wrong:
        raise KafkaUnreachable(
            f"cluster {cluster!r}: the connection {connection.id!r} cannot be used: {'; '.join(wrong)}."
            " Correct it where the connection is defined (host and port, or its extra)."
        )
    return found


def _keys(connection: Connection) -> dict[str, Any]:
    """The extra's keys, completed by the connection's own fields."""
    keys = {key: value for key, value in connection.extra.items() if key not in _OF_CONSUMERS}
    if connection.host and "bootstrap.servers" not in keys:
        port = connection.port or 9092
        hosts = [host.strip() for host in connection.host.split(",")]
        keys["bootstrap.servers"] = ",".join(host if ":" in host else f"{host}:{port}" for host in hosts)
    if connection.login:
        keys.setdefault("sasl.username", connection.login)
    if connection.password:
        keys.setdefault("sasl.password", connection.password)
    return keys


def _translate(key: str, value: Any) -> dict[str, Any]:
    if key not in _KEYS:
        raise _Wrong(f"not known; known are {', '.join(sorted(_KEYS))}")
    name, read = _KEYS[key]
    return {name: read(value)}


def _contradictions(found: dict[str, Any]) -> list[str]:
    wrong = []
    if not found.get("bootstrap_servers"):
        wrong.append("no broker is named: give host and port, or bootstrap.servers in the extra")
    sasl = found.get("security_protocol", "PLAINTEXT").startswith("SASL")
    mechanism = found.get("sasl_mechanism")
    if sasl and not mechanism:
        wrong.append(f"sasl.mechanism is missing; allowed are {', '.join(_MECHANISMS)}")
    if not sasl and (mechanism or found.get("sasl_plain_password")):
        wrong.append("a login is given but security.protocol is not SASL_SSL or SASL_PLAINTEXT")
    if sasl and mechanism != "GSSAPI" and not (found.get("sasl_plain_username") and found.get("sasl_plain_password")):
        wrong.append("sasl.username or sasl.password is missing (the connection's login and password count)")
    return wrong


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _Wrong("must be a text that is not empty")
    return value


def _servers(value: Any) -> list[str]:
    servers = [server.strip() for server in _text(value).split(",") if server.strip()]
    for server in servers:
        if not server.rpartition(":")[2].isdigit():
            raise _Wrong(f"{server!r} is not host:port")
    return servers


def _one_of(allowed: tuple[str, ...]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        name = str(value).upper()
        if name not in allowed:
            raise _Wrong(f"{value!r} is not one of {', '.join(allowed)}")
        return name

    return read


def _file(value: Any) -> str:
    if not Path(_text(value)).is_file():
        raise _Wrong(f"there is no file {value!r} on this machine")
    return str(value)


def _checks_names(value: Any) -> bool:
    return _one_of(("HTTPS", "NONE"))(value or "none") == "HTTPS"


_KEYS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "bootstrap.servers": ("bootstrap_servers", _servers),
    "client.id": ("client_id", _text),
    "security.protocol": ("security_protocol", _one_of(_PROTOCOLS)),
    "sasl.mechanism": ("sasl_mechanism", _one_of(_MECHANISMS)),
    "sasl.mechanisms": ("sasl_mechanism", _one_of(_MECHANISMS)),
    "sasl.username": ("sasl_plain_username", _text),
    "sasl.password": ("sasl_plain_password", _text),
    "sasl.kerberos.service.name": ("sasl_kerberos_service_name", _text),
    "ssl.ca.location": ("ssl_cafile", _file),
    "ssl.certificate.location": ("ssl_certfile", _file),
    "ssl.key.location": ("ssl_keyfile", _file),
    "ssl.key.password": ("ssl_password", _text),
    "ssl.endpoint.identification.algorithm": ("ssl_check_hostname", _checks_names),
}
