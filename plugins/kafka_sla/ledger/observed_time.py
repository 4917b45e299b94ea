"""The time that snapshots of consumer groups speak for, as few spans per cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Column, Connection, Table, Text, delete, insert, select

from kafka_sla.ledger.storage.database import Database, UtcTime
from kafka_sla.ledger.storage.schema import METADATA
from kafka_sla.model.entities import Interval

VOUCHED = timedelta(minutes=10)
"""A snapshot speaks for the time since the one before, but for so long at most: two runs of the usual interval."""

OBSERVED_TIME = Table(
    "observed_time",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("start_at", UtcTime, primary_key=True),
    Column("end_at", UtcTime, nullable=False),
)


class ObservedTime:
    """The observed time of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, cluster: str, snapshots: Iterable[datetime], vouched: timedelta = VOUCHED) -> None:
        """Add the time that these snapshots speak for; adding it twice, or in any order, comes out the same."""
        new = merged(Interval(at - vouched, at) for at in snapshots)
        if not new:
            return
        with self._database.writing(f"observed {cluster}") as connection:
            reach = Interval(new[0].start, new[-1].end)
            spans = merged([*new, *_touching(connection, [cluster], reach).get(cluster, [])])
            _replace(connection, cluster, spans)

    def spans(self, clusters: Sequence[str], interval: Interval) -> Mapping[str, list[Interval]]:
        """The spans of each cluster that touch the interval, in time order."""
        with self._database.reading() as connection:
            return _touching(connection, clusters, interval)


def merged(spans: Iterable[Interval]) -> list[Interval]:
    """The same time in as few spans as possible, in time order."""
    found: list[Interval] = []
    for span in sorted(spans):
        if found and span.start <= found[-1].end:
            found[-1] = Interval(found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(span)
    return found


def _touching(connection: Connection, clusters: Sequence[str], reach: Interval) -> dict[str, list[Interval]]:
    t = OBSERVED_TIME.c
    rows = select(OBSERVED_TIME).where(t.cluster.in_(clusters), t.start_at <= reach.end, t.end_at >= reach.start)
    spans: dict[str, list[Interval]] = defaultdict(list)
    for row in connection.execute(rows.order_by(t.start_at)):
        spans[row.cluster].append(Interval(row.start_at, row.end_at))
    return spans


def _replace(connection: Connection, cluster: str, spans: Sequence[Interval]) -> None:
    t = OBSERVED_TIME.c
    inside = (t.start_at >= spans[0].start) & (t.start_at <= spans[-1].end)
    connection.execute(delete(OBSERVED_TIME).where(t.cluster == cluster, inside))
    rows = [{"cluster": cluster, "start_at": span.start, "end_at": span.end} for span in spans]
    connection.execute(insert(OBSERVED_TIME), rows)
