"""Intervals that could not be measured or judged, and why, until they are. Measures nothing and tries nothing again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Column, Connection, String, Table, Text, delete, insert, select

from kafka_sla.ledger.storage.database import Database, UtcTime
from kafka_sla.ledger.storage.schema import METADATA
from kafka_sla.model.entities import Interval

FAILED_INTERVALS = Table(
    "failed_intervals",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("interval_start", UtcTime, primary_key=True),
    Column("interval_end", UtcTime, primary_key=True),
    Column("step", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("failed_at", UtcTime, nullable=False),
)
UNJUDGED_INTERVALS = Table(
    "unjudged_intervals",
    METADATA,
    Column("sla", Text, primary_key=True),
    Column("interval_start", UtcTime, primary_key=True),
    Column("interval_end", UtcTime, primary_key=True),
    Column("reason", Text, nullable=False),
    Column("failed_at", UtcTime, nullable=False),
)


@dataclass(frozen=True, slots=True)
class Failure:
    """The last time that an interval of a cluster could not be measured."""

    cluster: str
    interval: Interval
    step: str
    """The task that failed: `snapshot`, `prepare`, `measure`, `validate` or `publish`."""
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Unjudged:
    """The last time that an SLA could not be judged in a published interval."""

    sla: str
    interval: Interval
    reason: str
    at: datetime


class Failures:
    """The failed intervals of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, clusters: Sequence[str], interval: Interval, step: str, reason: str) -> None:
        """Keep why the interval was not published, in the place of what was kept of it before."""
        t, own = FAILED_INTERVALS.c, {"interval_start": interval.start, "interval_end": interval.end}
        rows = [
            {"cluster": name, **own, "step": step, "reason": reason, "failed_at": datetime.now(UTC)}
            for name in clusters
        ]
        with self._database.writing("failures") as connection:
            same = t.cluster.in_(clusters), t.interval_start == interval.start, t.interval_end == interval.end
            connection.execute(delete(FAILED_INTERVALS).where(*same))
            connection.execute(insert(FAILED_INTERVALS), rows)

    def forget(self, clusters: Sequence[str], interval: Interval) -> None:
        """The interval was published: what failed inside it is made good."""
        t = FAILED_INTERVALS.c
        inside = t.cluster.in_(clusters), t.interval_start >= interval.start, t.interval_end <= interval.end
        with self._database.writing("failures") as connection:
            connection.execute(delete(FAILED_INTERVALS).where(*inside))

    def within(self, interval: Interval) -> list[Failure]:
        """Failures whose interval overlaps this one, the newest time first."""
        t = FAILED_INTERVALS.c
        rows = (
            select(FAILED_INTERVALS)
            .where(t.interval_start < interval.end, t.interval_end > interval.start)
            .order_by(t.interval_start.desc(), t.cluster)
        )
        return [
            Failure(row.cluster, Interval(row.interval_start, row.interval_end), row.step, row.reason, row.failed_at)
            for row in self._database.rows(rows)
        ]

    def add_unjudged(self, sla: str, interval: Interval, reason: str) -> None:
        """Keep why the SLA was not judged, in the place of what was kept of the interval before."""
        row = {"sla": sla, "interval_start": interval.start, "interval_end": interval.end, "reason": reason}
        t = UNJUDGED_INTERVALS.c
        same = t.sla == sla, t.interval_start == interval.start, t.interval_end == interval.end
        with self._database.writing("failures") as connection:
            connection.execute(delete(UNJUDGED_INTERVALS).where(*same))
            connection.execute(insert(UNJUDGED_INTERVALS).values(**row, failed_at=datetime.now(UTC)))

    def unjudged_within(self, interval: Interval) -> list[Unjudged]:
        """What could not be judged of time that overlaps this one, the newest time first."""
        t = UNJUDGED_INTERVALS.c
        rows = (
            select(UNJUDGED_INTERVALS)
            .where(t.interval_start < interval.end, t.interval_end > interval.start)
            .order_by(t.interval_start.desc(), t.sla)
        )
        return [
            Unjudged(row.sla, Interval(row.interval_start, row.interval_end), row.reason, row.failed_at)
            for row in self._database.rows(rows)
        ]


def forget_unjudged(connection: Connection, sla: str, interval: Interval) -> None:
    """The interval was judged: what failed inside it is made good."""
    t = UNJUDGED_INTERVALS.c
    inside = t.sla == sla, t.interval_start >= interval.start, t.interval_end <= interval.end
    connection.execute(delete(UNJUDGED_INTERVALS).where(*inside))
