"""What was judged of one SLA in an interval, such as a run's: verdicts counted, the worst latency, misses. Pure; reads
nothing and writes no text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from kafka_sla.model.entities import Miss, Sla, SlaWindow, Verdict


@dataclass(frozen=True, slots=True)
class JudgedInterval:
    """One SLA in an interval."""

    sla: Sla
    windows: Sequence[SlaWindow]
    misses: Sequence[Miss]
    """Those that touch the interval."""

    @property
    def verdicts(self) -> dict[str, int]:
        """How many windows have each verdict."""
        found = Counter(window.verdict for window in self.windows)
        return {verdict: found[verdict] for verdict in get_args(Verdict)}

    @property
    def worst_latency_ms(self) -> float | None:
        """None where it is known of no window."""
        known = (window.worst_latency_ms for window in self.windows)
        return max((ms for ms in known if ms is not None), default=None)
