"""What the partitions of SLAs did in each window, added up by DuckDB over Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import MOST, Interval, Sla
from kafka_sla.model.tables import NON_CONSUMED
from kafka_sla.sla.windows.wanted_rows import PAIR, latency_sql, pair_table, wanted_pairs
from kafka_sla.sql import Sql, database

Partition = tuple[str, str, int]
"""Group, topic, partition."""
Names = tuple[Sequence[str], Sequence[str]]
"""Groups and topics."""


class WindowFigures(NamedTuple):
    """Sums over the partitions of one SLA in one window; steady, bootstrapping and unknown ones make up `expected`.

    A tuple of plain values, because there are thousands of them: a dataclass takes several times as long to make.
    """

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
    worst_ms: float | None
    """How long the steady partition waited that waited longest, and how long at best and at worst (None: unbounded)."""
    worst_low_ms: float | None
    worst_high_ms: float | None
    worst_group: str | None
    worst_topic: str | None
    worst_partition: int | None
    expires_in_ms: float | None
    """Of the steady partition whose unread records expire soonest, sooner than required; None: of none."""
    expires_certainly: bool | None
    """By the estimated age of the oldest of them, too, and not only by its high bound."""
    expiring_group: str | None
    expiring_topic: str | None
    expiring_partition: int | None
    records_due: int
    """Of steady partitions whose position is known, as the three counts of late ones."""
    records_late: int
    records_late_low: int
    records_late_high: int
    records_of_unknown_state: int
    """Due on steady partitions whose position is not known, or consumed on partitions without a steady state."""
    unknown_because: str | None
    """Why the first unknown partition is unknown; None: none is."""
    unknown_group: str | None
    unknown_topic: str | None
    unknown_partition: int | None
    absent_groups: list[str] | None
    """Of `names`: groups without a row; None where all have one."""
    absent_topics: list[str] | None

    @property
    def unknown_partitions(self) -> int:
        return self.expected - self.steady - self.bootstrapping


_COLUMNS = WindowFigures._fields[1:]


def window_figures(
    slas: Sequence[Sla],
    interval: Interval,
    window_ms: int,
    latency: pa.Table,
    steady: pa.Table,
    expected: Sequence[Partition],
    names: Sequence[Names],
    unread: pa.Table | None = None,
) -> Iterator[list[WindowFigures]]:
    """One entry per window of the interval for each of these SLAs of one cluster, in their order, by one query for all
    of them. `names`: the groups and topics of each whose presence the caller wants to know. `unread`: rows of
    `non_consumed`, for SLAs that limit them."""
    windows = list(interval.windows(window_ms))
    with database(unread_rows=unread or arrow_rows(NON_CONSUMED, [])) as db:
        _load(db, slas, interval, windows, latency, steady, expected, names)
        sums = db.arrow(_SUMS)
        gaps = pc.any(pc.greater(sums["expected"], sums["seen"])).as_py()
        missing = {(row["sla_number"], row["start"].astimezone(UTC)): row for row in db.rows(_MISSING)} if gaps else {}
    for number in range(len(slas)):
        mine = sums.slice(number * len(windows), len(windows))
        columns = [mine[name].to_pylist() for name in _COLUMNS]
        rows = list(map(WindowFigures._make, zip(windows, *columns, strict=True)))
        yield [_with_missing(row, missing.get((number, row.window.start))) for row in rows] if missing else rows


def _load(
    db: Sql,
    slas: Sequence[Sla],
    interval: Interval,
    windows: Sequence[Interval],
    latency: pa.Table,
    steady: pa.Table,
    expected: Sequence[Partition],
    names: Sequence[Names],
) -> None:
    """Make the tables `windows`, `slas` (numbered), `pairs` (group, topic of each, numbered), `expected` (their
    partitions that are) and the views `seen` and `judged`."""
    db.add(
        windows=pa.table({"start": pa.array([one.start for one in windows], pa.timestamp("us", "UTC"))}),
        slas=_numbered(slas, names),
        latency_rows=latency,
        steady_rows=steady,
        named=_expected(expected),
    )
    db.set(cluster=slas[0].cluster, start=interval.start, end=interval.end)
    seen = [(row["group"], row["topic"]) for row in db.rows(_PAIRS_SEEN)]
    db.add(wanted=_pairs([wanted_pairs(sla, seen) for sla in slas]))
    seen_by = _SEEN if latency["assumed_offset"].null_count == len(latency) else _SEEN + _HAS_TO_READ
    for statement in (_PAIRS, _EXPECTED, seen_by, _JUDGED):
        db.run(statement)


def _numbered(slas: Sequence[Sla], names: Sequence[Names]) -> pa.Table:
    listed = pa.list_(pa.string())
    return pa.table(
        {
            "sla_number": pa.array(range(len(slas)), pa.int32()),
            "sla": [sla.name for sla in slas],
            "threshold": pa.array([sla.max_latency_ms for sla in slas], pa.int64()),
            "expires_within": pa.array([sla.min_time_to_expiry_ms for sla in slas], pa.int64()),
            "all_partitions": [sla.partitions == "all" and not sla.chain for sla in slas],
            "from_created": [sla.latency_from == "created" for sla in slas],
            "allowed_lag": pa.array([sla.allowed_lag for sla in slas], pa.int64()),
            "when_uncertain": [sla.when_uncertain for sla in slas],
            "is_chain": [bool(sla.chain) for sla in slas],
            "wanted_groups": pa.array([list(groups) for groups, _ in names], listed),
            "wanted_topics": pa.array([list(topics) for _, topics in names], listed),
        }
    )


def _pairs(of_slas: Sequence[Sequence[tuple[str, str]]]) -> pa.Table:
    numbers = [number for number, pairs in enumerate(of_slas) for _ in pairs]
    found = pair_table([pair for pairs in of_slas for pair in pairs])
    return found.append_column("sla_number", pa.array(numbers, pa.int32()))


def _expected(partitions: Sequence[Partition]) -> pa.Table:
    schema = PAIR.append(pa.field("partition", pa.int32()))
    return pa.Table.from_pylist([dict(zip(schema.names, p, strict=True)) for p in partitions], schema)


def _with_missing(row: WindowFigures, missing: dict[str, Any] | None) -> WindowFigures:
    """A partition without a row is unknown; one that has a row and is unknown comes first."""
    if missing is None or row.unknown_because is not None:
        return row
    return row._replace(
        unknown_because="no data",
        unknown_group=missing["place"]["group"],
        unknown_topic=missing["place"]["topic"],
        unknown_partition=missing["place"]["partition"],
    )


_OURS = """
    cluster = getvariable('cluster') AND window_start >= getvariable('start') AND window_start < getvariable('end')"""

_PAIRS_SEEN = f"""
    SELECT "group", topic FROM latency_rows WHERE {_OURS} UNION SELECT "group", topic FROM named
"""

# Numbers are given in the order of names: among equally bad partitions the first one wins, in any engine and order.
_PAIRS = """
    CREATE TEMP TABLE pairs AS
    SELECT (dense_rank() OVER (ORDER BY "group", topic))::BIGINT << 32 AS first_id, sla_number, "group", topic,
        list_contains(wanted_groups, "group") AS wanted_group, list_contains(wanted_topics, topic) AS wanted_topic
    FROM wanted JOIN slas USING (sla_number)
"""

_EXPECTED = """
    CREATE TEMP TABLE expected AS
    SELECT DISTINCT sla_number, first_id + partition AS id, "group", topic, partition
    FROM named JOIN pairs USING ("group", topic)
"""

_SEEN = f"""
    CREATE TEMP VIEW seen AS
    SELECT sla_number, first_id + partition AS id, window_start AS start, latency_rows.*, wanted_group, wanted_topic
    FROM latency_rows JOIN pairs USING ("group", topic) WHERE {_OURS}
"""

CONTRADICTORY = "positions contradict each other; do two programs use this group?"
"""Why a window is unknown in which the committed offsets of a group repeatedly jumped back and forth."""


def _allowed(bound: str) -> str:
    """The backlog age of a window. If no more records wait at its end than the SLA allows, only records that were read
    count."""
    read, backlog = f"records_latency_max_{bound}ms", f"backlog_age_max_{bound}ms"
    none_read = "CASE WHEN records_latency_max_ms IS NULL THEN 0 END"
    allowed = "allowed_lag > 0 AND records_lag <= allowed_lag"
    return f"CASE WHEN {allowed} THEN coalesce({read}, {none_read}) ELSE {backlog} END AS {backlog}"


# A partition without a committed offset counts while the group has one elsewhere on the topic, if the SLA is of all.
_HAS_TO_READ = f"""
    AND (assumed_offset IS NULL OR (
        sla_number IN (SELECT sla_number FROM slas WHERE all_partitions)
        AND ("group", topic, window_start) IN (
            SELECT ("group", topic, window_start) FROM latency_rows WHERE {_OURS} AND assumed_offset IS NULL)))
"""

_JUDGED = f"""
    CREATE TEMP VIEW judged AS
    WITH latency AS (
        SELECT seen.* REPLACE ({_allowed("")}, {_allowed("low_")}, {_allowed("high_")}),
            threshold, expires_within, when_uncertain, is_chain,
            CASE WHEN from_created THEN append_delay_ms END AS delay_ms,
            (sla_number, id) IN (SELECT (sla_number, id) FROM expected) AS named FROM seen JOIN slas USING (sla_number)
    ), state AS (
        SELECT sla_number, first_id + partition AS id, window_start AS start, steady_whole_window,
            state = 'contradictory' AS contradictory,
            records_due, records_late, records_late_low, records_late_high, reason AS state_reason
        FROM steady_rows JOIN slas USING (sla) JOIN pairs USING (sla_number, "group", topic)
        WHERE {_OURS}
    ), unread AS (
        SELECT sla_number, first_id + partition AS id, window_start AS start, unread_expires_in_ms AS expires_ms,
            unread_records > 0 AND cleanup_policy IS NULL AS lasts_unknown,
            epoch_ms(oldest_unread_at) + retention_ms - epoch_ms(window_end) AS expires_about_ms
        FROM unread_rows JOIN pairs USING ("group", topic) WHERE {_OURS}
    ), bounded AS (
        SELECT *, coalesce(low_ms > threshold, false) AS surely_over,
            coalesce(high_ms <= threshold, false) AS surely_within FROM (
            SELECT *, {latency_sql()} + coalesce(delay_ms, 0) AS latency_ms,
                greatest({latency_sql("_low")}, delay_ms) AS low_ms,
                CASE WHEN delay_ms IS NOT NULL THEN NULL
                     WHEN records_latency_max_ms IS NOT NULL AND records_latency_max_high_ms IS NULL THEN NULL
                     WHEN backlog_age_max_ms IS NOT NULL AND backlog_age_max_high_ms IS NULL THEN NULL
                     ELSE {latency_sql("_high")} END AS high_ms
            FROM latency)
    ), measured AS (
        SELECT id, sla_number, named, start, "group", topic, wanted_group, wanted_topic, partition, threshold,
            when_uncertain, expires_within, records_consumed, unknown_reason IS NULL OR is_chain AS has_position,
            records_due, records_late, records_late_low, records_late_high,
            coalesce(steady_whole_window, false) AS steady,
            steady_whole_window IS NULL OR coalesce(contradictory, false) AS state_unknown,
            expires_ms, expires_about_ms, latency_ms, low_ms, high_ms, surely_over, surely_within,
            CASE WHEN steady_whole_window IS NULL THEN coalesce(state_reason, 'no steady state')
                 WHEN contradictory THEN '{CONTRADICTORY}'
                 WHEN unknown_reason IS NOT NULL THEN unknown_reason
                 WHEN backlog_age_max_ms IS NULL THEN 'no backlog age'
                 WHEN steady_whole_window AND unknown_latency_records > 0
                 THEN unknown_latency_records || ' records without a produced time'
                 WHEN steady_whole_window AND when_uncertain = 'unknown' AND NOT surely_over AND NOT surely_within
                 THEN printf('the bounds of its latency, %.1f s to %s, allow both', low_ms / 1000,
                             coalesce(printf('%.1f s', high_ms / 1000), 'any time'))
                 WHEN steady_whole_window AND expires_within IS NOT NULL AND coalesce(lasts_unknown, true)
                 THEN 'when its unread records expire is not known' END AS why
        FROM bounded LEFT JOIN state USING (sla_number, id, start) LEFT JOIN unread USING (sla_number, id, start)
    ), compared AS (
        SELECT *, steady AND latency_ms IS NOT NULL AND (surely_over OR CASE when_uncertain
                WHEN 'bad' THEN NOT surely_within WHEN 'estimate' THEN latency_ms > threshold
                ELSE false END) AS over,
            steady AND coalesce(expires_ms < expires_within, false) AS expiring FROM measured
    )
    SELECT *, over OR expiring AS bad FROM compared
"""


def _absent(names: str) -> str:
    """Those of the SLA's names that are not among the names of this kind that were seen; NULL where none is absent."""
    seen = f"coalesce(seen_{names}, []::VARCHAR[])"
    return f"nullif([name FOR name IN wanted_{names} IF NOT list_contains({seen}, name)], []::VARCHAR[])"


def _partition(place: str) -> str:
    return f"({place} & 4294967295)::INT"


def _pair(name: str, place: str) -> str:
    """The join of the pair that a place is in."""
    return (
        f"LEFT JOIN pairs {name} ON {name}.sla_number = requested.sla_number AND {name}.first_id = {place} >> 32 << 32"
    )


_SUMS = f"""
    WITH sums AS (
        SELECT sla_number, start, count(*) AS seen, count(*) FILTER (NOT named) AS unrequested,
            count(*) FILTER (steady AND (bad OR why IS NULL)) AS steady,
            count(*) FILTER (NOT steady AND why IS NULL) AS bootstrapping,
            count(*) FILTER (over) AS over,
            count(*) FILTER (over AND surely_over) AS certain_over,
            count(*) FILTER (steady AND NOT bad AND why IS NULL AND surely_within) AS certain_within,
            max({{latency_ms: latency_ms, id: -id, low_ms: low_ms, high_ms: high_ms}})
                FILTER (steady AND latency_ms IS NOT NULL) AS worst,
            min({{in_ms: expires_ms, id: id, is_certain: coalesce(expires_about_ms < expires_within, false)}})
                FILTER (expiring) AS expiring,
            sum(records_due) FILTER (steady AND has_position) AS records_due,
            sum(records_late) FILTER (steady AND has_position) AS records_late,
            sum(records_late_low) FILTER (steady AND has_position) AS records_late_low,
            sum(records_late_high) FILTER (steady AND has_position) AS records_late_high,
            sum(coalesce(records_due, records_consumed)) FILTER (state_unknown OR steady AND NOT has_position)
                AS records_of_unknown_state,
            min({{id: id, why: why}}) FILTER (NOT bad AND why IS NOT NULL) AS unknown,
            list(DISTINCT "group") FILTER (wanted_group) AS seen_groups,
            list(DISTINCT topic) FILTER (wanted_topic) AS seen_topics
        FROM judged GROUP BY sla_number, start
    ), requested AS (
        SELECT sla_number, start, wanted_groups, wanted_topics,
            (SELECT count(*) FROM expected WHERE expected.sla_number = slas.sla_number) AS partitions
        FROM slas CROSS JOIN windows
    )
    SELECT requested.partitions + coalesce(unrequested, 0) AS expected, coalesce(seen, 0) AS seen,
        coalesce(steady, 0) AS steady, coalesce(bootstrapping, 0) AS bootstrapping, coalesce(over, 0) AS over,
        coalesce(certain_over, 0) AS certain_over, coalesce(certain_within, 0) AS certain_within,
        least(coalesce(records_due, 0), {MOST})::BIGINT AS records_due,
        least(coalesce(records_late, 0), {MOST})::BIGINT AS records_late,
        least(coalesce(records_late_low, 0), {MOST})::BIGINT AS records_late_low,
        least(coalesce(records_late_high, 0), {MOST})::BIGINT AS records_late_high,
        least(coalesce(records_of_unknown_state, 0), {MOST})::BIGINT AS records_of_unknown_state,
        worst.latency_ms AS worst_ms, worst.low_ms AS worst_low_ms, worst.high_ms AS worst_high_ms,
        w."group" AS worst_group, w.topic AS worst_topic, {_partition("-worst.id")} AS worst_partition,
        expiring.in_ms AS expires_in_ms, expiring.is_certain AS expires_certainly,
        e."group" AS expiring_group, e.topic AS expiring_topic, {_partition("expiring.id")} AS expiring_partition,
        unknown.why AS unknown_because, u."group" AS unknown_group, u.topic AS unknown_topic,
        {_partition("unknown.id")} AS unknown_partition,
        {_absent("groups")} AS absent_groups, {_absent("topics")} AS absent_topics
    FROM requested LEFT JOIN sums USING (sla_number, start)
    {_pair("w", "-worst.id")} {_pair("u", "unknown.id")} {_pair("e", "expiring.id")}
    ORDER BY sla_number, start
"""

_MISSING = """
    SELECT sla_number, start, arg_min({"group": "group", topic: topic, partition: partition}, id) AS place
    FROM windows CROSS JOIN expected ANTI JOIN seen USING (sla_number, id, start) GROUP BY sla_number, start
"""
