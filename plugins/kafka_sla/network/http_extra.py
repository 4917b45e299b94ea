"""The extra of an Airflow connection of type `http`, by the names of Airflow's HTTP provider. Knows no connection and
no service."""

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


def headers(extra: Mapping[str, Any]) -> dict[str, str]:
    """What is added to each request: `headers`, and as in the provider whatever is no option of it."""
    others = {name: value for name, value in extra.items() if name not in _OPTIONS | _OURS}
    named = extra.get("headers") or {}
    if not isinstance(named, Mapping):
        raise ValueError('headers in its extra must be an object such as {"X-Tenant": "…"}')
    return {str(name): str(value) for name, value in {**others, **named}.items() if not _is_nested(value)}


def options(extra: Mapping[str, Any]) -> dict[str, Any]:
    """How to get there, as `requests.request` takes it: `verify`, `cert`, `proxies`. ValueError in words."""
    found: dict[str, Any] = {"verify": _verify(_first(extra, "verify", "verify_ssl"))}
    if cert := extra.get("cert"):
        files = tuple(_file("cert", one) for one in ([cert] if isinstance(cert, str) else cert))
        found["cert"] = files if len(files) > 1 else files[0]
    if proxies := _first(extra, "proxies", "proxy"):
        found["proxies"] = dict.fromkeys(("http", "https"), proxies) if isinstance(proxies, str) else dict(proxies)
    return found


def _first(extra: Mapping[str, Any], *names: str) -> Any:
    return next((extra[name] for name in names if extra.get(name) is not None), None)


def _verify(value: Any) -> bool | str:
    switch = {"": True, "none": True, "true": True, "false": False}.get(str(value).lower() if value != "" else "")
    return switch if switch is not None else _file("verify", value)


def _file(name: str, value: Any) -> str:
    if not isinstance(value, str) or not Path(value).exists():
        raise ValueError(f"{name} in its extra names {value!r}, and there is no such file on this machine")
    return value


def _is_nested(value: Any) -> bool:
    return value is None or isinstance(value, Mapping | list)
