"""The verdict on an SLA in each window. The rule for misses is in `miss_rule`."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from kafka_sla.model.entities import Interval, Miss, Patterns, Sla, SlaWindow, Verdict
from kafka_sla.sla.windows.window_stats import Names, Partition, WindowFigures, window_figures
from kafka_sla.text.formatting import span

__all__ = ["Partition", "expiry", "judge", "judge_together"]


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
