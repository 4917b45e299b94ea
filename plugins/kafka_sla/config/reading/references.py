"""`${env:NAME}` and `${var:NAME}` in a configuration: environment variables and Airflow variables, by name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from kafka_sla.config.reading.secret_words import SECRET_KEY

Variable = Callable[[str], str | None]
"""The value of an Airflow variable; None when there is none of that name."""
REFERENCE = re.compile(r"\$\{(env|var):([^}]*)(\}?)")
_NAME = {"env": re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), "var": re.compile(r"[\w.-]+")}
_SECRET_PLACES = ("AIRFLOW_CONN_", "AIRFLOW__")
"""How names of environment variables begin that may hold logins whatever else they say."""


def environment_variable(name: str) -> str | None:
    """An Airflow variable where no Airflow runs: the environment variable in which Airflow, too, looks first."""
    return os.environ.get(f"AIRFLOW_VAR_{name.upper()}")


def resolved(text: str, variable: Variable) -> str:
    """The text with its references replaced. LookupError says which one has no value, or may not be used here."""
    return REFERENCE.sub(lambda found: _value(found, variable), text)


def _value(found: re.Match[str], variable: Variable) -> str:
    kind, name, end = found.groups()
    if not end or not _NAME[kind].fullmatch(name):
        raise LookupError(f"{found[0]!r} names no variable; allowed: ${{env:NAME}}, ${{var:NAME}}")
    if SECRET_KEY.search(name) or name.upper().startswith(_SECRET_PLACES):
        raise LookupError(f"{found[0]} holds a secret; put it into an Airflow connection and name its id here")
    value = os.environ.get(name) if kind == "env" else variable(name)
    if value is None:
        raise LookupError(f"{found[0]}: {_MISSING[kind].format(name=name, upper=name.upper())}")
    return value


_MISSING = {
    "env": "the environment variable {name} is not set here; set it wherever this file is read: DAG processor, workers,"
    " web server",
    "var": "there is no Airflow variable {name} here; add it under Admin > Variables, or set AIRFLOW_VAR_{upper}",
}
