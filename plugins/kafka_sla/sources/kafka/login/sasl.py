"""How to log in, as a connection's sasl.* keys say. Opens nothing: tokens are issued when the client logs in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kafka_sla.sources.kafka.login.kerberos import MECHANISM as KERBEROS
from kafka_sla.sources.kafka.login.kerberos import Kerberos
from kafka_sla.sources.kafka.login.oauth_tokens import (
    Issue,
    TokenProvider,
    client_credentials,
    msk_iam,
    own_function,
)
from kafka_sla.sources.kafka.login.wrong_key import WrongKey

OAUTH, IAM = "OAUTHBEARER", "AWS_MSK_IAM"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", KERBEROS, OAUTH, IAM)
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_MSK = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?:\d+$")
"""The region in the name of a broker of Amazon MSK."""


def login(keys: Mapping[str, Any]) -> dict[str, Any]:
    """kafka-python's settings for these keys of librdkafka. Raises WrongKey where they contradict or lack something."""
    mechanism = keys.get("sasl.mechanism")
    if not keys.get("security.protocol", "").startswith("SASL"):
        if mechanism or keys.get("sasl.password"):
            raise WrongKey("a login is given but security.protocol is not SASL_SSL or SASL_PLAINTEXT")
        return {}
    if not mechanism:
        raise WrongKey(f"sasl.mechanism is missing; allowed are {', '.join(MECHANISMS)}")
    if mechanism in (OAUTH, IAM):
        return {"sasl_mechanism": OAUTH, "sasl_oauth_token_provider": TokenProvider(_issue(keys, mechanism))}
    if mechanism == KERBEROS:
        return {"sasl_mechanism": mechanism, "sasl_kerberos_name": _kerberos(keys)}
    user, password = keys.get("sasl.username"), keys.get("sasl.password")
    if not user or not password:
        raise WrongKey("sasl.username or sasl.password is missing (the connection's login and password count)")
    return {"sasl_mechanism": mechanism, "sasl_plain_username": user, "sasl_plain_password": password}


def _kerberos(keys: Mapping[str, Any]) -> Kerberos:
    keytab, principal = keys.get("sasl.kerberos.keytab"), keys.get("sasl.kerberos.principal")
    if principal and not keytab:
        raise WrongKey("sasl.kerberos.principal is given without the sasl.kerberos.keytab that holds its key")
    return Kerberos(keys.get("sasl.kerberos.service.name", "kafka"), keytab, principal)


def _issue(keys: Mapping[str, Any], mechanism: str) -> Issue:
    if "oauth_cb" in keys:
        return own_function(keys["oauth_cb"], keys.get("sasl.oauthbearer.config", ""))
    if _ENDPOINT in keys:
        return _of_endpoint(keys)
    regions = {found[1] for server in keys["bootstrap.servers"] if (found := _MSK.search(server))}
    if regions:
        return msk_iam(min(regions))
    if mechanism == IAM:
        raise WrongKey(f"{IAM} needs bootstrap.servers of Amazon MSK, which name their region")
    raise WrongKey(f"{OAUTH} needs {_ENDPOINT} with sasl.oauthbearer.client.id and .client.secret, or oauth_cb")


def _of_endpoint(keys: Mapping[str, Any]) -> Issue:
    client, secret = keys.get("sasl.oauthbearer.client.id"), keys.get("sasl.oauthbearer.client.secret")
    if not client or not secret:
        raise WrongKey("sasl.oauthbearer.client.id or sasl.oauthbearer.client.secret is missing")
    if not re.match(r"https?://[^/]", keys[_ENDPOINT]):
        raise WrongKey(f"{_ENDPOINT} must begin with https:// and a host")
    return client_credentials(
        keys[_ENDPOINT],
        client,
        secret,
        scope=keys.get("sasl.oauthbearer.scope"),
        authority=keys.get("https.ca.location"),
        extensions=_pairs(keys.get("sasl.oauthbearer.extensions", "")),
    )


def _pairs(text: str) -> dict[str, str]:
    """`a=1,b=2` as a mapping."""
    pairs = [pair.partition("=") for pair in text.split(",") if pair]
    if any(not equals for _, equals, _ in pairs):
        raise WrongKey("sasl.oauthbearer.extensions must be name=value,name=value")
    return {name.strip(): value for name, _, value in pairs}
