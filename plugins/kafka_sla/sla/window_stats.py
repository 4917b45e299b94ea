"""What the partitions of one SLA did in each window, added up by DuckDB over Arrow. Knows no verdict and no store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import MOST, Interval, Sla
from kafka_sla.model.tables import NON_CONSUMED
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

    start: datetime
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
    groups: frozenset[str]
    """Of `names`: groups that have a row."""
    topics: frozenset[str]

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
    with database(unread_rows=unread or arrow_rows(NON_CONSUMED, [])) as db:
        _load(db, sla, interval, window_ms, latency, steady, expected)
        rows = db.rows(_FIGURES)
        gaps = any(row["expected"] > row["seen"] for row in rows)
        missing = {row["start"]: row for row in db.rows(_MISSING)} if gaps else {}
        groups, topics = _present(db, "group", names[0]), _present(db, "topic", names[1])
    return [_figures(row, missing.get(row["start"]), groups, topics) for row in rows]


def _load(
    db: Sql,
    sla: Sla,
    interval: Interval,
    window_ms: int,
    latency: pa.Table,
    steady: pa.Table,
    expected: Sequence[Partition],
) -> None:
    """Make the tables `windows`, `pairs` (group, topic of the SLA), `partitions` (numbered) and the view `judged`."""
    windows = [w.start for w in interval.windows(window_ms)]
    db.add(
        windows=pa.table({"start": pa.array(windows, pa.timestamp("us", "UTC"))}),
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
    db.add(pairs=pair_table(wanted_pairs(sla, db.rows(_PAIRS))))
    for statement in (_PARTITIONS, _JUDGED):
        db.run(statement)


def wanted_pairs(sla: Sla, seen: Iterable[Mapping[str, str]]) -> list[tuple[str, str]]:
    """Those of these groups and topics that are the SLA's."""
    pairs = [(row["group"], row["topic"]) for row in seen]
    if sla.chain:
        stages = {(stage.group, stage.topic) for stage in sla.chain}
        return [pair for pair in pairs if pair in stages]
    return [(group, topic) for group, topic in pairs if sla.groups.matches(group) and sla.topics.matches(topic)]


def pair_table(pairs: Sequence[tuple[str, str]]) -> pa.Table:
    return pa.table({"group": [g for g, _ in pairs], "topic": [t for _, t in pairs]}, _PAIR)


def latency_sql(bound: str = "") -> str:
    """What an SLA compares with its threshold, or its `_low` or `_high` bound: the latency of a partition in a window
    is that of its slowest record, read or waiting."""
    return f"greatest(records_latency_max{bound}_ms, backlog_age_max{bound}_ms)"


_PAIR = pa.schema([("group", pa.string()), ("topic", pa.string())])


def _columns(partitions: Sequence[Partition]) -> pa.Table:
    schema = _PAIR.append(pa.field("partition", pa.int32()))
    return pa.Table.from_pylist([dict(zip(schema.names, p, strict=True)) for p in partitions], schema)


def _present(db: Sql, column: str, names: Sequence[str]) -> dict[datetime, frozenset[str]]:
    """Which of the names have a row in which window."""
    if not names:
        return {}
    found = db.rows(_PRESENT.format(column=column), names=list(names))
    return {row["window_start"].astimezone(UTC): frozenset(row["present"]) for row in found}


def _figures(
    row: dict[str, Any],
    missing: dict[str, Any] | None,
    groups: dict[datetime, frozenset[str]],
    topics: dict[datetime, frozenset[str]],
) -> WindowFigures:
    start = row["start"].astimezone(UTC)
    unknown = row["unknown"] or missing
    return WindowFigures(
        start=start,
        expected=row["expected"],
        steady=row["steady"],
        bootstrapping=row["bootstrapping"],
        over=row["over"],
        certain_over=row["certain_over"],
        certain_within=row["certain_within"],
        worst=Worst(**row["worst"]) if row["worst"] else None,
        expiring=Expiring(**row["expiring"]) if row["expiring"] else None,
        records_consumed=min(int(row["records_consumed"]), MOST),
        records_over_threshold=min(int(row["records_over_threshold"]), MOST),
        records_over_threshold_low=min(int(row["records_over_threshold_low"]), MOST),
        records_over_threshold_high=min(int(row["records_over_threshold_high"]), MOST),
        unknown=(unknown["group"], unknown["topic"], unknown["partition"], unknown["why"]) if unknown else None,
        groups=groups.get(start, frozenset()),
        topics=topics.get(start, frozenset()),
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

_FIGURES = """
    WITH sums AS (
        SELECT start, count(*) AS seen, count(*) FILTER (NOT named) AS unrequested,
            count(*) FILTER (steady AND (bad OR why IS NULL)) AS steady,
            count(*) FILTER (NOT steady AND why IS NULL) AS bootstrapping,
            count(*) FILTER (over) AS over,
            count(*) FILTER (over AND surely_over) AS certain_over,
            count(*) FILTER (steady AND NOT bad AND why IS NULL AND surely_within) AS certain_within,
            max({latency_ms: latency_ms, id: -id, low_ms: low_ms, high_ms: high_ms})
                FILTER (steady AND latency_ms IS NOT NULL) AS worst,
            min({in_ms: expires_ms, id: id,
                is_certain: coalesce(expires_about_ms < getvariable('expires_within'), false)})
                FILTER (expiring) AS expiring,
            sum(records_consumed) FILTER (steady) AS records_consumed,
            sum(records_over_threshold) FILTER (steady) AS records_over_threshold,
            sum(coalesce(records_over_threshold_low, 0)) FILTER (steady) AS records_over_threshold_low,
            sum(coalesce(records_over_threshold_high, records_consumed)) FILTER (steady) AS records_over_threshold_high,
            min({id: id, why: why}) FILTER (NOT bad AND why IS NOT NULL) AS unknown
        FROM judged GROUP BY start
    ), requested AS (
        SELECT start, (SELECT count(*) FROM partitions WHERE named) AS partitions FROM windows
    )
    SELECT start, requested.partitions + coalesce(unrequested, 0) AS expected, coalesce(seen, 0) AS seen,
        coalesce(steady, 0) AS steady, coalesce(bootstrapping, 0) AS bootstrapping, coalesce(over, 0) AS over,
        coalesce(certain_over, 0) AS certain_over, coalesce(certain_within, 0) AS certain_within,
        coalesce(records_consumed, 0) AS records_consumed,
        coalesce(records_over_threshold, 0) AS records_over_threshold,
        coalesce(records_over_threshold_low, 0) AS records_over_threshold_low,
        coalesce(records_over_threshold_high, 0) AS records_over_threshold_high,
        CASE WHEN worst IS NOT NULL THEN {latency_ms: worst.latency_ms, low_ms: worst.low_ms, high_ms: worst.high_ms,
            "group": w."group", topic: w.topic, partition: w.partition} END AS worst,
        CASE WHEN expiring IS NOT NULL THEN {in_ms: expiring.in_ms, is_certain: expiring.is_certain, "group": e."group",
            topic: e.topic, partition: e.partition} END AS expiring,
        CASE WHEN unknown IS NOT NULL THEN {"group": u."group", topic: u.topic, partition: u.partition,
            why: unknown.why} END AS unknown
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

_PRESENT = (
    """
    SELECT window_start, list(DISTINCT "{column}") AS present
    FROM latency_rows JOIN partitions USING ("group", topic, partition)
    WHERE list_contains($names, "{column}") AND """
    + _OURS
    + " GROUP BY window_start"
)
