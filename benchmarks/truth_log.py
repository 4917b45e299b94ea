"""What clients wrote down of their own doing, and the truth that follows from it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil


@dataclass(frozen=True, slots=True)
class Record:
    """Offset and timestamp (ms) as a client saw them."""

    offset: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: what had been read since the one before, and the client's clock (ms) around the call."""

    position: int
    before: int
    after: int
    read: tuple[Record, ...]


@dataclass(slots=True)
class ClientLog:
    """All that the clients of one flow wrote down."""

    written: list[Record] = field(default_factory=list)
    """By the producer, when the broker acknowledged; without what was aborted."""
    commits: list[Commit] = field(default_factory=list)


class LogsDiffer(RuntimeError):
    """Clients and broker disagree about what happened: there is no truth to compare with."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Latencies and backlogs of one flow, ms: by the broker's time of each commit and the records' own timestamps."""

    commits: tuple[tuple[int, Commit], ...]
    written: tuple[Record, ...]

    def latencies(self, start: int, end: int) -> list[int]:
        """Of every record whose first commit after it was read lies in [start, end)."""
        return [at - r.timestamp for at, commit in self.commits if start <= at < end for r in commit.read]

    def position(self, moment: int) -> int:
        """Where the group stood then; 0 before its first commit."""
        return next((c.position for at, c in reversed(self.commits) if at < moment), 0)

    def backlog_age(self, moment: int) -> int:
        """Age of the first record that was written and not read and committed by then; 0 without one."""
        index = bisect_left(self.written, self.position(moment), key=lambda r: r.offset)
        waiting = [r.timestamp for r in self.written[index : index + 1] if r.timestamp <= moment]
        return moment - waiting[0] if waiting else 0


def truth(name: str, log: ClientLog, recorded: Sequence[tuple[int, int]]) -> Truth:
    """The truth of one flow; `recorded`: time (ms) and offset of its commits as the broker keeps them."""
    if [c.position for c in log.commits] != [offset for _, offset in recorded]:
        raise LogsDiffer(
            f"{name}: the client committed {len(log.commits)} times, the broker kept {len(recorded)} others"
        )
    for commit, (at, _) in zip(log.commits, recorded, strict=True):
        if not commit.before - 1 <= at <= commit.after + 1:
            raise LogsDiffer(f"{name}: a commit of {commit.before}..{commit.after} is kept with time {at}")
    written = sorted(log.written, key=lambda r: r.offset)
    known = {r.offset: r.timestamp for r in written}
    if wrong := [r for c in log.commits for r in c.read if known.get(r.offset) != r.timestamp]:
        raise LogsDiffer(f"{name}: {len(wrong)} records were read as nobody wrote them, first {wrong[0]}")
    return Truth(tuple((at, c) for (at, _), c in zip(recorded, log.commits, strict=True)), tuple(written))


def quantile(values: Iterable[float], share: float) -> float | None:
    """The value that this share of the values does not exceed; None without values."""
    ranked = sorted(values)
    return float(ranked[max(0, ceil(share * len(ranked)) - 1)]) if ranked else None
