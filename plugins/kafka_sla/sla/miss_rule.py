"""When a miss begins, continues and ends: the whole rule.

A miss *opens* when bad windows add up to `for`, with at most `for` between one and the next and nothing good. Each
window that follows changes it like this:

- bad: it continues, even if it had ended as excluded.
- good: it is over, as `recovered`, or as `excluded` if it ended that way before.
- excluded: it ends as `excluded`, for the reason of the window. A bad window may still continue it.
- unknown, but perhaps good (the low bound is within the threshold): it is over once more than `for` of such time has
  passed since the last bad window.
- unknown without figures, or never judged: no change. A monitor that sees nothing shows no recovery.

A miss is *settled* by the window after which no bad window can continue it. Until then it is in progress.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from kafka_sla.model.entities import Interval, Miss, MissState, Sla, SlaWindow, epoch_ms

NO_LONGER_JUDGED = "no longer judged: "
REMOVED = f"{NO_LONGER_JUDGED}the SLA has left the configuration"
_COPIED_FROM_WORST = (
    "worst_latency_ms",
    "worst_latency_low_ms",
    "worst_latency_high_ms",
    "worst_group",
    "worst_topic",
    "worst_partition",
    "max_latency_ms",
    "min_time_to_expiry_ms",
)


def judge_misses(sla: Sla, windows: Sequence[SlaWindow], current: Miss | None = None) -> tuple[Miss, ...]:
    """The misses that these windows make, in time order. Time without a window counts as unknown.

    `current` is the miss in progress before the first of the windows, which are those since its `bad_until`. It
    comes first in the result. This gives the same result as judging all windows of a long miss again.
    """
    misses: list[Miss] = []
    limit = timedelta(milliseconds=sla.for_ms)
    progress = _resume_miss(current, limit) if current else None
    stretch = _BadStretch(limit)
    for window in sorted(windows, key=lambda w: w.window):
        if progress is None:
            stretch.add(window)
            if stretch.opens_miss:
                progress, stretch = _Progress(_open_miss(sla, stretch), window.window.end, limit), _BadStretch(limit)
        else:
            progress.add(window)
            if progress.miss.settled_at:
                misses.append(progress.miss)
                progress = None
    return (*misses, progress.miss) if progress else tuple(misses)


def separates_misses(windows: Sequence[SlaWindow], within: Interval, for_ms: int) -> bool:
    """Whether no miss can open from bad windows on both sides of this time, of which these are the windows: one of them
    is good, or nothing is bad for longer than `for`."""
    if any(window.verdict == "good" for window in windows):
        return True
    bad = sorted(window.window for window in windows if window.verdict == "bad")
    ends, starts = [within.start, *(time.end for time in bad)], [*(time.start for time in bad), within.end]
    return any(start - end > timedelta(milliseconds=for_ms) for end, start in zip(ends, starts, strict=True))


def is_in_progress(miss: Miss, at: datetime) -> bool:
    """Whether windows at this time, or later, may change a miss that has begun before."""
    return miss.settled_at is None or miss.settled_at > at


def reopen_miss(miss: Miss) -> Miss:
    """The same miss, open and in progress."""
    return replace(miss, state="open", end=None, end_reason="", settled_at=None)


def exclude_miss(miss: Miss, reason: str) -> Miss:
    """The miss, no longer judged for this reason since its last bad window."""
    if miss.state == "excluded":
        return miss
    return replace(miss, state="excluded", end=miss.bad_until, end_reason=f"{NO_LONGER_JUDGED}{reason}")


def remove_miss(miss: Miss) -> Miss:
    """What an open miss becomes when its SLA leaves the configuration."""
    return replace(miss, state="removed", end=miss.bad_until, end_reason=REMOVED) if miss.state == "open" else miss


@dataclass(slots=True)
class _BadStretch:
    """Bad windows that may open a miss, with at most `limit` between one and the next."""

    limit: timedelta
    bad: list[SlaWindow] = field(default_factory=list)
    bad_time: timedelta = timedelta(0)
    excluded_time: timedelta = timedelta(0)
    """Since the last bad window."""
    has_unknown: bool = False

    def add(self, window: SlaWindow) -> None:
        if window.verdict == "good":
            self._clear()
        elif window.verdict == "excluded":
            self.excluded_time += _length(window)
        elif window.verdict == "bad":
            gap = window.window.start - self.bad[-1].window.end if self.bad else timedelta(0)
            if gap > self.limit:
                self._clear()
            elif self.bad:
                self.has_unknown |= gap > self.excluded_time
            self.bad.append(window)
            self.bad_time += _length(window)
            self.excluded_time = timedelta(0)

    def _clear(self) -> None:
        self.bad.clear()
        self.bad_time, self.has_unknown = timedelta(0), False

    @property
    def opens_miss(self) -> bool:
        return bool(self.bad) and self.bad_time >= self.limit


@dataclass(slots=True)
class _Progress:
    """A miss and what followed its last bad window."""

    miss: Miss
    reached: datetime
    """End of the last window."""
    limit: timedelta
    may_be_good: timedelta = timedelta(0)
    has_unknown: bool = False

    def add(self, window: SlaWindow) -> None:
        self.has_unknown |= window.verdict == "unknown" or window.window.start > self.reached
        self.reached = window.window.end
        if window.verdict == "bad":
            self.miss = _continue_miss(self.miss, window, is_certain=window.is_certain and not self.has_unknown)
            self.may_be_good, self.has_unknown = timedelta(0), False
        elif window.verdict == "good":
            self.miss = _settle_miss(self.miss, window)
        elif window.verdict == "excluded":
            self.miss = exclude_miss(self.miss, window.reason)
        elif _may_be_good(window):
            self.may_be_good += _length(window)
            if self.may_be_good > self.limit:
                self.miss = _settle_miss(self.miss, window)


def _resume_miss(miss: Miss, limit: timedelta) -> _Progress:
    """As of its last bad window. What followed that window is read again."""
    return _Progress(reopen_miss(miss), miss.bad_until, limit)


def _open_miss(sla: Sla, stretch: _BadStretch) -> Miss:
    bad = stretch.bad
    start, end = bad[0].window.start, bad[-1].window.end
    return Miss(
        id=hashlib.sha256(f"{sla.name}\n{epoch_ms(start)}".encode()).hexdigest()[:16],
        sla=sla.name,
        cluster=sla.cluster,
        state="open",
        start=start,
        end=None,
        bad_until=end,
        opened_at=end,
        bad_windows=len(bad),
        is_certain=all(w.is_certain for w in bad) and not stretch.has_unknown,
        for_ms=sla.for_ms,
        **_copy_worst(max(bad, key=_lateness)),
    )


def _continue_miss(miss: Miss, window: SlaWindow, *, is_certain: bool) -> Miss:
    worst = _copy_worst(window) if _lateness(window) > miss.worst_latency_ms else {}
    return replace(
        reopen_miss(miss),
        bad_until=window.window.end,
        bad_windows=miss.bad_windows + 1,
        is_certain=miss.is_certain and is_certain,
        **worst,
    )


def _settle_miss(miss: Miss, window: SlaWindow) -> Miss:
    state: MissState = "excluded" if miss.state == "excluded" else "recovered"
    return replace(miss, state=state, end=miss.bad_until, settled_at=window.window.end)


def _may_be_good(window: SlaWindow) -> bool:
    low = window.worst_latency_low_ms
    return low is not None and low <= window.max_latency_ms


def _length(window: SlaWindow) -> timedelta:
    return window.window.end - window.window.start


def _lateness(window: SlaWindow) -> float:
    return window.worst_latency_ms or 0.0


def _copy_worst(window: SlaWindow) -> dict[str, Any]:
    """What a miss takes over from its worst window."""
    where = (window.worst_group, window.worst_topic, window.worst_partition)
    if window.worst_latency_ms is None or None in where:
        raise ValueError(f"bad window {window.window} of SLA {window.sla!r} does not say where and how late")
    return {name: getattr(window, name) for name in _COPIED_FROM_WORST} | {"worst_at": window.window.start}
