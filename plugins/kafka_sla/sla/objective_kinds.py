"""What objectives count: time, or records. Each kind says how much of it was good, how sure that is, and how much may
be bad. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from kafka_sla.model.entities import ObjectiveOf
from kafka_sla.sla.rollups import Sums
from kafka_sla.text.durations import bad_share


@dataclass(frozen=True, slots=True)
class Counted:
    """How much was judged and how much of it was bad, in milliseconds or records."""

    total: int
    bad: int
    bad_low: int
    bad_high: int
    doubtful: int = 0
    """Beside `total`: it may have been good or bad."""

    @property
    def good_share(self) -> float | None:
        """Of what was judged; None where nothing was."""
        return (self.total - self.bad) / self.total if self.total else None

    @property
    def good_share_low(self) -> float | None:
        """If all that may have been bad was."""
        whole = self.total + self.doubtful
        return max(self.total - self.bad_high, 0) / whole if whole else None

    @property
    def good_share_high(self) -> float | None:
        """If only what surely was bad was."""
        whole = self.total + self.doubtful
        return (whole - self.bad_low) / whole if whole else None


class Kind(Protocol):
    """One kind of objective."""

    @property
    def known_ahead(self) -> bool:
        """Is the budget of a whole calendar period known from its beginning?"""

    def counted(self, sums: Sums) -> Counted:
        """What it counts of judged time and records."""

    def budget(self, objective: float, sums: Sums, length_ms: int) -> float:
        """How much the objective allows to be bad in a period of that length, of which the sums are."""


class _Time:
    """Good and bad time; excluded time earns no budget."""

    known_ahead = True

    def counted(self, sums: Sums) -> Counted:
        return Counted(sums.good_ms + sums.bad_ms, sums.bad_ms, sums.bad_ms, sums.bad_ms)

    def budget(self, objective: float, sums: Sums, length_ms: int) -> float:
        return float(bad_share(objective) * (length_ms - sums.excluded_ms))


class _Records:
    """Records due in good and bad time. Nobody knows how many a period will have, so its budget grows with them;
    those of unknown time may all have been late."""

    known_ahead = False

    def counted(self, sums: Sums) -> Counted:
        return Counted(
            sums.records_due,
            sums.records_late,
            sums.records_late_low,
            sums.records_late_high,
            sums.records_in_unknown_time,
        )

    def budget(self, objective: float, sums: Sums, length_ms: int) -> float:
        return float(bad_share(objective) * sums.records_due)


KINDS: Mapping[ObjectiveOf, Kind] = {"time": _Time(), "records": _Records()}
"""By the word of the configuration."""
