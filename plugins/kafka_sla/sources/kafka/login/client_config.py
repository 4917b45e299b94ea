"""A connection's keys, named as librdkafka and Airflow name them, as the client's configuration. Opens nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from kafka_sla.errors import KafkaUnreachable
from kafka_sla.model.entities import Connection
from kafka_sla.sources.kafka.login.librdkafka_keys import ASSERTION, IGNORED, REFUSED, REFUSED_PREFIX
from kafka_sla.sources.kafka.login.sasl import MECHANISMS, login
from kafka_sla.sources.kafka.login.tls import tls_context
from kafka_sla.sources.kafka.login.wrong_key import WrongKey

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_SCHEME = re.compile(r"(?:(?<=,)|(?<=\s)|^)([A-Za-z][A-Za-z0-9_+.-]*)://")
"""The scheme of an address, as Confluent Cloud and its Terraform provider show it."""


def client_configuration(cluster: str, connection: Connection) -> dict[str, Any]:
    """kafka-python's configuration for this connection, or KafkaUnreachable that names every wrong key."""
    wrong: list[str] = []
    keys: dict[str, Any] = {}
    given = _given(connection)
    try:
        given |= _protocol_of_servers(given)
    except WrongKey as error:
        wrong.append(str(error))
    for key, value in given.items():
        try:
            if key not in IGNORED or key in _KEYS:
                keys[_ALIASES.get(key, key)] = _read(key, value)
        except WrongKey as error:
            wrong.append(f"{key}: {error}")
    found = {name: keys[key] for key, name in _OF_CLIENT.items() if key in keys}
    if not found.get("bootstrap_servers"):
        wrong.append("no broker is named: give host and port, or bootstrap.servers in the extra")
    readable = not wrong
    for part in (_secured, login):
        try:
            found |= part(keys) if readable else {}
        except WrongKey as error:
            wrong.append(str(error))
    if wrong:
        raise KafkaUnreachable(
            f"cluster {cluster!r}: the connection {connection.id!r} cannot be used: {'; '.join(wrong)}."
            " Correct it where the connection is defined (host and port, or its extra)."
        )
    return found


def ignored_keys(connection: Connection) -> list[str]:
    """Keys of the connection that mean nothing here."""
    return sorted(key for key in connection.extra if key in IGNORED and key not in _KEYS)


def _given(connection: Connection) -> dict[str, Any]:
    """The extra's keys, completed by the connection's own fields."""
    keys = dict(connection.extra)
    if connection.host and "bootstrap.servers" not in keys:
        port = connection.port or 9092
        hosts = [host.strip() for host in connection.host.split(",")]
        keys["bootstrap.servers"] = ",".join(
            host if ":" in _SCHEME.sub("", host) else f"{host}:{port}" for host in hosts
        )
    if connection.login:
        keys.setdefault("sasl.username", connection.login)
    if connection.password:
        keys.setdefault("sasl.password", connection.password)
    return keys


def _protocol_of_servers(keys: Mapping[str, Any]) -> dict[str, str]:
    """`security.protocol` as addresses such as SASL_SSL://host:9092 name it; empty where none has a scheme.

    Raises WrongKey where the schemes differ from each other or from a `security.protocol` that is given.
    """
    servers = keys.get("bootstrap.servers")
    schemes = _SCHEME.findall(servers) if isinstance(servers, str) else []
    if not schemes:
        return {}
    if unknown := [scheme for scheme in schemes if scheme.upper() not in _PROTOCOLS]:
        raise WrongKey(
            f"bootstrap.servers: {unknown[0]}:// is not one of {', '.join(_PROTOCOLS)}; write the address as host:port"
        )
    protocols = sorted({scheme.upper() for scheme in schemes})
    if len(protocols) > 1:
        raise WrongKey(f"bootstrap.servers: {' and '.join(protocols)} contradict each other; use one protocol")
    protocol = keys.get("security.protocol")
    if protocol and str(protocol).upper() != protocols[0]:
        raise WrongKey(
            f"bootstrap.servers says {protocols[0]}:// but security.protocol is {protocol!r}; correct one of them, or"
            " write the addresses as host:port"
        )
    return {"security.protocol": protocols[0]}


def _read(key: str, value: Any) -> Any:
    if key in _KEYS:
        return _KEYS[key](value)
    if key in REFUSED or key.startswith(REFUSED_PREFIX):
        raise WrongKey(f"is not supported: {REFUSED.get(key, ASSERTION)}")
    similar = get_close_matches(key, [*_KEYS, *IGNORED], 1, 0.8)
    raise WrongKey(f"unknown{f', did you mean {similar[0]}?' if similar else ''}")


def _secured(keys: dict[str, Any]) -> dict[str, Any]:
    if not keys.get("security.protocol", "").endswith("SSL"):
        return {}
    return {
        "ssl_context": tls_context({key: value for key, value in keys.items() if key.startswith(("ssl.", "enable."))})
    }


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise WrongKey("must be a text that is not empty")
    return value


def _servers(value: Any) -> list[str]:
    """The addresses as host:port, without a scheme."""
    servers = [_SCHEME.sub("", server.strip()) for server in _text(value).split(",") if server.strip()]
    for server in servers:
        if not server.rpartition(":")[2].isdigit():
            raise WrongKey(f"{server!r} is not host:port")
    return servers


def _one_of(*allowed: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        name = next((name for name in allowed if name.lower() == str(value).lower()), None)
        if name is None:
            raise WrongKey(f"{value!r} is not one of {', '.join(allowed)}")
        return name

    return read


def _file(value: Any) -> str:
    if not Path(_text(value)).is_file():
        raise WrongKey(f"there is no file {value!r} on this machine")
    return str(value)


def _authorities(value: Any) -> str:
    return str(value) if value == "probe" or Path(_text(value)).is_dir() else _file(value)


_KEYS: dict[str, Callable[[Any], Any]] = {
    "bootstrap.servers": _servers,
    "client.id": _text,
    "client.dns.lookup": _one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "security.protocol": _one_of(*_PROTOCOLS),
    "sasl.mechanism": _one_of(*MECHANISMS),
    "sasl.mechanisms": _one_of(*MECHANISMS),
    "sasl.username": _text,
    "sasl.password": _text,
    "sasl.kerberos.keytab": _file,
    "sasl.kerberos.principal": _text,
    "sasl.kerberos.service.name": _text,
    "oauth_cb": _text,
    "sasl.oauthbearer.config": str,
    "sasl.oauthbearer.method": _one_of("default", "oidc"),
    "sasl.oauthbearer.grant.type": _one_of("client_credentials"),
    "sasl.oauthbearer.client.id": _text,
    "sasl.oauthbearer.client.credentials.client.id": _text,
    "sasl.oauthbearer.client.secret": _text,
    "sasl.oauthbearer.client.credentials.client.secret": _text,
    "sasl.oauthbearer.scope": _text,
    "sasl.oauthbearer.extensions": _text,
    "sasl.oauthbearer.token.endpoint.url": _text,
    "https.ca.location": _file,
    "ssl.ca.location": _authorities,
    "ssl.ca.pem": _text,
    "ssl.certificate.location": _file,
    "ssl.certificate.pem": _text,
    "ssl.key.location": _file,
    "ssl.key.pem": _text,
    "ssl.key.password": _text,
    "ssl.crl.location": _file,
    "ssl.cipher.suites": _text,
    "ssl.endpoint.identification.algorithm": lambda value: _one_of("https", "none")(value or "none"),
    "enable.ssl.certificate.verification": _one_of("true", "false"),
}
"""What is understood, and how it is read."""
_ALIASES = {
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
_OF_CLIENT = {
    "bootstrap.servers": "bootstrap_servers",
    "client.id": "client_id",
    "client.dns.lookup": "client_dns_lookup",
    "security.protocol": "security_protocol",
}
