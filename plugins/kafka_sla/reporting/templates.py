"""The page and mail templates, with every value made harmless and visible. Knows no SLA."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, PrefixLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})


def render(template: str, values: dict[str, Any], **more: Any) -> str:
    """The template `room/name` with these values; a value that is missing is an error, HTML is escaped."""
    return _TEMPLATES.get_template(template).render(values, **more)


def visible(text: str) -> str:
    """Text in which every character can be seen: names may hold line ends, control and direction characters."""
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in _UNSEEN else c for c in text)


def _finalize(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_LIBRARY = Path(__file__).parents[1]
_ROOMS = ("notifications", "reporting", "web")
_TEMPLATES = Environment(
    loader=PrefixLoader({room: FileSystemLoader(_LIBRARY / room / "templates") for room in _ROOMS}),
    undefined=StrictUndefined, finalize=_finalize,
    autoescape=select_autoescape(["html.j2"]), trim_blocks=True, lstrip_blocks=True,
)  # fmt: skip
