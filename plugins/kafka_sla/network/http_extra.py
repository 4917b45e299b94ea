"""The extra of an Airflow connection of type `http`, by the names of Airflow's HTTP provider."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_OPTIONS = frozenset(
    {
        *("allow_redirects", "cert", "check_response", "max_redirects", "proxies", "proxy", "srv_lookup"),
        *("stream", "timeout", "trust_env", "verify", "verify_ssl"),
    }
)
_OURS = frozenset(("headers", "signing_key"))
_PAIR = 2


def read(extra: Mapping[str, Any]) -> dict[str, Any]:
    """As `requests.request` takes it: `headers` to add, and how to get there: `verify`, `cert`, `proxies`.

    ValueError in words.
    """
    found: dict[str, Any] = {"headers": _headers(extra), "verify": _verify(_first(extra, "verify", "verify_ssl"))}
    if cert := extra.get("cert"):
        found["cert"] = _cert(cert)
    if proxies := _first(extra, "proxies", "proxy"):
        found["proxies"] = _proxies(proxies)
    return found


def _headers(extra: Mapping[str, Any]) -> dict[str, str]:
    """`headers`, and as in the provider whatever is no option of it."""
    others = {name: value for name, value in extra.items() if name not in _OPTIONS | _OURS}
    named = extra.get("headers") or {}
    if not isinstance(named, Mapping):
        raise ValueError('headers in its extra must be an object such as {"X-Tenant": "…"}')
    return {str(name): str(value) for name, value in {**others, **named}.items() if not _is_nested(value)}


def _verify(value: Any) -> bool | str:
    switch = {"": True, "none": True, "true": True, "false": False}.get(str(value).lower())
    return _file("verify", value) if switch is None else switch


def _cert(value: Any) -> str | tuple[str, ...]:
    files = [value] if isinstance(value, str) else value
    if not isinstance(files, list) or len(files) > _PAIR:
        raise ValueError('cert in its extra must be one file, or two as in ["client.pem", "client.key"]')
    found = tuple(_file("cert", one) for one in files)
    return found if len(found) == _PAIR else found[0]


def _proxies(value: Any) -> dict[str, str]:
    if isinstance(value, str):
        return dict.fromkeys(("http", "https"), value)
    if not isinstance(value, Mapping) or not all(isinstance(address, str) for address in value.values()):
        raise ValueError('proxies in its extra must be an address, or an object such as {"https": "http://proxy:3128"}')
    return dict(value)


def _first(extra: Mapping[str, Any], *names: str) -> Any:
    return next((extra[name] for name in names if extra.get(name) is not None), None)


def _file(name: str, value: Any) -> str:
    if not isinstance(value, str) or not Path(value).exists():
        raise ValueError(f"{name} in its extra names {value!r}, and there is no such file on this machine")
    return value


def _is_nested(value: Any) -> bool:
    return value is None or isinstance(value, Mapping | list)
