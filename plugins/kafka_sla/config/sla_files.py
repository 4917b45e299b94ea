"""The SLA files of teams, `slas.d/*.yml` beside the configuration, read as one document with it.

A file holds `slas`, and `defaults` for them, which go before those of the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafka_sla.config.reading.references import Variable, environment_variable
from kafka_sla.config.reading.yaml_lines import KeyPath, Mistake, YamlFile, read_yaml
from kafka_sla.config.rules import merged_slas

FOLDER = "slas.d"
_KEYS = ("slas", "defaults")


def read_configuration(path: Path, variable: Variable = environment_variable) -> YamlFile:
    """The configuration and the SLAs of all teams; OSError when one of the files cannot be read."""
    file = read_yaml(path, variable)
    for team in team_files(path):
        part, name = read_yaml(team, variable), f"{FOLDER}/{team.name}"
        file.mistakes += [Mistake(m.line, m.path, m.text, name) for m in [*part.mistakes, *_misplaced(part)]]
        if isinstance(file.values, dict) and isinstance(part.values, dict):
            _append(file, part, name)
    return file


def team_files(path: Path) -> list[Path]:
    """The files beside a configuration, by name."""
    return sorted((path.parent / FOLDER).glob("*.yml"))


def changes_of(path: Path) -> tuple[int, ...]:
    """Differs when the configuration or a file of a team was changed, added or removed; OSError without the former."""
    return tuple(one.stat().st_mtime_ns for one in (path, *team_files(path)))


def _misplaced(part: YamlFile) -> list[Mistake]:
    if not isinstance(part.values, dict) or not isinstance(part.values.get("slas"), list):
        return [] if part.mistakes else [Mistake(1, (), "the file holds no list of slas; allowed: slas, defaults")]
    return [
        Mistake(part.line((key,)), (key,), f"belongs in the configuration; allowed here: {', '.join(_KEYS)}")
        for key in part.values
        if key not in _KEYS
    ]


def _append(file: YamlFile, part: YamlFile, name: str) -> None:
    """The SLAs of the part behind those of the file, with their lines and the part's name."""
    slas: list[Any] = file.values.get("slas") or []
    if not isinstance(slas, list):
        return
    first, added = len(slas), merged_slas(part.values)
    file.values["slas"] = [*slas, *added]
    for at, line in part.lines.items():
        if at[:1] == ("slas",) and len(at) > 1:
            file.lines[("slas", first + int(at[1]), *at[2:])] = line
    file.unread |= set(_unread(part, first, len(added)))
    file.parts.append((first, name))


def _unread(part: YamlFile, first: int, count: int) -> Iterator[KeyPath]:
    """The part's unread places among the SLAs of the file; those of its defaults are in each of its SLAs."""
    for at in part.unread:
        if at[:1] == ("slas",) and len(at) > 1:
            yield ("slas", first + int(at[1]), *at[2:])
        elif at[:1] == ("defaults",):
            yield from (("slas", first + i, *at[1:]) for i in range(count))
