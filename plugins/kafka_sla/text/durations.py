"""Durations and percentages as people write them, to milliseconds and shares."""

from __future__ import annotations

import re
from fractions import Fraction

DURATION = r"^\s*(\d{1,9}\s*(ms|s|m|h|d|w)\s*)+$"
DURATION_ALLOWED = (
    "a whole number above 0 and a unit (ms, s, m, h, d, w), such as 250ms, 30s, 5m, 1h30m, 7d; 10 years at most"
)
OBJECTIVE_ALLOWED = "a share above 0 and below 100 %, such as 99.9% or 0.999"
_UNITS_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_LONGEST_MS = 3_653 * _UNITS_MS["d"]


def parse_duration(text: object) -> int:
    """`250ms`, `30s`, `1h30m` or `7d` as milliseconds; ValueError says what is allowed."""
    if not isinstance(text, str) or not re.match(DURATION, text, re.ASCII):
        raise ValueError(f"not a duration; allowed: {DURATION_ALLOWED}")
    parts = re.findall(r"(\d+)\s*(ms|[smhdw])", text, re.ASCII)
    total = sum(int(number) * _UNITS_MS[unit] for number, unit in parts)
    if not 0 < total <= _LONGEST_MS:
        raise ValueError(f"out of range; allowed: {DURATION_ALLOWED}")
    return total


def duration_text(ms: int) -> str:
    """Milliseconds as people write them: 5400000 is `1h30m`. The inverse of `parse_duration`."""
    text, left = "", ms
    for unit, width in _UNITS_MS.items():
        if unit != "w" and left >= width:
            text += f"{left // width}{unit}"
            left %= width
    return text or "0s"


def parse_objective(value: object) -> float:
    """`99.9%` or `0.999` as the share 0.999; ValueError says what is allowed."""
    percent = re.match(r"^\s*(\d{1,3}(?:\.\d{1,9})?)\s*%\s*$", value, re.ASCII) if isinstance(value, str) else None
    if percent:
        share = round(float(percent[1]) / 100, 12)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        share = float(value)
    else:
        raise ValueError(f"not an objective; allowed: {OBJECTIVE_ALLOWED}")
    if not 0 < share < 1:
        raise ValueError(f"out of range; allowed: {OBJECTIVE_ALLOWED}")
    return share


def bad_share(objective: float) -> Fraction:
    """How much of what is counted the objective allows to be bad, exactly: 1 - 0.999 is not a thousandth, and a budget
    that is spent to its last millisecond would be overspent."""
    return 1 - Fraction(repr(objective))
