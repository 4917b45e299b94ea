"""Landings of facts, numbered: they tell whether rows measured earlier had seen all facts there are."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select, update

from kafka_sla.ledger.storage.database import Database, delete_each
from kafka_sla.ledger.storage.schema import FACT_LOADS, PUBLICATIONS
from kafka_sla.model.entities import Interval

_Landing = tuple[int, datetime]
"""Number, and the oldest time that its facts may have."""


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
        forget those that say nothing any more."""
        stale = select(FACT_LOADS).where(~FACT_LOADS.c.landed, FACT_LOADS.c.recorded_at < before)
        with self._database.writing("fact_loads") as connection:
            for row in connection.execute(stale).all():
                _insert(connection, row.cluster, Interval(row.from_at, row.to_at), landed=True)
                connection.execute(delete(FACT_LOADS).where(_is(row.cluster, row.seq)))
            _forget_unheeded(connection, before)

    def _record(self, cluster: str, interval: Interval, *, landed: bool) -> int:
        with self._database.writing("fact_loads") as connection:
            return _insert(connection, cluster, interval, landed=landed)


def landings_after(connection: Connection, cluster: str, after: int) -> list[_Landing]:
    """Landings numbered above `after`."""
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


def _forget_unheeded(connection: Connection, before: datetime) -> None:
    """Drop landings that every publication has seen, and of those recorded before `before`, when nobody is measuring
    any more who has not seen them, all that limit what no publication is trusted for. The newest one of a cluster
    stays, which carries the number."""
    published: dict[str, list[tuple[int, datetime]]] = defaultdict(list)
    p, f = PUBLICATIONS.c, FACT_LOADS.c
    for cluster, seen, end in connection.execute(select(p.cluster, p.facts_seq, p.interval_end)).all():
        published[cluster].append((seen, end))
    for cluster, seen_until in published.items():
        rows = connection.execute(select(FACT_LOADS).where(f.cluster == cluster).order_by(f.seq)).all()
        seen_by_all = min(seen for seen, _ in seen_until)
        heeded = _heeded([(row.seq, row.from_at) for row in rows], seen_until)
        gone = [
            row.seq
            for row in rows[:-1]
            if row.landed and (row.seq <= seen_by_all or (row.recorded_at < before and row.seq not in heeded))
        ]
        delete_each(connection, delete(FACT_LOADS).where(f.cluster == cluster), f.seq, gone)


def _heeded(landings: Sequence[_Landing], published: Sequence[tuple[int, datetime]]) -> set[int]:
    """The landings, in order, that publications, told by what they have seen and their end, are trusted no further
    than: of those that one has not seen, the one with the oldest facts, where these are of its time or before it."""
    oldest = [*accumulate(reversed(landings), _older)][::-1]
    numbers = [seq for seq, _ in landings]
    unseen = ((bisect_right(numbers, seen), end) for seen, end in published)
    return {oldest[at][0] for at, end in unseen if at < len(oldest) and oldest[at][1] < end}


def _older(one: _Landing, other: _Landing) -> _Landing:
    return other if other[1] < one[1] else one
