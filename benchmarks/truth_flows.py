"""The flows whose truth is compared with what is measured: who writes, who reads, and how badly. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

LOG_APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "2000",
    "max.compaction.lag.ms": "2000",
}


@dataclass(frozen=True, slots=True)
class Flow:
    """One topic of one partition with one group. Seconds count from the start of the traffic."""

    name: str
    made: Callable[[float], int]
    """Records written in the first so many seconds."""
    commit_seconds: float = 1.0
    reads_per_second: float | None = None
    """What the consumer can do; None: whatever comes."""
    absent: tuple[float, float] | None = None
    """While the consumer is stopped."""
    rewinds: tuple[float, ...] = ()
    """When the group is set back by `rewind_records`."""
    rewind_records: int = 500
    transaction_seconds: float | None = None
    """Records are written in transactions of this length."""
    ahead_ms: tuple[int, ...] = (0,)
    """How far the clocks of the topic's producers are ahead; they take turns."""
    aborts_every: int | None = None
    """Every so manieth transaction is aborted."""
    hot_keys: int | None = None
    """Two thirds of the records have one of so many keys, the others keys of their own; None: no keys."""
    config: dict[str, str] = field(default_factory=dict)

    @property
    def topic(self) -> str:
        return self.name.replace(" ", "-").replace(",", "")

    @property
    def group(self) -> str:
        return f"{self.topic}-reader"

    def reads_at(self, seconds: float) -> bool:
        return not (self.absent and self.absent[0] <= seconds < self.absent[1])


def steady(per_second: float) -> Callable[[float], int]:
    return lambda seconds: 1 + int(seconds * per_second)


def bursts(size: int, every: float) -> Callable[[float], int]:
    return lambda seconds: size * (1 + int(seconds // every))


FLOWS = (
    Flow("steady", steady(50)),
    Flow("steady, LogAppendTime", steady(50), commit_seconds=5, config=LOG_APPEND_TIME),
    Flow("bursty", bursts(300, every=15), reads_per_second=100),
    Flow("bursty, LogAppendTime", bursts(200, every=13), commit_seconds=3, config=LOG_APPEND_TIME),
    Flow("idle", bursts(40, every=60), commit_seconds=4),
    Flow("stopped", steady(20), absent=(60, 120)),
    Flow("rewound", steady(30), rewinds=(70, 130)),
    Flow("slow", steady(30), reads_per_second=15),
    Flow("transactional", steady(30), transaction_seconds=0.5),
    Flow("transactional, idle", bursts(40, every=60), transaction_seconds=0.5),
    Flow("transactional, aborting", steady(30), transaction_seconds=0.5, aborts_every=4),
    Flow("compacted", steady(30), commit_seconds=2, hot_keys=20, config=COMPACTED),
    Flow("skewed clock", steady(20), commit_seconds=2, ahead_ms=(700,)),
    Flow("two clocks", steady(20), commit_seconds=2, ahead_ms=(0, 700)),
)
