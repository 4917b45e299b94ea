"""Every mistake of a configuration file: line, key path, value and what is allowed. Builds no settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kafka_sla.config.cluster_rules import broken_clusters
from kafka_sla.config.reading.secret_words import SECRET_ADDRESS
from kafka_sla.config.reading.yaml_lines import KeyPath, Mistake, YamlFile
from kafka_sla.config.rules import Found, broken_rules, did_you_mean, secrets
from kafka_sla.config.schema import SECTIONS, Document, Section

_WORDS = {
    "missing": "required key is missing",
    "string_type": "not text; allowed: text, in quotes where it could be a number",
    "list_type": "not a list; allowed: [first, second]",
    "too_short": "empty; allowed: at least one",
    "dict_type": "not a mapping; allowed: key: value lines",
    "model_type": "not a mapping; allowed: key: value lines",
    "int_type": "not a whole number; allowed: a whole number without quotes",
}


def mistakes(file: YamlFile) -> list[Mistake]:
    """Everything that is wrong, in the order of files and lines."""
    wrong = list(file.mistakes)
    if not wrong or file.values is not None:
        wrong += [file.mistake(at, text) for at, text in _mistakes(file)]
    return sorted(wrong, key=lambda one: (one.file, one.line, one.text))


def report(path: str | Path, wrong: list[Mistake]) -> str:
    """The mistakes as one message."""
    lines = [
        f"  {m.file}{', ' if m.file else ''}line {m.line}: {_dotted(m.path)}{': ' if m.path else ''}{m.text}"
        for m in wrong
    ]
    return f"{path} has {len(wrong)} error{'s' if len(wrong) > 1 else ''}:\n" + "\n".join(lines)


def _mistakes(file: YamlFile) -> list[Found]:
    values = file.values
    if not isinstance(values, dict):
        return [
            ((), "the file holds no mapping; allowed: clusters, slas, defaults, …: see docs/reference/configuration.md")
        ]
    found = list(secrets(values))
    told = {path for path, _ in found}
    try:
        Document.model_validate(values)
    except ValidationError as error:
        found += [(_path(details), _sentence(details)) for details in error.errors(include_url=False)]
    found += [*broken_rules(values), *broken_clusters(values)]
    return [
        (path, text)
        for i, (path, text) in enumerate(found)
        if i < len(told) or not (path in told or _is_unread(file, path))
    ]


def _is_unread(file: YamlFile, path: KeyPath) -> bool:
    """Whether nobody knows the value there, be it the SLA's own or its default."""
    is_default = path[:1] == ("slas",) and path not in file.lines
    return path in file.unread or (is_default and ("defaults", *path[2:]) in file.unread)


def _path(details: ErrorDetails) -> KeyPath:
    return tuple(part for part in details["loc"] if part != "[key]")


def _dotted(path: KeyPath) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _sentence(details: ErrorDetails) -> str:
    kind, path = details["type"], _path(details)
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "missing":
        return f"{_WORDS[kind]}; see docs/reference/configuration.md"
    text = details["msg"].removeprefix("Value error, ").replace("Input should be", "not valid; allowed:")
    return f"{_shown(details['input'])} is {_WORDS.get(kind, text)}"


def _unknown_key(path: KeyPath) -> str:
    section = SECTIONS.get(_section(path[:-1]), Section)
    known = [field.alias or name for name, field in section.model_fields.items()]
    return f"unknown key;{did_you_mean(str(path[-1]), known)} allowed: {', '.join(known)}"


def _section(path: KeyPath) -> tuple[str, ...]:
    """The key of SECTIONS for a path: indexes, and the names of clusters and teams, become *."""
    named = (path[0], "*", *path[2:]) if path[:1] in (("clusters",), ("teams",)) and len(path) > 1 else path
    return tuple("*" if isinstance(part, int) else part for part in named)


def _shown(value: Any) -> str:
    text = repr(value)
    return "(hidden)" if SECRET_ADDRESS.search(text) else text if len(text) <= 80 else f"{text[:77]}..."
