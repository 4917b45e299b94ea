"""A small curve as the points of an SVG: the threshold is at one height for all SLAs, so that rows compare."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

from kafka_sla.text.formatting import span
from kafka_sla.web.queries.schemas import Sparkline

WIDTH, HEIGHT, THRESHOLD_AT = 132, 34, 14
"""In pixels; the threshold's line is that far from the top."""
_TOP = 100.0
"""Multiple of the threshold that reaches the top: above it the scale is logarithmic."""


def sparkline(found: Sparkline) -> dict[str, Any]:
    """Lines of known hours, dots above the threshold, hours without data, and all of it in words."""
    return _drawn(tuple(found.worst_latency_ms), tuple(found.threshold_ms))


@lru_cache(maxsize=2_000)  # of an overview that refreshes itself only few curves have changed
def _drawn(worst_ms: tuple[float | None, ...], threshold_ms: tuple[int, ...]) -> dict[str, Any]:
    step = WIDTH / len(worst_ms)
    points = [
        (i, None if worst is None else (round((i + 0.5) * step, 1), _height(worst / threshold)))
        for i, (worst, threshold) in enumerate(zip(worst_ms, threshold_ms, strict=True))
    ]
    runs = [(known, list(mine)) for known, mine in groupby(points, key=lambda p: p[1] is not None)]
    lines = [" ".join(f"{x},{y}" for _, (x, y) in mine) for known, mine in runs if known]  # type: ignore[misc]
    gaps = [(round(mine[0][0] * step, 1), round(len(mine) * step, 1)) for known, mine in runs if not known]
    dots = [point for _, point in points if point and point[1] < THRESHOLD_AT]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "threshold": THRESHOLD_AT,
        "lines": lines,
        "gaps": gaps,
        "dots": dots,
        "text": _text(worst_ms, threshold_ms),
    }


def _height(times: float) -> float:
    """Linear up to the threshold, logarithmic above."""
    if times <= 1:
        return round(HEIGHT - 2 - (HEIGHT - 2 - THRESHOLD_AT) * max(0.0, times), 1)
    return round(max(2.0, THRESHOLD_AT - (THRESHOLD_AT - 2) * math.log(times) / math.log(_TOP)), 1)


def _text(worst_ms: Sequence[float | None], threshold_ms: Sequence[int]) -> str:
    judged = zip(worst_ms, threshold_ms, strict=True)
    known = [(worst, threshold) for worst, threshold in judged if worst is not None]
    if not known:
        return "no data for the last 24 hours"
    late = sum(worst > threshold for worst, threshold in known)
    limit = ", then ".join(span(ms) for ms, _ in groupby(threshold for _, threshold in known))
    text = f"worst latency of the last 24 hours {span(max(known)[0])}, threshold {limit}"
    text += f", above it in {late} of {len(known)} hours" if late else ", never above it"
    missing = len(worst_ms) - len(known)
    return text + (f", no data for {missing} hours" if missing else "")
