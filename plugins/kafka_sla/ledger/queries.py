"""What the pages ask of the ledger besides its rollups: the newest verdicts, one miss, what was validated and
published. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Index, Select, and_, false, func, select

from kafka_sla.ledger.judged_windows import judged_spans, newest, newest_packed
from kafka_sla.ledger.storage.database import Database
from kafka_sla.ledger.storage.schema import PUBLICATIONS, QUARANTINE, SLA_MISSES, SLA_WINDOWS, VALIDATION_RESULTS
from kafka_sla.model.entities import Interval

Index(
    "validation_results_broken",
    VALIDATION_RESULTS.c.interval_start,
    postgresql_where=VALIDATION_RESULTS.c.success == false(),
    sqlite_where=VALIDATION_RESULTS.c.success == false(),
)


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest verdict on an SLA."""

    end: datetime
    verdict: str
    reason: str | None
    worst_latency_ms: float | None
    max_latency_ms: int


@dataclass(frozen=True, slots=True)
class Published:
    """A publication, and when it was made."""

    cluster: str
    interval: Interval
    published_at: datetime


class Queries:
    """Questions of the pages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def newest_verdicts(self, slas: Sequence[str], since: datetime | None = None) -> dict[str, Newest]:
        """The last judged window of each SLA that has one; those of SLAs judged `since` then come in one query."""
        t, found = SLA_WINDOWS.c, {}
        columns = select(t.window_end, t.verdict, t.reason, t.worst_latency_ms, t.max_latency_ms)
        with self._database.reading() as connection:
            if since:
                older = newest_packed(connection, slas, since - timedelta(days=1))
                rows = connection.execute(_recent(columns, slas, since)).all()
                found = {row[-1]: Newest(*row[:-1]) for row in rows if row[-1] not in older}
            for sla in [sla for sla in slas if sla not in found]:
                if row := newest(connection, sla, columns):
                    found[sla] = Newest(*tuple(row))
        return found

    def judged_slas(self) -> dict[str, Interval]:
        """Every SLA that was ever judged, and the time from its first window to its last."""
        with self._database.reading() as connection:
            return judged_spans(connection)

    def sla_of_miss(self, miss_id: str) -> tuple[str, datetime] | None:
        """Which SLA a miss broke and when it started."""
        t = SLA_MISSES.c
        with self._database.reading() as connection:
            row = connection.execute(select(t.sla, t.start_at).where(t.miss_id == miss_id)).first()
        return (row.sla, row.start_at) if row else None

    def newest_validations(self) -> list[dict[str, Any]]:
        """What each expectation said of the newest load of each table."""
        t, rows = VALIDATION_RESULTS.c, []
        with self._database.reading() as connection:
            newest = select(t.load_id).order_by(t.interval_start.desc()).limit(1)
            for table in _validated_tables(connection):
                load_id = connection.execute(newest.where(t.table_name == table)).scalar_one()
                mine = select(VALIDATION_RESULTS).where(t.load_id == load_id, t.table_name == table)
                rows += [dict(row._mapping) for row in connection.execute(mine.order_by(t.expectation_id))]
        return rows

    def failed_expectations(self, interval: Interval, at_most: int) -> list[dict[str, Any]]:
        """Expectations that failed for loads which start in the interval, the newest first."""
        t = VALIDATION_RESULTS.c
        inside = and_(t.interval_start >= interval.start, t.interval_start < interval.end, t.success == false())
        rows = select(VALIDATION_RESULTS).where(inside).order_by(t.interval_start.desc(), t.table_name).limit(at_most)
        return [dict(row._mapping) for row in self._database.rows(rows)]

    def quarantined_rows(self, load_id: str, expectation_id: str, at_most: int) -> list[str]:
        """Rows of a load that broke an expectation, as JSON."""
        t = QUARANTINE.c
        rows = select(t.row).where(t.load_id == load_id, t.expectation_id == expectation_id).order_by(t.id)
        with self._database.reading() as connection:
            return list(connection.execute(rows.limit(at_most)).scalars())

    def first_published(self) -> dict[str, datetime]:
        """The start of the oldest publication of each cluster that has one."""
        t = PUBLICATIONS.c
        rows = select(t.cluster, func.min(t.interval_start)).group_by(t.cluster)
        return {row[0]: row[1] for row in self._database.rows(rows)}

    def last_published(self) -> dict[str, datetime]:
        """The newest end of a publication of each cluster that has one."""
        t = PUBLICATIONS.c
        rows = select(t.cluster, func.max(t.interval_end)).group_by(t.cluster)
        return {row[0]: row[1] for row in self._database.rows(rows)}

    def publications(self, interval: Interval) -> list[Published]:
        """The publications that overlap the interval."""
        t = PUBLICATIONS.c
        rows = select(t.cluster, t.interval_start, t.interval_end, t.published_at).where(
            t.interval_start < interval.end, t.interval_end > interval.start
        )
        return [
            Published(row.cluster, Interval(row.interval_start, row.interval_end), row.published_at)
            for row in self._database.rows(rows)
        ]


def _recent(columns: Select[Any], slas: Sequence[str], since: datetime) -> Select[Any]:
    t = SLA_WINDOWS.c
    last = select(t.sla, func.max(t.window_start).label("start")).where(t.sla.in_(slas), t.window_start >= since)
    newest = last.group_by(t.sla).subquery()
    return columns.add_columns(t.sla).join(newest, and_(t.sla == newest.c.sla, t.window_start == newest.c.start))


def _validated_tables(connection: Any) -> list[str]:
    """Tables with results of the newest day; a table that was not validated in it has left the pipeline."""
    t = VALIDATION_RESULTS.c
    newest = connection.execute(select(func.max(t.interval_start))).scalar_one()
    if newest is None:
        return []
    recent = select(t.table_name).distinct().where(t.interval_start >= newest - timedelta(days=1))
    return sorted(connection.execute(recent).scalars())
