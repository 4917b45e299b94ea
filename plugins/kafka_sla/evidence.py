"""What the metrics say about why a promise was missed: figures, and one sentence from them. Pure; knows no store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import pyarrow as pa

from kafka_sla.instants import instant_text, parse_instant
from kafka_sla.miss_figures import WindowSum, late_partitions, longest_stall, phase_rates, window_sums
from kafka_sla.model import Interval, Miss, Sla
from kafka_sla.wording import count, moment, plural, rate

Cause = Literal["stopped", "produce_rate_jumped", "too_slow", "unclear"]
LOOK_BACK = timedelta(minutes=30)
"""How much of the time before a miss shows what was usual."""
STOOD_STILL = 0.5
"""Share of a miss without progress from which the consumer is said to have stopped."""
JUMPED = 1.5
"""Produce rate over the usual one from which it is said to have jumped."""
SLOWED = 0.7
"""Consume rate over the usual one below which the consumer did not keep its pace."""
BEHIND = 0.95
"""Consume rate over produce rate below which the consumer is said to be too slow."""

YOUNG = 0.25
"""Share of the threshold up to which a backlog is no sign of trouble."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Figures over the late partitions of the worst group and topic; None where the rows do not tell."""

    group: str
    topic: str
    late_partitions: int
    """Late partitions of all groups and topics of the SLA."""
    partitions: tuple[str, ...]
    """At most ten of them, the worst first."""
    produce_rate_before: float | None
    """Records per second."""
    produce_rate_during: float | None
    consume_rate_before: float | None
    consume_rate_during: float | None
    records_consumed: int
    """In the whole miss."""
    lag_at_start: int | None
    lag_worst: int | None
    last_commit_at: datetime | None
    stalled_share: float
    """Share of the miss in which records waited and none was consumed."""
    stalled_from: datetime | None
    """Last commit before the longest such time; None when nothing stood still."""
    stalled_until: datetime | None
    """Start of the window in which the group moved again; None while it has not."""
    commits_without_progress: bool
    """It committed while it stood still: alive, but stuck."""

    @property
    def cause(self) -> Cause:
        if self.stalled_share >= STOOD_STILL:
            return "stopped"
        produced, consumed = self.produce_rate_during, self.consume_rate_during
        usual, pace = self.produce_rate_before, self.consume_rate_before
        if (
            produced
            and usual
            and produced >= JUMPED * usual
            and consumed is not None
            and consumed >= SLOWED * (pace or 0)
        ):
            return "produce_rate_jumped"
        if produced is not None and consumed is not None and consumed < BEHIND * produced:
            return "too_slow"
        return "unclear"


def evidence(sla: Sla, miss: Miss, latency: pa.Table, steady: pa.Table) -> dict[str, Any]:
    """JSON-able figures, the `cause` that they show and a `sentence` for people.

    `latency` and `steady` are published rows of `evidence_interval`. Rates `during` are those of the build-up: from the
    time when the backlog was last young until the worst window. What was before that is usual.
    """
    late = late_partitions(sla, miss, latency, steady)
    partitions = [p.partition for p in late if (p.group, p.topic) == (miss.worst_group, miss.worst_topic)]
    sums = window_sums(miss, latency, partitions)
    inside = [w for w in sums if w.start >= miss.start]
    rates = phase_rates(miss, latency, partitions, _built_from(sla, miss, sums))
    stall = longest_stall(sums, miss.start)
    found = Evidence(
        group=miss.worst_group, topic=miss.worst_topic,
        late_partitions=len(late), partitions=tuple(f"{p.group} {p.topic}-{p.partition}" for p in late[:10]),
        produce_rate_before=rates.produce_before, produce_rate_during=rates.produce_during,
        consume_rate_before=rates.consume_before, consume_rate_during=rates.consume_during,
        records_consumed=sum(w.consumed for w in inside),
        lag_at_start=next((w.lag for w in reversed(sums) if w.start < miss.start), inside[0].lag if inside else None),
        lag_worst=max((w.lag for w in inside if w.lag is not None), default=None),
        last_commit_at=inside[-1].last_commit_at if inside else None,
        stalled_share=sum(w.stalled for w in inside) / len(inside) if inside else 0.0,
        stalled_from=stall.since if stall else None, stalled_until=stall.until if stall else None,
        commits_without_progress=bool(stall and stall.committed),
    )  # fmt: skip
    return {"cause": found.cause, "sentence": _SENTENCES[found.cause](found), **_jsonable(found)}


def evidence_interval(sla: Sla, miss: Miss, until: datetime) -> Interval:
    """The time whose rows `evidence` wants; `until`: end of the newest judged window, for a miss that is still open."""
    return Interval(miss.start - looks_back(sla), miss.end or until)


def looks_back(sla: Sla) -> timedelta:
    """How much of the time before a miss its evidence tells of: late rows of that time change it."""
    return timedelta(milliseconds=sla.max_latency_ms) + LOOK_BACK


def evidence_rows(found: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The figures in words: what, before the trouble, during it. Nothing for a miss without evidence."""
    if not found:
        return []
    last = found["last_commit_at"]
    return [
        ("Produced", rate(found["produce_rate_before"]), rate(found["produce_rate_during"])),
        ("Consumed", rate(found["consume_rate_before"]), rate(found["consume_rate_during"])),
        ("Records waiting", count(found["lag_at_start"]), count(found["lag_worst"])),
        ("Last commit", "", moment(parse_instant(last) if last else None)),
        ("Late partitions", "", count(found["late_partitions"])),
    ]


def _built_from(sla: Sla, miss: Miss, sums: Sequence[WindowSum]) -> datetime:
    """When trouble began: records that are late at the start of a miss were produced `max_latency` earlier at least."""
    young = [
        w.end for w in sums if w.end <= miss.start and w.age_ms is not None and w.age_ms <= YOUNG * sla.max_latency_ms
    ]
    return min(miss.start - timedelta(milliseconds=sla.max_latency_ms), max(young, default=miss.start))


def _jsonable(found: Evidence) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, datetime):
            return instant_text(value)
        return list(value) if isinstance(value, tuple) else round(value, 3) if isinstance(value, float) else value

    return {key: plain(value) for key, value in asdict(found).items()}


def _stopped(e: Evidence) -> str:
    what = f"Group {e.group} kept committing on {e.topic} but did not move" if e.commits_without_progress else (
        f"Group {e.group} committed nothing on {e.topic}")  # fmt: skip
    waited = f"while up to {plural(e.lag_worst, 'record')} waited" if e.lag_worst else "while records waited"
    if e.stalled_from is None:
        return f"{what} for {e.stalled_share:.0%} of the time {waited}."
    if e.stalled_until is None:
        return f"{what} after {moment(e.stalled_from)} {waited}."
    return f"{what} from {moment(e.stalled_from)} until {moment(e.stalled_until)} {waited}."


def _jumped(e: Evidence) -> str:
    times = (e.produce_rate_during or 0) / (e.produce_rate_before or 1)
    return (
        f"The produce rate of {e.topic} jumped from {rate(e.produce_rate_before)} to {rate(e.produce_rate_during)} "
        f"({times:.1f} times as much); group {e.group} consumed {rate(e.consume_rate_during)}."
    )


def _too_slow(e: Evidence) -> str:
    before = "" if e.consume_rate_before is None else f" ({rate(e.consume_rate_before)} before)"
    usual = "" if e.produce_rate_before is None else f" ({rate(e.produce_rate_before)} before)"
    return (
        f"Group {e.group} was too slow: it consumed {rate(e.consume_rate_during)}{before} "
        f"while {rate(e.produce_rate_during)}{usual} were produced to {e.topic}."
    )


def _unclear(e: Evidence) -> str:
    return (
        f"No single cause shows: {rate(e.produce_rate_during)} produced, {rate(e.consume_rate_during)} consumed, "
        f"{count(e.lag_worst)} records waiting at worst."
    )


_SENTENCES: dict[Cause, Callable[[Evidence], str]] = {
    "stopped": _stopped, "produce_rate_jumped": _jumped, "too_slow": _too_slow, "unclear": _unclear,
}  # fmt: skip
