"""A YAML file as plain values, with the line of every key path. Never builds objects from tags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from kafka_sla.config.reading.references import Variable, environment_variable, resolved
from kafka_sla.config.reading.yaml_syntax import syntax_mistake

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing wrong in a file: where, and a sentence that names the value and what is allowed."""

    line: int
    path: KeyPath
    text: str
    file: str = ""
    """Empty: the configuration itself."""


@dataclass(slots=True)
class YamlFile:
    """Values of a file, the line of each key path (from 1), and what was wrong with the YAML itself."""

    values: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    parts: list[tuple[int, str]] = field(default_factory=list)
    """Other files that SLAs came from, in their order: the index of the first one, and the file's name."""
    unread: set[KeyPath] = field(default_factory=set)
    """Where a value could not be read, which `mistakes` says: nothing else can be said of it. Its text stands there."""
    variable: Variable = environment_variable
    """How Airflow variables are asked for that values refer to."""

    def mistake(self, path: KeyPath, text: str) -> Mistake:
        """The mistake at a key path, by file and line."""
        line = self.line(path)
        for first, name in reversed(self.parts):
            if path[:1] == ("slas",) and len(path) > 1 and int(path[1]) >= first:
                return Mistake(line, ("slas", int(path[1]) - first, *path[2:]), text, name)
        return Mistake(line, path, text)

    def line(self, path: KeyPath) -> int:
        """The line of a key path, or of its nearest parent that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


_TAG = "tag:yaml.org,2002:"
_MERGED = "<<"
_MOST_VALUES = 100_000
"""Aliases of aliases can unfold without end; no configuration is this long."""
_PLAIN = {
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?[0-9]{1,18}", "-+0123456789"),
    "float": (r"[-+]?(?:[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18}|[0-9]{1,18}[eE][-+]?[0-9]{1,3})", "-+.0123456789"),
    "null": (r"~|null|Null|NULL|", "~nN"),
    "merge": (r"<<", "<"),
}
"""YAML 1.2's plain scalars: `on`, `12:30` and dates stay text, so that names and times mean what they look like."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader without YAML 1.1's resolvers."""


_Loader.yaml_implicit_resolvers = {}


for _kind, (_pattern, _first) in _PLAIN.items():
    _Loader.add_implicit_resolver(
        f"{_TAG}{_kind}", re.compile(f"^(?:{_pattern})$"), [*_first, *([""] * (_kind == "null"))]
    )


def read_yaml(path: Path, variable: Variable = environment_variable) -> YamlFile:
    """Read one YAML file. Syntax mistakes land in `mistakes`, never in an exception; OSError when it cannot be read.

    Values may refer to variables: what stands without quotes is read as if the variable's value stood there.
    """
    found = YamlFile(variable=variable)
    try:
        node = yaml.compose(path.read_text("utf-8"), _Loader)
        found.values = _value(node, (), found, set()) if node else None
    except yaml.MarkedYAMLError as error:
        line, text = syntax_mistake(error)
        found.mistakes.append(Mistake(line, (), text))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        found.mistakes.append(Mistake(1, (), f"not YAML in UTF-8: {error}"))
    except RecursionError:
        found.mistakes.append(Mistake(1, (), "nested too deeply to be a configuration"))
    return found


def _value(node: yaml.Node, path: KeyPath, found: YamlFile, parents: set[int]) -> Any:
    found.lines.setdefault(path, node.start_mark.line + 1)
    if id(node) in parents:
        return _wrong(found, node, path, "the alias contains itself; write the values out")
    if len(found.lines) > _MOST_VALUES:
        return _wrong(found, node, path, f"more than {_MOST_VALUES} values; unfold no aliases of aliases")
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, found, parents | {id(node)})
    if isinstance(node, yaml.SequenceNode):
        inside = parents | {id(node)}
        return [_value(item, (*path, i), found, inside) for i, item in enumerate(node.value)]
    return _scalar(cast(yaml.ScalarNode, node), path, found)


def _mapping(node: yaml.MappingNode, path: KeyPath, found: YamlFile, parents: set[int]) -> dict[str, Any]:
    own: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if key is None:
            _wrong(found, key_node, path, "a key must be plain text")
        elif key_node.tag == f"{_TAG}merge":
            for part in _merged(_value(value_node, (*path, _MERGED), found, parents)):
                merged = {**part, **merged}
        elif key in own:
            _wrong(found, key_node, (*path, key), "the key is given twice; keep one")
        else:
            found.lines[(*path, key)] = key_node.start_mark.line + 1
            own[key] = _value(value_node, (*path, key), found, parents)
    return {**merged, **own}


def _merged(value: Any) -> Iterator[dict[str, Any]]:
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, dict):
            yield part


def _scalar(node: yaml.ScalarNode, path: KeyPath, found: YamlFile) -> Any:
    text, kind = str(node.value), node.tag.removeprefix(_TAG)
    if kind == "str":
        try:
            value = resolved(text, found.variable)
        except LookupError as error:
            _wrong(found, node, path, str(error))
            found.unread.add(tuple(part for part in path if part != _MERGED))  # merged keys count as the mapping's own
            return text  # not None: a key that has a value is not missing
        return value if value == text or node.style else _plain(value)
    if kind not in ("bool", "int", "float", "null") or not re.fullmatch(_PLAIN[kind][0], text):
        _wrong(found, node, path, f"tag {node.tag!r} is not allowed here; put the value in quotes")
        return text
    return _typed(text, kind)


def _plain(text: str) -> Any:
    """What the text means without quotes."""
    kinds = (kind for kind in ("bool", "int", "float", "null") if re.fullmatch(_PLAIN[kind][0], text))
    return _typed(text, next(kinds, "str"))


def _typed(text: str, kind: str) -> Any:
    if kind == "null":
        return None
    if kind == "str":
        return text
    return text.lower() == "true" if kind == "bool" else int(text) if kind == "int" else float(text)


def _wrong(found: YamlFile, node: yaml.Node, path: KeyPath, text: str) -> Any:
    """Note a mistake; None stands for the value."""
    if len(found.mistakes) < 100:
        found.mistakes.append(Mistake(node.start_mark.line + 1, path, text))
    return None
