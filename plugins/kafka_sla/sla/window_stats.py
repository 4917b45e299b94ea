"""What the partitions of one SLA did in each window, added up by DuckDB over Arrow. Knows no verdict and no store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import MOST, Interval, Sla
from kafka_sla.model.tables import NON_CONSUMED
from kafka_sla.sla.wanted_rows import PAIR, latency_sql, pair_table, wanted_pairs
from kafka_sla.sql import Sql, database

Partition = tuple[str, str, int]
"""Group, topic, partition."""


@dataclass(frozen=True, slots=True)
class Worst:
    """The steady partition that waited longest, and how long at best and at worst (None: unbounded)."""

    latency_ms: float
    low_ms: float | None
    high_ms: float | None
    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Expiring:
    """The steady partition whose unread records expire soonest, sooner than required."""

    in_ms: float
    is_certain: bool
    """By the estimated age of the oldest of them, too, and not only by its high bound."""
    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class WindowFigures:
    """Sums over the partitions of one SLA in one window; steady, bootstrapping and unknown ones make up `expected`."""

    window: Interval
    expected: int
    steady: int
    bootstrapping: int
    over: int
    """Steady partitions above the threshold, as far as that is certain or the SLA asks to suppose it."""
    certain_over: int
    """Of these, the ones whose low bound is above it too."""
    certain_within: int
    """Steady partitions whose high bound is within the threshold."""
    worst: Worst | None
    expiring: Expiring | None
    records_consumed: int
    records_over_threshold: int
    records_over_threshold_low: int
    records_over_threshold_high: int
    """Of rows without bounds, made by an earlier version, all records or none."""
    unknown: tuple[str, str, int, str] | None
    """The first unknown partition and why."""
    absent_groups: Sequence[str]
    """Of `names`: groups without a row."""
    absent_topics: Sequence[str]

    @property
    def unknown_partitions(self) -> int:
        return self.expected - self.steady - self.bootstrapping


def window_figures(
    sla: Sla,
    interval: Interval,
    window_ms: int,
    latency: pa.Table,
    steady: pa.Table,
    expected: Sequence[Partition],
    names: tuple[Sequence[str], Sequence[str]],
    unread: pa.Table | None = None,
) -> list[WindowFigures]:
    """One entry per window of the interval. `names`: the groups and topics whose presence the caller wants to know.
    `unread`: rows of `non_consumed`, for an SLA that limits them."""
    windows = list(interval.windows(window_ms))
    with database(unread_rows=unread or arrow_rows(NON_CONSUMED, [])) as db:
        _load(db, sla, interval, windows, latency, steady, expected)
        db.set(groups=list(names[0]), topics=list(names[1]))
        sums = db.arrow(_SUMS)
        gaps = pc.any(pc.greater(sums["expected"], sums["seen"])).as_py()
        missing = {row["start"].astimezone(UTC): row for row in db.rows(_MISSING)} if gaps else {}
    rows = map(_Sums._make, zip(*(sums[name].to_pylist() for name in _Sums._fields), strict=True))
    return [_figures(window, row, missing.get(window.start)) for window, row in zip(windows, rows, strict=True)]


def _load(
    db: Sql,
    sla: Sla,
    interval: Interval,
    windows: Sequence[Interval],
    latency: pa.Table,
    steady: pa.Table,
    expected: Sequence[Partition],
) -> None:
    """Make the tables `windows`, `pairs` (group, topic of the SLA), `partitions` (numbered) and the view `judged`."""
    db.add(
        windows=pa.table({"start": pa.array([one.start for one in windows], pa.timestamp("us", "UTC"))}),
        latency_rows=latency,
        steady_rows=steady,
        named=_columns(expected),
    )
    db.set(
        sla=sla.name,
        cluster=sla.cluster,
        start=interval.start,
        end=interval.end,
        threshold=sla.max_latency_ms,
        expires_within=sla.min_time_to_expiry_ms,
        when_uncertain=sla.when_uncertain,
    )
    db.add(pairs=pair_table(wanted_pairs(sla, [(row["group"], row["topic"]) for row in db.rows(_PAIRS)])))
    for statement in (_PARTITIONS, _JUDGED):
        db.run(statement)


def _columns(partitions: Sequence[Partition]) -> pa.Table:
    schema = PAIR.append(pa.field("partition", pa.int32()))
    return pa.Table.from_pylist([dict(zip(schema.names, p, strict=True)) for p in partitions], schema)


class _Sums(NamedTuple):
    """One row of `_SUMS`, of plain columns: to make Python's objects of structs takes several times as long."""

    expected: int
    steady: int
    bootstrapping: int
    over: int
    certain_over: int
    certain_within: int
    worst_ms: float | None
    worst_low_ms: float | None
    worst_high_ms: float | None
    worst_group: str
    worst_topic: str
    worst_partition: int
    expires_in_ms: float | None
    expires_certainly: bool
    expiring_group: str
    expiring_topic: str
    expiring_partition: int
    records_consumed: int
    records_over_threshold: int
    records_over_threshold_low: int
    records_over_threshold_high: int
    unknown_because: str | None
    unknown_group: str
    unknown_topic: str
    unknown_partition: int
    absent_groups: list[str] | None
    absent_topics: list[str] | None


def _figures(window: Interval, row: _Sums, missing: Mapping[str, Any] | None) -> WindowFigures:
    unknown = None
    if row.unknown_because is not None:
        unknown = row.unknown_group, row.unknown_topic, row.unknown_partition, row.unknown_because
    elif missing:
        unknown = missing["group"], missing["topic"], missing["partition"], missing["why"]
    worst = expiring = None
    if row.worst_ms is not None:
        place = row.worst_group, row.worst_topic, row.worst_partition
        worst = Worst(row.worst_ms, row.worst_low_ms, row.worst_high_ms, *place)
    if row.expires_in_ms is not None:
        place = row.expiring_group, row.expiring_topic, row.expiring_partition
        expiring = Expiring(row.expires_in_ms, row.expires_certainly, *place)
    return WindowFigures(
        window=window,
        expected=row.expected,
        steady=row.steady,
        bootstrapping=row.bootstrapping,
        over=row.over,
        certain_over=row.certain_over,
        certain_within=row.certain_within,
        worst=worst,
        expiring=expiring,
        records_consumed=row.records_consumed,
        records_over_threshold=row.records_over_threshold,
        records_over_threshold_low=row.records_over_threshold_low,
        records_over_threshold_high=row.records_over_threshold_high,
        unknown=unknown,
        absent_groups=row.absent_groups or (),
        absent_topics=row.absent_topics or (),
    )


_OURS = """
    cluster = getvariable('cluster') AND window_start >= getvariable('start') AND window_start < getvariable('end')"""

_PAIRS = f"""
    SELECT DISTINCT "group", topic FROM latency_rows WHERE {_OURS}
    UNION SELECT DISTINCT "group", topic FROM steady_rows WHERE {_OURS} AND sla = getvariable('sla')
    UNION SELECT "group", topic FROM named
"""

# Numbers are given in the order of names: among equally bad partitions the first one wins, in any engine and order.
_PARTITIONS = f"""
    CREATE TEMP TABLE partitions AS
    SELECT row_number() OVER (ORDER BY "group", topic, partition)::INT AS id, * FROM (
        SELECT "group", topic, partition, bool_or(named) AS named FROM (
            SELECT DISTINCT "group", topic, partition, false AS named FROM latency_rows WHERE {_OURS}
            UNION ALL SELECT "group", topic, partition, true FROM named
        ) AS named_or_seen SEMI JOIN pairs USING ("group", topic) GROUP BY ALL)
"""

_JUDGED = f"""
    CREATE TEMP VIEW judged AS
    WITH latency AS (
        SELECT id, named, window_start AS start, * FROM latency_rows JOIN partitions USING ("group", topic, partition)
        WHERE {_OURS}
    ), state AS (
        SELECT id, window_start AS start, steady_whole_window, records_over_threshold, reason AS state_reason,
            records_over_threshold_low, records_over_threshold_high
        FROM steady_rows JOIN partitions USING ("group", topic, partition)
        WHERE {_OURS} AND sla = getvariable('sla')
    ), unread AS (
        SELECT id, window_start AS start, unread_expires_in_ms AS expires_ms,
            unread_records > 0 AND cleanup_policy IS NULL AS lasts_unknown,
            epoch_ms(oldest_unread_at) + retention_ms - epoch_ms(window_end) AS expires_about_ms
        FROM unread_rows JOIN partitions USING ("group", topic, partition) WHERE {_OURS}
    ), bounded AS (
        SELECT *, coalesce(low_ms > getvariable('threshold'), false) AS surely_over,
            coalesce(high_ms <= getvariable('threshold'), false) AS surely_within FROM (
            SELECT *, {latency_sql()} AS latency_ms, {latency_sql("_low")} AS low_ms,
                CASE WHEN records_latency_max_ms IS NOT NULL AND records_latency_max_high_ms IS NULL THEN NULL
                     WHEN backlog_age_max_ms IS NOT NULL AND backlog_age_max_high_ms IS NULL THEN NULL
                     ELSE {latency_sql("_high")} END AS high_ms
            FROM latency)
    ), measured AS (
        SELECT id, named, start, "group", topic, partition, records_consumed,
            coalesce(records_over_threshold, 0) AS records_over_threshold,
            records_over_threshold_low, records_over_threshold_high,
            coalesce(steady_whole_window, false) AS steady, expires_ms, expires_about_ms, latency_ms, low_ms, high_ms,
            surely_over, surely_within,
            CASE WHEN steady_whole_window IS NULL THEN coalesce(state_reason, 'no steady state')
                 WHEN unknown_reason IS NOT NULL THEN unknown_reason
                 WHEN backlog_age_max_ms IS NULL THEN 'no backlog age'
                 WHEN steady_whole_window AND unknown_latency_records > 0
                 THEN unknown_latency_records || ' records without a produced time'
                 WHEN steady_whole_window AND getvariable('when_uncertain') = 'unknown' AND NOT surely_over
                      AND NOT surely_within
                 THEN printf('the bounds of its latency, %.1f s to %s, allow both', low_ms / 1000,
                             coalesce(printf('%.1f s', high_ms / 1000), 'any time'))
                 WHEN steady_whole_window AND getvariable('expires_within') IS NOT NULL
                     AND coalesce(lasts_unknown, true)
                 THEN 'when its unread records expire is not known' END AS why
        FROM bounded LEFT JOIN state USING (id, start) LEFT JOIN unread USING (id, start)
    ), compared AS (
        SELECT *, steady AND latency_ms IS NOT NULL AND (surely_over OR CASE getvariable('when_uncertain')
                WHEN 'bad' THEN NOT surely_within WHEN 'estimate' THEN latency_ms > getvariable('threshold')
                ELSE false END) AS over,
            steady AND coalesce(expires_ms < getvariable('expires_within'), false) AS expiring FROM measured
    )
    SELECT *, over OR expiring AS bad FROM compared
"""


def _absent(names: str) -> str:
    """Those of the variable that the column of the same name lacks; NULL where it lacks none."""
    wanted, there = f"getvariable('{names}')::VARCHAR[]", f"coalesce({names}, []::VARCHAR[])"
    return f"nullif([name FOR name IN {wanted} IF NOT list_contains({there}, name)], []::VARCHAR[])"


_SUMS = f"""
    WITH sums AS (
        SELECT start, count(*) AS seen, count(*) FILTER (NOT named) AS unrequested,
            count(*) FILTER (steady AND (bad OR why IS NULL)) AS steady,
            count(*) FILTER (NOT steady AND why IS NULL) AS bootstrapping,
            count(*) FILTER (over) AS over,
            count(*) FILTER (over AND surely_over) AS certain_over,
            count(*) FILTER (steady AND NOT bad AND why IS NULL AND surely_within) AS certain_within,
            max({{latency_ms: latency_ms, id: -id, low_ms: low_ms, high_ms: high_ms}})
                FILTER (steady AND latency_ms IS NOT NULL) AS worst,
            min({{in_ms: expires_ms, id: id,
                is_certain: coalesce(expires_about_ms < getvariable('expires_within'), false)}})
                FILTER (expiring) AS expiring,
            sum(records_consumed) FILTER (steady) AS records_consumed,
            sum(records_over_threshold) FILTER (steady) AS records_over_threshold,
            sum(coalesce(records_over_threshold_low, 0)) FILTER (steady) AS records_over_threshold_low,
            sum(coalesce(records_over_threshold_high, records_consumed)) FILTER (steady) AS records_over_threshold_high,
            min({{id: id, why: why}}) FILTER (NOT bad AND why IS NOT NULL) AS unknown,
            list(DISTINCT "group") FILTER (list_contains(getvariable('groups')::VARCHAR[], "group")) AS groups,
            list(DISTINCT topic) FILTER (list_contains(getvariable('topics')::VARCHAR[], topic)) AS topics
        FROM judged GROUP BY start
    ), requested AS (
        SELECT start, (SELECT count(*) FROM partitions WHERE named) AS partitions FROM windows
    )
    SELECT start, requested.partitions + coalesce(unrequested, 0) AS expected, coalesce(seen, 0) AS seen,
        coalesce(steady, 0) AS steady, coalesce(bootstrapping, 0) AS bootstrapping, coalesce(over, 0) AS over,
        coalesce(certain_over, 0) AS certain_over, coalesce(certain_within, 0) AS certain_within,
        least(coalesce(records_consumed, 0), {MOST})::BIGINT AS records_consumed,
        least(coalesce(records_over_threshold, 0), {MOST})::BIGINT AS records_over_threshold,
        least(coalesce(records_over_threshold_low, 0), {MOST})::BIGINT AS records_over_threshold_low,
        least(coalesce(records_over_threshold_high, 0), {MOST})::BIGINT AS records_over_threshold_high,
        worst.latency_ms AS worst_ms, worst.low_ms AS worst_low_ms, worst.high_ms AS worst_high_ms,
        w."group" AS worst_group, w.topic AS worst_topic, w.partition AS worst_partition,
        expiring.in_ms AS expires_in_ms, expiring.is_certain AS expires_certainly,
        e."group" AS expiring_group, e.topic AS expiring_topic, e.partition AS expiring_partition,
        unknown.why AS unknown_because, u."group" AS unknown_group, u.topic AS unknown_topic,
        u.partition AS unknown_partition,
        {_absent("groups")} AS absent_groups, {_absent("topics")} AS absent_topics
    FROM requested LEFT JOIN sums USING (start)
    LEFT JOIN partitions w ON w.id = -worst.id LEFT JOIN partitions u ON u.id = unknown.id
    LEFT JOIN partitions e ON e.id = expiring.id
    ORDER BY start
"""

_MISSING = """
    SELECT start, "group", topic, partition, 'no data' AS why FROM (
        SELECT windows.start, min(id) AS id FROM windows JOIN partitions ON named
        ANTI JOIN judged ON judged.start = windows.start AND judged.id = partitions.id GROUP BY windows.start
    ) JOIN partitions USING (id)
"""
