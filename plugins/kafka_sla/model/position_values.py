"""Positions from the answers of other services, checked before they become facts."""

from __future__ import annotations

import re

from kafka_sla.model.entities import KeptPosition

MAX_OFFSET = 2**63 - 1
MAX_INT = 2**31 - 1
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_YEAR_9998_MS = 253_370_764_800_000


def whole_number(value: object, most: int) -> int:
    """The value if it is a whole number from 0 to `most`; ValueError names it if not."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{_shown(value)} is not a whole number from 0 to {most}")
    return value


def check_position(position: KeptPosition) -> None:
    """Raise ValueError unless the position fits the table of committed offsets."""
    try:
        if not isinstance(position.topic, str) or not _TOPIC.fullmatch(position.topic):
            raise ValueError(f"{_shown(position.topic)} is not a topic")
        whole_number(position.partition, MAX_INT)
        whole_number(position.at_ms, _YEAR_9998_MS)
        if position.offset is not None:
            whole_number(position.offset, MAX_OFFSET)
    except ValueError as error:
        raise ValueError(f"{error} (topic {_shown(position.topic)}, partition {_shown(position.partition)})") from None


def _shown(value: object) -> str:
    """A value of any type and size in at most 50 characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of more than 4,300 digits; a list nested thousands deep
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 50 else f"{text[:47]}..."
