"""The verdicts on an SLA: windows judged, and runs of bad windows as misses. Pure: knows no store, clock or mail."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

import pyarrow as pa

from kafka_sla.model.entities import Interval, Miss, Patterns, Sla, SlaWindow, Verdict, epoch_ms
from kafka_sla.sla.windows.window_stats import Names, Partition, WindowFigures, window_figures
from kafka_sla.text.formatting import span

_OVER_AFTER = timedelta(minutes=30)
"""A miss is over after so much time that may have been good: polls every few minutes never show that all is well."""

_OF_WORST = (
    "worst_latency_ms",
    "worst_latency_low_ms",
    "worst_latency_high_ms",
    "worst_group",
    "worst_topic",
    "worst_partition",
    "max_latency_ms",
    "min_time_to_expiry_ms",
)

__all__ = ["Partition", "continued", "expiry", "judge", "judge_together", "misses"]


def judge(
    sla: Sla,
    interval: Interval,
    window_ms: int,
    latency: pa.Table,
    steady: pa.Table,
    expected: Sequence[Partition] = (),
    unread: pa.Table | None = None,
) -> tuple[SlaWindow, ...]:
    """One verdict per window of the interval, from rows of `consumer_latency` and `steady_state`, and of `non_consumed`
    (`unread`) for an SLA with `min_time_to_expiry`.

    Rows of other clusters, SLAs, groups, topics and times are ignored. A known partition has a row in every window
    until its group deletes its offset or is gone for good, so one without a row is asked for nothing, except the ones
    in `expected` and the names that the SLA spells out: where these have no row the window is unknown, unless another
    partition makes it bad. Nothing depends on where the interval begins. A chain has one row a window, whatever its
    names are.
    """
    (windows,) = judge_together([sla], interval, window_ms, latency, steady, expected, unread).values()
    return windows


def judge_together(
    slas: Sequence[Sla],
    interval: Interval,
    window_ms: int,
    latency: pa.Table,
    steady: pa.Table,
    expected: Sequence[Partition] = (),
    unread: pa.Table | None = None,
) -> dict[str, tuple[SlaWindow, ...]]:
    """The same for several SLAs of one cluster, by name, in little more time than one takes: `steady` has the rows of
    all of them. A chain is alone: its latency is no partition's.

    Raises:
        ValueError: they are of several clusters.
    """
    if len(clusters := {sla.cluster for sla in slas}) > 1:
        raise ValueError(
            f"SLAs of {', '.join(sorted(clusters))} cannot be judged together; judge those of each cluster"
        )
    names = [_names(sla) for sla in slas]
    figures = window_figures(slas, interval, window_ms, latency, steady, expected, names, unread)
    return {sla.name: _windows(sla, interval, rows) for sla, rows in zip(slas, figures, strict=True)}


def misses(sla: Sla, windows: Sequence[SlaWindow]) -> tuple[Miss, ...]:
    """Runs of bad windows at least `for` long together, however long each is: `window` may have been edited among them.
    Windows that are not there count as unknown ones."""
    found = (_miss(sla, run, ended) for run, ended in _runs(sla, windows))
    return tuple(miss for miss in found if miss)


def continued(sla: Sla, miss: Miss, windows: Sequence[SlaWindow]) -> tuple[Miss, ...]:
    """What becomes of an open miss, and what follows it: `windows` are those from its last bad one on. The same as
    `misses` makes of all its windows, of which there are thousands after some days."""
    (run, ended), *later = _runs(sla, windows)
    more = run[1:]
    worst = max(more, key=_lateness, default=None)
    if worst is not None and _lateness(worst) > miss.worst_latency_ms:
        miss = replace(miss, **_worst(worst))
    miss = replace(
        miss,
        end=run[-1].window.end if ended else None,
        bad_windows=miss.bad_windows + len(more),
        is_certain=miss.is_certain and all(w.is_certain for w in more),
    )
    found = (_miss(sla, run, ended) for run, ended in later)
    return (miss, *(one for one in found if one))


def expiry(miss: Miss, windows: Sequence[SlaWindow]) -> str:
    """What the last bad window of a miss says of unread records that expire too soon; empty when none did."""
    inside = [w for w in windows if w.window.start >= miss.start and (miss.end is None or w.window.end <= miss.end)]
    told = [w.reason for w in sorted(inside, key=lambda w: w.window) if w.verdict == "bad" and w.reason]
    return told[-1] if told else ""


def _names(sla: Sla) -> Names:
    return ([], []) if sla.chain else (_spelled_out(sla.groups), _spelled_out(sla.topics))


def _windows(sla: Sla, interval: Interval, rows: Sequence[WindowFigures]) -> tuple[SlaWindow, ...]:
    planned = [(time, planned.reason) for planned in sla.maintenance for time in planned.spans(interval)]
    return tuple(_window(sla, row, *_verdict(sla, row, _planned(planned, row.window))) for row in rows)


def _window(sla: Sla, row: WindowFigures, verdict: Verdict, reason: str, is_certain: bool) -> SlaWindow:
    return SlaWindow(
        sla=sla.name,
        window=row.window,
        verdict=verdict,
        is_certain=is_certain,
        reason=reason,
        steady_partitions=row.steady,
        bootstrapping_partitions=row.bootstrapping,
        unknown_partitions=row.unknown_partitions,
        worst_latency_ms=row.worst_ms,
        worst_latency_low_ms=row.worst_low_ms,
        worst_latency_high_ms=row.worst_high_ms,
        worst_group=row.worst_group,
        worst_topic=row.worst_topic,
        worst_partition=row.worst_partition,
        records_due=row.records_due,
        records_late=row.records_late,
        records_late_low=row.records_late_low,
        records_late_high=row.records_late_high,
        records_of_unknown_state=row.records_of_unknown_state,
        max_latency_ms=sla.max_latency_ms,
        min_time_to_expiry_ms=sla.min_time_to_expiry_ms,
    )


def _verdict(sla: Sla, row: WindowFigures, planned: str) -> tuple[Verdict, str, bool]:
    """The verdict, why, and whether the bounds agree with it."""
    if planned:
        return "excluded", f"maintenance: {planned}", False
    if row.over or row.expires_in_ms is not None:
        return "bad", _expiry(row), row.certain_over > 0 or bool(row.expires_certainly)
    if unknown := _unknown(sla, row):
        return "unknown", unknown, False
    if row.steady:
        return "good", "", row.certain_within == row.steady
    all_of_it = f"all {row.bootstrapping:,} partitions" if row.bootstrapping > 1 else "the only partition"
    return "excluded", f"bootstrapping: {'at least one group of the chain' if sla.chain else all_of_it}", False


def _expiry(row: WindowFigures) -> str:
    if row.expires_in_ms is None:
        return ""
    place = f"{row.expiring_group} in {row.expiring_topic}-{row.expiring_partition}"
    if row.expires_in_ms:
        return f"unread records of {place} expire in {span(row.expires_in_ms)}"
    return f"unread records of {place} are due to expire"


def _unknown(sla: Sla, row: WindowFigures) -> str:
    """Why the window could not be called good, or nothing."""
    if row.absent_groups or row.absent_topics:
        absent = [f"group {name}" for name in row.absent_groups or ()]
        absent += [f"topic {name}" for name in row.absent_topics or ()]
        return f"no data for {', '.join(absent)}"
    if not row.expected:
        return "no data: no group and topic of this SLA has been seen"
    if row.unknown_because is None:
        return ""
    if sla.chain:
        return f"the chain: {row.unknown_because}"
    of, place = f"{row.unknown_partitions} of {row.expected} partitions", f"{row.unknown_topic}-{row.unknown_partition}"
    return f"{of}: {row.unknown_group} {place}: {row.unknown_because}"


def _planned(planned: Sequence[tuple[Interval, str]], window: Interval) -> str:
    """The reason of the first maintenance that touches the window."""
    return next((reason or "planned" for time, reason in planned if time.overlaps(window)), "") if planned else ""


def _spelled_out(patterns: Patterns) -> list[str]:
    """Configured names without a wildcard, as Kafka knows them."""
    special = re.compile(r"[.^$*+?{}\[\]|()\\]")
    plain = [p for p in patterns.include if not special.search(re.sub(r"\\\W", "", p))]
    return [name for name in (re.sub(r"\\(\W)", r"\1", p) for p in plain) if patterns.matches(name)]


def _runs(sla: Sla, windows: Sequence[SlaWindow]) -> Iterator[tuple[list[SlaWindow], bool]]:
    """Bad windows with only bad and unknown ones between them, and whether it ended: by a known window, or by so many
    that may have been good that nothing shows that it went on."""
    run: list[SlaWindow] = []
    doubtful, enough = timedelta(0), max(timedelta(milliseconds=sla.for_ms), _OVER_AFTER)
    for window in sorted(windows, key=lambda w: w.window):
        if window.verdict == "bad":
            run.append(window)
            doubtful = timedelta(0)
            continue
        low = window.worst_latency_low_ms
        doubtful += (low is not None and low <= sla.max_latency_ms) * (window.window.end - window.window.start)
        if run and (window.verdict != "unknown" or doubtful >= enough):
            yield run, True
            run = []
    if run:
        yield run, False


def _miss(sla: Sla, run: list[SlaWindow], ended: bool) -> Miss | None:
    opened_at = _opened_at(run, timedelta(milliseconds=sla.for_ms))
    if opened_at is None:
        return None
    start = run[0].window.start
    return Miss(
        id=hashlib.sha256(f"{sla.name}\n{epoch_ms(start)}".encode()).hexdigest()[:16],
        sla=sla.name,
        cluster=sla.cluster,
        start=start,
        end=run[-1].window.end if ended else None,
        opened_at=opened_at,
        bad_windows=len(run),
        is_certain=all(w.is_certain for w in run),
        for_ms=sla.for_ms,
        **_worst(max(run, key=_lateness)),
    )


def _opened_at(run: Sequence[SlaWindow], enough: timedelta) -> datetime | None:
    """When the bad windows were long enough together; None: they are not yet."""
    lengths = accumulate(w.window.end - w.window.start for w in run)
    return next((w.window.end for w, so_far in zip(run, lengths, strict=True) if so_far >= enough), None)


def _lateness(window: SlaWindow) -> float:
    return window.worst_latency_ms or 0.0


def _worst(window: SlaWindow) -> dict[str, Any]:
    """What a miss keeps of its worst window."""
    where = (window.worst_group, window.worst_topic, window.worst_partition)
    if window.worst_latency_ms is None or None in where:
        raise ValueError(f"bad window {window.window} of SLA {window.sla!r} does not say where and how late")
    return {name: getattr(window, name) for name in _OF_WORST} | {"worst_at": window.window.start}
