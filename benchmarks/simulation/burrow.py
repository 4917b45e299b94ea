"""Burrow's rules for one partition, written plainly from its page and from how `docs/reference/consumer_status.md` says
that they differ."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stored:
    """One stored commit: when (ms), where, and the lag then (None: no log end was known)."""

    at: int
    offset: int
    lag: int | None


def status(commits: Sequence[Stored], now: int, log_end: int | None, expire_ms: int) -> str:
    """The status of a partition at `now`, of the last commits in their order; `log_end`: the newest known."""
    first, last = commits[0], commits[-1]
    if now - last.at > expire_ms:
        return "NOTFOUND"
    if log_end is None:
        return "OK"  # Burrow's lag of -1
    if max(0, log_end - last.offset) == 0:
        return "OK"
    if now - last.at > last.at - first.at:
        return "STOPPED"
    if _went_back(commits):
        return "REWIND"
    if any(commit.lag == 0 for commit in commits) or any(commit.lag is None for commit in commits):
        return "OK"
    lags = [commit.lag or 0 for commit in commits]
    never_fell = all(b >= a for a, b in itertools.pairwise(lags))
    if all(commit.offset == first.offset for commit in commits) and never_fell:
        return "STALLED"
    return "WARNING" if never_fell else "OK"


def _went_back(commits: Sequence[Stored]) -> bool:
    """An offset went back, and no later commit reached it again."""
    for n, commit in enumerate(commits[:-1]):
        if commits[n + 1].offset < commit.offset and all(c.offset < commit.offset for c in commits[n + 1 :]):
            return True
    return False
