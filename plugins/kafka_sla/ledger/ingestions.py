"""Landings of facts, numbered: they tell whether rows measured earlier had seen all facts there are. Knows no file."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select, update

from kafka_sla.ledger.storage.database import Database
from kafka_sla.ledger.storage.schema import FACT_LOADS, PUBLICATIONS
from kafka_sla.model.entities import Interval


class Ingestions:
    """The landings of the ledger. A landing is recorded before its files appear and confirmed after: until then nobody
    may claim to have seen it, whatever is killed in between."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, cluster: str, interval: Interval) -> int:
        """Announce that facts of this time are about to appear; answers the landing's number in its cluster."""
        return self._record(cluster, interval, landed=False)

    def confirm(self, cluster: str, seq: int) -> None:
        """Confirm that an announced landing is readable."""
        with self._database.writing("fact_loads") as connection:
            connection.execute(update(FACT_LOADS).where(_is(cluster, seq)).values(landed=True))

    def record(self, cluster: str, interval: Interval) -> int:
        """Record facts that are readable already; its number is newer than that of every measurement so far."""
        return self._record(cluster, interval, landed=True)

    def readable_seq(self, cluster: str) -> int:
        """The number up to which every landing is readable now: read it before listing files."""
        mine = FACT_LOADS.c.cluster == cluster
        pending = select(func.min(FACT_LOADS.c.seq)).where(mine, ~FACT_LOADS.c.landed)
        with self._database.reading() as connection:
            first_pending = connection.execute(pending).scalar_one()
            newest = _newest(connection, cluster)
        return newest if first_pending is None else first_pending - 1

    def renumber_stale(self, before: datetime) -> None:
        """Number landings that were announced before `before` and never confirmed anew, as if they had just landed, and
        forget those that every publication has seen."""
        stale = select(FACT_LOADS).where(~FACT_LOADS.c.landed, FACT_LOADS.c.recorded_at < before)
        with self._database.writing("fact_loads") as connection:
            for row in connection.execute(stale).all():
                _insert(connection, row.cluster, Interval(row.from_at, row.to_at), landed=True)
                connection.execute(delete(FACT_LOADS).where(_is(row.cluster, row.seq)))
            _forget_seen(connection)

    def _record(self, cluster: str, interval: Interval, *, landed: bool) -> int:
        with self._database.writing("fact_loads") as connection:
            return _insert(connection, cluster, interval, landed=landed)


def landings_after(connection: Connection, cluster: str, after: int) -> list[tuple[int, datetime]]:
    """Landings numbered above `after`: number, and the oldest time that their facts may have."""
    mine = select(FACT_LOADS.c.seq, FACT_LOADS.c.from_at).where(FACT_LOADS.c.cluster == cluster)
    return [(row.seq, row.from_at) for row in connection.execute(mine.where(FACT_LOADS.c.seq > after))]


def _insert(connection: Connection, cluster: str, interval: Interval, *, landed: bool) -> int:
    """Record a landing under the next number of its cluster; the lock keeps two from taking the same."""
    seq = _newest(connection, cluster) + 1
    values = {
        "cluster": cluster,
        "seq": seq,
        "from_at": interval.start,
        "to_at": interval.end,
        "landed": landed,
        "recorded_at": datetime.now(UTC),
    }
    connection.execute(insert(FACT_LOADS).values(**values))
    return seq


def _newest(connection: Connection, cluster: str) -> int:
    newest = select(func.max(FACT_LOADS.c.seq)).where(FACT_LOADS.c.cluster == cluster)
    return connection.execute(newest).scalar_one() or 0


def _is(cluster: str, seq: int) -> ColumnElement[bool]:
    return and_(FACT_LOADS.c.cluster == cluster, FACT_LOADS.c.seq == seq)


def _forget_seen(connection: Connection) -> None:
    """Drop landings at or below every publication's `facts_seq`, except the newest one, which carries the number."""
    oldest = select(PUBLICATIONS.c.cluster, func.min(PUBLICATIONS.c.facts_seq)).group_by(PUBLICATIONS.c.cluster)
    for cluster, seen in connection.execute(oldest).all():
        mine = FACT_LOADS.c.cluster == cluster
        newest = _newest(connection, cluster)
        connection.execute(
            delete(FACT_LOADS).where(mine, FACT_LOADS.c.landed, FACT_LOADS.c.seq <= seen, FACT_LOADS.c.seq < newest)
        )
