"""Proposals as entries of a configuration: names that are unique, patterns that select one name, and the YAML to paste.

Pure.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import yaml

from kafka_sla.text.durations import duration_text
from kafka_sla.text.name_patterns import literal

_LONGEST = 100
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def entry(
    name: str,
    cluster: str,
    group: str,
    topic: str,
    max_latency_ms: int,
    for_ms: int,
    objective: float,
    defaults: Mapping[str, Any],
) -> dict[str, Any]:
    """One entry of `slas`. What it leaves out `defaults` give, but for what the objective was found with."""
    found = {
        "name": name,
        "cluster": cluster,
        "group": literal(group),
        "topic": literal(topic),
        "max_latency": duration_text(max_latency_ms),
        "for": duration_text(for_ms),
        "objective": f"{round(objective * 100, 3):g}%",
    }
    return found | ({"objective_of": "time"} if defaults.get("objective_of", "time") != "time" else {})


def sla_name(cluster: str, group: str, topic: str, max_latency_ms: int, taken: Collection[str]) -> str:
    """`payments by payments-service within 30s`: one line of 100 characters at most that no other SLA has. `cluster`:
    empty where there is only one."""
    whole = f"{cluster}: " * bool(cluster) + f"{topic} by {group}"
    plain, tail = _CONTROL.sub("?", whole).strip(), f" within {duration_text(max_latency_ms)}"
    found, number = _cut(plain, tail), 2
    while found in taken:
        found, number = _cut(plain, f"{tail} ({number})"), number + 1
    return found


def _cut(text: str, tail: str) -> str:
    """A name that is too long keeps its beginning, and digits that tell it from others that begin alike."""
    if len(text) + len(tail) <= _LONGEST:
        return text + tail
    mark = f"… {zlib.crc32(text.encode()):08x}"
    return text[: _LONGEST - len(tail) - len(mark)] + mark + tail


def yaml_text(head: str, entries: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """The entries as a list of `slas`, each below its remarks."""
    if not entries:
        return f"{_remarks(head)}slas: []\n"
    listed = [f"{_remarks(text)}{_listed(one)}" for text, one in entries]
    return f"{_remarks(head)}slas:\n" + "\n".join(listed)


def _remarks(text: str) -> str:
    return "".join(f"# {_CONTROL.sub('?', line)}".rstrip() + "\n" for line in text.split("\n")) if text else ""


def _listed(one: Mapping[str, Any]) -> str:
    return yaml.safe_dump([dict(one)], sort_keys=False, allow_unicode=True, width=10_000)
