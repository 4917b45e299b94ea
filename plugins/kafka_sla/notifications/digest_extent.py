"""How much of a digest its mail shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kafka_sla.notifications.mail_extent import down
from kafka_sla.reporting.report import MANY

_FEW = 6
"""Details that are left out only when nothing else helps: as many as there are plots."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How many of each are shown, the gravest first."""

    full: int
    """SLAs with all figures."""
    short: int
    """SLAs after them, with the outcome and what is left of the budget."""
    details: int
    """SLAs with plots and misses; changes, exclusions and gaps."""
    misses: int
    """Of each SLA with details."""


def whole(values: dict[str, Any]) -> Extent:
    """All that there is."""
    details = max(len(values[kind]) for kind in ("details", "changes", "exclusions", "gaps"))
    return Extent(len(values["slas"]), 0, details, MANY)


def extents(values: dict[str, Any]) -> Iterator[list[Extent]]:
    """SLAs that were met in short, fewer details, more SLAs in short, fewer SLAs; where that does not help, no details
    and as many SLAs as fit."""
    everything, attention = whole(values), values["attention"]
    slas, others = everything.full, everything.full - attention
    yield [
        everything,
        Extent(attention, others, everything.details, MANY),
        *(Extent(attention, others, details, 3) for details in down(everything.details, _FEW)),
        *(Extent(full, slas - full, _FEW, 1) for full in down(attention, 0)),
        *(Extent(0, short, _FEW, 1) for short in down(slas, 0)),
    ]
    yield [Extent(0, short, 0, 0) for short in down(slas, 0)]
