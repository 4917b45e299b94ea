"""The lines of a message: all of them, or as many as a receiver takes and how many more there are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from kafka_sla.reporting.templates import visible
from kafka_sla.text.formatting import count

LINE = 2_000
"""Characters of one line: of more only the first."""
_STILL = 10
"""Names of SLAs that are still missed or burn; of more only the number."""
_SIZE_OF_MORE = 120
"""What the number of lines that are left out takes at most."""
_LISTED_BYTES = 150_000
"""Of a list as JSON: PagerDuty allows 512 KB for all of an event, which has three."""
_OPSGENIE_TEXT = 15_000
CHAT = 2_000
"""Characters of a line for a chat: Discord takes no more, Telegram 4,096."""
_CHAT_NAMES = 700
"""Of the names of SLAs in it, twice."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a message; what it begins with may link."""

    text: str
    name: str = ""
    url: str = ""


def groups_of(lines: Iterable[Line], size: int, most: int, size_of: Callable[[Line], int]) -> list[list[Line]]:
    """The lines in groups of at most that size; of what `most` groups cannot hold only the number of lines."""
    groups: list[list[Line]] = [[]]
    used = left = 0
    for line in (replace(line, text=line.text[:LINE]) for line in lines if line.text):
        room = size - (_SIZE_OF_MORE if len(groups) == most else 0)
        if not left and used + size_of(line) <= room:
            groups[-1].append(line)
            used += size_of(line)
        elif len(groups) < most:
            groups.append([line])
            used = size_of(line)
        else:
            left += 1
    if left:
        groups[-1].append(Line(f"and {count(left)} more"))
    return groups


def enumerated(names: Sequence[str]) -> str:
    """`orders, payments, and 498 more`: as many names as a line for a chat holds."""
    used, shown = 0, 0
    while shown < len(names) and used + len(names[shown]) <= _CHAT_NAMES:
        used += len(names[shown]) + 2
        shown += 1
    more = len(names) - shown
    return ", ".join([*names[:shown], f"and {count(more)} more"] if more else names)


def listed(texts: Iterable[str]) -> list[str]:
    """As many of them as PagerDuty takes, and how many more there are."""
    (shown,) = groups_of(map(Line, texts), _LISTED_BYTES, 1, lambda line: len(json.dumps(line.text)))
    return [visible(line.text) for line in shown]


def visible_lines(texts: Iterable[str]) -> str:
    """As many characters of those that are not empty as Opsgenie takes."""
    return "\n".join(map(visible, filter(None, texts)))[:_OPSGENIE_TEXT]


def still(what: str, names: Sequence[str]) -> str:
    """`Still missed: payments within 30 s, orders, and 12 more`; empty without any."""
    more = len(names) - _STILL
    return f"{what}: {', '.join(names[:_STILL])}{f', and {count(more)} more' if more > 0 else ''}" if names else ""
