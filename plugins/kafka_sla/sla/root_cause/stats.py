"""Sums over the late partitions of a miss, by DuckDB over Arrow: who was late, how fast, when nothing moved. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from kafka_sla.model.entities import FOREVER, MOST, Miss
from kafka_sla.sla.windows.wanted_rows import latency_sql
from kafka_sla.sql import database

_UNSEEN = timedelta(hours=1)
"""Time without a row after which nobody knows whether a group still stood still."""


@dataclass(frozen=True, slots=True)
class WindowSum:
    """The partitions asked for, in one window."""

    start: datetime
    end: datetime
    consumed: int
    lag: int | None
    """At the window's end; None where no partition tells."""
    age_ms: float | None
    """Largest backlog age in the window."""
    last_commit_at: datetime | None

    @property
    def stalled(self) -> bool:
        return self.consumed == 0 and bool(self.lag)

    @property
    def known(self) -> bool:
        """Do the rows tell whether it moved? One without a lag, in which nothing was consumed, may have been idle."""
        return self.consumed > 0 or self.lag is not None


@dataclass(frozen=True, slots=True)
class Stall:
    """A time in which records waited and none was consumed."""

    since: datetime
    until: datetime | None
    committed: bool


@dataclass(frozen=True, slots=True)
class Rates:
    """Records per second of all partitions together; None where the rows do not tell."""

    produce_before: float | None
    produce_during: float | None
    consume_before: float | None
    consume_during: float | None


@dataclass(frozen=True, slots=True)
class Rewind:
    """A group that went back."""

    records: int
    """Read again, of all partitions."""
    at: datetime
    """Start of the window in which it first did."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waited on the late partitions of the worst group and topic."""

    one_record: bool
    """Exactly one record on each of them in every window of the miss, and the group committed after it was produced."""
    unread_partition: int | None
    """The one whose records wait for longest of those on which the group has no position."""
    unread_since: datetime | None
    """Produced time of its oldest record."""


def late_partitions(miss: Miss, judged: Iterable[tuple[pa.Table, pa.Table]]) -> pa.Table:
    """Group, topic and number of the steady partitions above the threshold in the miss, the worst first, with `reason`
    and `since` of their steady state; there may be a million. `judged`: latency and steady states of its time, in
    pieces."""
    values = {
        "cluster": miss.cluster,
        "sla": miss.sla,
        "start": miss.start,
        "end": miss.end or FOREVER,
        "threshold": miss.max_latency_ms,
    }
    parts = []
    for latency, steady in judged:
        with database(latency=latency, steady=steady) as db:
            parts.append(db.arrow(_LATE, **values))
    with database(late=pa.concat_tables(parts)) as db:
        return db.arrow(_WORST_FIRST)


def worst_partitions(miss: Miss, latency: pa.Table, late: pa.Table) -> list[int]:
    """The late partitions of the worst group and topic; all of them where none was late, but records may expire."""
    found = fetched(_LATE_OF_PAIR, _scope(miss, []), late=late)
    return [row["partition"] for row in found or fetched(_PARTITIONS, _scope(miss, []), latency=latency)]


def window_sums(miss: Miss, latency: pa.Table, partitions: Sequence[int]) -> list[WindowSum]:
    """The worst group's reading of these partitions of the worst topic, window by window until the end of the miss."""
    found = fetched(_WINDOWS, _scope(miss, partitions), latency=latency)
    times = ("start", "end", "last_commit_at")
    return [WindowSum(**{k: v.astimezone(UTC) if k in times and v else v for k, v in row.items()}) for row in found]


def phase_rates(miss: Miss, latency: pa.Table, partitions: Sequence[int], built_from: datetime) -> Rates:
    """How fast it went before `built_from`, and from there to the worst window."""
    values = _scope(miss, partitions) | {"built_from": built_from, "worst_at": miss.worst_at}
    (row,) = fetched(_RATES, values, latency=latency)
    return Rates(**row)


def rewinds(miss: Miss, latency: pa.Table, partitions: Sequence[int]) -> Rewind | None:
    """Where the worst group went back on these partitions, in all the rows until the end of the miss."""
    (row,) = fetched(_REWINDS, _scope(miss, partitions), latency=latency)
    return Rewind(int(row["records"]), row["at"].astimezone(UTC)) if row["records"] else None


def waiting_records(miss: Miss, latency: pa.Table, partitions: Sequence[int]) -> Waiting:
    """What waited on these partitions of the worst topic in the windows of the miss."""
    (row,) = fetched(_WAITING, _scope(miss, partitions) | {"start": miss.start}, latency=latency)
    since = row["unread_since"]
    return Waiting(bool(row["one_record"]), row["unread_partition"], since and since.astimezone(UTC))


def longest_stall(sums: Sequence[WindowSum], start: datetime) -> Stall | None:
    """The longest run of stalled windows that reaches into the time from `start` on. Where rows of hours are missing,
    nobody knows what it did meanwhile."""
    runs: list[tuple[int, int]] = []
    for i, window in enumerate(sums):
        if window.stalled and i and sums[i - 1].stalled and window.start - sums[i - 1].end < _UNSEEN:
            runs[-1] = (runs[-1][0], i + 1)
        elif window.stalled:
            runs.append((i, i + 1))
    reaching = [(first, after) for first, after in runs if sums[after - 1].end > start]
    if not reaching:
        return None
    first, after = max(reaching, key=lambda run: run[1] - run[0])
    return _stall(sums, first, after)


def _stall(sums: Sequence[WindowSum], first: int, after: int) -> Stall:
    begin = sums[first].start
    known = [w.last_commit_at for w in sums[: first + 1] if w.last_commit_at and w.last_commit_at <= begin]
    committing = [w for w in sums[first:after] if w.last_commit_at and w.last_commit_at >= w.start]
    return Stall(
        since=max(known, default=begin),
        until=sums[after].start if after < len(sums) else None,
        # Not one commit of a member that starts again, or that says good-bye: most of the windows.
        committed=2 * len(committing) > after - first,
    )


def _scope(miss: Miss, partitions: Sequence[int]) -> dict[str, Any]:
    return {
        "cluster": miss.cluster,
        "group": miss.worst_group,
        "topic": miss.worst_topic,
        "partitions": list(partitions),
        "end": miss.end or FOREVER,
    }


def fetched(query: str, values: dict[str, Any], **tables: pa.Table) -> list[dict[str, Any]]:
    """Rows of a query over Arrow tables."""
    with database(**tables) as db:
        return db.rows(query, **values)


_LATE = f"""
    SELECT latency."group", topic, partition, max({latency_sql()}) AS worst_latency_ms,
        max(window_start) AS "at", arg_max(reason, window_start) AS reason, arg_max(since, window_start) AS since
    FROM latency JOIN steady USING (cluster, "group", topic, partition, window_start)
    WHERE cluster = $cluster AND sla = $sla AND steady_whole_window AND window_start >= $start AND window_start < $end
        AND {latency_sql()} > $threshold
    GROUP BY ALL
"""

_WORST_FIRST = """
    SELECT "group", topic, partition, arg_max(reason, "at") AS reason, arg_max(since, "at") AS since
    FROM late GROUP BY "group", topic, partition
    ORDER BY max(worst_latency_ms) DESC, "group", topic, partition
"""

_LATE_OF_PAIR = 'SELECT partition FROM late WHERE "group" = $group AND topic = $topic'

_PARTITIONS = """
    SELECT DISTINCT partition FROM latency
    WHERE cluster = $cluster AND "group" = $group AND topic = $topic AND window_start < $end ORDER BY partition
"""

_SCOPE = """
    cluster = $cluster AND "group" = $group AND topic = $topic AND list_contains($partitions, partition)
    AND window_start < $end
"""

_WINDOWS = f"""
    SELECT window_start AS start, window_end AS "end",
        coalesce(TRY_CAST(sum(records_consumed) AS BIGINT), {MOST}) AS consumed,
        TRY_CAST(sum(records_lag) AS BIGINT) AS lag, max(backlog_age_max_ms) AS age_ms,
        max(last_commit_at) AS last_commit_at
    FROM latency WHERE {_SCOPE} GROUP BY ALL ORDER BY start
"""

# A log end that falls belongs to a recreated topic: that step tells no rate.
_RATES = f"""
    WITH steps AS (
        SELECT partition, records_consumed, window_start,
            log_end_offset - lag(log_end_offset) OVER w AS produced,
            epoch_ms(window_end) - epoch_ms(lag(window_end) OVER w) AS step_ms,
            epoch_ms(window_end) - epoch_ms(window_start) AS width_ms,
            window_end <= $built_from AS early
        FROM latency WHERE {_SCOPE} AND log_end_offset IS NOT NULL
        WINDOW w AS (PARTITION BY partition ORDER BY window_start)
    ), rates AS (
        SELECT partition, early,
            1000.0 * sum(produced) FILTER (produced >= 0) / sum(step_ms) FILTER (produced >= 0) AS produce_rate,
            1000.0 * sum(records_consumed) / sum(width_ms) AS consume_rate
        FROM steps WHERE window_start <= $worst_at GROUP BY ALL
    )
    SELECT fsum(produce_rate) FILTER (early) AS produce_before,
        fsum(produce_rate) FILTER (NOT early) AS produce_during,
        fsum(consume_rate) FILTER (early) AS consume_before,
        fsum(consume_rate) FILTER (NOT early) AS consume_during
    FROM rates
"""

_REWINDS = f"""
    SELECT sum(back) AS records, min(window_start) AS at FROM (
        SELECT window_start, lag(committed_offset) OVER w - committed_offset AS back FROM latency WHERE {_SCOPE}
        WINDOW w AS (PARTITION BY partition ORDER BY window_start)
    ) WHERE back > 0
"""

# A client that commits the last offset instead of the next one leaves one record behind; a dead one does not commit
# after that record was produced.
_WAITING = f"""
    WITH inside AS (
        SELECT *, window_end - to_milliseconds(CAST(backlog_age_ms AS BIGINT)) AS oldest_at
        FROM latency WHERE {_SCOPE} AND window_start >= $start
    )
    SELECT coalesce(bool_and(records_lag = 1 AND last_commit_at >= oldest_at), false) AS one_record,
        arg_min(partition, oldest_at) FILTER (committed_offset IS NULL AND records_lag > 0) AS unread_partition,
        min(oldest_at) FILTER (committed_offset IS NULL AND records_lag > 0) AS unread_since
    FROM inside
"""
