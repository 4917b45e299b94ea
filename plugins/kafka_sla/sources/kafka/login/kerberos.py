"""Kerberos logins: by a ticket of the machine's cache, or by one that a keytab gets and renews, kept in memory.

Errors of Kerberos in words, each with a cure. The package gssapi is only needed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kafka_sla.sources.kafka.login.unavailable import LoginUnavailable

MECHANISM = "GSSAPI"
_OF_SERVICE = (
    "check sasl.kerberos.service.name, and that bootstrap.servers and what the brokers advertise are the host names of"
    " their principals"
)
_OF_KEYTAB = "check sasl.kerberos.keytab, whose keys `klist -k` lists, and sasl.kerberos.principal"
_OF_CACHE = (
    "get a ticket for the user that runs this (kinit, or `airflow kerberos`; KRB5CCNAME names its cache), or set"
    " sasl.kerberos.keytab and sasl.kerberos.principal"
)
_CURES = (
    ("Server .+ not found", _OF_SERVICE),
    ("KDC for realm", "check the realm's servers in krb5.conf (KRB5_CONFIG may name another one) and the firewall"),
    ("[Cc]lock skew", "correct the clock of this machine"),
)


@dataclass(frozen=True, slots=True)
class Kerberos:
    """Who logs in to which service of the brokers. Without a keytab whoever has a ticket in the machine's cache;
    without a principal the first one of the keytab."""

    service: str
    keytab: str | None = None
    principal: str | None = None


def context(login: Kerberos, service: str) -> Any:
    """GSSAPI's context for logging in to a service, such as kafka@broker-1. Its errors, and those of what is done with
    it, are for `in_words`."""
    import gssapi

    name = gssapi.Name(service, name_type=gssapi.NameType.hostbased_service)
    return gssapi.SecurityContext(
        name=name.canonicalize(gssapi.MechType.kerberos),
        usage="initiate",
        creds=_of_keytab(login.keytab, login.principal) if login.keytab else None,
    )


def _of_keytab(keytab: str, principal: str | None) -> Any:
    """Credentials whose tickets are got when they are needed, and again before they expire."""
    import gssapi

    name = gssapi.Name(principal, gssapi.NameType.kerberos_principal) if principal else None
    store = {"client_keytab": f"FILE:{keytab}", "ccache": f"MEMORY:kafka-sla {keytab} {principal}"}
    return gssapi.Credentials(name=name, usage="initiate", store=store)


@contextmanager
def in_words(login: Kerberos, service: str) -> Iterator[None]:
    """Turns errors of Kerberos into LoginUnavailable."""
    try:
        from gssapi.exceptions import GSSError
    except (ImportError, OSError) as error:  # the latter where Kerberos' own library is missing
        raise LoginUnavailable(
            f"{MECHANISM} needs Python's gssapi package, which cannot be imported here ({error}): pip install gssapi,"
            " which wants a compiler and Kerberos' headers (libkrb5-dev, krb5-devel)"
        ) from None
    try:
        yield
    except GSSError as error:
        said = "; ".join(error.get_all_statuses(error.min_code, False)) or str(error)
        cure = next((cure for words, cure in _CURES if re.search(words, said)), None)
        who = f" (keytab {login.keytab}, principal {login.principal or 'the first one'})" if login.keytab else ""
        raise LoginUnavailable(
            f"Kerberos gives no ticket for {service}{who}: {said}; {cure or (_OF_KEYTAB if who else _OF_CACHE)}"
        ) from None
