"""Figures as people read them in mails and reports."""

from __future__ import annotations

import math
from datetime import UTC, datetime

UNKNOWN = "unknown"


def span(ms: float | None) -> str:
    """A duration with its two largest units: `850 ms`, `12.4 s`, `21 min 30 s`, `3 h 5 min`, `2 d 4 h`."""
    if ms is None:
        return UNKNOWN
    if ms < 0:
        return f"−{span(-ms)}"
    if ms < 999.5:
        return f"{ms:.0f} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f}".removesuffix(".0") + " s"
    seconds = round(ms / 1000)
    for unit, width, smaller, part in (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60), ("min", 60, "s", 1)):
        if seconds >= width:
            rest = seconds % width // part
            return f"{seconds // width} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{seconds} s"


def bounds(low_ms: float | None, high_ms: float | None) -> str:
    """Where the truth lies: `50 s – 1 min 10 s`, `at least 50 s`."""
    low = span(low_ms or 0.0)
    return f"at least {low}" if high_ms is None else f"{low} – {span(high_ms)}"


def latency(ms: float | None, low_ms: float | None, high_ms: float | None) -> str:
    """A latency and its bounds: `1 min (bounds 50 s – 1 min 10 s)`, `1 min (at least 50 s)`."""
    return f"{span(ms)} ({'' if high_ms is None else 'bounds '}{bounds(low_ms, high_ms)})"


def share(value: float | None) -> str:
    """A share as a percentage with up to three decimals, cut and never rounded up: 0.9999996 is not `100 %`."""
    if value is None:
        return UNKNOWN
    return f"{math.floor(round(value * 100_000, 6)) / 1000:.3f}".rstrip("0").rstrip(".") + " %"


def count(value: float | None) -> str:
    """A whole number with thousands separated: `12,300`."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def rate(per_second: float | None) -> str:
    """Records per second, three significant digits: `48.2/s`, `0.05/s`, `12,300/s`."""
    if per_second is None:
        return UNKNOWN
    if per_second >= 100:
        return f"{per_second:,.0f}/s"
    return f"{per_second:.3g}/s"


def burn(rate: float | None) -> str:
    """A burn rate: `0.52`, `382`."""
    return UNKNOWN if rate is None else f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def moment(at: datetime | None) -> str:
    """An instant in UTC to the second: `2026-03-02 10:04:00 UTC`."""
    return UNKNOWN if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def plural(number: int, noun: str, many: str | None = None) -> str:
    """`1 record`, `2 records`; `many` where an s does not make the plural."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"
