"""When the consumers of an SLA will have caught up, from lag and pace of the newest published windows. Pure.

A backlog is treated as a fluid, as deterministic queueing theory does (G. F. Newell, Applications of Queueing Theory,
1971): what waits drains at the pace μ − λ, consumed less produced, and is gone after lag / (μ − λ). The pace between
two windows' ends is how much the lag fell, (lag₀ − lag₁) / (t₁ − t₀), so nothing but lags is needed:

    estimate    lag₁ / pace since t₀, the first known window of the newest `LOOK_BACK`
    low bound   low₁ / the smallest of (lag₀ − low₁) / (t₁ − t₀)    over all t₀ at least a third of it ago
    high bound  lag₁ / the largest of (low₀ − lag₁) / (t₁ − t₀)     never, where that is no pace at all

So the bounds are the tightest that agree with everything that was seen of a constant pace. Where they cross, the pace
has changed, and they are its slowest and its fastest. `low` is the lag at least: all of it where the backlog's age has
a low bound above 0. Otherwise the group may have moved unseen, at most to where it was seen next, and in the newest
window to the end.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.model.entities import Interval, Sla, epoch_ms
from kafka_sla.sla.windows.wanted_rows import wanted_pairs
from kafka_sla.sql import database
from kafka_sla.text.name_patterns import plain_names

LOOK_BACK = timedelta(minutes=15)
"""How much of the newest published time tells the pace: of longer windows three."""
LATENCY_COLUMNS = (
    "group",
    "topic",
    "partition",
    "window_end",
    "records_lag",
    "effective_position",
    "log_end_offset",
    "backlog_age_ms",
    "backlog_age_low_ms",
    "backlog_age_high_ms",
    "unknown_reason",
)
STEADY_COLUMNS = ("sla", "group", "topic", "partition", "state")
_Pair = tuple[str, str]
"""Group and topic."""
_PLACE = ["group", "topic", "partition"]
CatchUpState = Literal["caught_up", "catching_up", "never", "unknown"]


@dataclass(frozen=True, slots=True)
class PartitionPace:
    """How much waits in a partition and how fast it becomes less: records, and records per second."""

    group: str
    topic: str
    partition: int
    lag: int
    lag_low: int
    pace: float | None
    """Consumed less produced; below 0 the lag grows."""
    pace_low: float | None
    pace_high: float | None
    measured_ms: int | None
    """How much time the pace was measured over."""


@dataclass(frozen=True, slots=True)
class CatchUp:
    """When all consumers of an SLA will have caught up, should they keep their pace."""

    sla: str
    at: datetime
    """End of the newest published window; times count from here."""
    state: CatchUpState
    in_ms: float | None
    """None: never, or not known."""
    in_low_ms: float | None
    """None: never, also at the fastest pace."""
    in_high_ms: float | None
    """None: unbounded."""
    partitions: int
    behind: int
    """Partitions that have not caught up."""
    bootstrapping: int
    unknown: int
    reason: str
    """Why it is not known; of the first such partition."""
    slowest: PartitionPace | None
    """The partition that decides; None where nothing is behind."""


@dataclass(frozen=True, slots=True)
class _Estimate:
    """One partition: milliseconds until it has caught up; infinite is never."""

    pace: PartitionPace | None
    ms: float = 0.0
    low: float = 0.0
    high: float = 0.0
    unknown: str = ""


def pace_interval(at: datetime, window_ms: int) -> Interval:
    """The windows that tell the pace up to `at`."""
    return Interval(at - max(LOOK_BACK, timedelta(milliseconds=3 * window_ms)), at)


def behind(slas: Sequence[Sla], newest: pa.Table) -> list[str]:
    """The groups that may not have caught up in their newest window: only for them a pace is needed."""
    within = min(sla.steady_state.caught_up_within_ms for sla in slas)
    early = pc.less_equal(newest["backlog_age_high_ms"], within)
    caught_up = pc.and_(pc.and_(pc.is_valid(newest["records_lag"]), pc.is_valid(newest["backlog_age_ms"])), early)
    waiting: list[str] = pc.unique(newest["group"].filter(pc.invert(pc.fill_null(caught_up, False)))).to_pylist()
    return waiting


def catch_ups(
    slas: Sequence[Sla], latency: pa.Table, steady: pa.Table, at: datetime, window_ms: int
) -> dict[str, CatchUp]:
    """Each of these SLAs of one cluster: rows of `consumer_latency` of the `pace_interval` until `at`, of groups that
    are not `behind` at least those of its last window, and of `steady_state` those of its last window."""
    newest = latency.filter(pc.equal(latency["window_end"], pa.scalar(at, latency.schema.field("window_end").type)))
    counted = newest.group_by(["group", "topic"]).aggregate([([], "count_all")])
    partitions = {(row["group"], row["topic"]): row["count_all"] for row in counted.to_pylist()}
    starting = steady.filter(pc.equal(steady["state"], "bootstrapping")).join(newest, _PLACE, join_type="left semi")
    waiting: dict[_Pair, list[dict[str, Any]]] = defaultdict(list)
    for row in _paces_of(behind(slas, newest), latency, at, window_ms):
        waiting[row["group"], row["topic"]].append(row)
    places = Counter((row["sla"], (row["group"], row["topic"])) for row in starting.to_pylist())
    return {sla.name: _catch_up(sla, partitions, waiting, places, at) for sla in slas}


def _paces_of(groups: Sequence[str], latency: pa.Table, at: datetime, window_ms: int) -> list[dict[str, Any]]:
    """One row a partition of these groups; most often there are none, and DuckDB is not asked."""
    if not groups:
        return []
    span = pace_interval(at, window_ms)
    shortest = (span.end - span.start) / timedelta(milliseconds=1) / 3
    with database(latency=latency.filter(pc.is_in(latency["group"], pa.array(groups)))) as db:
        return db.rows(_PACES, at=epoch_ms(at), shortest=shortest)


def unknown_catch_up(sla: Sla, at: datetime, reason: str) -> CatchUp:
    """Nothing is known, and why."""
    return CatchUp(sla.name, at, "unknown", None, 0.0, None, 0, 0, 0, 0, reason, None)


def _catch_up(
    sla: Sla,
    partitions: Mapping[_Pair, int],
    waiting: Mapping[_Pair, list[dict[str, Any]]],
    starting: Mapping[tuple[str, _Pair], int],
    at: datetime,
) -> CatchUp:
    """`waiting`: rows of groups that may be behind; `partitions`, and `starting` ones by SLA: how many there are."""
    pairs = wanted_pairs(sla, partitions)
    within_ms = sla.steady_state.caught_up_within_ms
    each = [_estimate(row, within_ms) for pair in pairs for row in waiting.get(pair, ())]
    known, unknown = [one for one in each if not one.unknown], [one.unknown for one in each if one.unknown]
    absent = _absent(sla, pairs)
    worst = max(known, key=lambda one: (one.ms, one.high, one.pace.lag if one.pace else 0), default=_Estimate(None))
    low, high = max((one.low for one in known), default=0.0), max((one.high for one in known), default=0.0)
    whole = not absent and not unknown
    state: CatchUpState = "caught_up" if worst.ms == 0 else "catching_up"
    state = "never" if math.isinf(worst.ms) else state if whole else "unknown"
    return CatchUp(
        sla.name,
        at,
        state,
        in_ms=worst.ms if whole and math.isfinite(worst.ms) else None,
        in_low_ms=low if math.isfinite(low) else None,
        in_high_ms=high if whole and math.isfinite(high) else None,
        partitions=sum(partitions[pair] for pair in pairs),
        behind=sum(one.ms > 0 for one in known),
        bootstrapping=sum(starting.get((sla.name, pair), 0) for pair in pairs),
        unknown=len(unknown),
        reason=absent or next(iter(unknown), ""),
        slowest=worst.pace if worst.ms else None,
    )


def _absent(sla: Sla, pairs: Sequence[tuple[str, str]]) -> str:
    """Groups and topics that the SLA names and that have no row; or that nothing has one."""
    groups, topics = {group for group, _ in pairs}, {topic for _, topic in pairs}
    absent = [f"group {name}" for name in plain_names(sla.groups) or () if name not in groups]
    absent += [f"topic {name}" for name in plain_names(sla.topics) or () if name not in topics]
    return f"no data for {', '.join(absent)}" if absent else "" if pairs else "no data"


def _estimate(row: Mapping[str, Any], within_ms: int) -> _Estimate:
    place = f"{row['group']} {row['topic']}-{row['partition']}"
    if row["waiting"] is None or row["age_ms"] is None:
        return _Estimate(None, unknown=f"{place}: {row['why'] or 'no lag'}")
    age_high = math.inf if row["age_high_ms"] is None else row["age_high_ms"]
    if age_high <= within_ms:
        return _Estimate(None)
    caught_up = row["age_ms"] <= within_ms
    if row["pace"] is None and not caught_up:
        return _Estimate(None, unknown=f"{place}: its lag has not been known for long enough to have a pace")
    slow, pace, fast = _paces(row)
    figures = PartitionPace(
        row["group"],
        row["topic"],
        row["partition"],
        int(row["waiting"]),
        int(row["low"]),
        pace,
        slow,
        fast,
        row["measured_ms"],
    )
    low = 0.0 if (row["age_low_ms"] or 0) <= within_ms else _ms(row["low"], fast)
    return _Estimate(figures, 0.0 if caught_up else _ms(row["waiting"], pace), low, _ms(row["waiting"], slow))


def _paces(row: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """The slowest, the estimated and the fastest; nothing where no lag was known long enough ago."""
    if row["pace"] is None:
        return None, None, None
    slow, fast = sorted((row["at_least"], row["at_most"]))
    return slow, min(max(row["pace"], slow), fast), fast


def _ms(lag: float, pace: float | None) -> float:
    if not lag:
        return 0.0
    return 1000 * lag / pace if pace and pace > 0 else math.inf


# A position or a log end that falls begins anew: a rewind, or a recreated topic.
_PACES = """
    WITH rows AS (
        SELECT "group", topic, partition, epoch_ms(window_end) AS at_ms, records_lag::DOUBLE AS waiting,
            effective_position AS position, log_end_offset AS log_end, backlog_age_ms AS age_ms,
            backlog_age_low_ms AS age_low_ms, backlog_age_high_ms AS age_high_ms, unknown_reason AS why
        FROM latency
    ), compared AS (
        SELECT *, coalesce(position < lag(position IGNORE NULLS) OVER w, false)
            OR coalesce(log_end < lag(log_end IGNORE NULLS) OVER w, false) AS fell
        FROM rows WINDOW w AS (PARTITION BY "group", topic, partition ORDER BY at_ms)
    ), steps AS (
        SELECT *, max(at_ms) FILTER (fell) OVER (PARTITION BY "group", topic, partition) AS anew_ms FROM compared
    ), bounded AS (
        SELECT * EXCLUDE position, CASE WHEN age_low_ms > 0 THEN waiting ELSE coalesce(least(waiting, greatest(0,
            (log_end - min(position) OVER (
                PARTITION BY "group", topic, partition ORDER BY position
                RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING))::DOUBLE)), 0) END AS low
        FROM steps WHERE anew_ms IS NULL OR at_ms >= anew_ms
    ), newest AS (
        SELECT * FROM bounded WHERE at_ms = $at
    )
    SELECT newest."group", newest.topic, newest.partition, newest.waiting, newest.low, newest.age_ms,
        newest.age_low_ms, newest.age_high_ms, newest.why,
        arg_min((old.waiting - newest.waiting) / ((newest.at_ms - old.at_ms) / 1e3), old.at_ms) AS pace,
        max((old.low - newest.waiting) / ((newest.at_ms - old.at_ms) / 1e3)) AS at_least,
        min((old.waiting - newest.low) / ((newest.at_ms - old.at_ms) / 1e3)) AS at_most,
        max(newest.at_ms - old.at_ms) AS measured_ms
    FROM newest LEFT JOIN bounded old ON old."group" = newest."group" AND old.topic = newest.topic
        AND old.partition = newest.partition AND old.waiting IS NOT NULL AND old.at_ms <= newest.at_ms - $shortest
    GROUP BY ALL ORDER BY ALL
"""
